"""`edgefast explain --live`: the result of a request in a cluster's proxies, from the cluster's objects.

In: a cluster, a request.
Out: the explanation of the fleet that receives the request, with notes about which data is live.
Objects are live, as the controller's compiler reads them. Proxies are asked whether they serve
exactly that table. Health and counters are known only of a proxy with a given admin server.
Must never: guess the Gateway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

import click
import msgspec

from edgefast import ir
from edgefast.cli.live import Cluster, LiveError, Objects, Proxy
from edgefast.cli.store_problems import find_store_problems
from edgefast.diagnostics.reasons.mentions import name_reasons
from edgefast.explain import Explanation, ProxyDump, RequestSpec, Served, serve_translation
from edgefast.explain.describe import list_uncounted
from edgefast.explain.explain import explain
from edgefast.netaddr import read_address
from edgefast.table.match import find_listener
from edgefast.translate.conditions.status import GatewayStatus
from edgefast.translate.pipeline import translate
from edgefast.translate.translation import Translation

#: Checks that say "not here": another Gateway may have the route.
_ELSEWHERE = ("port", "protocol", "listener", "rule")
#: Reasons that an address or proxies are not there yet.
_WAITING = ("AddressNotAssigned", "NoResources", "Pending")
_NAMED = 3  # proxies that a note names
_SHOWN = 12  # Gateways that an error names


def explain_live(
    cluster: Cluster,
    request: RequestSpec,
    url: str,
    *,
    gateway: str | None,
    namespace: str | None,
    proxy: ProxyDump | None,
    most: int,
) -> Explanation:
    """Explain a request; `gateway` is "[namespace/]name", `proxy` what an admin server of one has told.

    Raises UsageError when it is not clear which Gateway is meant, LiveError when the cluster cannot be asked.
    """
    objects = cluster.read_objects()
    translation = translate(objects.snapshot, objects.settings)
    if objects.problems:
        count = len(objects.problems)
        message = "1 object is" if count == 1 else f"{count} objects are"
        click.echo(
            f"{message} ignored because they cannot be decoded: {objects.problems[0].text()}",
            err=True,
        )
    fleet = _choose(translation, objects, request, url, gateway, namespace)
    served = serve_translation(translation, fleet.name, problems=objects.problems)
    served.version = served.shards.version
    notes = [*_note_objects(objects, fleet)]
    problems: tuple[str, ...] = ()
    try:
        proxies = cluster.ask_proxies(fleet)
    except LiveError as error:
        notes.append(f"the table that the proxies serve is unknown ({error.message})")
    else:
        notes += _note_proxies(proxies, objects, served)
        problems = _find_troubles(proxies, fleet)
    if proxy is not None and proxy.version == served.version:
        served.live = proxy.live
    else:
        notes += _note_health(proxy)
    found = explain(served, request, most=most)
    uncounted = list_uncounted(problems, (one.name for one in found.limits))
    return msgspec.structs.replace(found, notes=(*found.notes, *uncounted, *notes))


# --- which fleet --------------------------------------------------------------------------------


def _choose(
    translation: Translation,
    objects: Objects,
    request: RequestSpec,
    url: str,
    gateway: str | None,
    namespace: str | None,
) -> ir.Infra:
    fleets = [one for one in translation.infra if _is_meant(one, gateway, namespace)]
    if not fleets:
        message = _why_not(translation, gateway, namespace) or _name_all(translation.infra)
        message = message or "no Gateway has a GatewayClass of this controller"
        named = f"Gateway {gateway}" if gateway else f"Gateway in namespace {namespace}"
        raise LiveError(
            f"no {named} is served ({message})"
            if gateway or namespace
            else f"no Gateway is served: {message}"
        )
    if len(fleets) == 1:
        return fleets[0]
    fleets = _by_address(fleets, objects.addresses, url) or fleets
    if len(fleets) == 1:
        return fleets[0]
    tables = {one.name: one for one in translation.ir.fleets}
    near = [
        one for one in fleets if one.name in tables and _has_listener(tables[one.name], request)
    ]
    takers = [one for one in near if _takes(translation, one, request)] if len(near) > 1 else near
    if len(takers) == 1:
        return takers[0]
    what = "have a route for it" if takers else "have a listener for it" if near else "are served"
    raise click.UsageError(
        f"several Gateways {what}; choose one with --gateway: {_name_all(takers or near or fleets)}"
    )


def _why_not(translation: Translation, gateway: str | None, namespace: str | None) -> str:
    """Return what the status of a Gateway that is meant says; "" when there is no such Gateway of ours."""
    for ref, status in translation.statuses.items():
        own = f"{ref.namespace}/{ref.name}"
        if not isinstance(status, GatewayStatus) or gateway not in (None, own, ref.name):
            continue
        if namespace not in (None, ref.namespace):
            continue
        of_listeners = (one for part in status.listeners for one in part.conditions)
        message = [
            one.message
            for one in (*status.conditions, *of_listeners)
            if one.status == "False" and one.reason not in _WAITING
        ]
        if message:  # one with a reason in it says more than a sum
            return f"{ref}: {max(message, key=lambda one: bool(name_reasons(one)))}"
    return ""


def _is_meant(fleet: ir.Infra, gateway: str | None, namespace: str | None) -> bool:
    return any(
        (gateway is None or one == gateway or one.partition("/")[2] == gateway)
        and (namespace is None or one.startswith(f"{namespace}/"))
        for one in fleet.gateways
    )


def _by_address(
    fleets: Sequence[ir.Infra], addresses: Mapping[tuple[str, str], tuple[str, ...]], url: str
) -> list[ir.Infra]:
    """Return the fleets with the URL's address, as with curl and a Host header; node ports share theirs."""
    host = _plain(urlsplit(url if "://" in url else f"http://{url}").hostname or "")
    return [
        fleet
        for fleet in fleets
        if any(
            host in map(_plain, addresses.get((namespace, name), ()))
            for namespace, _, name in (one.partition("/") for one in fleet.gateways)
        )
    ]


