"""Cluster status: the content of `edgefast status` for a cluster: written statuses, proxies and their counters.

In: a cluster, a namespace or all.
Out: `ClusterView`s. The controller's admin server provides the state of proxies if it is reachable
(for example through `kubectl port-forward`). A source that is not reachable is a note, never an
empty row.
Must never: translate; statuses are read, so the output equals what users see.
"""

from __future__ import annotations

import asyncio
import http.client
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from controller.cli.overview import make_ingress_rows, make_overview
from controller.cli.proxies import Pod, list_pods, read_pages
from controller.cli.session import Session
from controller.kube.apis import APIS
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from edgefast.api.kinds import KINDS
from edgefast.api.model.origin import INGRESS_CLASS
from edgefast.api.model.route_name import ROUTE_KINDS
from edgefast.cli.counters import Page
from edgefast.cli.live import ClusterView
from edgefast.cli.status_model import ProblemRow, ProxyRow, StatusReport
from edgefast.cli.store_problems import find_store_problems

__all__ = ["ClusterSource"]

#: Kinds that a cluster need not have.
_POLICIES = ("SecurityPolicy", "BackendTrafficPolicy", "XBackendTrafficPolicy")
_NEWER = (*ROUTE_KINDS[1:], "ListenerSet", "BackendTLSPolicy", *_POLICIES, "Ingress")
_GATEWAY_API = "gateway.networking.k8s.io/v1"
_ADMIN_SECONDS = 2.0
_NAMED = 3  # proxies that a note names

Json = dict[str, Any]


class ClusterSource:
    """Collects what `edgefast status` shows of a cluster."""

    def __init__(
        self, session: Session, namespace: str | None, everywhere: bool, admin: str
    ) -> None:
        self._session = session
        self._namespace = namespace
        self._everywhere = everywhere
        self._admin = admin
        self._hidden: frozenset[str] = frozenset()  # fleets of other namespaces' Gateways

    def count(self) -> Mapping[str, Page]:
        """Read the counters of proxies alone."""
        return self._session.run(self._count())

    def look(self) -> ClusterView:
        """Read everything."""
        return self._session.run(self._look())

    async def _count(self) -> Mapping[str, Page]:
        kube = await self._session.kube()
        where = self._where(kube)
        try:
            pods = await list_pods(kube)
        except ApiError:
            return {}  # `look` says so
        return _own(await read_pages(kube, pods), where)

    async def _look(self) -> ClusterView:
        kube = await self._session.kube()
        where = self._where(kube)
        notes: list[str] = []
        classes, gateways, routes, newer, (fleets, denied) = await asyncio.gather(
            kube.list_all(APIS[_GATEWAY_API, "GatewayClass"]),
            kube.list_all(APIS[_GATEWAY_API, "Gateway"], where),
            kube.list_all(APIS[_GATEWAY_API, "HTTPRoute"], where),
            asyncio.gather(*(self._list_newer(kind, where, notes) for kind in _NEWER)),
            asyncio.to_thread(ask_controller, self._admin),
        )
        there = dict(zip(_NEWER, newer, strict=True))
        others = {kind: there[kind] for kind in _NEWER if kind in ROUTE_KINDS}
        ingresses = make_ingress_rows(there["Ingress"])
        pods, pages = await self._ask_proxies(kube, gateways, notes, ingresses=bool(ingresses))
        seen = make_overview(
            classes,
            gateways,
            routes,
            there["ListenerSet"],
            there["BackendTLSPolicy"],
            others,
            {kind: there[kind] for kind in _POLICIES},
            namespace=where,
        )
        known = [one for one in fleets if one["fleet"] not in self._hidden]
        place = "" if where is None else f", namespace {where}"
        if where is not None and not gateways:
            notes.append("no Gateway in this namespace; -A shows all namespaces")
        screen = StatusReport(
            source=f"cluster {self._session.server}{place}",
            classes=seen.classes,
            gateways=seen.gateways,
            listeners=seen.listeners,
            listener_sets=seen.listener_sets,
            routes=seen.routes,
            ingresses=ingresses,
            proxies=make_proxy_rows(pods, pages, known),
            problems=(*denied, *seen.problems, *make_trouble_rows(pods, pages, known)),
            notes=tuple(notes),
        )
        return ClusterView(screen=screen, pages=_own(pages, where))

    async def _list_newer(self, kind: str, where: str | None, notes: list[str]) -> tuple[Json, ...]:
        """List a kind that a cluster need not have, nor its reader be allowed to see."""
        kube = await self._session.kube()
        group = next(group for group, one in KINDS if one == kind)
        for api_version in KINDS[group, kind].api_versions:
            try:
                return await kube.list_all(APIS[api_version, kind], where)
            except ApiError as error:
                if error.forbidden:
                    kinds = f"{kind[:-1]}ies" if kind.endswith("cy") else f"{kind}s"
                    kinds = "Ingresses" if kind == "Ingress" else kinds
                    notes.append(f"{kinds} are not shown: {error}")
                    return ()
                if not error.not_found:
                    raise
        return ()

    def _where(self, kube: Kube) -> str | None:
        """Return the namespace that is shown, None for all."""
        return None if self._everywhere else self._namespace or kube.namespace

    async def _ask_proxies(
        self, kube: Kube, gateways: Sequence[Json], notes: list[str], *, ingresses: bool
    ) -> tuple[tuple[Pod, ...], Mapping[str, Page | str]]:
        try:
            found = await list_pods(kube)
        except ApiError as error:
            notes.append(f"proxies and traffic are unknown because pods cannot be listed: {error}")
            return (), {}
        names = {f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in gateways}
        classes = {one["spec"]["gatewayClassName"] for one in gateways}
        classes |= {INGRESS_CLASS} if ingresses else set()
        pods = tuple(one for one in found if one.gateway in names or one.gateway_class in classes)
        self._hidden = frozenset({one.fleet for one in found} - {one.fleet for one in pods})
        pages = await read_pages(kube, pods)
        if silent := [one.key for one in pods if isinstance(pages[one.key], str)]:
            more = f" and {len(silent) - _NAMED} more" if len(silent) > _NAMED else ""
            why = pages[silent[0]]
            notes.append(
                f"traffic figures do not include {', '.join(silent[:_NAMED])}{more}: {why}"
            )
        return pods, pages


