"""Every request case, in every way of arriving: cases/request/*.http against one proxy process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from wire.harness.cases import Case, load
from wire.harness.fleet import CaseGateway
from wire.harness.oracle import run_case

CASES = load("request")


@pytest.fixture(scope="module")
def gateway(origin: RecordingOrigin) -> Iterator[CaseGateway]:
    with CaseGateway(origin.port) as running:
        yield running


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_request_case(case: Case, gateway: CaseGateway, origin: RecordingOrigin) -> None:
    """Error and close with nothing at the backend, or exactly the message the reference reads."""
    run_case(case, gateway, gateway.address(case.listener), origin)
