"""Hosts and their locations: which Ingress owns a path, what backs it, which locations a host's server has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ingress.naive.annotations import Annotations
from ingress.naive.objects import Object, Objects, name_of

CATCH_ALL = "_"
Upstream = tuple[str, str, str]  # namespace, Service, port as the Ingress names it


@dataclass
class Location:
    """A path of a host, as an Ingress declares it."""

    path: str
    exact: bool
    owner: Annotations | None  # None: the catch-all's `/` that no Ingress declares
    upstream: Upstream | None  # None: the controller's default backend
    automatic: bool = False
    without_redirects: bool = False  # redirect and rewrite annotations are ignored

    def text(self, name: str, default: str = "") -> str:
        """An annotation of the owner."""
        return (
            default if self.owner is None or self._ignores(name) else self.owner.text(name, default)
        )

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean annotation of the owner."""
        if self.owner is None or self._ignores(name):
            return default
        return self.owner.flag(name, default)

    def _ignores(self, name: str) -> bool:
        return self.without_redirects and name in _REDIRECTS

    def rewrites(self, path: str) -> str:
        """A rewrite-target that equals the path does nothing; the target otherwise, or ""."""
        target = self.text("rewrite-target")
        return "" if target == path else target


_REDIRECTS = frozenset(
    "temporal-redirect temporal-redirect-code permanent-redirect permanent-redirect-code from-to-www-redirect "
    "relative-redirects rewrite-target use-regex ssl-redirect force-ssl-redirect preserve-trailing-slash "
    "app-root".split()
)


@dataclass
class Host:
    """A name that some Ingress serves."""

    name: str
    locations: list[Location] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    #: The first Ingress of the host that has any `tls`.
    secured_by: Annotations | None = None
    from_to_www: bool = False