def _own(pages: Mapping[str, Page | str], where: str | None) -> Mapping[str, Page]:
    """Return the pages that could be had, with the routes of the namespace that is shown."""
    found = {name: page for name, page in pages.items() if isinstance(page, Page)}
    if where is None:
        return found
    return {
        name: msgspec.structs.replace(
            page,
            routes={
                route: row for route, row in page.routes.items() if route.startswith(f"{where}/")
            },
        )
        for name, page in found.items()
    }


def make_proxy_rows(
    pods: Sequence[Pod], pages: Mapping[str, Page | str], fleets: Sequence[Json]
) -> tuple[ProxyRow, ...]:
    """Return a row for each proxy: pods, and what a controller hears of besides; `fleets` are its admin server's."""
    wanted = {one["fleet"]: one["version"] for one in fleets}
    nodes = {(one["fleet"], node["name"]): node for one in fleets for node in one["nodes"]}
    tables: dict[str, set[str]] = {}
    for pod in pods:
        if isinstance(page := pages[pod.key], Page):
            tables.setdefault(pod.fleet, set()).add(page.table)
    rows = []
    for pod in pods:
        page, node = pages[pod.key], nodes.pop((pod.fleet, pod.name), None)
        table = page.table if isinstance(page, Page) else node["version"] if node else ""
        state = _state(table, wanted.get(pod.fleet), node)
        if not state and len(tables.get(pod.fleet, ())) > 1:
            state = "proxies of the fleet have different tables"
        rows.append(_row(pod, page, table, state))
    for (fleet, name), node in nodes.items():
        state = _state(node["version"], wanted[fleet], node)
        if not node["connected"]:
            state = "not connected"
        rows.append(ProxyRow(name=name, fleet=fleet, table=node["version"], state=state))
    return tuple(sorted(rows, key=lambda one: (one.fleet, one.name)))


