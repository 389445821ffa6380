"""Endpoints for asyncio."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Self

from cloudburst._base import DEFAULT_PRIORITY, Base, BaseRequest
from cloudburst._blocking import Begin
from cloudburst._errors import Closed, Error, Overloaded
from cloudburst._types import Message, Payload, Receipt

__all__ = ["Endpoint", "Request"]

_log = logging.getLogger("cloudburst")


def _in_loop(act: Callable[[], object]) -> Callable[[], None]:
    """Returns a function with which a thread of the library makes the loop call ``act``."""
    loop = asyncio.get_running_loop()

    def call() -> None:
        try:
            loop.call_soon_threadsafe(act)
        except RuntimeError:
            pass  # The loop is closed: no task waits there any more.

    return call


async def _wait(begin: Begin) -> Any:
    """Waits for an operation. Cancelling this stops the operation, and loses nothing that has arrived."""
    ended = asyncio.Event()
    operation = begin(_in_loop(ended.set))
    try:
        await ended.wait()
        return operation.result()
    finally:
        operation.cancel()


class Request(BaseRequest):
    __doc__ = BaseRequest.__doc__

    async def reply(
        self,
        data: Payload = b"",
        *,
        timeout: float | None = None,
        priority: int = DEFAULT_PRIORITY,
    ) -> Receipt:
        """Sends the response, and waits until the caller's endpoint has it.

        An empty response tells the caller that the application has handled the request.
        """
        return Receipt(*await _wait(lambda wake: self._native.reply(data, timeout, priority, wake)))

    async def refuse(self) -> Receipt:
        """Tells the caller that this application is overloaded and has not acted on the request.

        The call raises Busy: it is safe to repeat it, here later or elsewhere. Waits until the caller's endpoint knows.
        """
        return Receipt(*await _wait(self._native.refuse))

    async def cancelled(self) -> None:
        """Waits until the response is no longer awaited."""
        await _wait(self._native.cancelled)


class Endpoint(Base):
    """Sends messages to peers and receives theirs. Any number of tasks may use it at a time, in any loop.

    Cancelling a task stops its operation, such as a send, at once.
    """

    async def resolve(self, name: str) -> str:
        """Resolves a name with a port, such as ``cache-7.example:7000``, to an address.

        It takes as long as the system's resolver does: resolve a peer once, not for each message. Raises NoAddress if
        there is none that the endpoint can send to.
        """
        address: str = await _wait(lambda wake: self._native.resolve(name, wake))
        return address

    async def connect(self, peer: str, *, timeout: float | None = None) -> None:
        """Opens a session, so that the first message need not wait for the handshake."""
        await _wait(lambda wake: self._native.connect(peer, timeout, wake))

    async def send(
        self,
        peer: str,
        data: Payload,
        *,
        timeout: float | None = None,
        priority: int = DEFAULT_PRIORITY,
    ) -> Receipt:
        """Sends a message and waits until it is in the queue of the receiver's application, exactly once.

        priority: how urgent it is, from 0 to 7, the most urgent.
        """
        sent = await _wait(lambda wake: self._native.send(peer, data, timeout, priority, wake))
        return Receipt(*sent)

    async def recv(self) -> Message:
        """Waits for the next message. Raises Closed when no more will arrive."""
        return Message(*await _wait(self._native.recv))

    async def call(
        self,
        peer: str,
        data: Payload,
        *,
        timeout: float | None = None,
        priority: int = DEFAULT_PRIORITY,
    ) -> bytes:
        """Sends a request and waits for its response."""
        response: bytes = await _wait(
            lambda wake: self._native.call(peer, data, timeout, priority, wake)
        )
        return response

    async def call_many(
        self,
        requests: Iterable[tuple[str, Payload]],
        *,
        timeout: float | None = None,
        priority: int = DEFAULT_PRIORITY,
    ) -> list[bytes | Error]:
        """Sends several requests at once, each to the address of its peer, and waits until all calls have ended.

        Returns, in the order of the requests, the response of each or why it has none. They do not wait for capacity:
        a call for which there is none ends with Busy.
        """
        many = list(requests)
        results: list[bytes | Error] = await _wait(
            lambda wake: self._native.call_many(many, timeout, priority, wake)
        )
        return results

    async def recv_request(self) -> Request:
        """Waits for the next request. Raises Closed when no more will arrive."""
        return Request(await _wait(self._native.recv_request))

    async def serve(
        self,
        handler: Callable[[Request], Awaitable[Payload]],
        *,
        limit: int = 100,
    ) -> None:
        """Answers requests with the results of ``handler``, at most ``limit`` at a time, until the endpoint is shut
        down or closed.

        The handler is cancelled once its response is no longer awaited. If it raises Overloaded, the request is refused.
        If it raises another exception, this is logged, and the caller is told that there is no answer.
        """
        if limit < 1:
            raise ValueError(f"limit = {limit}: it must be at least 1")
        free = asyncio.Semaphore(limit)
        async with asyncio.TaskGroup() as handling:
            while True:
                await free.acquire()
                try:
                    request = await self.recv_request()
                except Closed:
                    return
                task = handling.create_task(_handle(handler, request))
                task.add_done_callback(lambda _: free.release())

    async def shutdown(self, within: float = 10.0) -> bool:
        """Accepts nothing new, waits at most ``within`` seconds for what is under way to end, and stops.

        Returns whether everything ended in time.
        """
        ended: bool = await _wait(lambda wake: self._native.shutdown(within, wake))
        return ended

    async def close(self) -> None:
        """Stops at once. Operations that wait raise Closed."""
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _handle(
    handler: Callable[[Request], Awaitable[Payload]], request: Request
) -> None:
    try:
        try:
            # The handler may be a function that fails before it returns something to await.
            handling = asyncio.ensure_future(handler(request))
            watch = request._native.cancelled(_in_loop(handling.cancel))
            try:
                response = await handling
            finally:
                watch.cancel()
        except Overloaded:
            await request.refuse()
        else:
            await request.reply(response)
    except Error as error:
        _log.debug("no answer to %s: %s", request.peer, error)
    except asyncio.CancelledError:
        if not request.is_cancelled:
            raise
    except Exception:
        _log.exception("the handler of a request from %s failed", request.peer)
    finally:
        request.close()
