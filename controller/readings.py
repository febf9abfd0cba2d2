"""Readings: the metrics that are read where they are when somebody looks.

In: the rooms. Out: names, texts and functions, entered into `Metrics`. Together with metrics.py these are all metrics
that the controller has. Must never: change a room, or be slow: a scrape runs in the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from controller.config import ConfigFile
from controller.infra.applier import Applier
from controller.kube.cache import Cache
from controller.kube.lease import Lease
from controller.metrics import Metrics, Reading
from controller.pipeline import Pipeline
from controller.push.fleets import Fleets
from controller.push.server import PushServer
from controller.status.writer import Writer

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
    metrics.gauge("objects", "Objects held, by kind.", lambda: _table(cache.counts), ("kind",))
    metrics.count(
        "watch_restarts",
        "Lists and watches that began anew, by kind and cause.",
        lambda: [(key, float(number)) for key, number in cache.restarts.items()],
        ("kind", "cause"),
    )
    metrics.count(
        "undecodable_objects",
        "Objects that could not be read, by kind; their last good version stays.",
        lambda: _table(cache.refusals),
        ("kind",),
    )
    metrics.gauge(
        "watch_problems",
        "Collections and objects that cannot be read right now.",
        lambda: _one(len(cache.problems)),
    )
    metrics.gauge("synced", "1 when every kind has been read.", lambda: _one(cache.synced))


def read_lease(metrics: Metrics, lease: Lease) -> None:
    """Who writes."""
    metrics.gauge("leader", "1 on the replica that writes.", lambda: _one(lease.leading))


def read_config(metrics: Metrics, file: ConfigFile) -> None:
    """The configuration file."""
    metrics.count(
        "config_refusals",
        "Edits of the configuration that were refused.",
        lambda: _one(file.refusals),
    )
    metrics.gauge(
        "config_problems",
        "Problems of the configuration file as it is now; 0 when it is in force.",
        lambda: _one(len(file.problems)),
    )


def read_pipeline(metrics: Metrics, pipeline: Pipeline) -> None:
    """What is done with objects."""
    work = pipeline.work
    metrics.count("runs", "Times that objects were taken in.", lambda: _one(work.runs))
    metrics.count(
        "translated",
        "Objects translated, by what they are.",
        lambda: _table(
            {
                "route": work.routes,
                "virtual_host": work.virtual_hosts,
                "cluster": work.clusters,
            }
        ),
        ("what",),
    )
    metrics.count(
        "changed_resources",
        "Resources of tables that differ from those before.",
        lambda: _one(work.resources),
    )
    metrics.count("changed_bytes", "Bytes of those resources.", lambda: _one(work.bytes))
    metrics.gauge(
        "problems", "Mistakes in objects, as statuses tell them.", lambda: _problems(pipeline)
    )


def read_writer(metrics: Metrics, writer: Writer) -> None:
    """Statuses."""
    metrics.count("status_writes", "Statuses written.", lambda: _one(writer.writes))
    metrics.count(
        "status_conflicts",
        "Statuses that somebody else had written meanwhile; they were merged anew.",
        lambda: _one(writer.conflicts),
    )
    metrics.gauge(
        "statuses", "Objects that have a status of ours.", lambda: _one(len(writer.board))
    )


def read_infra(metrics: Metrics, applier: Applier) -> None:
    """Fleets' objects."""
    metrics.count("infra_applied", "Objects of fleets applied.", lambda: _one(applier.applied))
    metrics.count("infra_deleted", "Objects of fleets deleted.", lambda: _one(applier.deleted))
    metrics.count("infra_failures", "Calls for fleets that failed.", lambda: _one(applier.refused))


def read_push(
    metrics: Metrics,
    server: PushServer,
    fleets: Fleets,
    progress: Callable[[], list[dict[str, object]]],
) -> None:
    """Streams and proxies."""
    counts = server.counts
    metrics.gauge("streams", "Open streams of proxies.", lambda: _one(counts.streams))
    for name, text, source in (
        ("pushes", "Batches sent to proxies.", lambda: counts.batches),
        ("pushed_resources", "Resources sent or removed.", lambda: counts.resources),
        ("pushed_bytes", "Bytes sent.", lambda: counts.bytes),
        ("acks", "Tables that proxies serve as sent.", lambda: counts.acks),
        ("partial_acks", "Tables of which a proxy refused something.", lambda: counts.nacks),
        ("mismatches", "Proxies that had to begin anew.", lambda: counts.mismatches),
    ):
        metrics.count(name, text, _reader(source))
    metrics.count(
        "refused_calls",
        "Calls of the config stream that were refused, by cause.",
        lambda: _table({str(cause): n for cause, n in server.refusals.counts.items()}),
        ("cause",),
    )
    metrics.gauge("fleets", "Fleets that have tables.", lambda: _one(len(fleets.names())))
    metrics.gauge(
        "proxies",
        "Proxies that count for statuses, by fleet.",
        lambda: [((str(one["fleet"]),), _number(one["proxies"])) for one in progress()],
        ("fleet",),
    )
    metrics.gauge(
        "proxies_behind",
        "Proxies that do not follow, by fleet; nothing waits for them.",
        lambda: [((str(one["fleet"]),), _number(one["behind"])) for one in progress()],
        ("fleet",),
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
