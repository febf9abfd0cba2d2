"""Every condition and reason that docs/status.md has occurs in a golden case, and no other does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefast.translate.gateway.features import (
    INFRASTRUCTURE,
    SUPPORTED_FEATURES,
    supported_features,
)
from edgefast.translate.status.reasons import REASONS, render_page
from tests.translate.golden import HERE

DOCS = Path(__file__).parents[2] / "docs"


def _conditions(kind: str, status: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    found = {
        (kind, one["type"], one["status"], one["reason"])
        for holder in (status, *status.get("parents", ()), *status.get("ancestors", ()))
        for one in holder.get("conditions", ())
    }
    for listener in status.get("listeners", ()):
        found |= _conditions("Listener", listener)
    return found


@pytest.mark.pure
def test_every_documented_reason_occurs_and_no_other() -> None:
    found: set[tuple[str, str, str, str]] = set()
    for path in (HERE / "cases").glob("*.out.yaml"):
        for name, status in yaml.safe_load(path.read_text())["statuses"].items():
            found |= _conditions(name.split()[0], status)
    documented = {
        (kind, one.type, one.status, one.reason)
        for kind, reasons in REASONS.items()
        for one in reasons
    }
    assert documented == found


@pytest.mark.pure
def test_page_is_made_from_the_reasons(pytestconfig: pytest.Config) -> None:
    page = DOCS / "status.md"
    if pytestconfig.getoption("--update-goldens"):
        page.write_text(render_page())
    assert page.read_text() == render_page()


@pytest.mark.pure
def test_no_reason_stands_twice() -> None:
    for kind, reasons in REASONS.items():
        named = [(one.type, one.status, one.reason) for one in reasons]
        assert len(named) == len(set(named)), kind


@pytest.mark.pure
def test_port_not_specified_occurs() -> None:
    assert "PortNotSpecified" in (HERE / "cases" / "backend-ports.out.yaml").read_text()


@pytest.mark.pure
def test_features_are_sorted_and_free_of_what_is_not_served() -> None:
    assert list(SUPPORTED_FEATURES) == sorted(set(SUPPORTED_FEATURES))
    assert not [
        name
        for name in SUPPORTED_FEATURES
        if name.startswith(("TCPRoute", "TLSRoute", "UDPRoute", "Mesh"))
    ]


@pytest.mark.pure
def test_infrastructure_is_a_feature_of_fleets_in_the_namespace_of_their_gateway() -> None:
    assert INFRASTRUCTURE not in supported_features(in_gateway_namespace=False)
    assert set(supported_features(in_gateway_namespace=True)) == {
        INFRASTRUCTURE,
        *SUPPORTED_FEATURES,
    }