def _plain(host: str) -> str:
    address = read_address(host)
    return str(address) if address is not None else host.lower().rstrip(".")


def _has_listener(fleet: ir.Fleet, request: RequestSpec) -> bool:
    host = (
        request.host.lower().rpartition(":")[0] if _has_port(request.host) else request.host.lower()
    )
    return find_listener(fleet.listeners, request.port, host) is not None


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdigit() and not host.endswith("]") and ":" in host


def _takes(translation: Translation, fleet: ir.Infra, request: RequestSpec) -> bool:
    found = explain(serve_translation(translation, fleet.name), request, most=0)
    return all(one.check not in _ELSEWHERE for one in found.answers)


def _name_all(fleets: Sequence[ir.Infra]) -> str:
    names = [one for fleet in fleets for one in fleet.gateways]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


# --- what is live -------------------------------------------------------------------------------


def _note_objects(objects: Objects, fleet: ir.Infra) -> Iterator[str]:
    gateways = ", ".join(fleet.gateways[:_NAMED]) + (" ..." if len(fleet.gateways) > _NAMED else "")
    word = "Gateway" if len(fleet.gateways) == 1 else "Gateways"
    yield (
        f"live: objects and endpoints of {objects.server}, settings of {objects.config}; "
        f"fleet {fleet.namespace}/{fleet.name} of {word} {gateways}"
    )
    yield from objects.unread


def _find_troubles(proxies: Sequence[Proxy], fleet: ir.Infra) -> tuple[str, ...]:
    reported = [one.stores for one in proxies if one.table]
    return tuple(
        one.text() for one in find_store_problems(reported, f"{fleet.namespace}/{fleet.name}")
    )


def _note_proxies(proxies: Sequence[Proxy], objects: Objects, served: Served) -> Iterator[str]:
    if not proxies:
        yield "the fleet has no running proxy, so requests get no answer"
        return
    if objects.unread:
        yield "unknown whether the proxies serve this table: the kubeconfig's user cannot read all of its objects"
        return
    same = [one for one in proxies if one.table == served.version]
    others = [one for one in proxies if one.table and one.table != served.version]
    silent = [one for one in proxies if not one.table]
    if same:
        yield f"live: {len(same)} of {len(proxies)} proxies serve this table"
    if others:
        yield f"{_name_proxies(others)} serve another table and can answer differently"
    if silent:
        yield f"the table of {_name_proxies(silent)} is unknown ({silent[0].why_not})"


def _note_health(proxy: ProxyDump | None) -> Iterator[str]:
    if proxy is not None:
        yield (
            f"the proxy at --admin serves another table ({proxy.version[:8]}); its endpoints "
            "and counters are not used"
        )
    yield (
        "not included: ejected endpoints and rate-limit counters; for these run kubectl "
        "port-forward POD 19000 and pass --admin 127.0.0.1:19000"
    )


def _name_proxies(proxies: Sequence[Proxy]) -> str:
    names = ", ".join(one.name for one in proxies[:_NAMED])
    return names + (f" and {len(proxies) - _NAMED} more" if len(proxies) > _NAMED else "")
