"""Error pages: custom-http-errors and default-backend."""

from __future__ import annotations

from dataclasses import dataclass

from ingress.message import RANDOM, Request
from ingress.naive.client import Client
from ingress.naive.forwarding import Sent, passed_headers
from ingress.naive.hosts import CATCH_ALL, Location
from ingress.naive.matching import Served
from ingress.naive.objects import Objects


@dataclass(frozen=True)
class Page:
    """A Service that gives error pages; empty: the controller's default backend, which answers 404."""

    namespace: str = ""
    service: str = ""
    port: int = 0


def codes_of(location: Location) -> frozenset[int]:
    """custom-http-errors take nginx' own errors (403, 503, 502, ...) and the backend's."""
    listed = location.owner.raw("custom-http-errors") if location.owner else ""
    return frozenset(int(one) for one in listed.split(",") if one.strip())


def page_of(location: Location, objects: Objects) -> Page:
    """The page comes from default-backend, and from the controller's default backend (404) without that annotation or on the
    automatic `/`."""
    owner = location.owner
    name = owner.text("default-backend") if owner else ""
    if owner is None or not name or location.upstream is None:
        return Page()
    space = owner.ingress["metadata"].get("namespace", "default")
    service = objects.find("Service", f"{space}/{name}")
    ports = (service or {"spec": {}})["spec"].get("ports") or []
    if not ports or not objects.has_endpoints(f"{space}/{name}", str(ports[0]["port"])):
        return Page()
    return Page(space, name, ports[0]["port"])


def describe(served: Served, host: str) -> dict[str, str]:
    """X-Namespace, X-Ingress-Name, X-Service-Name, X-Service-Port: of the first path with that text in the owner's rules."""
    owner = served.location.owner
    if owner is None:
        return {}
    service, port = "", ""
    backend = (owner.ingress["spec"].get("defaultBackend") or {}).get("service")
    for rule in owner.ingress["spec"].get("rules") or []:
        if (rule.get("host") or CATCH_ALL) != host:
            continue
        paths = (rule.get("http") or {}).get("paths") or []
        same = [one for one in paths if (one.get("path") or "/") == served.location.path]
        if same:
            backend = same[0]["backend"].get("service")
            break
    if backend:
        named = backend.get("port") or {}
        service, port = backend["name"], str(named.get("number") or named.get("name") or 0)
    return {
        "x-namespace": owner.ingress["metadata"].get("namespace", "default"),
        "x-ingress-name": owner.ingress["metadata"]["name"],
        "x-service-name": service,
        "x-service-port": port,
    }


def page_headers(request: Request, client: Client, served: Served, host: str, code: int) -> Sent:
    """X-Code, X-Format, X-Original-URI, X-Namespace, X-Ingress-Name, X-Service-Name, X-Service-Port, Host, X-Forwarded-For; else
    the client's headers."""
    return passed_headers(
        request,
        {
            "x-code": str(code),
            "x-format": request.value("accept"),
            "x-original-uri": request.target,
            "x-namespace": "",
            "x-ingress-name": "",
            "x-service-name": "",
            "x-service-port": "",
            **describe(served, host),
            "x-request-id": request.value("x-request-id") or RANDOM,
            "x-forwarded-for": client.address,
            "host": client.host,
        },
    )


def page_target(target: str) -> str:
    """Path `/`, query kept."""
    _, _, query = target.partition("?")
    return f"/?{query}" if query else "/"
