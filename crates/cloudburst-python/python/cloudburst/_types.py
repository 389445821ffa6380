"""Types that both kinds of endpoints return."""

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
else:
    # A name that only type checkers know.
    ReadableBuffer = object

Payload: TypeAlias = ReadableBuffer
"""What is sent: any object with the buffer protocol, such as bytes, bytearray, memoryview or an array of
NumPy. Its bytes are copied."""


class Message(NamedTuple):
    """A message that has arrived."""

    peer: str
    """The address at which the sender accepts messages."""
    data: bytes


class Receipt(NamedTuple):
    """The cost of a delivered message."""

    bytes: int
    """Bytes in the message."""
    source_symbols: int
    """The number of packets that a loss-free link needs."""
    packets: int
    """The number of packets that were sent until STOP arrived."""
    waited: float
    """Seconds from when the message was accepted to its first packet: the wait for a session, for other
    messages, and for the rate."""
    completed_in: float
    """Seconds from the first packet to STOP."""
