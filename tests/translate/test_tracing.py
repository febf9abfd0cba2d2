"""spec.tracing: where spans go, how, and what is said where nobody can send them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edgefast import ir
from edgefast.api.edge.edgeproxy import EdgeProxySpec, ProxyTracing
from edgefast.api.edge.edgeproxy_defaults import merge_proxy_specs
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.edgeproxy.tracing import check_tracing, translate_tracing
from edgefast.translate.report.report import Report

pytestmark = pytest.mark.pure


def spec(**tracing: Any) -> EdgeProxySpec:
    return msgspec.convert({"tracing": tracing}, EdgeProxySpec)


@pytest.mark.parametrize(
    ("given", "endpoint", "protocol"),
    [
        ({"endpoint": "http://otel:4318"}, "http://otel:4318", "http"),
        ({"endpoint": "http://otel:4317"}, "http://otel:4317", "grpc"),
        ({"endpoint": "https://otel.example.com/"}, "https://otel.example.com:4318", "http"),
        ({"endpoint": "https://otel", "protocol": "grpc"}, "https://otel:4317", "grpc"),
        (
            {"endpoint": "http://[fd00::1]:4317", "protocol": "http"},
            "http://[fd00::1]:4317",
            "http",
        ),
        ({"endpoint": "http://[fd00::1]"}, "http://[fd00::1]:4318", "http"),
    ],
)
def test_where_to_and_how(given: dict[str, str], endpoint: str, protocol: str) -> None:
    assert translate_tracing(spec(**given), available=True) == ir.Tracing(
        endpoint=endpoint,
        protocol=protocol,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    "endpoint",
    [
        "otel:4318",
        "grpc://otel:4317",
        "http://",
        "http://otel:0",
        "http://otel:4318/v1/traces",
        "http://u:p@otel:4318",
        "http://otel:4318?a",
    ],
)
def test_what_is_no_endpoint(endpoint: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        spec(endpoint=endpoint)


def test_sampling_and_attributes() -> None:
    found = translate_tracing(
        merge_proxy_specs(
            spec(endpoint="http://a:1", sampling=10),
            spec(endpoint="http://a:1", attributes={"z": "1", "service.name": "x"}),
        ),
        available=True,
    )
    assert found is not None
    assert found.sampling == 0.1
    assert found.attributes == (("service.name", "x"), ("z", "1"))
    assert translate_tracing(merge_proxy_specs(), available=True) is None


def test_exemplars_are_off_unless_asked_for() -> None:
    for given, asked in (({}, False), ({"exemplars": False}, False), ({"exemplars": True}, True)):
        found = translate_tracing(spec(endpoint="http://a:1", **given), available=True)
        assert found is not None and found.exemplars is asked
    with pytest.raises(msgspec.ValidationError, match=r"\$\.tracing\.exemplars"):
        spec(endpoint="http://a:1", exemplars="yes")


@pytest.mark.parametrize(
    ("endpoint", "allowed", "why"),
    [
        ("http://127.0.0.1:4317", (), "loopback"),
        ("http://[::ffff:169.254.169.254]:4318", (), "link-local"),
        ("http://169.254.1.1:4318", ("127.0.0.0/8",), "link-local"),
        ("http://127.0.0.1:4317", ("127.0.0.0/8",), ""),
        ("http://10.0.0.7:4318", (), ""),
        ("http://localhost:4318", (), ""),  # the proxy refuses its addresses
    ],
)
def test_a_collector_at_a_reserved_address_needs_the_administrator(
    endpoint: str, allowed: tuple[str, ...], why: str
) -> None:
    given = spec(endpoint=endpoint)
    found = translate_tracing(given, available=True, allowed=allowed)
    report = Report(ObjectRef("EdgeProxy", "default", "own"))
    assert given.tracing is not None
    check_tracing(given.tracing, report, available=True, allowed=allowed)
    if why:
        assert found is None
        (problem,) = report.problems
        assert problem.path == "spec.tracing.endpoint" and why in problem.message
    else:
        assert found is not None and found.allowed == allowed and not report.problems


def test_where_nobody_can_send_spans_there_are_none_and_a_problem() -> None:
    tracing = ProxyTracing(endpoint="http://a:1")
    assert translate_tracing(EdgeProxySpec(tracing=tracing), available=False) is None
    report = Report(ObjectRef("EdgeProxy", "default", "own"))
    check_tracing(tracing, report, available=False)
    (problem,) = report.problems
    assert problem.text() == (
        "EdgeProxy default/own spec.tracing: NotSupported tracing needs the package "
        "edgefast[tracing], which is not installed, pip install 'edgefast[tracing]'"
    )
    report = Report(ObjectRef("EdgeProxy", "default", "own"))
    check_tracing(tracing, report, available=True)
    assert report.problems == ()


def test_connections_are_traced_where_they_are_asked_for() -> None:
    given = {"endpoint": "http://otel:4318"}
    off = translate_tracing(spec(**given), available=True)
    on = translate_tracing(spec(**given, connections=True), available=True)
    assert off is not None and on is not None
    assert (off.connections, on.connections) == (False, True)