class Hosts:
    """All hosts of a set of objects."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        read = [Annotations(one, objects) for one in objects.ingresses()]
        served = [one for one in read if one.is_served()]
        self.primaries = [one for one in served if not is_canary(one)]
        self.canaries = [one for one in served if is_canary(one)]
        self.ordered = served
        self.policies = self._upstreams()
        self.hosts: dict[str, Host] = {}
        self._automatic()
        self._declared()
        self._aliases()

    def _upstreams(self) -> dict[Upstream, Annotations | None]:
        """Canary belongs to the upstream: the oldest Ingress that names one decides what it is.

        The value is the canary Ingress, or None for a primary.
        """
        policies: dict[Upstream, Annotations | None] = {}
        for one in self.ordered:
            default = default_upstream(one.ingress)
            if default is not None:
                policies[default] = one if is_canary(one) else None
            for _, path in paths_of(one.ingress):
                if (upstream := upstream_of(one.ingress, path.get("backend"))) is not None:
                    policies.setdefault(upstream, one if is_canary(one) else None)
        return policies

    def _automatic(self) -> None:
        """A host's `/` always exists: annotations of its first Ingress, `spec.defaultBackend` of that Ingress, else the
        default backend. A host that only canary Ingresses name does not exist."""
        catch_all = Location("/", False, None, None, automatic=True)
        self.hosts[CATCH_ALL] = Host(CATCH_ALL, [catch_all])
        for one in self.primaries:
            rules = one.ingress["spec"].get("rules") or []
            default = default_upstream(one.ingress)
            if default is not None and not rules and catch_all.automatic:
                self._take_catch_all(catch_all, one, default)
            for rule in rules:
                name = rule.get("host") or CATCH_ALL
                if name not in self.hosts:
                    location = Location("/", False, one, default, automatic=True)
                    self.hosts[name] = Host(name, [location])
                if one.ingress["spec"].get("tls") and self.hosts[name].secured_by is None:
                    self.hosts[name].secured_by = one

    @staticmethod
    def _take_catch_all(location: Location, one: Annotations, default: Upstream) -> None:
        """An Ingress with `defaultBackend` and no rules owns `/` of the catch-all server, before rules without host, and its
        redirect and rewrite annotations are ignored there."""
        location.owner, location.upstream = one, default
        location.automatic, location.without_redirects = False, True

    def _declared(self) -> None:
        """The oldest Ingress wins a (host, path, pathType). The same path with another pathType is another location.

        ImplementationSpecific and a missing pathType become Prefix.
        """
        for one in self.ordered:
            for name, path in paths_of(one.ingress):
                upstream = upstream_of(one.ingress, path.get("backend"))
                if upstream is None or self.policies[upstream] is not None:
                    continue
                host = self.hosts.get(name, self.hosts[CATCH_ALL])
                text, exact = path.get("path") or "/", path.get("pathType") == "Exact"
                taken = [
                    each for each in host.locations if (each.path, each.exact) == (text, exact)
                ]
                if not taken:
                    host.locations.append(Location(text, exact, one, upstream))
                elif taken[0].automatic:
                    taken[0].owner, taken[0].upstream, taken[0].automatic = one, upstream, False
                else:
                    continue
                host.from_to_www |= one.flag("from-to-www-redirect") and one.has_good_redirect()

    def _aliases(self) -> None:
        """server-alias is per host; the first Ingress wins. A name that is a host is no alias."""
        for one in self.primaries:
            for rule in one.ingress["spec"].get("rules") or []:
                host = self.hosts[rule.get("host") or CATCH_ALL]
                listed = [name.strip() for name in one.raw("server-alias").split(",")]
                if not host.aliases:
                    host.aliases = sorted({name for name in listed if name})
        for host in self.hosts.values():
            host.aliases = [name for name in host.aliases if name not in self.hosts]

    def redirecting_names(self) -> dict[str, Host]:
        """from-to-www: the other name of a host, `www.` added or removed; it is off if the other name is a host."""
        found: dict[str, Host] = {}
        for name in sorted(self.hosts):
            host = self.hosts[name]
            if host.from_to_www:
                other = name.removeprefix("www.") if name.startswith("www.") else f"www.{name}"
                if other not in self.hosts:
                    found.setdefault(other, host)
        return found

    def find(self, name: str) -> Host:
        """The host of a name (lower case, without port and final dot).

        `*.example.com` matches one label of letters, digits, `-` and `_` only; server-alias `*.alias.test` matches any depth.
        Exact names come first, then the longest wildcard alias, then wildcard hosts in alphabetical order.
        """
        if name in self.hosts and "*" not in name:
            return self.hosts[name]
        ordered = [self.hosts[key] for key in sorted(self.hosts)]
        aliases = [(alias.lower(), host) for host in ordered for alias in host.aliases]
        for alias, host in aliases:
            if alias == name:
                return host
        wildcards = [one for one in aliases if one[0].startswith("*.")]
        for alias, host in sorted(wildcards, key=lambda one: -len(one[0])):
            if name.endswith(alias[1:]):
                return host
        for host in ordered:
            if host.name.startswith("*."):
                rest = re.escape(host.name[2:].encode())
                if re.search(rb"^[\w-]+\." + rest + rb"$", name.encode("latin-1")):
                    return host
        return self.hosts[CATCH_ALL]


def is_canary(one: Annotations) -> bool:
    """The annotation canary is "true"."""
    return one.flag("canary")


def paths_of(ingress: Object) -> Iterator[tuple[str, Object]]:
    """Each path with the host of its rule."""
    for rule in ingress["spec"].get("rules") or []:
        for path in (rule.get("http") or {}).get("paths") or []:
            yield rule.get("host") or CATCH_ALL, path


def default_upstream(ingress: Object) -> Upstream | None:
    """The upstream of `spec.defaultBackend`."""
    return upstream_of(ingress, ingress["spec"].get("defaultBackend"))


def upstream_of(ingress: Object, backend: Object | None) -> Upstream | None:
    """An upstream is namespace, Service and port *as written*: `svc:80` and `svc:http` are two upstreams."""
    service = (backend or {}).get("service")
    if not service:
        return None
    port = service.get("port") or {}
    space = name_of(ingress).partition("/")[0]
    return space, service["name"], str(port.get("number") or port.get("name") or 0)
