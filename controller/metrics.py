"""Metrics: everything that Prometheus may ask the controller for, under one prefix.

In: events of the rooms as they happen, and functions that read a number when somebody looks. Out: the text of
`/metrics`. All names of the controller are in this file or in `readings.py`. Must never: have a label whose values
objects choose without bound (fleets are the widest there is), or do anything on the path of a change but count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

__all__ = ["Metrics", "Reading"]

_PREFIX = "edge_gateway"
_STAGE_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_ACK_BUCKETS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

#: Values of the labels, and the number.
Reading = tuple[tuple[str, ...], float]


class _Read(Collector):
    """Metrics that are read where they are, when somebody looks."""

    def __init__(self) -> None:
        self.sources: list[tuple[type, str, str, tuple[str, ...], _Source]] = []

    def collect(self) -> Iterator[Metric]:
        for family, name, text, labels, source in self.sources:
            metric = family(f"{_PREFIX}_{name}", text, labels=labels)
            for values, number in source():
                metric.add_metric(values, number)
            yield metric


_Source = Callable[[], Iterable[Reading]]


class Metrics:
    """The controller's registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._read = _Read()
        self.registry.register(self._read)
        self.stage = Histogram(
            f"{_PREFIX}_stage_seconds",
            "Time that a stage of taking objects in has taken.",
            ("stage",),
            buckets=_STAGE_BUCKETS,
            registry=self.registry,
        )
        self.ack = Histogram(
            f"{_PREFIX}_ack_seconds",
            "Time from the publication of a fleet's tables to a proxy's word that it serves them.",
            buckets=_ACK_BUCKETS,
            registry=self.registry,
        )
        self.nacks = Counter(
            f"{_PREFIX}_nacks",
            "Resources that proxies have refused, by type.",
            ("type",),
            registry=self.registry,
        )
        self.status_failures = Counter(
            f"{_PREFIX}_status_write_failures",
            "Writes of statuses that failed, by cause; they are tried again.",
            ("reason",),
            registry=self.registry,
        )
        self.events = Counter(
            f"{_PREFIX}_kubernetes_events",
            "Kubernetes Events, by what became of them.",
            ("outcome",),
            registry=self.registry,
        )

    def observe(self, stage: str, seconds: float) -> None:
        """Note the time of a stage."""
        self.stage.labels(stage).observe(seconds)

    def count(self, name: str, text: str, source: _Source, labels: tuple[str, ...] = ()) -> None:
        """Have a number that only grows read from `source`; `name` without `_total`."""
        self._read.sources.append((CounterMetricFamily, name, text, labels, source))

    def gauge(self, name: str, text: str, source: _Source, labels: tuple[str, ...] = ()) -> None:
        """Have a number that rises and falls read from `source`."""
        self._read.sources.append((GaugeMetricFamily, name, text, labels, source))

    def render(self) -> bytes:
        """Return the page."""
        return generate_latest(self.registry)
