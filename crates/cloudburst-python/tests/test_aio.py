"""Endpoints for asyncio."""

import asyncio
import unittest
from collections.abc import Awaitable

import cloudburst
from cloudburst import aio
from common import aio_endpoint, endpoint, nobody


class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def test_a_message_arrives_with_its_sender(self) -> None:
        async with aio_endpoint() as one, aio_endpoint() as other:
            await one.connect(other.local_address)
            receipt = await one.send(other.local_address, b"hello", timeout=10)
            self.assertEqual(receipt.bytes, 5)
            self.assertEqual(await other.recv(), (one.local_address, b"hello"))
            self.assertEqual(await one.resolve("localhost:7"), "127.0.0.1:7")

    async def test_calls_go_on_at_the_same_time(self) -> None:
        async with aio_endpoint() as service, aio_endpoint() as client:
            everybody = asyncio.Barrier(20)

            async def handler(request: aio.Request) -> bytes:
                await everybody.wait()  # none is answered before all are here
                return request.data.upper()

            serving = asyncio.create_task(service.serve(handler))
            calls = [client.call(service.local_address, b"n%d" % n) for n in range(20)]
            self.assertEqual(await asyncio.gather(*calls), [b"N%d" % n for n in range(20)])
            self.assertTrue(await service.shutdown())
            await serving
            with self.assertRaises(cloudburst.Closed):
                await service.recv()

    async def test_at_most_the_limit_are_handled_at_a_time(self) -> None:
        async with aio_endpoint() as service, aio_endpoint() as client:
            running = most = 0

            async def handler(request: aio.Request) -> bytes:
                nonlocal running, most
                running += 1
                most = max(most, running)
                await asyncio.sleep(0)
                running -= 1
                return b""

            serving = asyncio.create_task(service.serve(handler, limit=2))
            await asyncio.gather(*(client.call(service.local_address, b"") for _ in range(20)))
            self.assertLessEqual(most, 2)
            await service.shutdown()
            await serving

    async def test_a_limit_of_zero_is_refused(self) -> None:
        async def handler(request: aio.Request) -> bytes:
            return request.data

        async with aio_endpoint() as service:
            with self.assertRaisesRegex(ValueError, "limit = 0"):
                await service.serve(handler, limit=0)

    async def test_a_cancelled_call_cancels_its_handler(self) -> None:
        async with aio_endpoint() as service, aio_endpoint() as client:
            began, cancelled = asyncio.Event(), asyncio.Event()

            async def handler(request: aio.Request) -> bytes:
                if request.data == b"quick":
                    return b"answer"
                began.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()
                raise AssertionError("nobody sets the event")

            serving = asyncio.create_task(service.serve(handler))
            call = asyncio.create_task(client.call(service.local_address, b"slow", timeout=600))
            await began.wait()
            call.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await call
            await cancelled.wait()
            self.assertEqual(await client.call(service.local_address, b"quick"), b"answer")
            await service.shutdown()
            await serving

    async def test_a_cancelled_serve_cancels_its_handlers(self) -> None:
        async with aio_endpoint() as service, aio_endpoint() as client:
            began, cancelled = asyncio.Event(), asyncio.Event()

            async def handler(request: aio.Request) -> bytes:
                began.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()
                raise AssertionError("nobody sets the event")

            serving = asyncio.create_task(service.serve(handler))
            call = asyncio.create_task(client.call(service.local_address, b"slow"))
            await began.wait()
            serving.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await serving
            self.assertTrue(cancelled.is_set())
            with self.assertRaises(cloudburst.Indeterminate):
                await call

    async def test_a_handler_that_fails_is_logged_and_its_caller_told(self) -> None:
        async with aio_endpoint() as service, aio_endpoint() as client:
            async def fail() -> bytes:
                raise KeyError("on purpose")

            def handler(request: aio.Request) -> Awaitable[bytes]:
                if request.data == b"early":
                    raise KeyError("before there is anything to await")
                return fail()

            serving = asyncio.create_task(service.serve(handler))
            for data in (b"early", b"late"):
                with self.assertLogs("cloudburst", "ERROR"):
                    with self.assertRaises(cloudburst.Indeterminate):
                        await client.call(service.local_address, data)
            await service.shutdown()
            await serving

    async def test_an_overloaded_handler_refuses_its_request(self) -> None:
        async with aio_endpoint() as service, aio_endpoint() as client:
            async def handler(request: aio.Request) -> bytes:
                raise cloudburst.Overloaded

            serving = asyncio.create_task(service.serve(handler))
            with self.assertNoLogs("cloudburst"), self.assertRaises(cloudburst.Busy):
                await client.call(service.local_address, b"")
            await service.shutdown()
            await serving

    async def test_a_receiver_that_is_cancelled_loses_nothing(self) -> None:
        async with aio_endpoint() as one, aio_endpoint() as other:
            for n in range(100):
                receiver = asyncio.create_task(other.recv())
                await asyncio.sleep(0)  # it waits now
                data = n.to_bytes(1, "big")
                await one.send(other.local_address, data)
                # It may have the message by now, or not.
                receiver.cancel()
                try:
                    received = await receiver
                except asyncio.CancelledError:
                    received = await other.recv()
                self.assertEqual(received.data, data)

    async def test_a_request_tells_when_nobody_waits(self) -> None:
        async with aio_endpoint() as service, aio_endpoint() as client:
            call = asyncio.create_task(client.call(service.local_address, b"", timeout=600))
            request = await service.recv_request()
            self.assertFalse(request.is_cancelled)
            call.cancel()
            await request.cancelled()
            self.assertTrue(request.is_cancelled)
            with self.assertRaises(cloudburst.NotDelivered):
                await request.reply(b"too late")

    async def test_errors_are_those_of_the_blocking_endpoint(self) -> None:
        async with aio_endpoint() as one:
            with self.assertRaises(TimeoutError) as caught:
                await one.send(nobody(), b"", timeout=0.1)
            self.assertIsInstance(caught.exception, cloudburst.Timeout)
            with self.assertRaises(ValueError):
                await one.send(one.local_address, b"", priority=8)
            with self.assertRaises(cloudburst.NoAddress):
                await one.send("nobody.invalid:7", b"")

    async def test_many_calls_have_a_result_each(self) -> None:
        async with aio_endpoint() as service, aio_endpoint() as client:
            async def handler(request: aio.Request) -> bytes:
                if request.data == b"":
                    raise cloudburst.Overloaded
                return request.data.upper()

            serving = asyncio.create_task(service.serve(handler))
            requests = [(service.local_address, data) for data in (b"a", memoryview(b"b"), b"")]
            results = await client.call_many(requests, timeout=60)
            self.assertEqual(results[:2], [b"A", b"B"])
            self.assertIsInstance(results[2], cloudburst.Busy)
            self.assertEqual(client.counters()["calls.calls_answered"], 2)
            await service.shutdown()
            await serving

    async def test_closing_ends_those_who_wait(self) -> None:
        one = aio_endpoint()
        receiver = asyncio.create_task(one.recv())
        await asyncio.sleep(0)
        await one.close()
        with self.assertRaises(cloudburst.Closed):
            await receiver


class Loops(unittest.TestCase):
    def test_an_endpoint_may_be_used_in_one_loop_after_another(self) -> None:
        one = aio_endpoint()

        async def abandon() -> None:
            asyncio.create_task(one.recv())
            await asyncio.sleep(0)

        async def receive() -> bytes:
            return (await one.recv()).data

        asyncio.run(abandon())
        with endpoint() as sender:
            sender.send(one.local_address, b"hello")
        self.assertEqual(asyncio.run(receive()), b"hello")
        asyncio.run(one.close())


if __name__ == "__main__":
    unittest.main()
