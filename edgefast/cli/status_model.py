"""Status model: the content of `edgefast status` as plain values.

In: nothing.
Out: the structs that a proxy or a cluster fills; their encoding is the documented JSON
(docs/guides/status.md). Releases only add fields; all fields are always present. An unknown value
is "" or empty, and `notes` contain the reason.
Must never: contain a fact that no status, table or proxy reported.
"""

from __future__ import annotations

import msgspec

from edgefast.cli.counters import Rate


class ClassRow(msgspec.Struct, frozen=True, kw_only=True):
    """A GatewayClass; conditions are "True", "False", "Unknown", or "" where nobody has said anything."""

    name: str
    controller: str
    accepted: str


class GatewayRow(msgspec.Struct, frozen=True, kw_only=True):
    """A Gateway."""

    name: str  # "namespace/name"
    gateway_class: str = ""
    addresses: tuple[str, ...] = ()
    accepted: str = ""
    programmed: str = ""


class ListenerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A listener of a Gateway."""

    gateway: str
    name: str
    port: int
    protocol: str
    hostname: str = "*"
    routes: int | None = None  # attached; None: nobody has counted
    programmed: str = ""


class ListenerSetRow(msgspec.Struct, frozen=True, kw_only=True):
    """A ListenerSet; its listeners stand among those of its Gateway, as "namespace/set/listener"."""

    name: str  # "namespace/name"
    gateway: str  # "namespace/name", as the set says
    accepted: str = ""
    programmed: str = ""


class RouteRow(msgspec.Struct, frozen=True, kw_only=True):
    """A route at one of its parents."""

    name: str
    hostnames: tuple[str, ...] = ()
    parent: str = ""
    accepted: str = ""
    resolved: str = ""


class IngressRow(msgspec.Struct, frozen=True, kw_only=True):
    """An Ingress."""

    name: str  # "namespace/name"
    ingress_class: str = ""
    hostnames: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()  # of its status


class ProxyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A proxy: a pod, or the process that was asked."""

    name: str
    fleet: str = ""  # "namespace/name"
    version: str = ""  # of edgefast
    table: str = ""
    ready: bool | None = None
    workers: str = ""  # "2/2": alive of wanted
    connections: int | None = None  # of clients, now
    table_age: float | None = None  # seconds since it was taken in
    state: str = ""  # "up to date", "behind", "refuses ...", or why it could not be asked


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A worker of the process that was asked."""

    number: int
    pid: int
    table: str
    restarts: int
    state: str = ""  # why it did not answer


class ProblemRow(msgspec.Struct, frozen=True, kw_only=True):
    """A condition that says that something is wrong, or a problem of files."""

    object: str  # "Gateway default/edge listener http"
    condition: str = ""
    reason: str
    message: str
    severity: str = "error"  # or "warning"


class StatusReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything."""

    source: str  # "cluster https://192.0.2.1:6443", "proxy 127.0.0.1:19000"
    classes: tuple[ClassRow, ...] = ()
    gateways: tuple[GatewayRow, ...] = ()
    listeners: tuple[ListenerRow, ...] = ()
    routes: tuple[RouteRow, ...] = ()
    proxies: tuple[ProxyRow, ...] = ()
    workers: tuple[WorkerRow, ...] = ()
    problems: tuple[ProblemRow, ...] = ()
    seconds: float = 0.0  # that `traffic` is of; 0: it was not measured
    traffic: tuple[Rate, ...] = ()
    listener_sets: tuple[ListenerSetRow, ...] = ()
    notes: tuple[str, ...] = ()  # what is not here, and why
    ingresses: tuple[IngressRow, ...] = ()
