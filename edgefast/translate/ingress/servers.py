"""Servers: the hosts of all Ingresses, and which Ingress owns each path, as ingress-nginx decides it.

In: the Ingresses that are ours with their annotations, LookupIndex. Out: `Server`s by host, with their locations in the order of
nginx, and the canaries.
The oldest Ingress owns a (host, path, path type); of two with the same second the greater "namespace/name". "/" of a host
always exists, with the annotations of the first Ingress of the host.
Source: ingress-nginx controller.go, `createUpstreams`, `createServers`, `getBackendServers`, `mergeAlternativeBackends`.
Must never: let an Ingress take the path of an older one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from edgefast.api.ingress.ingress import HTTPIngressPath, Ingress, IngressServiceBackend
from edgefast.api.kinds import ref_of
from edgefast.api.model.units import parse_timestamp
from edgefast.api.snapshot import Key
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.ingress.annotation_fields import Annotations, Canary
from edgefast.translate.ingress.client_tls import ClientTls, check_client_secret
from edgefast.translate.ingress.lookup import LookupIndex, covers

#: The host of requests that no Ingress names.
CATCH_ALL = "_"
#: Sorts after every time: objects of files have none.
_NO_AGE = 2**63 - 1

PathType = Literal["Exact", "Prefix"]


class Upstream(NamedTuple):
    """A Service's port as an Ingress writes it: svc:80 and svc:http are two upstreams."""

    namespace: str
    service: str
    port: str

    @property
    def key(self) -> Key:
        """Return the key of the Service."""
        return (self.namespace, self.service)


