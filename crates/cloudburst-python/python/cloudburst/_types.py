"""What both kinds of endpoints return."""

from typing import NamedTuple


class Message(NamedTuple):
    """A message that has arrived."""

    peer: str
    """The address of its sender, where that accepts messages itself."""
    data: bytes


class Receipt(NamedTuple):
    """What a delivered message has cost."""

    bytes: int
    """Bytes in the message."""
    source_symbols: int
    """The packets that a loss-free link needs."""
    packets: int
    """The packets that were sent, until the receiver said STOP."""
    waited: float
    """Seconds from the call to the first packet: for a session, for other messages, for the rate."""
    completed_in: float
    """Seconds from the first packet to STOP."""