def make_trouble_rows(
    pods: Sequence[Pod], pages: Mapping[str, Page | str], fleets: Sequence[Json]
) -> tuple[ProblemRow, ...]:
    """Return what proxies know to be wrong: as a controller hears of it, and as their own pages have it, which say less.

    A page's word counts where the controller has not heard of such a trouble in the fleet: a proxy may not have a stream, or be
    of a release that tells nothing on it.
    """
    rows: list[ProblemRow] = []
    heard: set[tuple[str, str]] = set()
    for one in fleets:
        nodes = [node.get("troubles", ()) for node in one["nodes"] if node["connected"]]
        rows += (found := tuple(_problem_rows(one["fleet"], nodes)))
        heard |= {(one["fleet"], row.reason) for row in found}
    reported: dict[str, list[Mapping[tuple[str, str], int]]] = {}
    for pod in pods:
        if isinstance(page := pages[pod.key], Page):
            reported.setdefault(pod.fleet, []).append(page.stores)
    for fleet, stores in sorted(reported.items()):
        rows += (row for row in _store_rows(fleet, stores) if (fleet, row.reason) not in heard)
    return tuple(rows)


def _problem_rows(fleet: str, nodes: Sequence[Sequence[Json]]) -> Iterator[ProblemRow]:
    found = Counter(msgspec.convert(one, ProblemRow) for problems in nodes for one in problems)
    for row, proxies in found.items():
        message = f"{row.message} (reported by {proxies} of {len(nodes)} proxies of {fleet})"
        yield msgspec.structs.replace(row, message=message)


def _store_rows(
    fleet: str, stores: Sequence[Mapping[tuple[str, str], int]]
) -> Iterator[ProblemRow]:
    for one in find_store_problems(stores, fleet):
        yield ProblemRow(
            object=str(one.object),
            reason=one.reason,
            message=f"{one.path}: {one.message}",
            severity=one.severity,
        )


def _row(pod: Pod, page: Page | str, table: str, state: str) -> ProxyRow:
    if isinstance(page, str):
        return ProxyRow(name=pod.name, fleet=pod.fleet, table=table, state=state or page)
    return ProxyRow(
        name=pod.name,
        fleet=pod.fleet,
        version=page.version,
        table=table,
        ready=page.ready,
        workers=f"{page.number('workers_alive')}/{page.number('workers')}",
        connections=page.number("connections_active"),
        table_age=page.numbers.get("table_age_seconds"),
        state=state,
    )


def _state(table: str, wanted: str | None, node: Json | None) -> str:
    if node is not None and node["refused"]:
        return f"refuses {'; '.join(node['refused'])}"
    if not wanted or not table:
        return ""
    return "up to date" if table == wanted else "behind"


def ask_controller(admin: str) -> tuple[list[Json], tuple[ProblemRow, ...]]:
    """Return the fleets as the controller sees them, and what RBAC denies it; empty when it cannot be asked."""
    fleets = _ask_admin(admin, "/fleets") if admin else []
    # A controller of an earlier release does not have the second path.
    denied = _ask_admin(admin, "/denials") if admin else []
    return fleets, tuple(msgspec.convert(one, ProblemRow) for one in denied)


def _ask_admin(admin: str, path: str) -> list[Json]:
    """Return a list of the controller's admin server, an empty one when it cannot be asked."""
    host, _, port = admin.rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=_ADMIN_SECONDS)
    try:
        connection.request("GET", path, headers={"Host": "localhost"})
        answer = connection.getresponse()
        body = json.loads(answer.read()) if answer.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):
        return []
    finally:
        connection.close()
    # A proxy's admin server may be at this address as well; it knows no fleets.
    return body if isinstance(body, list) else []
