"""Base classes of the blocking and the asyncio endpoints."""

import atexit
import weakref
from collections.abc import Iterable
from typing import Self

from cloudburst import _native

DEFAULT_PRIORITY = _native.DEFAULT_PRIORITY


class Base:
    """An endpoint."""

    def __init__(
        self,
        bind: str = "0.0.0.0:0",
        *,
        key: bytes | None = None,
        trusted_network: bool = False,
        paths: str | None = None,
        capacity: int | None = None,
        fabric: str | None = None,
        mtu: int | None = None,
        deadline: float | None = None,
        keep_alive: float | None = None,
        known_as: Iterable[str] = (),
        also_accept: Iterable[bytes] = (),
    ) -> None:
        """Opens an endpoint, which is both a sender and a receiver.

        bind: the address that peers send to. By default, any IPv4 address of this host and a port that
            the system picks.
        key: 32 bytes that all peers share, from a safe place.
        trusted_network: use no key. Any host that reaches the endpoint may use it.
        paths: the paths to spread packets over, such as ``ecmp:16``, the default, or ``file:paths.toml``.
        capacity: the link's, in bits per second. By default, the speed that the interface reports, if it is
            hardware; elsewhere, the rate adapts.
        fabric: the network: ``tiny-queues``, the default, whose switches have shallow queues for the packets;
            or ``cloud``, whose queues are shared with others: no DSCP, and a rate that adapts.
        mtu: the bytes of the longest IP packet to send, an upper bound, as the MTU of each path is discovered. By
            default 9,000.
        deadline: the seconds within which messages, calls, connects and replies must end that set no timeout. By
            default 10.
        keep_alive: the seconds in which each socket sends at least one packet to each peer with a session, so that a
            translator (NAT) or a firewall in between does not forget it: half of the time after which that forgets. Less
            than 1 counts as 1. By default, never.
        known_as: the addresses that peers send to, if a device in between translates them.
        also_accept: keys that peers may begin with as well, while keys are being replaced: see set_security.

        Raises OSError if the system refuses the endpoint, and ValueError if an argument is invalid.
        """
        if (key is None) != trusted_network:
            raise ValueError("expected either key or trusted_network=True")
        also_accept = [_key(other) for other in also_accept]
        if trusted_network and also_accept:
            raise ValueError("expected no also_accept with trusted_network=True")
        self._native = _native.Endpoint(
            bind=bind,
            key=None if key is None else _key(key),
            paths=paths,
            capacity=capacity,
            fabric=fabric,
            mtu=mtu,
            deadline=deadline,
            keep_alive=keep_alive,
            known_as=list(known_as),
            also_accept=also_accept,
        )
        _open.add(self)

    @property
    def local_address(self) -> str:
        """The address that peers send to."""
        return self._native.local_address()

    def set_security(self, key: bytes, *, also_accept: Iterable[bytes] = ()) -> None:
        """Changes the keys while the endpoint is in use: handshakes that begin from now on use ``key``, and those of
        peers may begin with ``key`` or one of ``also_accept``. Open sessions and everything under way go on.

        To replace a key without a failed message, do each of these steps on all endpoints before the next one: accept
        the new key as well, begin with it and accept the old one, drop the old one.
        """
        self._native.set_security(_key(key), [_key(other) for other in also_accept])

    def counters(self) -> dict[str, int]:
        """The counters since the endpoint was opened, by the names that they have in Rust, such as
        ``sender.delivered`` or ``io.kernel_drops``. Only ``sender.rate`` is a present value, in bits per second."""
        return self._native.counters()

    def _close(self) -> None:
        self._native.close()

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__qualname__} {self.local_address}>"


def _key(key: bytes) -> bytes:
    if len(key) != 32:
        raise ValueError(f"a key has {len(key)} bytes: expected 32")
    return key


class BaseRequest:
    """A request that has arrived and awaits an answer.

    If it is closed or dropped, its caller is told at once that there is no answer.
    """

    peer: str
    """The address of the caller."""
    data: bytes

    def __init__(self, native: _native.Request) -> None:
        self._native = native
        self.peer = native.peer()
        self.data = native.data()

    @property
    def time_left(self) -> float:
        """The seconds for which the caller still waits."""
        return self._native.time_left()

    @property
    def is_cancelled(self) -> bool:
        """Whether the response is no longer awaited: the caller has given up, its deadline has passed, this endpoint
        is closed, or the request was answered or closed."""
        return self._native.is_cancelled()

    def close(self) -> None:
        """Tells the caller that there is no answer. Does nothing if the request is answered already."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_open: weakref.WeakSet[Base] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Ends all threads that call back into Python, while the interpreter still exists."""
    for endpoint in list(_open):
        endpoint._close()
