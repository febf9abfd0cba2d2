"""`edgefast status` of one proxy: a local `edgefast run`, or a pod through a forwarded port.

In: the admin server's /version, /dump and /metrics.
Out: `ClusterView`s: Gateways and routes of the active table, workers, the proxy's problems,
counters. The table is read again only after a change, so a refresh costs a proxy no more than a
scrape.
Must never: validate; problems explain what the table does not contain.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import click
import msgspec

from edgefast.api.model.origin import ingress_of, is_made
from edgefast.api.model.route_name import route_of
from edgefast.cli.admin_client import ask_admin, ask_text
from edgefast.cli.counters import Page, read_page
from edgefast.cli.live import ClusterView, LiveError
from edgefast.cli.status_model import (
    ClassRow,
    GatewayRow,
    IngressRow,
    ListenerRow,
    ProblemRow,
    ProxyRow,
    RouteRow,
    StatusReport,
    WorkerRow,
)
from edgefast.translate.gateway.protocol import transport_of


def is_proxy(admin: str) -> bool:
    """Tell whether a proxy's admin server is at an address. LiveError when nothing answers there."""
    try:
        version = ask_admin(admin, "/version")
    except click.BadParameter:
        raise
    except click.ClickException as error:
        raise LiveError(error.message) from None
    return isinstance(version, dict) and "table" in version


#: Seconds after which a table that has not changed is read again: problems may be others.
_STALE = 30.0

#: Transport and number.
_Port = tuple[str, int]  # "TCP" or "UDP", number


class ProxySource:
    """One proxy, by its admin address."""

    def __init__(self, admin: str) -> None:
        self._admin = admin
        self._dump: Any = None
        self._seen: tuple[object, ...] = ()
        self._read_at = 0.0

    def count(self) -> Mapping[str, Page]:
        """Read the counters."""
        try:
            return {self._admin: read_page(ask_text(self._admin, "/metrics"), time.monotonic())}
        except ValueError as error:
            raise LiveError(f"{self._admin}: {error}") from None
        except click.ClickException as error:
            raise LiveError(error.message) from None

    def look(self) -> ClusterView:
        """Read everything."""
        pages = self.count()
        page = pages[self._admin]
        seen = (
            page.table,
            page.ready,
            *(page.number(one) for one in ("config_problems", "worker_restarts_total")),
        )
        if seen != self._seen or page.at - self._read_at > _STALE:
            try:
                self._dump = ask_admin(self._admin, "/dump")
            except click.ClickException as error:
                raise LiveError(error.message) from None
            self._seen, self._read_at = seen, page.at
        try:
            return ClusterView(screen=make_screen(self._admin, self._dump, page), pages=pages)
        except (KeyError, TypeError) as error:
            raise LiveError(
                f"the proxy at {self._admin} runs an incompatible release: {error}"
            ) from None


def make_screen(admin: str, dump: Any, page: Page) -> StatusReport:
    """Return the screen of a dump and a page of metrics."""
    agent = dump["agent"]
    state = agent["phase"] if agent["phase"] != "serving" else ""
    row = ProxyRow(
        name=f"pid {agent['pid']}",
        version=page.version,
        table=page.table,
        ready=page.ready,
        workers=f"{page.number('workers_alive')}/{page.number('workers')}",
        connections=page.number("connections_active"),
        table_age=page.numbers.get("table_age_seconds"),
        state=state or ("" if page.ready else "not ready"),
    )
    return StatusReport(
        source=f"proxy {admin}",
        classes=tuple(ClassRow(**one) for one in _objects(dump, "classes")),
        gateways=tuple(_gateways(dump)),
        listeners=tuple(_listeners(dump)),
        routes=tuple(_routes(dump)),
        ingresses=tuple(_ingresses(dump)),
        proxies=(row,),
        workers=tuple(_workers(dump)),
        problems=tuple(
            ProblemRow(
                object=one["object"],
                reason=one["reason"],
                message=one["text"],
                severity=one["severity"],
            )
            for one in dump["problems"]
        ),
    )


def _objects(dump: Any, kind: str) -> list[dict[str, str]]:
    """Return what a proxy of files tells of its objects; one of a controller's tables has none."""
    found: list[dict[str, str]] = dump.get("objects", {}).get(kind, [])
    return found


def _closed(dump: Any) -> set[str]:
    """Return the listeners that are in the table to keep their place, and serve nothing."""
    return {one["name"] for one in _objects(dump, "closed")}


def _gateway_of(listener: str) -> str:
    """Return "namespace/gateway" of "namespace/gateway/listener", or of a ListenerSet's longer name."""
    namespace, name, *_ = listener.split("/")
    return f"{namespace}/{name}"


