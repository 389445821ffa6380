"""What the tests share."""

import os
import pathlib

import cloudburst
from cloudburst import aio

KEY = bytes([7] * 32)
LOOPBACK = "127.0.0.1:0"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", pathlib.Path(__file__).parents[3] / "target"))


def endpoint() -> cloudburst.Endpoint:
    return cloudburst.Endpoint(LOOPBACK, key=KEY, paths="ecmp:4")


def aio_endpoint() -> aio.Endpoint:
    return aio.Endpoint(LOOPBACK, key=KEY, paths="ecmp:4")


def nobody() -> str:
    """An address where nobody answers: port 9 of a loopback address that nothing is bound to."""
    return "127.0.0.99:9"
