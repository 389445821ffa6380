"""Why a message was not delivered, or may not have been."""

import socket


class Error(Exception):
    """The base of the package's exceptions. In addition, invalid arguments raise ``ValueError``, and refusals of the
    system ``OSError``."""

    may_have_been_delivered: bool = False
    """Whether the receiver may have the message or the request: sending it again may deliver it twice. If it is
    false, the message was certainly not delivered and never will be."""


class Timeout(Error, TimeoutError):
    """The deadline passed, or nothing arrived in time."""


class Busy(Error):
    """One end was full: send less, or later."""


class BusyTimeout(Busy, Timeout):
    """The deadline passed, and the receiver was full when it last answered."""


class NotDelivered(Error):
    """Certainly not delivered: it is safe to send the message again, here or elsewhere."""


class NoAddress(NotDelivered, socket.gaierror):
    """No address is known for the name of a peer that the endpoint can send to. ``errno`` is the error number of the
    system if it has one, and otherwise ``socket.EAI_NONAME``: the text says what the resolver found. Nothing was
    sent."""


class Indeterminate(Error):
    """It may have been delivered, or not."""


class Closed(Error):
    """The endpoint is closed or closing. A message that it was sending may have been delivered."""

    def __init__(self, text: str = "this endpoint is closed") -> None:
        super().__init__(text)


class Overloaded(Exception):
    """A handler of ``serve`` raises this to refuse a request that it has not acted on. The call raises Busy."""


def failure(text: str, is_timeout: bool, is_busy: bool, is_closed: bool, may_have_been_delivered: bool) -> Error:
    """The exception for an error of the library."""
    kind: type[Error]
    if is_closed:
        kind = Closed
    elif is_busy:
        kind = BusyTimeout if is_timeout else Busy
    elif is_timeout:
        kind = Timeout
    else:
        kind = Indeterminate if may_have_been_delivered else NotDelivered
    error = kind(text)
    error.may_have_been_delivered = may_have_been_delivered
    return error


def no_address(text: str, number: int | None) -> NoAddress:
    """The exception for a name that has no address."""
    return NoAddress(socket.EAI_NONAME if number is None else number, text)
