"""The pages that processes show: exactly the catalogue, and such that promtool has nothing to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest.mock import MagicMock

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from controller import metric_readers
from controller.metrics import Metrics, Reading
from edgefast.monitoring.controller_metrics import CONTROLLER
from edgefast.monitoring.family import Family
from edgefast.monitoring.proxy_metrics import PROXY
from edgefast.proxy.metrics.exposition import render_metrics
from edgefast.proxy.metrics.stats import Segment
from edgefast.xds.stream_stats import StreamStats
from monitoring.promtool import run_promtool
from proxy import agent_facts

pytestmark = pytest.mark.pure

FACTS = msgspec.structs.replace(agent_facts.FACTS, stream=StreamStats(server="controller:18000"))


@pytest.fixture
def proxy_page() -> Iterator[str]:
    segment = Segment(4)
    yield render_metrics([segment], FACTS).decode()
    segment.close()


@pytest.fixture
def controller_metrics() -> Metrics:
    """All readings, of rooms that say 1 to everything."""
    metrics = Metrics()
    for read in (
        metric_readers.read_kube,
        metric_readers.read_lease,
        metric_readers.read_config,
        metric_readers.read_pipeline,
        metric_readers.read_writer,
        metric_readers.read_infra,
    ):
        enter: Callable[..., None] = read
        enter(metrics, MagicMock())
    metric_readers.read_push(metrics, MagicMock(), MagicMock(), list)
    return metrics


def _check(page: str, families: dict[str, Family]) -> None:
    wanted = {one.name: one for one in families.values()}
    headings = [line.split()[2:4] for line in page.splitlines() if line.startswith("# TYPE ")]
    assert sorted(headings) == sorted([one.name, one.kind] for one in wanted.values())
    for shown in text_string_to_metric_families(page):
        name = f"{shown.name}_total" if shown.type == "counter" else shown.name
        family = wanted[name]
        assert shown.documentation == family.help
        labels = {frozenset(one.labels) - {"le"} for one in shown.samples}
        assert labels == {frozenset(family.labels)}, name
    run_promtool("check", "metrics", stdin=page.encode())


def test_a_proxy_shows_the_catalogue(proxy_page: str) -> None:
    _check(proxy_page, PROXY)


def test_without_a_controller_its_metrics_are_missing(proxy_page: str) -> None:
    segment = Segment(4)
    facts = msgspec.structs.replace(
        FACTS,
        stream=None,
        expiries={},
        last_good_age=None,
        store_troubles={},
        keys_failing={},
        token_requests={},
    )
    page = render_metrics([segment], facts).decode()
    segment.close()
    shown = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE ")}
    assert shown == {one.name for one in PROXY.values() if not one.when}


def test_a_controller_shows_the_catalogue(controller_metrics: Metrics) -> None:
    assert controller_metrics.names == {one.name for one in CONTROLLER.values()}
    fresh = Metrics()
    fresh.observe("translate", 0.002)
    fresh.nacks.labels("listener").inc()
    fresh.status_failures.labels("conflict").inc()
    fresh.events.labels("written").inc()
    fresh.ack.observe(0.01)
    for name, family in CONTROLLER.items():
        if family.name not in fresh.names:
            fresh.read(name, _constantly(family))
    _check(fresh.render().decode(), CONTROLLER)


def _constantly(family: Family) -> Callable[[], list[Reading]]:
    return lambda: [(tuple("x" for _ in family.labels), 1.0)]


def test_names_that_nobody_catalogued_are_refused() -> None:
    metrics = Metrics()
    with pytest.raises(KeyError):
        metrics.read("leaders", list)
    with pytest.raises(ValueError, match="has no single value"):
        metrics.read("ack_seconds", list)
