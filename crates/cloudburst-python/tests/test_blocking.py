"""Endpoints for callers that wait in their thread."""

import array
import ctypes
import errno
import gc
import mmap
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from typing import Any

import cloudburst
from common import KEY, LOOPBACK, TARGET, endpoint, nobody


class Messages(unittest.TestCase):
    def test_a_message_arrives_with_its_sender_and_has_a_receipt(self) -> None:
        with endpoint() as one, endpoint() as other:
            one.connect(other.local_address)
            for data in b"", b"hello", bytearray(b"mutable"), bytes(range(256)) * 1000:
                receipt = one.send(other.local_address, data, timeout=10, priority=7)
                self.assertEqual(receipt.bytes, len(data))
                self.assertGreaterEqual(receipt.packets, receipt.source_symbols)
                self.assertGreater(receipt.completed_in, 0)
                self.assertEqual(other.recv(), (one.local_address, data))

    def test_nothing_comes_in_time(self) -> None:
        with endpoint() as one:
            for receive in one.recv, one.recv_request:
                with self.assertRaises(TimeoutError) as caught:
                    receive(timeout=0)
                self.assertIsInstance(caught.exception, cloudburst.Timeout)

    def test_what_has_arrived_is_there_without_waiting(self) -> None:
        with endpoint() as one, endpoint() as other:
            one.send(other.local_address, b"hello")
            self.assertEqual(other.recv(timeout=0).data, b"hello")

    def test_a_request_whose_receiver_gave_up_is_refused_at_the_shutdown(self) -> None:
        with endpoint() as one, endpoint() as other:
            came = threading.Event()
            operation = other._native.recv_request(came.set)
            refused: list[object] = []

            def call() -> None:
                try:
                    one.call(other.local_address, b"")
                except cloudburst.Busy as busy:
                    refused.append(busy)

            calling = threading.Thread(target=call)
            calling.start()
            self.assertTrue(came.wait(10))
            operation.cancel()
            self.assertTrue(other.shutdown(60))
            calling.join()
            self.assertEqual(len(refused), 1)

    def test_a_message_that_comes_when_its_receiver_gives_up_is_for_the_next(self) -> None:
        with endpoint() as one, endpoint() as other:
            came = threading.Event()
            operation = other._native.recv(came.set)
            one.send(other.local_address, b"first")
            self.assertTrue(came.wait(10))
            second = other._native.recv(lambda: None)  # waits, until the first one comes back
            operation.cancel()
            self.assertRaises(RuntimeError, operation.result)
            del second
            self.assertEqual(other.recv(timeout=10).data, b"first")

    def test_a_name_is_resolved(self) -> None:
        with endpoint() as one:
            self.assertEqual(one.resolve("localhost:7000"), "127.0.0.1:7000")
            for name in "no port", "nobody.invalid:7":
                for use in (
                    one.resolve,
                    one.connect,
                    lambda peer: one.send(peer, b""),
                    lambda peer: one.call(peer, b""),
                ):
                    with self.subTest(name), self.assertRaises(cloudburst.NoAddress) as caught:
                        use(name)
                    self.assertIsInstance(caught.exception, socket.gaierror)
                    self.assertEqual(caught.exception.errno, socket.EAI_NONAME)
                    self.assertFalse(caught.exception.may_have_been_delivered)

    def test_a_peer_may_be_a_name(self) -> None:
        with endpoint() as one, endpoint() as other:
            name = other.local_address.replace("127.0.0.1", "localhost")
            one.connect(name)
            one.send(name, b"hello")
            self.assertEqual(other.recv(), (one.local_address, b"hello"))

    def test_whatever_has_a_buffer_is_a_payload(self) -> None:
        class Point(ctypes.Structure):
            _fields_ = [("x", ctypes.c_int32), ("y", ctypes.c_int32)]

        payloads: list[cloudburst.Payload] = [
            bytearray(b"mutable"),
            memoryview(b"a view")[2:],
            memoryview(b"every second byte")[::2],
            memoryview(b""),
            array.array("d", [1.0, 2.0]),
            array.array("d"),
            memoryview(bytes(12)).cast("B", (3, 4)),
            (ctypes.c_uint16 * 3)(1, 2, 3),
            Point(1, 2),
            mmap.mmap(-1, 4096),
        ]
        with endpoint() as one, endpoint() as other:
            for payload in payloads:
                with self.subTest(payload):
                    one.send(other.local_address, payload)
                    self.assertEqual(other.recv().data, memoryview(payload).tobytes())
            for unfit in "text", 5, None, [1, 2]:
                self.assertRaises(TypeError, one.send, other.local_address, unfit)

    def test_an_endpoint_counts(self) -> None:
        with endpoint() as one, endpoint() as other:
            before = one.counters()
            self.assertEqual(before["sender.delivered"], 0)
            one.send(other.local_address, b"hello")
            after = one.counters()
            self.assertEqual(before.keys(), after.keys())
            self.assertEqual((after["sender.delivered"], after["sender.bytes_delivered"]), (1, 5))
            self.assertEqual(other.counters()["receiver.messages_delivered"], 1)
            self.assertGreater(after["io.datagrams_sent"], 0)
            for name in "sender.rate", "calls.calls_answered", "io.ecn.ce", "io.kernel_drops":
                self.assertIn(name, after)
        self.assertRaises(cloudburst.Closed, one.counters)