class Source(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An Ingress with its annotations."""

    ingress: Ingress
    annotations: Annotations

    @property
    def ref(self) -> ObjectRef:
        """Return the reference to the Ingress."""
        return ref_of(self.ingress)

    @property
    def namespace(self) -> str:
        """Return the namespace of the Ingress."""
        return self.ingress.metadata.namespace

    @property
    def closed(self) -> str:
        """Return why its locations answer 503, "" if they do not."""
        if self.ingress.closed is not None:
            return self.ingress.closed.said
        return next(iter(self.annotations.closed), "")


class Location(msgspec.Struct, kw_only=True, eq=False):
    """One path of a host; `upstream` None is the default backend (404)."""

    path: str
    path_type: PathType
    source: Source | None  # None: of the catch-all host, and no Ingress's
    field: str  # field path in the Ingress
    upstream: Upstream | None
    automatic: bool = False  # "/" that no Ingress has written
    plain: bool = False  # redirect and rewrite annotations do not apply


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """The certificate of a host; `secret` None is the default certificate."""

    secret: Key | None
    names: tuple[str, ...] = ()  # that the Secret's certificate covers
    owner: Source
    field: str  # field path in the owner


class Server(msgspec.Struct, kw_only=True, eq=False):
    """One host."""

    host: str
    locations: list[Location]
    aliases: tuple[str, ...] = ()
    alias_owner: Source | None = None
    www: Source | None = None  # the Ingress that redirects between the name with and without www
    certificate: Certificate | None = None
    passthrough: Source | None = None  # the first Ingress of the host, if its TLS is passed through
    late_passthrough: tuple[Source, ...] = ()  # later Ingresses that ask for it, without effect
    client: Source | None = None  # the first Ingress with auth-tls-secret
    client_wrong: str = ""  # why its rule cannot be served
    closed_by: Source | None = None  # the first Ingress whose annotation closes all of the host
    shadowed: list[tuple[Source, str, Source]] = []  # what an older Ingress owns: by, field, owner

    @property
    def client_tls(self) -> ClientTls | None:
        """Return the rule for client certificates."""
        return None if self.client is None else self.client.annotations.client_tls


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """All hosts; `canaries`: by primary upstream."""

    by_host: dict[str, Server]
    canaries: dict[Upstream, tuple[Upstream, Canary, Source]]
    void: tuple[tuple[Source, str], ...]  # canaries without a primary: by, field


def sort_sources(sources: Iterable[Source]) -> list[Source]:
    """Return Ingresses by age, the oldest first; at the same second the greater name is first."""
    named = sorted(
        sources, key=lambda one: f"{one.namespace}/{one.ingress.metadata.name}", reverse=True
    )
    named.sort(key=_age)
    return named


def _age(source: Source) -> int:
    created = source.ingress.metadata.creation_timestamp
    found = parse_timestamp(created) if created else None
    return _NO_AGE if found is None else found // 1_000_000_000


def port_text(service: IngressServiceBackend) -> str:
    """Return a port as ingress-nginx names upstreams by it."""
    return service.port.name or str(service.port.number)


def path_type(path: HTTPIngressPath) -> PathType:
    """Return the type that ingress-nginx gives a path: ImplementationSpecific is Prefix."""
    return "Exact" if path.path_type == "Exact" else "Prefix"


def hosts_of(source: Source) -> tuple[str, ...]:
    """Return the hosts that an Ingress may have a location of."""
    spec = source.ingress.spec
    hosts = dict.fromkeys(rule.host or CATCH_ALL for rule in spec.rules)
    if spec.default_backend is not None and not spec.rules:
        hosts[CATCH_ALL] = None
    return tuple(hosts)


def upstreams_of(source: Source) -> Iterator[Upstream]:
    """Give the upstreams that an Ingress names."""
    if (default := _default_of(source)) is not None:
        yield default
    for rule in source.ingress.spec.rules:
        for path in rule.http.paths if rule.http else ():
            if (found := _upstream_of(source, path)) is not None:
                yield found


def named_upstream(source: Source, host: str, path: str) -> Upstream | None:
    """Return the Service of the first rule of an Ingress with a host and path, whatever its path type; error pages name it."""
    for rule in source.ingress.spec.rules:
        if (rule.host or CATCH_ALL) != host:
            continue
        for one in rule.http.paths if rule.http else ():
            if (one.path or "/") == path:
                return _upstream_of(source, one)
    return None


def find_servers(sources: Sequence[Source], lookups: LookupIndex) -> Servers:
    """Return the hosts of Ingresses in their order (`sort_sources`)."""
    return _Builder(sources, lookups).build()


class _Builder:
    def __init__(self, sources: Sequence[Source], lookups: LookupIndex) -> None:
        self._sources = sources
        self._lookups = lookups
        #: What each upstream is: the canary of an Ingress, or None of a primary.
        self._upstreams: dict[Upstream, Source | None] = {}
        root = Location(
            path="/", path_type="Prefix", source=None, field="", upstream=None, automatic=True
        )
        self._servers = {CATCH_ALL: Server(host=CATCH_ALL, locations=[root])}
        self._void: list[tuple[Source, str]] = []

    def build(self) -> Servers:
        for source in self._sources:
            self._add_upstreams(source)
        for source in self._sources:
            if source.annotations.canary is None:
                self._add_servers(source)
        for source in self._sources:
            if source.annotations.canary is None:
                self._add_host_settings(source)
        for server in self._servers.values():
            names = (one for one in server.aliases if one != server.host)
            server.aliases = tuple(one for one in names if one not in self._servers)
        for source in self._sources:
            self._add_locations(source)
        canaries = self._merge_canaries()
        for server in self._servers.values():
            server.locations.sort(key=lambda one: one.path, reverse=True)
            server.locations.sort(key=lambda one: len(one.path), reverse=True)
        return Servers(
            by_host=self._servers,
            canaries=canaries,
            void=tuple(self._void),
        )

    def _add_upstreams(self, source: Source) -> None:
        canary = source if source.annotations.canary is not None else None
        spec = source.ingress.spec
        if (default := _default_of(source)) is not None:
            self._upstreams[default] = canary
        for rule in spec.rules:
            for path in rule.http.paths if rule.http else ():
                if (found := _upstream_of(source, path)) is not None:
                    self._upstreams.setdefault(found, canary)

    def _add_servers(self, source: Source) -> None:
        default = _default_of(source)
        spec = source.ingress.spec
        root = self._servers[CATCH_ALL].locations[0]
        has_default = spec.default_backend is not None
        if has_default and not spec.rules and root.automatic and (default or source.closed):
            self._servers[CATCH_ALL].locations[0] = Location(
                path="/",
                path_type="Prefix",
                source=source,
                field="spec.defaultBackend",
                upstream=default,
                plain=True,
            )
        for at, rule in enumerate(spec.rules):
            host = rule.host or CATCH_ALL
            if host not in self._servers:
                made = Location(
                    path="/",
                    path_type="Prefix",
                    source=source,
                    field=f"spec.rules[{at}]",
                    upstream=default,
                    automatic=True,
                )
                passes = source if source.annotations.passthrough else None
                self._servers[host] = Server(host=host, locations=[made], passthrough=passes)
            elif source.annotations.passthrough and self._servers[host].passthrough is None:
                self._servers[host].late_passthrough += (source,)

    def _add_host_settings(self, source: Source) -> None:
        for rule in source.ingress.spec.rules:
            server = self._servers[rule.host or CATCH_ALL]
            if not server.aliases and source.annotations.aliases:
                server.aliases, server.alias_owner = source.annotations.aliases, source
            client = source.annotations.client_tls
            if client is not None and server.client is None:
                server.client = source
                secret = self._lookups.of("host", server.host).secret(client.secret)
                server.client_wrong = check_client_secret(secret, client.secret)
            if source.annotations.closes_host and server.closed_by is None:
                server.closed_by = source
            if server.certificate is None and server.host != CATCH_ALL and source.ingress.spec.tls:
                server.certificate = self._find_certificate(server.host, source)

    def _find_certificate(self, host: str, source: Source) -> Certificate:
        """Return the certificate of `spec.tls` for a host, else the default one."""
        entries, lookup = source.ingress.spec.tls, self._lookups.of("host", host)
        for at, entry in enumerate(entries):
            if host in (one.lower() for one in entry.hosts):
                return self._use_secret(host, source, at)
        for at, entry in enumerate(entries):
            if entry.secret_name:
                names = lookup.certificate_names((source.namespace, entry.secret_name))
                if names is not None and covers(names, host):
                    return self._use_secret(host, source, at)
        return Certificate(secret=None, owner=source, field="spec.tls")

    def _use_secret(self, host: str, source: Source, at: int) -> Certificate:
        name = source.ingress.spec.tls[at].secret_name
        field = f"spec.tls[{at}].secretName"
        if name:
            key = (source.namespace, name)
            names = self._lookups.of("host", host).certificate_names(key)
            if names is not None and covers(names, host):
                return Certificate(secret=key, names=names, owner=source, field=field)
        return Certificate(secret=None, owner=source, field=field)

    def _add_locations(self, source: Source) -> None:
        for at, rule in enumerate(source.ingress.spec.rules):
            server = self._servers.get(rule.host or CATCH_ALL) or self._servers[CATCH_ALL]
            for index, path in enumerate(rule.http.paths if rule.http else ()):
                field = f"spec.rules[{at}].http.paths[{index}]"
                upstream = _upstream_of(source, path)
                if upstream is None and source.ingress.closed is None:
                    continue  # a resource backend, which emit reports
                if upstream is not None and self._upstreams.get(upstream) is not None:
                    continue  # of a canary
                self._add_location(server, source, path, field, upstream)

    def _add_location(
        self,
        server: Server,
        source: Source,
        path: HTTPIngressPath,
        field: str,
        upstream: Upstream | None,
    ) -> None:
        text, type_ = path.path or "/", path_type(path)
        made = Location(path=text, path_type=type_, source=source, field=field, upstream=upstream)
        for at, one in enumerate(server.locations):
            if (one.path, one.path_type) != (text, type_):
                continue
            if not one.automatic:
                if one.source is not None and one.source is not source:
                    server.shadowed.append((source, field, one.source))
                return
            server.locations[at] = made
            break
        else:
            server.locations.append(made)
        if source.annotations.from_to_www and server.www is None:
            server.www = source

    # --- canaries ---

    def _merge_canaries(self) -> dict[Upstream, tuple[Upstream, Canary, Source]]:
        gone: set[Upstream] = set()
        merged: dict[Upstream, list[tuple[Upstream, Canary, Source]]] = {}
        if not any(one.annotations.canary is None for one in self._sources):
            return {}
        for source in self._sources:
            canary = source.annotations.canary
            if canary is None:
                continue
            for server, type_, path, upstream, field in self._targets(source):
                if upstream in gone:
                    continue
                found = self._merge(server, type_, path, upstream, merged, canary, source)
                if not found:
                    gone.add(upstream)
                    self._void.append((source, field))
        first: dict[Upstream, tuple[Upstream, Canary, Source]] = {}
        for primary, alternatives in merged.items():
            # nginx takes the first one alone; without it there is no canary.
            upstream = alternatives[0][0]
            owner = self._upstreams.get(upstream)  # the first Ingress with the Service decides
            if upstream not in gone and owner is not None and owner.annotations.canary is not None:
                first[primary] = (upstream, owner.annotations.canary, owner)
        return first

    def _targets(
        self, source: Source
    ) -> Iterable[tuple[Server, PathType | None, str, Upstream, str]]:
        default = _default_of(source)
        if default is not None:
            yield self._servers[CATCH_ALL], None, "", default, "spec.defaultBackend"
        for at, rule in enumerate(source.ingress.spec.rules):
            server = self._servers.get(rule.host or CATCH_ALL)
            for index, path in enumerate(rule.http.paths if rule.http else ()):
                upstream = _upstream_of(source, path)
                if server is not None and upstream is not None:
                    field = f"spec.rules[{at}].http.paths[{index}]"
                    yield server, path_type(path), path.path or "/", upstream, field

    def _merge(
        self,
        server: Server,
        type_: PathType | None,
        path: str,
        upstream: Upstream,
        merged: dict[Upstream, list[tuple[Upstream, Canary, Source]]],
        canary: Canary,
        source: Source,
    ) -> bool:
        """Merge a canary into the primaries of the locations with its path; False without such a location."""
        found = False
        for one in server.locations:
            primary = one.upstream
            if primary == upstream:
                return True  # it is a primary there; the canary stays as it is
            if primary is None or self._upstreams.get(primary) is not None:
                continue
            if type_ is not None and (one.path, one.path_type) != (path, type_):
                continue
            found = True
            known = merged.setdefault(primary, [])
            if all(each[0] != upstream for each in known):
                known.append((upstream, canary, source))
        return found


def _default_of(source: Source) -> Upstream | None:
    backend = source.ingress.spec.default_backend
    if backend is None or backend.service is None:
        return None
    return Upstream(source.namespace, backend.service.name, port_text(backend.service))


def _upstream_of(source: Source, path: HTTPIngressPath) -> Upstream | None:
    service = path.backend.service
    return None if service is None else Upstream(source.namespace, service.name, port_text(service))
