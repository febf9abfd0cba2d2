"""EdgeProxy: defaults and the overlay of a Gateway's over its class's."""

from __future__ import annotations

import msgspec
import pytest

from edgefast.api.edge.edgeproxy import EdgeProxySpec
from edgefast.api.edge.edgeproxy_defaults import DEFAULT_SPEC, merge_proxy_specs
from edgefast.api.validation.rules import obeys
from edgefast.translate.edgeproxy.edgeproxy import translate_http

pytestmark = pytest.mark.pure


def _spec(**fields: object) -> EdgeProxySpec:
    return msgspec.convert(fields, EdgeProxySpec)


def test_nothing_given() -> None:
    assert merge_proxy_specs() is DEFAULT_SPEC
    assert merge_proxy_specs(None, EdgeProxySpec()) is DEFAULT_SPEC
    assert obeys(DEFAULT_SPEC)


def test_defaults_are_documents_too() -> None:
    assert msgspec.convert(msgspec.to_builtins(DEFAULT_SPEC), EdgeProxySpec) == DEFAULT_SPEC


def test_the_gateway_wins_field_by_field() -> None:
    of_class = _spec(workers=2, http={"requestHead": "16KiB", "idleTimeout": "5s"})
    of_gateway = _spec(http={"idleTimeout": "7s"}, clientAddress={"trustedHops": 1})
    merged = merge_proxy_specs(of_class, of_gateway)
    assert merged.workers == 2
    assert merged.http is not None
    assert merged.http.request_head == "16KiB"
    assert merged.http.idle_timeout == "7s"
    assert merged.http.connect_timeout == "2s"
    assert merged.client_address is not None
    assert merged.client_address.trusted_hops == 1
    assert merged.client_address.proxy_protocol == "off"


@pytest.mark.parametrize(
    ("of_class", "of_gateway", "wanted"),
    [
        (None, None, (False, "")),
        ({}, None, (True, "")),
        ({"defaultHost": "A.test"}, {"enabled": True}, (True, "a.test")),
        ({"defaultHost": "a.test"}, {"enabled": False}, (False, "a.test")),
        ({"enabled": False}, {"defaultHost": "_"}, (False, "_")),
    ],
)
def test_http10(of_class: object, of_gateway: object, wanted: tuple[bool, str]) -> None:
    merged = merge_proxy_specs(_spec(http={"http10": of_class}), _spec(http={"http10": of_gateway}))
    found = translate_http(merged)
    assert (found.http10, found.http10_host) == wanted


def test_false_and_empty_win_over_given() -> None:
    of_class = _spec(accessLog={"off": True}, clientAddress={"trustedCIDRs": ["10.0.0.0/8"]})
    of_gateway = _spec(accessLog={"off": False}, clientAddress={"trustedCIDRs": []})
    merged = merge_proxy_specs(of_class, of_gateway)
    assert merged.access_log is not None
    assert merged.access_log.off is False
    assert merged.client_address is not None
    assert merged.client_address.trusted_cidrs == ()


def test_bounds_of_a_budget_do_not_mix() -> None:
    merged = merge_proxy_specs(_spec(pdb={"minAvailable": 1}), _spec(pdb={"maxUnavailable": "50%"}))
    assert merged.pdb is not None
    assert merged.pdb.min_available is None
    assert merged.pdb.max_unavailable == "50%"
