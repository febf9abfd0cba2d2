"""Controller metrics: every metric family of a controller, in the order of its components.

In: nothing.
Out: `CONTROLLER`, by name without the prefix of controllers. The values are in
controller/metrics.py and controller/metric_readers.py; a test compares the metrics page with this
list in both directions.
"""

from __future__ import annotations

from edgefast.monitoring.family import PREFIX, Family, Unit

__all__ = ["CONTROLLER", "CONTROLLER_PREFIX"]

CONTROLLER_PREFIX = f"{PREFIX}controller_"


def _gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Family:
    return Family(CONTROLLER_PREFIX + name, "gauge", text, labels)


def _count(name: str, text: str, labels: tuple[str, ...] = (), unit: Unit = "") -> Family:
    return Family(f"{CONTROLLER_PREFIX}{name}_total", "counter", text, labels, unit)


def _times(name: str, text: str, labels: tuple[str, ...] = ()) -> Family:
    return Family(f"{CONTROLLER_PREFIX}{name}_seconds", "histogram", text, labels, "seconds")


_FAMILIES = (
    Family(
        f"{CONTROLLER_PREFIX}start_timestamp_seconds",
        "gauge",
        "Start time of the process, or of its last restart of all components.",
        unit="timestamp",
    ),
    _gauge("leader", "1 on the replica that writes."),
    _gauge("synced", "1 when every kind has been read."),
    _gauge("objects", "Objects in the cache, by kind.", ("kind",)),
    _count("events", "Added, changed and deleted objects, by kind.", ("kind",)),
    _gauge(
        "retained_objects",
        "Objects in force after their kind was removed from the API server, by kind.",
        ("kind",),
    ),
    _gauge(
        "deferred_routes",
        "Changed routes with regular expressions that wait for their namespace's turn; the previous version is in force.",
    ),
    _gauge("watch_problems", "Collections and objects that cannot be read right now."),
    _count(
        "watch_restarts",
        "Restarts of lists and watches, by kind and cause.",
        ("kind", "cause"),
    ),
    _count(
        "undecodable_objects",
        "Objects that could not be read, by kind; their last good version stays.",
        ("kind",),
    ),
    _count("config_refusals", "Edits of the configuration that were refused."),
    _gauge(
        "config_problems",
        "Problems of the present configuration file; 0 when it is in force.",
    ),
    _times("stage", "Time of each stage of processing objects.", ("stage",)),
    _count("runs", "Runs of processing objects."),
    _count("translated", "Objects translated, by what they are.", ("what",)),
    _count("changed_resources", "Resources of tables that differ from those before."),
    _count("changed_bytes", "Bytes of those resources.", unit="bytes"),
    _gauge("problems", "Problems of objects in statuses."),
    _count("status_writes", "Statuses written."),
    _count(
        "status_conflicts",
        "Status conflicts: another client changed the status, and the controller merged it again.",
    ),
    _count(
        "status_write_failures",
        "Failed writes of statuses, by cause. The controller retries.",
        ("reason",),
    ),
    _gauge("statuses", "Objects with a status of this controller."),
    _count("kubernetes_events", "Kubernetes Events, by result.", ("outcome",)),
    _count("infra_applied", "Objects of fleets applied."),
    _count("infra_deleted", "Objects of fleets deleted."),
    _count("infra_failures", "Calls for fleets that failed."),
    _gauge("fleets", "Fleets that have tables."),
    _gauge("streams", "Open streams of proxies."),
    _count("pushes", "Batches sent to proxies."),
    _count("pushed_resources", "Resources sent or removed."),
    _count("pushed_bytes", "Bytes sent.", unit="bytes"),
    _count("acks", "Tables that proxies serve as sent."),
    _count("partial_acks", "Tables that a proxy refused in part."),
    _count("nacks", "Resources that proxies have refused, by type.", ("type",)),
    _count("mismatches", "Proxies that had to start their stream again."),
    _count(
        "refused_calls",
        "Calls of the config stream that were refused, by cause.",
        ("cause",),
    ),
    _times(
        "ack",
        "Time from the publication of a fleet's tables to a proxy's acknowledgement.",
    ),
    _gauge("proxies", "Proxies that count for statuses, by fleet.", ("fleet",)),
    _gauge(
        "proxies_behind",
        "Proxies that do not follow, by fleet; statuses do not wait for them.",
        ("fleet",),
    ),
)

CONTROLLER = {one.name.removeprefix(CONTROLLER_PREFIX): one for one in _FAMILIES}
