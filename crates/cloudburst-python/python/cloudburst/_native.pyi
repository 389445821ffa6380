from collections.abc import Callable
from typing import Any, final

from cloudburst._types import Payload

__all__ = ["DEFAULT_PRIORITY", "VERSION", "Endpoint", "Operation", "Request"]

DEFAULT_PRIORITY: int
VERSION: str

@final
class Endpoint:
    def __new__(
        cls,
        bind: str,
        key: bytes | None,
        paths: str | None,
        capacity: int | None,
        fabric: str | None,
        mtu: int | None,
        deadline: float | None,
        keep_alive: float | None,
        known_as: list[str],
        also_accept: list[bytes],
    ) -> Endpoint: ...
    def local_address(self) -> str: ...
    def set_security(self, key: bytes, also_accept: list[bytes]) -> None: ...
    def counters(self) -> dict[str, int]: ...
    def resolve(self, name: str, wake: Callable[[], object]) -> Operation: ...
    def connect(
        self, peer: str, timeout: float | None, wake: Callable[[], object]
    ) -> Operation: ...
    def send(
        self,
        peer: str,
        data: Payload,
        timeout: float | None,
        priority: int,
        wake: Callable[[], object],
    ) -> Operation: ...
    def recv(self, wake: Callable[[], object]) -> Operation: ...
    def call(
        self,
        peer: str,
        data: Payload,
        timeout: float | None,
        priority: int,
        wake: Callable[[], object],
    ) -> Operation: ...
    def call_many(
        self,
        requests: list[tuple[str, Payload]],
        timeout: float | None,
        priority: int,
        wake: Callable[[], object],
    ) -> Operation: ...
    def recv_request(self, wake: Callable[[], object]) -> Operation: ...
    def shutdown(self, within: float, wake: Callable[[], object]) -> Operation: ...
    def close(self) -> None: ...

@final
class Operation:
    def result(self) -> Any: ...
    def cancel(self) -> None: ...

@final
class Request:
    def peer(self) -> str: ...
    def data(self) -> bytes: ...
    def time_left(self) -> float: ...
    def is_cancelled(self) -> bool: ...
    def cancelled(self, wake: Callable[[], object]) -> Operation: ...
    def reply(
        self,
        data: Payload,
        timeout: float | None,
        priority: int,
        wake: Callable[[], object],
    ) -> Operation: ...
    def refuse(self, wake: Callable[[], object]) -> Operation: ...
    def close(self) -> None: ...
