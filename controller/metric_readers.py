"""Metric readers: metrics that are read from the components at each scrape.

In: the components.
Out: functions, registered in `Metrics` under the names of
edgefast/monitoring/controller_metrics.py. Together with metrics.py they are all metrics of the
controller.
Must never: change a component, or be slow: a scrape runs in the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from controller.config import ConfigFile
from controller.fleets.apply import Applier
from controller.kube.cache import Cache
from controller.kube.lease import Lease
from controller.metrics import Metrics, Reading
from controller.pipeline import Pipeline
from controller.status.writer import Writer
from controller.xds_server.fleets import Fleets
from controller.xds_server.server import PushServer

__all__ = [
    "read_config",
    "read_infra",
    "read_kube",
    "read_lease",
    "read_pipeline",
    "read_push",
    "read_writer",
]


def read_kube(metrics: Metrics, cache: Cache) -> None:
    """What comes from the API server."""
    metrics.read("objects", lambda: _table(cache.counts))
    metrics.read("events_total", lambda: _table(cache.events))
    metrics.read(
        "watch_restarts_total",
        lambda: [(key, float(number)) for key, number in cache.restarts.items()],
    )
    metrics.read("undecodable_objects_total", lambda: _table(cache.refusals))
    metrics.read("retained_objects", lambda: _table(cache.retained))
    metrics.read("deferred_routes", lambda: _one(cache.deferred))
    metrics.read("watch_problems", lambda: _one(len(cache.problems)))
    metrics.read("synced", lambda: _one(cache.synced))


def read_lease(metrics: Metrics, lease: Lease) -> None:
    """Who writes."""
    metrics.read("leader", lambda: _one(lease.leading))


def read_config(metrics: Metrics, file: ConfigFile) -> None:
    """The configuration file."""
    metrics.read("config_refusals_total", lambda: _one(file.refusals))
    metrics.read("config_problems", lambda: _one(len(file.problems)))


def read_pipeline(metrics: Metrics, pipeline: Pipeline) -> None:
    """What is done with objects."""
    work = pipeline.work
    metrics.read("runs_total", lambda: _one(work.runs))
    metrics.read(
        "translated_total",
        lambda: _table(
            {
                "route": work.routes,
                "virtual_host": work.virtual_hosts,
                "cluster": work.clusters,
            }
        ),
    )
    metrics.read("changed_resources_total", lambda: _one(work.resources))
    metrics.read("changed_bytes_total", lambda: _one(work.bytes))
    metrics.read("problems", lambda: _problems(pipeline))


def read_writer(metrics: Metrics, writer: Writer) -> None:
    """Statuses."""
    metrics.read("status_writes_total", lambda: _one(writer.writes))
    metrics.read("status_conflicts_total", lambda: _one(writer.conflicts))
    metrics.read("statuses", lambda: _one(len(writer.board)))


def read_infra(metrics: Metrics, applier: Applier) -> None:
    """Fleets' objects."""
    metrics.read("infra_applied_total", lambda: _one(applier.applied))
    metrics.read("infra_deleted_total", lambda: _one(applier.deleted))
    metrics.read("infra_failures_total", lambda: _one(applier.refused))


def read_push(
    metrics: Metrics,
    server: PushServer,
    fleets: Fleets,
    progress: Callable[[], list[dict[str, object]]],
) -> None:
    """Streams and proxies."""
    counts = server.counts
    metrics.read("streams", lambda: _one(counts.streams))
    for name, source in (
        ("pushes_total", lambda: counts.batches),
        ("pushed_resources_total", lambda: counts.resources),
        ("pushed_bytes_total", lambda: counts.bytes),
        ("acks_total", lambda: counts.acks),
        ("partial_acks_total", lambda: counts.nacks),
        ("mismatches_total", lambda: counts.mismatches),
    ):
        metrics.read(name, _reader(source))
    metrics.read(
        "refused_calls_total",
        lambda: _table({str(cause): n for cause, n in server.refusals.counts.items()}),
    )
    metrics.read("fleets", lambda: _one(len(fleets.names())))
    metrics.read(
        "proxies", lambda: [((str(one["fleet"]),), _number(one["proxies"])) for one in progress()]
    )
    metrics.read(
        "proxies_behind",
        lambda: [((str(one["fleet"]),), _number(one["behind"])) for one in progress()],
    )


def _reader(source: Callable[[], int]) -> Callable[[], Iterable[Reading]]:
    return lambda: _one(source())


def _one(number: float) -> Iterable[Reading]:
    return [((), float(number))]


def _table(numbers: Mapping[str, int]) -> Iterable[Reading]:
    return [((name,), float(number)) for name, number in numbers.items()]


def _number(value: object) -> float:
    return float(len(value)) if isinstance(value, list) else float(str(value))


def _problems(pipeline: Pipeline) -> Iterable[Reading]:
    outcome = pipeline.outcome
    return _one(len(outcome.translation.problems) if outcome is not None else 0)
