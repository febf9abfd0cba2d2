"""Every condition and reason that docs/reference/statuses.md has occurs in a golden case, and no other does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefast.api.model.route_name import ROUTE_KINDS
from edgefast.translate.conditions.reasons import REASONS, render_page
from edgefast.translate.gateway import protocol
from edgefast.translate.gateway.features import (
    INFRASTRUCTURE,
    ONLY_IN,
    STREAM_FEATURES,
    SUPPORTED_FEATURES,
    supported_features,
)
from edgefast.translate.settings import RELEASES
from tests.translate.golden import HERE

#: Of the protocols of layer 4 that are served.
STREAMS = {name for one in protocol.served() for name in STREAM_FEATURES.get(one, ())}
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
            kind = name.split()[0]
            if kind in ROUTE_KINDS and kind not in REASONS:  # told what an HTTPRoute is
                kind = "HTTPRoute"
            found |= _conditions(kind, status)
    documented = {
        (kind, one.type, one.status, one.reason)
        for kind, reasons in REASONS.items()
        for one in reasons
    }
    assert documented == found


@pytest.mark.pure
def test_page_is_made_from_the_reasons(pytestconfig: pytest.Config) -> None:
    page = DOCS / "reference" / "statuses.md"
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
    assert not [name for name in SUPPORTED_FEATURES if name.startswith("Mesh")]


@pytest.mark.pure
@pytest.mark.parametrize("kind", ["TLSRoute", "TCPRoute", "UDPRoute"])
def test_a_kind_is_a_feature_when_its_protocol_is_served(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kind not in SUPPORTED_FEATURES
    for served in (("HTTP",), ("HTTP", kind.removesuffix("Route"))):
        monkeypatch.setattr(protocol, "SERVED", served)
        assert (kind in supported_features(in_gateway_namespace=False)) == (len(served) == 2)


@pytest.mark.pure
def test_infrastructure_is_a_feature_of_fleets_in_the_namespace_of_their_gateway() -> None:
    assert INFRASTRUCTURE not in supported_features(in_gateway_namespace=False)
    assert set(supported_features(in_gateway_namespace=True)) == {
        INFRASTRUCTURE,
        *SUPPORTED_FEATURES,
        *STREAMS,
        *ONLY_IN[RELEASES[-1]],
    }


@pytest.mark.pure
@pytest.mark.parametrize("release", RELEASES)
def test_features_have_the_names_of_the_release(release: str) -> None:
    found = supported_features(in_gateway_namespace=False, release=release)
    assert list(found) == sorted({*SUPPORTED_FEATURES, *STREAMS, *ONLY_IN[release]})
    assert ONLY_IN.keys() == set(RELEASES)


@pytest.mark.pure
def test_no_feature_of_a_kind_that_is_missing_is_claimed() -> None:
    missing = ("BackendTLSPolicy", "ClusterTrustBundle", "GRPCRoute", "ListenerSet")
    found = supported_features(in_gateway_namespace=False, missing=missing)
    assert not [name for name in found if name.startswith(missing)]
    assert {"HTTPRoute", "Gateway", "ReferenceGrant", "HTTPRouteRetryCodes"} <= set(found)