class Settings(unittest.TestCase):
    def test_an_option_has_its_effect(self) -> None:
        with endpoint() as other:
            with cloudburst.Endpoint(LOOPBACK, key=KEY, mtu=600, fabric="cloud") as one:
                receipt = one.send(other.local_address, bytes(5_000))
                self.assertGreater(receipt.source_symbols, 5_000 // 600)
            with cloudburst.Endpoint(LOOPBACK, key=KEY, deadline=0.1) as one:
                self.assertRaises(cloudburst.Timeout, one.connect, nobody())
                self.assertRaises(cloudburst.Timeout, one.send, nobody(), b"")
                # Its host says that nothing listens there.
                with self.assertRaises(cloudburst.NotDelivered) as closed:
                    one.call("127.0.0.99:9", b"")
                self.assertIn("nothing listens", str(closed.exception))
            with cloudburst.Endpoint(LOOPBACK, key=KEY, keep_alive=1.0) as one:
                one.connect(other.local_address)
                sent = one.counters()["sender.handshakes_sent"]
                until = time.monotonic() + 60
                while one.counters()["sender.handshakes_sent"] == sent:
                    self.assertLess(time.monotonic(), until, "nothing keeps the session alive")
                    time.sleep(0.05)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            alias = f"127.0.0.2:{port}"
            with cloudburst.Endpoint(f"0.0.0.0:{port}", key=KEY, known_as=[alias]):
                other.send(alias, b"to an address that no interface has")

    def test_keys_change_while_an_endpoint_is_in_use(self) -> None:
        new = bytes([8] * 32)
        with (
            endpoint() as one,
            endpoint() as old,
            cloudburst.Endpoint(LOOPBACK, key=new) as newcomer,
            cloudburst.Endpoint(LOOPBACK, key=new, also_accept=[KEY]) as both,
        ):
            for sender in old, newcomer:
                sender.send(both.local_address, b"")
            with self.assertRaises(cloudburst.Timeout):
                newcomer.send(one.local_address, b"", timeout=0.2)
            one.set_security(KEY, also_accept=[new])
            newcomer.send(one.local_address, b"")
            one.set_security(new)
            with self.assertRaises(cloudburst.Timeout):
                old.send(one.local_address, b"", timeout=0.2)
            one.send(newcomer.local_address, b"in the session that is there")
            self.assertRaises(ValueError, one.set_security, bytes(31))

    def test_the_package_knows_its_version(self) -> None:
        self.assertRegex(cloudburst.__version__, r"^\d+\.\d+\.\d+")


class Calls(unittest.TestCase):
    def test_a_service_answers_until_it_is_shut_down(self) -> None:
        with endpoint() as service, endpoint() as client:
            serving = threading.Thread(
                target=service.serve, args=[lambda request: request.data.upper()]
            )
            serving.start()
            answers: list[bytes] = []
            callers = [
                threading.Thread(
                    target=lambda n: answers.append(client.call(service.local_address, b"n%d" % n)),
                    args=[n],
                )
                for n in range(20)
            ]
            for caller in callers:
                caller.start()
            for caller in callers:
                caller.join()
            self.assertEqual(sorted(answers), sorted(b"N%d" % n for n in range(20)))
            self.assertTrue(service.shutdown())
            serving.join()
            self.assertRaises(cloudburst.Closed, service.recv_request)

    def test_many_calls_have_a_result_each(self) -> None:
        with endpoint() as one, endpoint() as other, endpoint() as client:
            def handler(request: cloudburst.Request) -> bytes:
                if request.data == b"":
                    raise cloudburst.Overloaded
                return request.data.upper()

            serving = [
                threading.Thread(target=service.serve, args=[handler]) for service in (one, other)
            ]
            for thread in serving:
                thread.start()
            results = client.call_many(
                [
                    (one.local_address, b"a"),
                    (other.local_address, bytearray(b"b")),
                    (one.local_address, b""),
                ],
                timeout=60,
                priority=7,
            )
            self.assertEqual(results[:2], [b"A", b"B"])
            self.assertIsInstance(results[2], cloudburst.Busy)
            self.assertEqual(client.call_many([]), [])
            self.assertRaises(ValueError, client.call_many, [("localhost:7", b"")])
            self.assertEqual(client.counters()["calls.calls_answered"], 2)
            for service in one, other:
                service.shutdown()
            for thread in serving:
                thread.join()

    def test_a_handler_that_fails_is_logged_and_its_caller_told(self) -> None:
        with endpoint() as service, endpoint() as client:
            def handler(request: cloudburst.Request) -> bytes:
                return {b"fine": b"answer"}[request.data]

            serving = threading.Thread(target=service.serve, args=[handler], kwargs={"limit": 1})
            serving.start()
            with self.assertLogs("cloudburst", "ERROR"):
                with self.assertRaises(cloudburst.Indeterminate) as caught:
                    client.call(service.local_address, b"other")
            self.assertTrue(caught.exception.may_have_been_delivered)
            self.assertEqual(client.call(service.local_address, b"fine"), b"answer")
            service.shutdown()
            serving.join()

    def test_an_overloaded_handler_refuses_its_request(self) -> None:
        with endpoint() as service, endpoint() as client:
            def handler(request: cloudburst.Request) -> bytes:
                raise cloudburst.Overloaded

            serving = threading.Thread(target=service.serve, args=[handler])
            serving.start()
            with self.assertNoLogs("cloudburst"), self.assertRaises(cloudburst.Busy) as caught:
                client.call(service.local_address, b"")
            self.assertFalse(caught.exception.may_have_been_delivered)
            service.shutdown()
            serving.join()

    def test_a_request_is_answered_once_or_refused_or_closed(self) -> None:
        with endpoint() as service, endpoint() as client:
            answers: list[object] = []

            def call() -> None:
                try:
                    answers.append(client.call(service.local_address, b"", timeout=10))
                except cloudburst.Error as error:
                    answers.append(type(error))

            for action in "reply", "refuse", "close":
                caller = threading.Thread(target=call)
                caller.start()
                with service.recv_request(timeout=10) as request:
                    self.assertEqual(request.peer, client.local_address)
                    self.assertFalse(request.is_cancelled)
                    self.assertTrue(0 < request.time_left <= 10)
                    if action == "reply":
                        self.assertEqual(request.reply(b"yes").bytes, 12)
                    if action == "refuse":
                        request.refuse()
                    if action != "close":
                        self.assertRaises(RuntimeError, request.reply, b"again")
                        self.assertRaises(RuntimeError, request.refuse)
                caller.join()
            self.assertEqual(answers, [b"yes", cloudburst.Busy, cloudburst.Indeterminate])

    def test_a_service_in_rust_answers(self) -> None:
        program = TARGET / "debug/examples/request-response"
        server = subprocess.Popen(
            [program, "--serve", LOOPBACK], stdout=subprocess.PIPE, text=True
        )
        with server, cloudburst.Endpoint(LOOPBACK, key=bytes([42] * 32)) as client:
            try:
                assert server.stdout
                address = server.stdout.readline().removeprefix("serving at ").strip()
                for length in 0, 5, 93_000:
                    answer = client.call(address, length.to_bytes(4, "big"), timeout=10)
                    self.assertEqual(answer, bytes(length))
            finally:
                server.kill()


class Errors(unittest.TestCase):
    def test_arguments_that_make_no_sense_are_refused(self) -> None:
        unsound: list[dict[str, Any]] = [
            {},
            {"key": KEY, "trusted_network": True},
            {"key": bytes(31)},
            {"key": KEY, "bind": "localhost:7000"},
            {"key": KEY, "paths": "ecmp:none"},
            {"key": KEY, "known_as": ["10.0.0.1:0"]},
            {"key": KEY, "known_as": ["localhost:7000"]},
            {"key": KEY, "also_accept": [bytes(31)]},
            {"trusted_network": True, "also_accept": [KEY]},
            {"key": KEY, "mtu": 70_000},
            {"key": KEY, "fabric": "aws"},
            {"key": KEY, "deadline": -1.0},
            {"key": KEY, "deadline": 0.0},
            {"key": KEY, "keep_alive": -1.0},
        ]
        for arguments in unsound:
            with self.subTest(arguments), self.assertRaises(ValueError):
                cloudburst.Endpoint(**arguments)
        unsound = [{"timeout": -1.0}, {"timeout": float("nan")}, {"priority": 8}]
        with endpoint() as one:
            for settings in unsound:
                with self.subTest(settings), self.assertRaises(ValueError):
                    one.send(one.local_address, b"", **settings)

    def test_what_the_system_refuses_is_an_os_error_with_its_number(self) -> None:
        with self.assertRaises(OSError) as caught:
            cloudburst.Endpoint("192.0.2.1:0", key=KEY)
        self.assertEqual(caught.exception.errno, errno.EADDRNOTAVAIL)
        self.assertIn("192.0.2.1", str(caught.exception))

    def test_a_deadline_says_whether_the_message_may_have_been_delivered(self) -> None:
        with endpoint() as one, endpoint() as silent:
            with self.assertRaises(cloudburst.Timeout) as caught:
                one.send(nobody(), b"", timeout=0.1)
            self.assertFalse(caught.exception.may_have_been_delivered)
            one.connect(silent.local_address)
            with self.assertRaises(cloudburst.Timeout) as caught:
                one.call(silent.local_address, b"", timeout=0.2)  # nobody serves there
            self.assertTrue(caught.exception.may_have_been_delivered)

    def test_every_kind_of_failure_has_its_exception(self) -> None:
        from cloudburst._errors import failure

        kinds_of: dict[tuple[bool, bool, bool, bool], list[type[Exception]]] = {
            (False, False, False, False): [cloudburst.NotDelivered],
            (False, False, False, True): [cloudburst.Indeterminate],
            (True, False, False, True): [cloudburst.Timeout, TimeoutError],
            (False, True, False, False): [cloudburst.Busy],
            (True, True, False, True): [cloudburst.Busy, cloudburst.Timeout, TimeoutError],
            (False, False, True, False): [cloudburst.Closed],
            (False, False, True, True): [cloudburst.Closed],
        }
        for traits, kinds in kinds_of.items():
            error = failure("text", *traits)
            self.assertEqual(error.may_have_been_delivered, traits[3])
            self.assertEqual(str(error), "text")
            self.assertIsInstance(error, cloudburst.Error)
            for kind in kinds:
                self.assertIsInstance(error, kind)

    def test_closing_ends_those_who_wait(self) -> None:
        one = endpoint()
        ended: list[object] = []

        def receive() -> None:
            try:
                one.recv()
            except cloudburst.Closed as closed:
                ended.append(closed)

        receiver = threading.Thread(target=receive)
        receiver.start()
        one.close()
        one.close()
        receiver.join()
        self.assertEqual(len(ended), 1)
        self.assertRaises(cloudburst.Closed, one.send, one.local_address, b"")

    def test_a_call_that_closing_cuts_off_may_have_been_delivered(self) -> None:
        failures: list[cloudburst.Closed] = []
        with endpoint() as one, endpoint() as other:

            def call() -> None:
                try:
                    one.call(other.local_address, b"", timeout=30)
                except cloudburst.Closed as closed:
                    failures.append(closed)

            caller = threading.Thread(target=call)
            caller.start()
            request = other.recv_request()
            one.close()
            caller.join()
            request.close()
        self.assertEqual([failure.may_have_been_delivered for failure in failures], [True])

    def test_an_endpoint_that_was_shut_down_sends_nothing(self) -> None:
        with endpoint() as one, endpoint() as other:
            one.shutdown(0)
            with self.assertRaises(cloudburst.Closed) as caught:
                one.send(other.local_address, b"")
            self.assertFalse(caught.exception.may_have_been_delivered)


class Processes(unittest.TestCase):
    def run_python(self, program: str) -> subprocess.Popen[str]:
        path = os.pathsep.join([*sys.path, str(pathlib.Path(__file__).parent)])
        return subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def test_ctrl_c_interrupts_a_wait(self) -> None:
        program = """
import common, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored here
endpoint = common.endpoint()
try:
    print("ready", flush=True)
    endpoint.recv()
except KeyboardInterrupt:
    print("interrupted")
"""
        with self.run_python(program) as python:
            assert python.stdout
            self.assertEqual(python.stdout.readline(), "ready\n")
            python.send_signal(signal.SIGINT)
            output, errors = python.communicate(timeout=60)
            self.assertEqual((output, errors, python.returncode), ("interrupted\n", "", 0))

    def test_ctrl_c_ends_a_service_whose_handlers_go_on(self) -> None:
        program = """
import common, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored here

def handler(request):
    if request.data == b"finish":
        begun.set()
        go_on.wait()
        return b"done"
    print("ready", flush=True)
    time.sleep(600)

begun, go_on = threading.Event(), threading.Event()
with common.endpoint() as service, common.endpoint() as client:
    answers = []
    finish = threading.Thread(
        target=lambda: answers.append(client.call(service.local_address, b"finish", timeout=600))
    )
    finish.start()
    hang = threading.Thread(
        target=lambda: begun.wait() and client.call(service.local_address, b"hang", timeout=600),
        daemon=True,
    )
    hang.start()
    try:
        service.serve(handler)
    except KeyboardInterrupt:
        go_on.set()
        finish.join()
        print("interrupted", answers)
        threading.excepthook = lambda hook: None  # of the call that hangs
"""
        with self.run_python(program) as python:
            assert python.stdout
            self.assertEqual(python.stdout.readline(), "ready\n")
            python.send_signal(signal.SIGINT)
            output, errors = python.communicate(timeout=60)
            expected = ("interrupted [b'done']\n", "", 0)
            self.assertEqual((output, errors, python.returncode), expected)

    def test_a_program_may_end_while_things_are_under_way(self) -> None:
        program = """
import common, threading
one, other = common.endpoint(), common.endpoint()
threading.Thread(target=other.serve, args=[lambda request: request.data], daemon=True).start()
print(one.call(other.local_address, b"hello"))
waiting = [one._native.recv(lambda: None) for _ in range(10)]
"""
        with self.run_python(program) as python:
            output, errors = python.communicate(timeout=60)
            self.assertEqual((output, errors, python.returncode), ("b'hello'\n", "", 0))

    def test_a_fork_cannot_use_an_endpoint_and_can_open_one(self) -> None:
        program = """
import common, os, threading
one, other = common.endpoint(), common.endpoint()
waits = one._native.recv(lambda: None)
peer = other.local_address
threading.Thread(target=lambda: one.call(peer, b"hello", timeout=60), daemon=True).start()
request = other.recv_request()
for _ in range(5):
    child = os.fork()
    if child == 0:
        for use in [
            lambda: one.send(peer, b"hello"),
            lambda: one.connect(peer),
            lambda: one.call(peer, b"hello"),
            one.recv,
            one.recv_request,
            lambda: one.serve(lambda request: request.data),
            one.shutdown,
            lambda: one.call_many([(peer, b"hello")]),
            lambda: one.resolve("localhost:7000"),
            lambda: one.set_security(common.KEY),
            one.counters,
            waits.result,
            request.reply,
            request.refuse,
            lambda: request.time_left,
        ]:
            try:
                use()
            except RuntimeError as error:
                assert "fork" in str(error), error
            else:
                raise AssertionError("it can be used")
        waits.cancel()
        request.close()
        one.close()
        # The last references.
        del one, other, waits, request
        with common.endpoint() as here:
            here.send(here.local_address, b"to itself")
            assert here.recv().data == b"to itself"
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
request.reply(b"the parent's still works")
"""
        with self.run_python(program) as python:
            output, errors = python.communicate(timeout=60)
            self.assertEqual((output, errors, python.returncode), ("", "", 0))

    def test_endpoints_that_nobody_holds_end(self) -> None:
        one, other = endpoint(), endpoint()
        one.send(other.local_address, b"hello")
        address = other.local_address
        del other
        gc.collect()
        with self.assertRaises(cloudburst.Error):
            one.send(address, b"hello", timeout=0.3)
        one.close()


if __name__ == "__main__":
    unittest.main()