def _hosts_of(listener: Any, ports: Mapping[_Port, list[str]]) -> list[str]:
    """Return the addresses that a listener is bound at."""
    found = ports.get((transport_of(listener["protocol"]), listener["bind_port"]), [])
    wanted = listener.get("addresses")
    return [one for one in found if one in wanted] if wanted else found


def _open_ports(dump: Any) -> dict[_Port, list[str]]:
    found: dict[_Port, list[str]] = {}
    for one in dump["agent"]["bound"]:
        found.setdefault((one.get("transport", "TCP"), one["port"]), []).append(one["address"])
    return found


def _gateways(dump: Any) -> Iterator[GatewayRow]:
    ports = _open_ports(dump)
    reported = {one["name"]: one for one in _objects(dump, "gateways")}
    listeners: dict[str, list[list[str]]] = {name: [] for name in reported}
    closed = _closed(dump)
    for one in (one for one in dump["listeners"] if one["name"] not in closed):
        listeners.setdefault(_gateway_of(one["name"]), []).append(_hosts_of(one, ports))
    for name, wanted in sorted(listeners.items()):
        if is_made(name):
            continue
        addresses = dict.fromkeys(host for hosts in wanted for host in hosts)
        one = reported.get(name, {})
        yield GatewayRow(
            name=name,
            gateway_class=one.get("class", ""),
            addresses=tuple(addresses),
            # What is in the table was accepted, whoever made it.
            accepted=one.get("accepted", "True"),
            programmed=str(bool(wanted) and all(wanted)),
        )


def _listeners(dump: Any) -> Iterator[ListenerRow]:
    ports = _open_ports(dump)
    attached, closed = _attached(dump), _closed(dump)
    for one in dump["listeners"]:
        gateway = _gateway_of(one["name"])
        if is_made(gateway):
            continue
        yield ListenerRow(
            gateway=gateway,
            name=one["name"].removeprefix(f"{gateway}/"),
            port=one["port"],
            protocol=one["protocol"],
            hostname=one.get("hostname", "*"),
            routes=len({route for route, listener in attached if listener == one["name"]}),
            programmed=str(bool(_hosts_of(one, ports)) and one["name"] not in closed),
        )


def _attached(dump: Any) -> dict[tuple[str, str], list[str]]:
    """Return the hostnames at which a route is on a listener, by (route, listener)."""
    found: dict[tuple[str, str], list[str]] = {}
    for host in dump["virtual_hosts"]:
        whole = host["type"] == "virtual_host"
        name = host["name"] if whole else host["name"].rpartition("#")[0]
        listener, _, hostname = name.rpartition("/")
        for rule in host.get("rules", ()):
            names = found.setdefault((rule["route"], listener), [])
            if hostname not in names:
                names.append(hostname)
    for one in dump.get("stream_routes", ()):
        if one.get("route"):
            names = found.setdefault((one["route"], one["listener"]), [])
            names.append(one["hostname"])
    return found


def _routes(dump: Any) -> Iterator[RouteRow]:
    served: dict[tuple[str, str], dict[str, None]] = {}
    for (route, listener), hostnames in _attached(dump).items():
        if is_made(route):
            continue
        served.setdefault((route, _gateway_of(listener)), {}).update(dict.fromkeys(hostnames))
    rows = {
        key: RouteRow(name=key[0], hostnames=tuple(names), parent=key[1], accepted="True")
        for key, names in served.items()
    }
    for one in _objects(dump, "routes"):
        key = (one["name"], one["parent"])
        row = rows.get(key) or RouteRow(name=key[0], parent=key[1])
        rows[key] = msgspec.structs.replace(row, accepted=one["accepted"], resolved=one["resolved"])
    known = {name for name, _ in rows}
    for one in dump["problems"]:
        name = route_of(one["object"])
        if name and name not in known:
            rows[name, ""] = RouteRow(name=name)
    return (rows[key] for key in sorted(rows))


def _ingresses(dump: Any) -> Iterator[IngressRow]:
    """Give the Ingresses that the proxy serves, in place of the routes that serve them."""
    hosts: dict[str, dict[str, None]] = {}
    for (route, _), hostnames in _attached(dump).items():
        if is_made(route):
            hosts.setdefault(ingress_of(route), {}).update(dict.fromkeys(hostnames))
    classes = {one["name"]: one["class"] for one in _objects(dump, "ingresses")}
    for name in sorted({*hosts, *classes}):
        yield IngressRow(
            name=name,
            ingress_class=classes.get(name, ""),
            hostnames=tuple(hosts.get(name, ())),
        )


def _workers(dump: Any) -> Iterator[WorkerRow]:
    for one in dump["workers"]:
        yield WorkerRow(
            number=one["worker"],
            pid=one["pid"],
            table=one["version"],
            restarts=one["restarts"],
            state=one.get("error", ""),
        )
