"""What the tests share."""

import os
import pathlib
import socket

import cloudburst
from cloudburst import aio

KEY = bytes([7] * 32)
LOOPBACK = "127.0.0.1:0"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", pathlib.Path(__file__).parents[3] / "target"))


def endpoint() -> cloudburst.Endpoint:
    return cloudburst.Endpoint(LOOPBACK, key=KEY, paths="ecmp:4")


def aio_endpoint() -> aio.Endpoint:
    return aio.Endpoint(LOOPBACK, key=KEY, paths="ecmp:4")


def silent_port() -> int:
    """Returns a port of a socket that stays open until the process ends, and that nobody reads."""
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 0))
    port = silent.getsockname()[1]
    silent.detach()
    return int(port)


SILENT_PORT = silent_port()


def nobody() -> str:
    """An address where nobody answers: that of a socket which nobody reads."""
    return f"127.0.0.1:{SILENT_PORT}"
