"""Metrics: all Prometheus metrics of the controller, under one prefix.

In: events of the components, and functions that read a number at a scrape.
Out: the text of `/metrics`. Only edgefast/monitoring/controller_metrics.py defines names, labels
and texts.
Must never: have a label with unbounded values from objects (fleets have the most values), or do
anything on the path of a change but count.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

from edgefast.monitoring.controller_metrics import CONTROLLER
from edgefast.monitoring.family import Family

__all__ = ["Metrics", "Reading"]

log = logging.getLogger(__name__)

_STAGE_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_ACK_BUCKETS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

#: Values of the labels, and the number.
Reading = tuple[tuple[str, ...], float]
_Source = Callable[[], Iterable[Reading]]


class _Read(Collector):
    """Metrics that are read where they are, when somebody looks."""

    def __init__(self) -> None:
        self.sources: dict[str, _Source] = {}

    def collect(self) -> Iterator[Metric]:
        for name, source in self.sources.items():
            family = CONTROLLER[name]
            made = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            metric = made(family.name, family.help, labels=family.labels)
            try:
                for values, number in source():
                    metric.add_metric(values, number)
            except Exception:  # a bug; the others are read all the same
                log.exception("metric %s cannot be read", name)
                continue
            yield metric


class _Counted(Collector):
    """Metrics that are counted as things happen, without the time at which each began to be."""

    def __init__(self) -> None:
        self.families: list[Family] = []
        self.metrics: list[MetricWrapperBase] = []

    def add(self, family: Family, metric: MetricWrapperBase) -> None:
        """Have a metric on the page."""
        self.families.append(family)
        self.metrics.append(metric)

    def collect(self) -> Iterator[Metric]:
        for one in self.metrics:
            for metric in one.collect():
                metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
                yield metric


class Metrics:
    """The controller's registry; names are those of CONTROLLER."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._read = _Read()
        self._counted = _Counted()
        self.registry.register(self._read)
        self.registry.register(self._counted)
        started = time.time()
        self.read("start_timestamp_seconds", lambda: [((), started)])
        self.stage = self._histogram("stage_seconds", _STAGE_BUCKETS)
        self.ack = self._histogram("ack_seconds", _ACK_BUCKETS)
        self.nacks = self._counter("nacks_total")
        self.status_failures = self._counter("status_write_failures_total")
        self.events = self._counter("kubernetes_events_total")

    def observe(self, stage: str, seconds: float) -> None:
        """Note the time of a stage."""
        self.stage.labels(stage).observe(seconds)

    def read(self, name: str, source: _Source) -> None:
        """Have a counter or gauge of CONTROLLER read from `source`; KeyError for another name."""
        if CONTROLLER[name].kind == "histogram":
            raise ValueError(f"{name} has no single value")
        self._read.sources[name] = source

    @property
    def names(self) -> set[str]:
        """What the page has: the whole names of the families."""
        read = {CONTROLLER[name].name for name in self._read.sources}
        return read | {one.name for one in self._counted.families}

    def render(self) -> bytes:
        """Return the page."""
        return generate_latest(self.registry)

    def _counter(self, name: str) -> Counter:
        family = _of_kind(name, "counter")
        made = Counter(family.name, family.help, family.labels, registry=None)
        self._counted.add(family, made)
        return made

    def _histogram(self, name: str, buckets: tuple[float, ...]) -> Histogram:
        family = _of_kind(name, "histogram")
        made = Histogram(family.name, family.help, family.labels, registry=None, buckets=buckets)
        self._counted.add(family, made)
        return made


def _of_kind(name: str, kind: str) -> Family:
    family = CONTROLLER[name]
    if family.kind != kind:
        raise ValueError(f"{name} is a {family.kind}")
    return family
