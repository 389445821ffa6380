"""Blocking endpoints."""

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any, Self

from cloudburst import _native
from cloudburst._base import DEFAULT_PRIORITY, Base, BaseRequest
from cloudburst._errors import Closed, Error, Overloaded, Timeout
from cloudburst._types import Message, Payload, Receipt

_log = logging.getLogger("cloudburst")

Begin = Callable[[Callable[[], object]], _native.Operation]


def wait(begin: Begin, timeout: float | None = None) -> Any:
    """Waits for an operation. Signals interrupt the wait, as with all locks of Python."""
    ended = threading.Lock()
    ended.acquire()
    operation = begin(ended.release)
    try:
        if timeout is None:
            ended.acquire()
        elif not ended.acquire(timeout=min(max(timeout, 0), threading.TIMEOUT_MAX)):
            raise Timeout(f"nothing arrived within {timeout} s")
        return operation.result()
    finally:
        operation.cancel()


class Request(BaseRequest):
    __doc__ = BaseRequest.__doc__

    def reply(
        self,
        data: Payload = b"",
        *,
        timeout: float | None = None,
        priority: int = DEFAULT_PRIORITY,
    ) -> Receipt:
        """Sends the response, and waits until the caller's endpoint has it.

        An empty response tells the caller that the application has handled the request.
        """
        return Receipt(*wait(lambda wake: self._native.reply(data, timeout, priority, wake)))

    def refuse(self) -> Receipt:
        """Tells the caller that this application is overloaded and has not acted on the request.

        The call raises Busy: it is safe to repeat it, here later or elsewhere. Waits until the caller's endpoint knows.
        """
        return Receipt(*wait(self._native.refuse))


class Endpoint(Base):
    """Sends messages to peers and receives theirs. Any number of threads may use it at a time.

    While it waits, other threads run, and Ctrl-C interrupts it.
    """

    def resolve(self, name: str) -> str:
        """Resolves a name with a port, such as ``cache-7.example:7000``, to an address.

        It takes as long as the system's resolver does: resolve a peer once, not for each message. Raises NoAddress if
        there is none that the endpoint can send to.
        """
        address: str = wait(lambda wake: self._native.resolve(name, wake))
        return address

    def connect(self, peer: str, *, timeout: float | None = None) -> None:
        """Opens a session, so that the first message need not wait for the handshake."""
        wait(lambda wake: self._native.connect(peer, timeout, wake))

    def send(
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
        return Receipt(*wait(lambda wake: self._native.send(peer, data, timeout, priority, wake)))

    def recv(self, *, timeout: float | None = None) -> Message:
        """Waits for the next message. Raises Timeout if none arrives in time, Closed when no more will arrive."""
        return Message(*wait(self._native.recv, timeout))

    def call(
        self,
        peer: str,
        data: Payload,
        *,
        timeout: float | None = None,
        priority: int = DEFAULT_PRIORITY,
    ) -> bytes:
        """Sends a request and waits for its response."""
        response: bytes = wait(
            lambda wake: self._native.call(peer, data, timeout, priority, wake)
        )
        return response

    def call_many(
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
        results: list[bytes | Error] = wait(
            lambda wake: self._native.call_many(many, timeout, priority, wake)
        )
        return results

    def recv_request(self, *, timeout: float | None = None) -> Request:
        """Waits for the next request. Raises Timeout if none arrives in time, Closed when no more will arrive."""
        return Request(wait(self._native.recv_request, timeout))

    def serve(self, handler: Callable[[Request], Payload], *, limit: int = 8) -> None:
        """Answers requests with the results of ``handler``, in at most ``limit`` threads, until the endpoint is shut
        down or closed.

        A handler that raises Overloaded refuses the request. If it raises another exception, this is logged, and the
        caller is told that there is no answer. A long-running handler should check ``request.is_cancelled`` from time
        to time.

        Ctrl-C ends this at once. Handlers go on in daemon threads, until they are done or the program ends.
        """
        if limit < 1:
            raise ValueError(f"limit = {limit}: it must be at least 1")
        free = threading.Semaphore(limit)
        requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()

        def work() -> None:
            while (request := requests.get()) is not None:
                _handle(handler, request)
                free.release()

        # A program waits for the threads of a ThreadPoolExecutor before it ends, but not for daemon threads.
        threads: list[threading.Thread] = []
        try:
            while True:
                free.acquire()
                try:
                    request = self.recv_request()
                except Closed:
                    break
                if len(threads) < limit:
                    threads.append(threading.Thread(target=work, name="cloudburst-serve", daemon=True))
                    threads[-1].start()
                requests.put(request)
        finally:
            for _ in threads:
                requests.put(None)
        for thread in threads:
            thread.join()

    def shutdown(self, within: float = 10.0) -> bool:
        """Accepts nothing new, waits at most ``within`` seconds for what is under way to end, and stops.

        Returns whether everything ended in time.
        """
        ended: bool = wait(lambda wake: self._native.shutdown(within, wake))
        return ended

    def close(self) -> None:
        """Stops at once. Operations that wait raise Closed."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _handle(handler: Callable[[Request], Payload], request: Request) -> None:
    try:
        try:
            response = handler(request)
        except Overloaded:
            request.refuse()
        else:
            request.reply(response)
    except Error as error:
        _log.debug("no answer to %s: %s", request.peer, error)
    except BaseException:
        _log.exception("the handler of a request from %s failed", request.peer)
    finally:
        request.close()
