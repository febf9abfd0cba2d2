"""The exposition: it parses, says what the cells say, and stays bounded."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from edgefast.core.cells import BACKEND, GLOBALS, LIMIT, POLICY, ROW
from edgefast.monitoring.proxy_metrics import BY_LABELS, PROXY
from edgefast.proxy.metrics.exposition import render_metrics
from edgefast.proxy.metrics.stats import Segment, add_global, map_segment
from proxy import agent_facts

FACTS = msgspec.structs.replace(agent_facts.FACTS, table_version='ab"c\\\n')


@pytest.fixture
def segment() -> Iterator[Segment]:
    made = Segment(8)
    yield made
    made.close()


def write_row(segment: Segment, number: int, label: bytes, **cells: int) -> None:
    view = map_segment(segment.fd)
    at = 64 + 8 * 192 + number * (192 + 8 * 64)
    view[at + 8 : at + 8 + len(label)] = label
    for name, value in cells.items():
        struct.pack_into("<Q", view, at + 192 + 8 * (*ROW, *LIMIT).index(name), value)
    struct.pack_into("<Q", view, 8, number + 1)


def parse(segments: list[Segment]) -> dict[str, Any]:
    text = render_metrics(segments, FACTS).decode()
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    return {family.name: family for family in families}


def values(family: Any, name: str = "") -> dict[tuple[tuple[str, str], ...], float]:
    wanted = name or family.name
    return {
        tuple(sorted(one.labels.items())): one.value
        for one in family.samples
        if one.name in (wanted, f"{wanted}_total")
    }


def test_agent_facts(segment: Segment) -> None:
    families = parse([segment])
    assert values(families["edgefast_ready"]) == {(): 1}
    assert values(families["edgefast_table_age_seconds"]) == {(): 1.5}
    assert values(families["edgefast_config_problems"]) == {(): 2}
    assert values(families["edgefast_worker_restarts"]) == {(): 1}
    assert values(families["edgefast_info"]) == {
        (("table", 'ab"c\\\n'), ("tls", "OpenSSL 3.9.9"), ("version", "1.2.3")): 1,
    }
    assert values(families["edgefast_start_timestamp_seconds"]) == {(): 1e9}
    assert values(families["edgefast_certificate_expiry_timestamp_seconds"]) == {
        (("secret", "secret/default/web"),): 1893456000,
    }
    assert values(families["edgefast_jwks_fetch_failing"]) == {
        (("policy", "default/api"), ("provider", "idp")): 1,
        (("policy", "default/api"), ("provider", "other")): 0,
    }


def test_requests_for_tokens(segment: Segment) -> None:
    family = parse([segment])["edgefast_oidc_token_requests"]
    labels = (("kind", "login"), ("policy", "default/api"), ("result", "ok"))
    assert values(family) == {labels: 7}


def test_every_global_cell_is_there(segment: Segment) -> None:
    for number, name in enumerate(GLOBALS, 1):
        add_global(map_segment(segment.fd), name, number)
    families = parse([segment])
    shown = {one.value for family in families.values() for one in family.samples}
    seconds = GLOBALS.index("limit_store_us") + 1
    in_seconds = {number for number, name in enumerate(GLOBALS, 1) if name.endswith("_us")}
    assert shown >= {*range(1, len(GLOBALS) + 1)} - in_seconds
    of_cells = {one.cell for one in PROXY.values() if one.cell}
    known = {next((start for start in BY_LABELS if one.startswith(start)), one) for one in GLOBALS}
    assert of_cells == known, "edgefast/monitoring/proxy_metrics.py names every cell"
    assert values(families["edgefast_ratelimit_store_seconds"]) == {(): seconds / 1e6}
    refused = values(families["edgefast_heads_refused"])
    assert refused[(("reason", "line"),)] == GLOBALS.index("head_refused_line") + 1
    assert families["edgefast_connections_active"].type == "gauge"
    assert families["edgefast_connections"].type == "counter"


def test_rows_and_histogram(segment: Segment) -> None:
    write_row(
        segment,
        1,
        b"default/web\t0",
        requests_2xx=5,
        requests_4xx=1,
        duration_us=2_500_000,
        duration_bucket_0=2,
        duration_bucket_3=3,
        duration_bucket_15=1,
    )
    families = parse([segment])
    requests = values(families["edgefast_requests"])
    labels = (("route", "default/web"), ("rule", "0"))
    assert requests[(("code_class", "2xx"), *labels)] == 5
    assert requests[(("code_class", "4xx"), *labels)] == 1
    samples = [
        one
        for one in families["edgefast_request_duration_seconds"].samples
        if one.labels["route"] == "default/web"
    ]
    buckets = {one.labels["le"]: one.value for one in samples if one.name.endswith("_bucket")}
    assert buckets["0.0001"] == 2
    assert buckets["0.0005"] == 2
    assert buckets["0.001"] == 5
    assert buckets["10"] == 5
    assert buckets["+Inf"] == 6
    assert [one.value for one in samples if one.name.endswith("_sum")] == [2.5]
    assert [one.value for one in samples if one.name.endswith("_count")] == [6]


OVERFLOW_ROW = (("route", "overflow"), ("rule", "overflow"))


def test_the_overflow_row_is_always_there(segment: Segment) -> None:
    requests = values(parse([segment])["edgefast_requests"])
    assert requests == {
        (("code_class", one), *OVERFLOW_ROW): 0 for one in ("1xx", "2xx", "3xx", "4xx", "5xx")
    }
    write_row(segment, 0, b"", requests_2xx=4, duration_bucket_1=4, ok=3)
    families = parse([segment])
    assert values(families["edgefast_requests"])[(("code_class", "2xx"), *OVERFLOW_ROW)] == 4
    counts = values(
        families["edgefast_request_duration_seconds"], "edgefast_request_duration_seconds_count"
    )
    assert counts == {OVERFLOW_ROW: 4}
    limits = values(families["edgefast_ratelimit_requests"])
    assert limits[(("limit", "overflow"), ("result", "ok"), ("route", "overflow"))] == 3


def test_rows_that_are_left_are_told(segment: Segment) -> None:
    other = Segment(6)
    try:
        for number in range(1, 4):
            write_row(segment, number, b"ns/web\t%d" % number, requests_2xx=1)
        families = parse([segment, other])
    finally:
        other.close()
    assert values(families["edgefast_metric_rows"]) == {(): 6}
    assert values(families["edgefast_metric_rows_used"]) == {(): 4}


def test_two_rows_of_one_label_are_one_series(segment: Segment) -> None:
    write_row(segment, 1, b"a/b\t0", requests_2xx=1)
    write_row(segment, 2, b"a/b\t0", requests_2xx=2)
    requests = values(parse([segment])["edgefast_requests"])
    assert requests[(("code_class", "2xx"), ("route", "a/b"), ("rule", "0"))] == 3


def write_policy(segment: Segment, number: int, label: bytes, **cells: int) -> None:
    """Of a unit: some of its verdicts are called as what comes of limits."""
    write_row(segment, number, label)
    view = map_segment(segment.fd)
    at = 64 + 8 * 192 + number * (192 + 8 * 64) + 192 + 8 * len((*ROW, *LIMIT))
    for name, value in cells.items():
        struct.pack_into("<Q", view, at + 8 * POLICY.index(name), value)


def write_limit(segment: Segment, number: int, label: bytes, **cells: int) -> None:
    write_row(segment, number, label, **cells)


def test_rate_limits_are_no_routes(segment: Segment) -> None:
    write_row(segment, 1, b"ns/web\t0", requests_2xx=5)
    write_limit(segment, 2, b"limit\tns/web\tns/all#0", ok=5, over=4, over_local=3, store_us=2500)
    families = parse([segment])
    routes = {dict(labels)["route"] for labels in values(families["edgefast_requests"])}
    assert routes == {"ns/web", "overflow"}
    limit = (("limit", "ns/all#0"), ("route", "ns/web"))
    requests = values(families["edgefast_ratelimit_requests"])
    counts = {
        dict(key)["result"]: count
        for key, count in requests.items()
        if dict(key)["route"] == "ns/web"
    }
    assert counts == {"ok": 5, "over": 4, "shadow_over": 0, "error": 0}
    assert {dict(key)["limit"] for key in requests} == {"ns/all#0", "overflow"}
    overflow = (("limit", "overflow"), ("route", "overflow"))
    assert values(families["edgefast_ratelimit_local"]) == {limit: 3, overflow: 0}
    assert values(families["edgefast_ratelimit_wait_seconds"]) == {limit: 0.0025, overflow: 0}


def test_units_of_policies_are_no_routes(segment: Segment) -> None:
    write_row(segment, 1, b"ns/web\t0", requests_2xx=2)
    write_policy(segment, 2, b"policy\tsecurity/ns/p\tauthorization", allowed=5, denied=4)
    write_policy(segment, 3, b"policy\ttraffic/ns/p\ttraffic", error=3)
    families = parse([segment])
    routes = {dict(key)["route"] for key in values(families["edgefast_requests"])}
    assert routes == {"overflow", "ns/web"}
    counts = {
        (dict(key)["policy"], dict(key)["unit"], dict(key)["verdict"]): count
        for key, count in values(families["edgefast_policy_requests"]).items()
        if count
    }
    assert counts == {
        ("ns/p", "authorization", "allowed"): 5,
        ("ns/p", "authorization", "denied"): 4,
        ("ns/p", "traffic", "error"): 3,
    }
    limits = values(families["edgefast_ratelimit_requests"])
    assert {dict(key)["limit"] for key in limits} == {"overflow"}


def test_failed_handshakes_with_backends_have_labels(segment: Segment) -> None:
    other = Segment(8)
    label = b"backend\tservice/ns/web/80\tcertificate_expired"
    at = 64 + 8 * 192 + 192 + 8 * 64 + 192 + 8 * len((*ROW, *LIMIT, *POLICY))
    try:
        for one, count in ((segment, 2), (other, 3)):
            write_row(one, 1, label)
            struct.pack_into("<Q", map_segment(one.fd), at + 8 * BACKEND.index("tls_failed"), count)
        families = parse([segment, other])
    finally:
        other.close()
    assert values(families["edgefast_upstream_tls_failures"]) == {
        (("backend", "service/ns/web/80"), ("reason", "certificate_expired")): 5,
        (("backend", "overflow"), ("reason", "overflow")): 0,
    }
    routes = {dict(key)["route"] for key in values(families["edgefast_requests"])}
    assert routes == {"overflow"}


def test_rate_limits_of_all_workers_are_added(segment: Segment) -> None:
    other = Segment(8)
    try:
        write_limit(segment, 1, b"limit\tns/web\tns/all#0", shadow_over=1, error=10)
        write_limit(other, 1, b"limit\tns/web\tns/all#0", shadow_over=2, error=20)
        write_limit(other, 2, b"limit\tns/web\tns/all#1", ok=7)
        requests = values(parse([segment, other])["edgefast_ratelimit_requests"])
    finally:
        other.close()
    counts = {(dict(key)["limit"], dict(key)["result"]): count for key, count in requests.items()}
    assert counts["ns/all#0", "shadow_over"] == 3
    assert counts["ns/all#0", "error"] == 30
    assert counts["ns/all#1", "ok"] == 7
    assert len(counts) == 12  # with the overflow row


def test_a_label_of_a_limit_that_was_cut_is_one_series(segment: Segment) -> None:
    write_limit(segment, 1, b"limit\t" + b"n" * 177, ok=1)
    labels, overflow = sorted(values(parse([segment])["edgefast_ratelimit_local"]))
    assert dict(overflow) == {"route": "overflow", "limit": "overflow"}
    assert dict(labels) == {"route": "n" * 177, "limit": ""}
