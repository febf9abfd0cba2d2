"""Every response case, in every way of arriving: cases/response/*.http, the test being the backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from origin.manual import ManualOrigin
from wire.harness.cases import Case, load
from wire.harness.gateway import Gateway
from wire.harness.objects import simple
from wire.harness.ports import free_port
from wire.harness.response_runner import run_response_case

CASES = load("response")


@pytest.fixture(scope="module")
def origin() -> Iterator[ManualOrigin]:
    with ManualOrigin() as running:
        yield running


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def gateway(origin: ManualOrigin, port: int) -> Iterator[Gateway]:
    with Gateway(simple(port, [(origin.host, origin.port)])) as running:
        yield running


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_response_case(case: Case, gateway: Gateway, origin: ManualOrigin, port: int) -> None:
    """The client gets the answer, a clean 502, or an end it can see; the next request is not touched."""
    run_response_case(case, gateway, ("127.0.0.1", port), origin)
