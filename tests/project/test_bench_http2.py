"""The bench's HTTP/2 tools: what the generator counts as an answer, and what it does not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bench import http2_client
from bench.native import build_tools, find_tool
from bench.scenario import CALL_PATH
from wire.grpc.backend import GrpcBackend

HOST = "www-0.example.com"


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    build_tools()


@contextmanager
def origin() -> Iterator[int]:
    command = [str(find_tool("origin-h2")), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield int(process.stdout.readline())
        finally:
            process.kill()


def load(port: int, *options: str) -> dict[str, Any]:
    argv = [str(find_tool("load-h2")), "--port", str(port), "--seconds", "0.2", *options]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=60)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("options", [[], ["--grpc"], ["--beside"]])
def test_whole_answers_are_counted(options: list[str]) -> None:
    with origin() as port:
        result = load(port, "--connections", "2", "--streams", "4", *options)
    assert result["requests"] > 0
    assert result["errors"] == 0, result


def test_a_call_that_failed_is_an_error_whatever_its_status() -> None:
    with GrpcBackend() as backend:
        result = load(backend.port, "--connections", "1", "--streams", "2", "--grpc")
    assert result["requests"] == 0
    assert result["errors"] == result["error_kinds"]["grpc"] > 0


def test_an_answer_of_another_length_is_an_error() -> None:
    """The call's message instead of the 128 bytes."""
    with GrpcBackend() as backend:
        result = load(backend.port, "--connections", "1", "--streams", "2")
    assert result["requests"] == 0
    assert result["errors"] > 0


def test_the_probe_sees_what_an_origin_says() -> None:
    with origin() as port:
        echo = http2_client.ask(port, "GET", "/get?echo", HOST, {"x-one": "1"})
        long = http2_client.ask(port, "POST", "/get/bytes/300000", HOST, body=b"x" * 200_000)
        call = http2_client.call(port, CALL_PATH, HOST)
    lines = echo.body.decode().split("\r\n")
    assert (lines[0], sorted(lines[1:])) == (
        "GET /get?echo HTTP/1.1",
        [f"host: {HOST}", "x-one: 1"],
    )
    assert (long.status, len(long.body)) == (200, 300_000)
    assert (call.status, call.trailers) == (200, {"grpc-status": "0"})
