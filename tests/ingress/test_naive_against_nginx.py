"""The naive evaluator against real nginx: the same answer, redirect, backend, request head and certificate for every request.

Where they disagree, nginx is right. The heavy run is 400 sets with 500 requests each.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from ingress.differ import Ask, Objects, compare
from ingress.message import Request
from ingress.nginx_oracle import NginxOracle
from ingress.origin import Origin

pytestmark = [
    pytest.mark.wire,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed"),
]


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    made = Origin()
    yield made
    made.close()


class Nginx:
    """Serves one set after the other: a new one ends the process of the last."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._running = ExitStack()

    def __call__(self, objects: Objects) -> Ask:
        self._running.close()
        return self._running.enter_context(NginxOracle(objects, self._origin)).answer

    def close(self) -> None:
        self._running.close()


@pytest.fixture
def nginx(origin: Origin) -> Iterator[Nginx]:
    made = Nginx(origin)
    yield made
    made.close()


@pytest.mark.parametrize("first", range(0, 12, 4))
def test_no_difference(nginx: Nginx, first: int) -> None:
    assert compare(nginx, range(first, first + 4), 200) == 4 * 200


def test_no_difference_in_large_sets(nginx: Nginx) -> None:
    assert compare(nginx, range(1000, 1002), 300, size=30) == 2 * 300


def test_no_difference_in_http10(nginx: Nginx) -> None:
    """Headers with the host are left out: nginx writes an empty one to some."""

    def prepare(request: Request) -> Request:
        host = request.host if len(request.target) % 2 else ""
        return replace(request, host=host, http10=True, chunked=False)

    fields = ("status", "backend", "target", "certificate")
    assert compare(nginx, range(3), 200, fields=fields, prepare=prepare) == 3 * 200


@pytest.mark.heavy
@pytest.mark.parametrize("first", range(2000, 2400, 20))
def test_no_difference_over_many_sets(nginx: Nginx, first: int) -> None:
    assert compare(nginx, range(first, first + 20), 500, size=first % 40 // 4 + 4) == 20 * 500
