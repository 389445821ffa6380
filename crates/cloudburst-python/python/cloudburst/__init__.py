"""Short messages between hosts of a data centre, with a low tail latency.

``Endpoint`` blocks; ``cloudburst.aio.Endpoint`` is the same for asyncio::

    import cloudburst

    with cloudburst.Endpoint("0.0.0.0:7000", key=key) as endpoint:
        response = endpoint.call("10.0.0.2:7000", b"a question")

Addresses are strings of an IP address and a port, such as ``10.0.0.2:7000`` or ``[2001:db8::2]:7000``. A peer may
also be a name and a port, such as ``cache-7.example:7000``, which is looked up each time: resolve that of a peer which
gets many messages. Payloads are any objects with the buffer protocol. Times are in seconds. An endpoint belongs to the process that opened it: open endpoints after forking.
"""

from cloudburst import _native
from cloudburst._blocking import Endpoint, Request
from cloudburst._errors import (
    Busy,
    BusyTimeout,
    Closed,
    Error,
    Indeterminate,
    NoAddress,
    NotDelivered,
    Overloaded,
    Timeout,
)
from cloudburst._types import Message, Payload, Receipt

__all__ = [
    "Busy",
    "BusyTimeout",
    "Closed",
    "Endpoint",
    "Error",
    "Indeterminate",
    "Message",
    "NoAddress",
    "NotDelivered",
    "Overloaded",
    "Payload",
    "Receipt",
    "Request",
    "Timeout",
    "__version__",
]

__version__ = _native.VERSION
