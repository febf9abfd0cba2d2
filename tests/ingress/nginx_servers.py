"""Servers, locations and upstreams as the controller of ingress-nginx 1.15.1 builds them from objects.

In: objects as YAML gives them. Out: `Model`: servers in the order of the configuration file, each with its locations.
Written after the controller's algorithm (upstreams, servers, locations, canaries, split of prefixes), apart from the evaluator.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cryptography import x509

from ingress.nginx_settings import Settings, read_settings

DEFAULT_UPSTREAM = "upstream-default-backend"
DEFAULT_SERVER = "_"
DEFAULT_CERTIFICATE = "default"


@dataclass
class Upstream:
    """A backend: endpoints of one Service port."""

    name: str
    namespace: str = ""
    service: str = ""
    port: int = 0
    up: bool = False
    serverless: bool = False  # made by a canary
    policy: Settings | None = None
    alternatives: list[str] = field(default_factory=list)


@dataclass
class Ingress:
    """An Ingress with its parsed annotations."""

    raw: dict[str, Any]
    settings: Settings

    @property
    def namespace(self) -> str:
        return str(self.raw["metadata"].get("namespace", "default"))

    @property
    def name(self) -> str:
        return str(self.raw["metadata"]["name"])

    @property
    def rules(self) -> list[dict[str, Any]]:
        return self.raw["spec"].get("rules") or []

    @property
    def tls(self) -> list[dict[str, Any]]:
        return self.raw["spec"].get("tls") or []

    @property
    def default_backend(self) -> dict[str, Any] | None:
        return (self.raw["spec"].get("defaultBackend") or {}).get("service")


@dataclass
class Location:
    """A location of the configuration file."""

    path: str
    exact: bool
    backend: str
    is_default: bool
    ingress: Ingress | None
    settings: Settings
    ingress_path: str = ""
    page_backend: str = DEFAULT_UPSTREAM

    def needs_rewrite(self) -> bool:
        return self.settings.target not in ("", self.path)


@dataclass
class Server:
    """A server of the configuration file."""

    name: str
    locations: list[Location]
    certificate: str = ""
    aliases: list[str] = field(default_factory=list)
    from_to_www: bool = False


class Model:
    """What the controller renders."""

    def __init__(self, items: Iterable[dict[str, Any]]) -> None:
        self._items = {
            (one["kind"], one["metadata"].get("namespace", "default"), one["metadata"]["name"]): one
            for one in items
        }
        self.config: dict[str, str] = next(
            (
                one.get("data") or {}
                for (kind, _, name), one in self._items.items()
                if kind == "ConfigMap" and name == "ingress-nginx-controller"
            ),
            {},
        )
        self.ingresses = self._list()
        self.upstreams = {DEFAULT_UPSTREAM: Upstream(DEFAULT_UPSTREAM, up=True)}
        self._create_upstreams()
        self.servers: dict[str, Server] = {}
        self._create_servers()
        self._add_locations()
        self._merge_canaries()
        self._add_pages()
        for server in self.servers.values():
            server.locations.sort(key=lambda one: one.path, reverse=True)
            server.locations.sort(key=lambda one: len(one.path), reverse=True)
            server.locations = _split(server.locations)

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """An object."""
        return self._items.get((kind, namespace, name))

    def _list(self) -> list[Ingress]:
        classes = {
            name: one
            for (kind, _, name), one in self._items.items()
            if kind == "IngressClass" and one["spec"].get("controller") == "k8s.io/ingress-nginx"
        }
        standard = [
            name
            for name, one in classes.items()
            if (one["metadata"].get("annotations") or {}).get(
                "ingressclass.kubernetes.io/is-default-class"
            )
            == "true"
        ]
        found = []
        for (kind, _, _), one in self._items.items():
            if kind != "Ingress":
                continue
            chosen = one["spec"].get("ingressClassName")
            old = (one["metadata"].get("annotations") or {}).get("kubernetes.io/ingress.class")
            if chosen is None and old is None and standard:
                chosen = standard[0]
            if chosen not in classes if chosen is not None else old != "nginx":
                continue
            settings = read_settings(one, self)
            if settings is not None:
                found.append(Ingress(one, settings))
        found.sort(key=lambda one: f"{one.namespace}/{one.name}", reverse=True)
        found.sort(key=lambda one: str(one.raw["metadata"].get("creationTimestamp", "")))
        return found

    # ---- upstreams ----

    def _new_upstream(self, ingress: Ingress, service: dict[str, Any]) -> Upstream:
        port, up = self._endpoints(ingress.namespace, service["name"], _port(service))
        upstream = Upstream(
            _upstream(ingress, service), ingress.namespace, service["name"], port, up
        )
        if ingress.settings.canary:
            upstream.serverless, upstream.policy = True, ingress.settings
        return upstream

    def _create_upstreams(self) -> None:
        for ingress in self.ingresses:
            if ingress.default_backend:
                made = self._new_upstream(ingress, ingress.default_backend)
                self.upstreams[made.name] = made
            for _, path in _paths(ingress):
                service = path["backend"].get("service")
                if service and _upstream(ingress, service) not in self.upstreams:
                    made = self._new_upstream(ingress, service)
                    self.upstreams[made.name] = made

    def _endpoints(self, namespace: str, name: str, wanted: str) -> tuple[int, bool]:
        service = self.get("Service", namespace, name)
        for port in (service or {"spec": {}})["spec"].get("ports") or []:
            target = str(port.get("targetPort", 0))
            if wanted in (str(port["port"]), target, port.get("name", "")):
                return int(port["port"]), self._ready(namespace, name, port.get("name", ""))
        return 0, False

    def _ready(self, namespace: str, name: str, port: str) -> bool:
        for (kind, space, _), one in self._items.items():
            labels = one["metadata"].get("labels") or {}
            if kind != "EndpointSlice" or space != namespace:
                continue
            if labels.get("kubernetes.io/service-name") != name:
                continue
            has_port = any(entry.get("name", "") in ("", port) for entry in one["ports"])
            if has_port and any(
                (entry.get("conditions") or {}).get("ready", True) for entry in one["endpoints"]
            ):
                return True
        return False

    # ---- servers ----

    def _create_servers(self) -> None:
        plain = Settings(body_size=self.config.get("proxy-body-size", "1m"))
        root = Location("/", False, DEFAULT_UPSTREAM, True, None, plain)
        self.servers[DEFAULT_SERVER] = Server(DEFAULT_SERVER, [root], DEFAULT_CERTIFICATE)
        primaries = [one for one in self.ingresses if not one.settings.canary]
        for ingress in primaries:
            default = DEFAULT_UPSTREAM
            if ingress.default_backend:
                default = _upstream(ingress, ingress.default_backend)
                if root.is_default and not ingress.rules:
                    root.is_default, root.backend, root.ingress = False, default, ingress
                    root.settings = copy(ingress.settings)
                    blank = Settings()
                    for name in (
                        "redirect_url redirect_code from_to_www relative target ssl_redirect force_ssl_redirect "
                        "preserve_trailing_slash app_root use_regex"
                    ).split():
                        setattr(root.settings, name, getattr(blank, name))
            for rule in ingress.rules:
                name = rule.get("host") or DEFAULT_SERVER
                if name not in self.servers:
                    first = Location("/", False, default, True, ingress, ingress.settings)
                    self.servers[name] = Server(name, [first])
        for ingress in primaries:
            for rule in ingress.rules:
                server = self.servers[rule.get("host") or DEFAULT_SERVER]
                server.aliases = server.aliases or list(ingress.settings.aliases)
                if not server.certificate and ingress.tls:
                    server.certificate = self._certificate(ingress, server.name)
        for server in self.servers.values():
            server.aliases = [one for one in server.aliases if one not in self.servers]

    def _certificate(self, ingress: Ingress, host: str) -> str:
        secret = ""
        for entry in ingress.tls:
            if host.lower() in [one.lower() for one in entry.get("hosts") or []]:
                secret = entry.get("secretName") or ""
                break
        else:
            for entry in ingress.tls:
                name = entry.get("secretName") or ""
                if name and self._covers(f"{ingress.namespace}/{name}", host):
                    secret = name
                    break
        full = f"{ingress.namespace}/{secret}"
        return full if secret and self._covers(full, host) else DEFAULT_CERTIFICATE

    def _covers(self, secret: str, host: str) -> bool:
        labels = host.lower().split(".")
        for name in self.certificate_names.get(secret, ()):
            parts = name.lower().split(".")
            if parts == labels or (
                parts[0] == "*" != labels[0]
                and len(parts) == len(labels)
                and parts[1:] == labels[1:]
            ):
                return True
        return False

    @cached_property
    def certificates(self) -> dict[str, bytes]:
        """PEM of each usable TLS Secret: certificates and key."""
        found = {}
        for (kind, namespace, name), one in self._items.items():
            data = one.get("data") or {}
            if kind == "Secret" and data.get("tls.crt") and data.get("tls.key"):
                pem = base64.b64decode(data["tls.crt"]) + base64.b64decode(data["tls.key"])
                found[f"{namespace}/{name}"] = pem
        return found

    @cached_property
    def certificate_names(self) -> dict[str, list[str]]:
        """DNS names by Secret."""
        return {
            name: x509.load_pem_x509_certificate(pem)
            .extensions.get_extension_for_class(x509.SubjectAlternativeName)
            .value.get_values_for_type(x509.DNSName)
            for name, pem in self.certificates.items()
        }

    def redirects(self) -> list[tuple[str, Server]]:
        """from-to-www: names that redirect, and the server that each leads to."""
        found = []
        for name in sorted(self.servers):
            other = name[4:] if name.startswith("www.") else "www." + name
            if self.servers[name].from_to_www and other not in self.servers:
                found.append((other, self.servers[name]))
        return found

    def certificate_servers(self) -> dict[str, str]:
        """Names with a certificate, as the controller gives them to nginx."""
        table: dict[str, str] = {}

        def put(name: str, certificate: str) -> None:
            table.pop(name, None)
            if certificate:
                table[name] = certificate

        for name in sorted(self.servers):
            server = self.servers[name]
            put(name, server.certificate)
            for alias in server.aliases:
                put(alias, server.certificate if self._covers(server.certificate, alias) else "")
        for name, server in self.redirects():
            put(name, server.certificate if self._covers(server.certificate, name) else "")
        return table

    # ---- locations ----

    def _add_locations(self) -> None:
        for ingress in self.ingresses:
            for host, path in _paths(ingress):
                server = self.servers.get(host, self.servers[DEFAULT_SERVER])
                service = path["backend"].get("service")
                if not service:
                    continue
                upstream = self.upstreams[_upstream(ingress, service)]
                if upstream.serverless:
                    continue
                if self._add(server, ingress, path, upstream) and ingress.settings.from_to_www:
                    server.from_to_www = True

    @staticmethod
    def _add(server: Server, ingress: Ingress, path: dict[str, Any], upstream: Upstream) -> bool:
        text, exact = path.get("path") or "/", path.get("pathType") == "Exact"
        for location in server.locations:
            if location.path != text:
                continue
            if location.exact != exact:
                break
            if not location.is_default:
                return False
            location.backend, location.is_default = upstream.name, False
            location.ingress, location.settings = ingress, ingress.settings
            return True
        server.locations.append(
            Location(text, exact, upstream.name, False, ingress, ingress.settings)
        )
        return True

    # ---- canaries ----

    def _merge_canaries(self) -> None:
        canaries = [one for one in self.ingresses if one.settings.canary]
        if len(canaries) == len(self.ingresses):
            return
        for ingress in canaries:
            if ingress.default_backend:
                name = _upstream(ingress, ingress.default_backend)
                if name in self.upstreams:
                    self._merge(self.servers[DEFAULT_SERVER], None, name)
            for host, path in _paths(ingress):
                service = path["backend"].get("service")
                name = _upstream(ingress, service) if service else ""
                if name in self.upstreams and host in self.servers:
                    self._merge(self.servers[host], path, name)

    def _merge(self, server: Server, path: dict[str, Any] | None, name: str) -> None:
        """Merge a canary into the upstreams of the locations with this path; None: of all locations."""
        merged = False
        for location in server.locations:
            primary = self.upstreams.get(location.backend)
            if primary is None:
                continue
            if primary.name == name:
                return
            if primary.name == DEFAULT_UPSTREAM or primary.serverless:
                continue
            if path is None or (location.path, location.exact) == (
                path.get("path") or "/",
                path.get("pathType") == "Exact",
            ):
                if name not in primary.alternatives:
                    primary.alternatives.append(name)
                merged = True
        if not merged:
            del self.upstreams[name]

    # ---- error pages ----

    def _add_pages(self) -> None:
        for upstream in list(self.upstreams.values()):
            if upstream.name == DEFAULT_UPSTREAM:
                continue
            for server in self.servers.values():
                for location in server.locations:
                    name = location.settings.default_backend
                    if location.backend != upstream.name or not name or not location.ingress:
                        continue
                    if not (upstream.up is False or location.settings.error_codes):
                        continue
                    self._add_page(location, upstream, location.ingress.namespace, name)

    def _add_page(self, location: Location, upstream: Upstream, namespace: str, name: str) -> None:
        service = self.get("Service", namespace, name)
        ports = (service or {"spec": {}})["spec"].get("ports") or []
        if not ports or not self._ready(namespace, name, ports[0].get("name", "")):
            return
        page = Upstream(f"custom-default-backend-{namespace}-{name}", namespace, name)
        page.port, page.up = ports[0]["port"], True
        self.upstreams[page.name] = page
        location.page_backend = page.name
        if not upstream.up:
            location.backend = page.name

    def duplicates(self) -> list[str]:
        """What makes nginx refuse the whole configuration: one path twice, one sign-in location twice, `www.*.test`."""
        found = []
        for server in self.servers.values():
            seen: set[tuple[str, ...]] = set()
            for location in server.locations:
                keys = [(location.path, "exact" if location.exact else "prefix")]
                if location.settings.external.signin and not location.settings.denied:
                    keys.append((location.path, "sign-in", location.settings.external.signin))
                found += [f"{server.name} {key}" for key in keys if key in seen]
                seen.update(keys)
        found += [name for name, _ in self.redirects() if "*" in name]
        listed = self.config.get("no-auth-locations", "/.well-known/acme-challenge").split(",")
        asking = [
            location
            for server in self.servers.values()
            for location in server.locations
            if location.settings.external.url and not location.settings.denied
        ]
        if any(one.settings.external.signin for one in asking) and all(
            one.path.startswith(tuple(entry.strip() for entry in listed if entry.strip()))
            for one in asking
        ):
            found.append("a sign-in location without authentication")
        return found


def _port(service: dict[str, Any]) -> str:
    port = service.get("port") or {}
    return str(port.get("number") or port.get("name") or 0)


def _upstream(ingress: Ingress, service: dict[str, Any]) -> str:
    return f"{ingress.namespace}-{service['name']}-{_port(service)}"


def _paths(ingress: Ingress) -> list[tuple[str, dict[str, Any]]]:
    return [
        (rule.get("host") or DEFAULT_SERVER, path)
        for rule in ingress.rules
        for path in (rule.get("http") or {}).get("paths") or []
    ]


def _split(locations: list[Location]) -> list[Location]:
    """Add the exact location beside a prefix, and the slash to the prefix."""
    exact = {one.path for one in locations if one.exact}
    found = []
    for location in locations:
        if location.path == "/":
            found.append(location)
            continue
        location.ingress_path = location.path
        if location.exact or location.needs_rewrite() or location.settings.use_regex:
            found.append(location)
            continue
        beside = copy(location)
        beside.exact = True
        if not location.path.endswith("/"):
            location.path += "/"
        found.append(location)
        if beside.path not in exact:
            found.append(beside)
    return found


def without_duplicates(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out Ingresses, the last one first, until nginx takes the configuration."""
    kept = list(items)
    while Model(kept).duplicates():
        last = max(number for number, one in enumerate(kept) if one["kind"] == "Ingress")
        del kept[last]
    return kept
