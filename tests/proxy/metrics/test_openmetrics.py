"""OpenMetrics: who gets it, that it parses as such, and that it says what the text says, and the exemplars."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse_text

from edgefast.monitoring.family import Family
from edgefast.monitoring.proxy_metrics import PROXY
from edgefast.proxy.metrics.exposition import render_metrics, render_openmetrics
from edgefast.proxy.metrics.openmetrics import heading_of, is_wanted
from edgefast.proxy.metrics.stats import Segment
from edgefast.proxy.traces.exemplars import Exemplars, Marks
from edgefast.xds.stream_stats import StreamStats
from proxy import agent_facts
from proxy.metrics.test_exposition import write_row
from proxy.spans import SPAN

pytestmark = pytest.mark.pure

FACTS = msgspec.structs.replace(
    agent_facts.FACTS, table_version='ab"c\\\n', stream=StreamStats(server="controller:18000")
)
#: What Prometheus 3 sends.
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (PROMETHEUS, True),
        ("application/openmetrics-text", True),
        ("Application/OpenMetrics-Text; Version=1.0.0; charset=utf-8", True),
        ('text/plain, application/openmetrics-text; version="0.0.1" ; q = 0.001', True),
        ("", False),
        ("*/*", False),
        ("application/*", False),
        ("text/plain;version=0.0.4", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=0.0;version=1.0.0", False),
        ("application/openmetrics-text;q=many", False),
        ("application/openmetrics-text;q=nan", False),
        ("application/openmetrics-text;version=2.0.0", False),
        ("application/openmetrics-text-not", False),
        ("text/plain;application/openmetrics-text", False),
        ("application/vnd.google.protobuf", False),
        (";;;,,,;q", False),
    ],
)
def test_who_gets_it(accept: str, wanted: bool) -> None:
    assert is_wanted(accept) is wanted


@pytest.fixture
def segment() -> Iterator[Segment]:
    made = Segment(8)
    write_row(made, 0, b"", requests_2xx=1, duration_us=20_000_000, duration_bucket_15=1)
    write_row(made, 1, b"-\t-", requests_4xx=1, duration_us=90, duration_bucket_0=1)
    write_row(
        made, 2, b'ns/web\ta"b', requests_2xx=3, duration_us=43_300, duration_bucket_2=2,
        duration_bucket_8=1,
    )  # fmt: skip
    yield made
    made.close()


def marks() -> Marks:
    """Of a bucket that counted, of one that did not, of the overflow row, and of a row that is gone."""
    kept = Exemplars(8)
    for row, took in ((b'ns/web\ta"b', 43_000), (b'ns/web\ta"b', 2_000_000), (b"", 19_999_999),
                      (b"ns/gone\t0", 43_000)):  # fmt: skip
        ended = 1_700_000_000_123_000
        kept.add(msgspec.structs.replace(SPAN, row=row, took=took, start=ended - took))
    return kept.marks()


def exemplars_of(page: str) -> dict[tuple[str, str], Any]:
    return {
        (one.labels["route"], one.labels["le"]): one.exemplar
        for family in parse_open(page)
        for one in family.samples
        if one.exemplar is not None
    }


def test_buckets_name_traces(segment: Segment) -> None:
    page = render_openmetrics([segment], FACTS, marks()).decode()
    ids = {"trace_id": "01" * 16, "span_id": "03" * 8}
    found = exemplars_of(page)
    assert found.keys() == {("ns/web", "0.05"), ("overflow", "+Inf")}
    assert all(one.labels == ids for one in found.values())
    assert all(float(one.timestamp) == 1_700_000_000.123 for one in found.values())
    assert [one.value for one in found.values()] == [19.999999, 0.043]
    assert sum(len(name) + len(value) for name, value in ids.items()) <= 128
    wanted = (
        r'edgefast_request_duration_seconds_bucket{route="ns/web",rule="a\"b",le="0.05"} 3'
        f' # {{trace_id="{"01" * 16}",span_id="{"03" * 8}"}} 0.043000 1700000000.123\n'
    )
    assert wanted in page


def test_a_value_is_within_its_bucket(segment: Segment) -> None:
    kept = Exemplars(8)
    kept.add(msgspec.structs.replace(SPAN, row=b"-\t-", took=100))
    kept.add(msgspec.structs.replace(SPAN, row=b'ns/web\ta"b', took=500))
    page = render_openmetrics([segment], FACTS, kept.marks()).decode()
    assert {key: one.value for key, one in exemplars_of(page).items()} == {
        ("-", "0.0001"): 0.0001,
        ("ns/web", "0.0005"): 0.0005,
    }


def test_both_formats_have_the_same_series(segment: Segment) -> None:
    def series(families: Any) -> dict[tuple[Any, ...], float]:
        return {
            (
                one.name,
                *sorted(
                    (name, float(text) if name == "le" else text)
                    for name, text in one.labels.items()
                ),
            ): one.value
            for family in families
            for one in family.samples
        }

    text = render_metrics([segment], FACTS).decode()
    page = render_openmetrics([segment], FACTS, marks()).decode()
    assert series(parse_open(page)) == series(parse_text(text))
    assert page.endswith("\n# EOF\n") and page.count("# EOF") == 1
    assert "EOF" not in text and "trace_id" not in text
    assert 'le="1.0"' in page and 'le="10.0"' in page and 'le="+Inf"' in page
    assert 'le="1"' in text and 'le="10"' in text


def test_headings_are_those_of_the_catalogue(segment: Segment) -> None:
    page = render_openmetrics([segment], FACTS, {}).decode()
    shown = {one.name: (one.type, one.documentation) for one in parse_open(page)}
    assert shown == {
        one.name.removesuffix("_total"): (one.kind, one.help) for one in PROXY.values()
    }
    assert "_total counter" not in page


def test_a_help_text_is_escaped() -> None:
    family = Family("edgefast_a_total", "counter", 'a "b" \\ c\n')
    assert heading_of(family) == (
        '# HELP edgefast_a a \\"b\\" \\\\ c\\n\n# TYPE edgefast_a counter\n'
    )
