"""Assemble: the objects of all hosts and Ingresses, made for those that changed and kept for the others.

In: Ingresses with their annotations, what changed, the previous objects. Out: `IngressObjects`. `assemble` makes everything, `step`
what a few changed Ingresses and objects lead to: the hosts of the changed Ingresses, and all Ingresses that name these hosts. A
host depends on others by canaries, by aliases and names with or without www, by Services with TLS (`HostDependencies`), and by
wildcard hosts. Where such a dependency may change, `step` returns None. A host also depends on those that its auth-url names; `step`
makes both.
Must never: return from `step` what `assemble` would not return.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from edgefast.api.edge.edgeproxy import EdgeProxySpec
from edgefast.api.model.origin import Origin
from edgefast.api.snapshot import Key, Snapshot
from edgefast.collections.sorted_map import EMPTY, Draft, SortedMap
from edgefast.translate.ingress.access import Access, add_host_check, find_access
from edgefast.translate.ingress.auth_location import AuthLocations
from edgefast.translate.ingress.auth_url import FindAuthTarget, RequestHost, named_host
from edgefast.translate.ingress.backends import (
    ENCRYPTED_PROTOCOLS,
    ServicePortKey,
    TlsUse,
    find_encrypted,
)
from edgefast.translate.ingress.configmap import Globals, Note
from edgefast.translate.ingress.emit import HostMade, emit_gateways, emit_host, parse_key
from edgefast.translate.ingress.emit_policies import emit_policies
from edgefast.translate.ingress.emitter import Grant, Made
from edgefast.translate.ingress.findings import Findings
from edgefast.translate.ingress.grants import emit_grants
from edgefast.translate.ingress.lookup import ALL, Fact, Lookup, LookupIndex, Owner, host_fact
from edgefast.translate.ingress.names import NoOthers, Others, TlsListener, find_names
from edgefast.translate.ingress.sections import Sections
from edgefast.translate.ingress.servers import (
    CATCH_ALL,
    Server,
    Servers,
    Source,
    Upstream,
    find_servers,
    hosts_of,
    sort_sources,
    upstreams_of,
)
from edgefast.translate.settings import Settings

__all__ = ["IngressObjects", "Context", "assemble", "step"]

Changes = Mapping[Key, tuple[Source | None, Source | None]]


class Context(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What all hosts depend on."""

    snapshot: Snapshot
    settings: Settings
    globals_: Globals
    proxy: EdgeProxySpec


class HostDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts and upstreams that depend on more than the Ingresses that name them."""

    hosts: frozenset[str] = frozenset()
    upstreams: frozenset[Upstream] = frozenset()
    canaries: bool = False
    encrypted: frozenset[Key] = (
        frozenset()
    )  # Services of Ingresses with backend-protocol HTTPS or GRPCS


class IngressObjects(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All objects, and of which host, Ingress or fact each is."""

    by_host: SortedMap[str, frozenset[Key]] = EMPTY  # Ingresses that name a host
    hosts: SortedMap[str, HostMade] = EMPTY
    policies: SortedMap[Key, Made] = EMPTY  # by Ingress
    base: Made = Made()
    sections: Sections = Sections(())
    listeners: SortedMap[str, TlsListener] = EMPTY
    dependencies: HostDependencies = HostDependencies()
    speaks_tls: Mapping[ServicePortKey, TlsUse] = {}  # of the Services in dependencies.encrypted
    access_notes: SortedMap[Key, tuple[Source, tuple[Note, ...]]] = EMPTY
    void: tuple[tuple[Source, str], ...] = ()  # canaries without a primary: by, field
    tables: dict[str, SortedMap[Key, Any]] = {}
    origins: SortedMap[tuple[str, str, str], Origin] = EMPTY
    shared: SortedMap[tuple[str, Key], int] = EMPTY  # how many made an object
    grants: SortedMap[Grant, int] = EMPTY
    reads: SortedMap[Owner, frozenset[Fact]] = EMPTY
    readers: SortedMap[Fact, frozenset[Owner]] = EMPTY

    def notes(self) -> Iterator[tuple[Source, Note]]:
        """Give the notes about Ingresses."""
        for made in self.hosts.values():
            yield from made.notes
        for source, notes in self.access_notes.values():
            for one in notes:
                yield source, one
        for source, field in self.void:
            message = "no other Ingress has a Service for this host, path and type; the canary gets no requests"
            yield source, Note(name=field, message=message, reason="NotFound")


def assemble(
    sources: Mapping[Key, Source], context: Context, lookups: LookupIndex, before: IngressObjects
) -> IngressObjects:
    """Make everything; objects that equal those of `before` stay the same."""
    served = {key: one for key, one in sources.items() if not one.annotations.refused}
    servers = find_servers(sort_sources(served.values()), lookups)
    hosts = {*before.hosts, *servers.by_host}
    dependencies = _find_dependencies(served.values(), servers)
    speaks_tls = _find_encrypted(served.values(), dependencies.encrypted, lookups)
    before = msgspec.structs.replace(before, speaks_tls=speaks_tls)
    made = _Work(context, lookups, before, served, servers, hosts, NoOthers(), {})
    found = made.run(whole=True)
    assert found is not None
    by_host: dict[str, set[Key]] = {}
    for key, source in served.items():
        for host in hosts_of(source):
            by_host.setdefault(host, set()).add(key)
    return msgspec.structs.replace(
        found,
        by_host=SortedMap({host: frozenset(keys) for host, keys in by_host.items()}),
        dependencies=dependencies,
        void=servers.void,
    )


def step(
    sources: Mapping[Key, Source],
    changed: Changes,
    owners: Collection[Owner],
    context: Context,
    before: IngressObjects,
) -> IngressObjects | None:
    """Make what changed Ingresses and owners of changed facts lead to; None: everything has to be made."""
    hosts = _find_hosts(sources, changed, owners)
    asking = {one for host in hosts for one in before.readers.get(host_fact(host), ())}
    hosts |= _find_hosts(sources, {}, asking)
    by_host = before.by_host.edit()
    for key, (was, now) in changed.items():
        for host in _served_hosts(was):
            by_host[host] = by_host[host] - {key}
        for host in _served_hosts(now):
            by_host[host] = by_host.get(host, frozenset()) | {key}
    for host in hosts:
        if not by_host.get(host, frozenset((("", ""),))):
            del by_host[host]
    index = by_host.done()
    served = _find_served(sources, hosts, index)
    if _has_dependents(hosts, changed, served.values(), before.dependencies):
        return None
    lookups = LookupIndex(context.snapshot, context.settings.ingress.assumed_certificates)
    servers = find_servers(sort_sources(served.values()), lookups)
    work = _Work(context, lookups, before, served, servers, hosts, _Kept(before), changed)
    found = work.run(whole=False)
    return None if found is None else msgspec.structs.replace(found, by_host=index)


def _served_hosts(source: Source | None) -> tuple[str, ...]:
    return () if source is None or source.annotations.refused else hosts_of(source)


def _find_hosts(
    sources: Mapping[Key, Source], changed: Changes, owners: Collection[Owner]
) -> set[str]:
    """Return the hosts to make."""
    hosts = {host for pair in changed.values() for one in pair for host in _served_hosts(one)}
    for kind, name in owners:
        if kind == "host":
            hosts.add(name)
            continue
        namespace, _, ingress = name.partition("/")
        hosts.update(_served_hosts(sources.get((namespace, ingress))))
    return hosts


def _find_served(
    sources: Mapping[Key, Source], hosts: set[str], by_host: Mapping[str, frozenset[Key]]
) -> dict[Key, Source]:
    """Return the Ingresses of hosts; add the hosts that their auth-urls name, with their Ingresses."""
    served: dict[Key, Source] = {}
    more: set[str] = hosts
    while more:
        found = {key: sources[key] for host in more for key in by_host.get(host, ())}
        served.update(found)
        auths = (one.annotations.auth for one in found.values())
        named = {named_host(one) for one in auths if one is not None}
        more = {one for one in named if one in by_host} - hosts
        hosts |= more
    return served


def _has_dependents(
    hosts: Collection[str],
    changed: Changes,
    served: Iterable[Source],
    dependencies: HostDependencies,
) -> bool:
    """Tell whether other hosts may depend on what has changed, or these hosts on others."""
    for pair in changed.values():
        for one in pair:
            if one is None or one.annotations.refused:
                continue
            if _links_hosts(one) or _is_encrypted(one):
                return True
            if any(upstream.key in dependencies.encrypted for upstream in upstreams_of(one)):
                return True
    if any(host in dependencies.hosts or host.startswith("*.") for host in hosts):
        return True
    if dependencies.canaries and CATCH_ALL in hosts:
        return True
    if not dependencies.upstreams:
        return False
    former = (was for was, _ in changed.values() if was is not None)
    return any(
        one in dependencies.upstreams
        for source in (*served, *former)
        for one in upstreams_of(source)
    )


def _links_hosts(source: Source) -> bool:
    found = source.annotations
    return found.canary is not None or bool(found.aliases) or found.from_to_www


def _is_encrypted(source: Source) -> bool:
    return source.annotations.protocol in ENCRYPTED_PROTOCOLS


def _find_encrypted(
    sources: Iterable[Source], services: Collection[Key], lookups: LookupIndex
) -> Mapping[ServicePortKey, TlsUse]:
    """Tell which ports of Services get TLS: the oldest Ingress decides, canaries do not."""
    used = [
        (upstream, source.annotations.protocol, source.annotations.backend_tls)
        for source in sort_sources(sources)
        if source.annotations.canary is None
        for upstream in upstreams_of(source)
    ]
    return find_encrypted(used, services, lookups.of(*ALL)) if services else {}


def _find_dependencies(sources: Iterable[Source], servers: Servers) -> HostDependencies:
    hosts: set[str] = set()
    upstreams: set[Upstream] = set(servers.canaries)
    canaries = False
    encrypted: set[Key] = set()
    for source in sources:
        if _is_encrypted(source):
            encrypted.update(one.key for one in upstreams_of(source))
        if not _links_hosts(source):
            continue
        names = hosts_of(source)
        hosts.update(names, source.annotations.aliases)
        if source.annotations.from_to_www:
            hosts.update(one.removeprefix("www.") for one in names)
            hosts.update(f"www.{one}" for one in names)
        if source.annotations.canary is not None:
            canaries = True
            upstreams.update(upstreams_of(source))
    if encrypted and canaries:
        # Requests to a canary have the protocol of its primary.
        encrypted.update(one.key for one in upstreams)
    return HostDependencies(
        hosts=frozenset(hosts),
        upstreams=frozenset(upstreams),
        canaries=canaries,
        encrypted=frozenset(encrypted),
    )


class _Kept:
    """Hosts that are not made again."""

    def __init__(self, before: IngressObjects) -> None:
        self._before = before

    def server(self, host: str) -> Server | None:
        """Return the server of a host."""
        found = self._before.hosts.get(host)
        return found.server if found is not None else None

    def listens(self, name: str) -> bool:
        """Tell whether a name has a TLS listener."""
        return name in self._before.listeners


class _Work:
    """Makes some hosts, and the policies of their Ingresses."""

    def __init__(
        self,
        context: Context,
        lookups: LookupIndex,
        before: IngressObjects,
        served: Mapping[Key, Source],
        servers: Servers,
        hosts: Collection[str],
        others: Others,
        changed: Changes,
    ) -> None:
        self._context = context
        self._settings = context.settings
        self._lookups = lookups
        self._before = before
        self._served = served
        self._servers = servers
        self._hosts = hosts
        self._others = others
        self._changed = changed
        self._access: dict[Source, Access] = {}
        self._host_access: dict[tuple[Source, str], Access] = {}

    def run(self, *, whole: bool) -> IngressObjects | None:
        settings, before = self._settings, self._before
        present = {
            host: self._servers.by_host[host]
            for host in sorted(self._hosts)
            if host in self._servers.by_host
        }
        default = parse_key(settings.ingress.certificate)
        names = find_names(present, default, self._others)
        listeners = before.listeners.edit()
        for host in self._hosts:
            if (old := before.hosts.get(host)) is not None:
                for name in old.listeners.keys() - names.listeners.keys():
                    listeners.pop(name, None)
        for name, one in names.listeners.items():
            if listeners.get(name) != one:
                listeners[name] = one
        listening = listeners.done()
        sections = before.sections
        if whole or listening is not before.listeners:
            sections = Sections(listening)
            if not whole and sections.count != before.sections.count:
                return None
        made = {host: self._make_host(found, names, sections) for host, found in present.items()}
        hosts = before.hosts.edit()
        for host in self._hosts:
            if host not in made:
                hosts.pop(host, None)
        hosts.update(made)
        after = hosts.done()
        policies = self._make_policies(after, whole=whole)
        base = before.base
        if whole or listening is not before.listeners:
            base = emit_gateways(
                listening, sections, settings, self._context.globals_, self._context.proxy
            )
        pairs: list[tuple[Made | None, Made | None]] = [(before.base, base)]
        pairs += [(before.hosts.get(host), made.get(host)) for host in sorted(self._hosts)]
        pairs += [(before.policies.get(key), one) for key, one in policies.items()]
        kept = before.policies.edit()
        for key, own in policies.items():
            if own is None:
                kept.pop(key, None)
            else:
                kept[key] = own
        reads, readers = self._join_reads(policies, whole=whole)
        tables = _Tables(before)
        tables.apply(pairs)
        return msgspec.structs.replace(
            before,
            hosts=after,
            policies=kept.done(),
            base=base,
            sections=sections,
            listeners=listening,
            access_notes=self._join_notes(policies),
            tables=tables.done(),
            origins=tables.origins.done(),
            shared=tables.shared.done(),
            grants=tables.grants,
            reads=reads,
            readers=readers,
        )

    def _make_host(self, server: Server, names: Any, sections: Sections) -> HostMade:
        ports = (self._settings.ingress.http_port, self._settings.ingress.https_port)
        lookup = self._lookups.of("host", server.host)
        findings = Findings(
            self._servers,
            self._context.globals_,
            lookup,
            ports,
            lambda source: self._find_host_access(source, server, lookup),
            self._before.speaks_tls,
        )
        return emit_host(server, names, findings, sections, self._settings)

    def _find_host_access(self, source: Source, server: Server, lookup: Lookup) -> Access:
        key = (source, server.host)
        if key not in self._host_access:
            host = RequestHost(name=server.host, aliases=bool(server.aliases))
            access, find_target = self._find_access(source), self._find_target(lookup)
            self._host_access[key] = add_host_check(access, source, lookup, find_target, host)
        return self._host_access[key]

    def _find_access(self, source: Source) -> Access:
        if source not in self._access:
            lookup = self._lookups.of("Ingress", _name(source))
            self._access[source] = find_access(
                source, self._context.globals_, lookup, self._find_target(lookup)
            )
        return self._access[source]

    def _find_target(self, lookup: Lookup) -> FindAuthTarget:
        """Return what finds the Services behind auth-urls."""
        settings, speaks_tls = self._context.globals_, self._before.speaks_tls
        found = AuthLocations(self._servers, self._others, settings, lookup, speaks_tls)
        return found.find

    def _make_policies(
        self, hosts: SortedMap[str, HostMade], *, whole: bool
    ) -> dict[Key, Made | None]:
        """Return the policies of all Ingresses that name the hosts, None of one that is not served any more."""
        keys = {*self._served, *self._changed}
        if whole:
            keys.update(self._before.policies)
        found: dict[Key, Made | None] = {}
        for key in sorted(keys):
            source = self._served.get(key)
            if source is None:
                found[key] = None
                continue
            self._find_access(
                source
            )  # of one without routes, too: its notes depend on no other one
            names = sorted({*hosts_of(source), CATCH_ALL})
            there = (hosts.get(name) for name in names)
            found[key] = emit_policies(
                source,
                [one for one in there if one is not None],
                self._find_access,
                self._settings,
                self._context.globals_,
            )
        return found

    def _join_notes(
        self, policies: Mapping[Key, Made | None]
    ) -> SortedMap[Key, tuple[Source, tuple[Note, ...]]]:
        draft = self._before.access_notes.edit()
        for key in policies:
            draft.pop(key, None)
        for source, access in self._access.items():
            key = (source.namespace, source.ingress.metadata.name)
            if access.notes:
                draft[key] = (source, access.notes)
            else:
                draft.pop(key, None)
        return draft.done()

    def _join_reads(
        self, policies: Mapping[Key, Made | None], *, whole: bool
    ) -> tuple[SortedMap[Owner, frozenset[Fact]], SortedMap[Fact, frozenset[Owner]]]:
        """Record what the hosts and Ingresses have read, in place of what they read before."""
        reads, readers = self._before.reads.edit(), self._before.readers.edit()
        owners: set[Owner] = {("host", host) for host in self._hosts}
        owners.update(("Ingress", "/".join(key)) for key in policies)
        # Hosts beside these are made of some of their Ingresses only.
        owners.update(one for one in self._lookups.reads if one[0] == "Ingress")
        if whole:
            owners.add(ALL)
        for owner in sorted(owners):
            now = frozenset(self._lookups.reads.get(owner, ()))
            was: frozenset[Fact] = reads.get(owner, frozenset())
            if now == was:
                continue
            for fact in was - now:
                left = readers[fact] - {owner}
                if left:
                    readers[fact] = left
                else:
                    del readers[fact]
            for fact in now - was:
                readers[fact] = readers.get(fact, frozenset()) | {owner}
            if now:
                reads[owner] = now
            else:
                reads.pop(owner, None)
        return reads.done(), readers.done()


def _name(source: Source) -> str:
    return f"{source.namespace}/{source.ingress.metadata.name}"


class _Tables:
    """The tables of made objects while some are replaced."""

    def __init__(self, before: IngressObjects) -> None:
        self._before = before
        self._drafts: dict[str, Draft[Key, Any]] = {}
        self.origins = before.origins.edit()
        self.shared = before.shared.edit()
        self.grants = before.grants

    def done(self) -> dict[str, SortedMap[Key, Any]]:
        """Return the tables."""
        return {**self._before.tables, **{name: one.done() for name, one in self._drafts.items()}}

    def apply(self, pairs: Iterable[tuple[Made | None, Made | None]]) -> None:
        """Put the second Made of each pair in the place of the first one."""
        changes = [(old or Made(), new or Made()) for old, new in pairs if old is not new]
        for old, new in changes:
            for table, key in old.objects.keys() - new.objects.keys():
                self._table(table).pop(key, None)
            for name in old.origins.keys() - new.origins.keys():
                self.origins.pop(name, None)
        for _, new in changes:
            for (table, key), one in new.objects.items():
                self._put(table, key, one)
            for name, origin in new.origins.items():
                if self.origins.get(name) != origin:
                    self.origins[name] = origin
        self._share(changes)
        self._grant(changes)

    def _table(self, name: str) -> Draft[Key, Any]:
        if name not in self._drafts:
            self._drafts[name] = self._before.tables.get(name, EMPTY).edit()
        return self._drafts[name]

    def _put(self, table: str, key: Key, one: Any) -> None:
        draft = self._table(table)
        known = draft.get(key)
        if known is None or known != one:  # an equal one stays, so that nothing is done for it
            draft[key] = one

    def _share(self, changes: Iterable[tuple[Made, Made]]) -> None:
        counts: dict[tuple[str, Key], int] = {}
        for old, new in changes:
            for name in old.shared.keys() - new.shared.keys():
                counts[name] = counts.get(name, 0) - 1
            for name in new.shared.keys() - old.shared.keys():
                counts[name] = counts.get(name, 0) + 1
            for (table, key), one in new.shared.items():
                self._put(table, key, one)
        for name, more in counts.items():
            count = self.shared.get(name, 0) + more
            if count:
                self.shared[name] = count
            else:
                self.shared.pop(name, None)
                self._table(name[0]).pop(name[1], None)

    def _grant(self, changes: Iterable[tuple[Made, Made]]) -> None:
        counts: dict[Grant, int] = {}
        for old, new in changes:
            for one in old.grants - new.grants:
                counts[one] = counts.get(one, 0) - 1
            for one in new.grants - old.grants:
                counts[one] = counts.get(one, 0) + 1
        before, draft = self.grants, self.grants.edit()
        for one, more in counts.items():
            count = draft.get(one, 0) + more
            if count:
                draft[one] = count
            else:
                draft.pop(one, None)
        self.grants = draft.done()
        for kind, namespace, to_kind, to in sorted({one[:4] for one in counts}):
            start = (kind, namespace, to_kind, to)
            old_grants = emit_grants(*start, _names_of(before, start))
            new_grants = emit_grants(*start, _names_of(self.grants, start))
            names = {one.metadata.name for one in new_grants}
            for grant in old_grants:
                if grant.metadata.name not in names:
                    self._table("reference_grants").pop((to, grant.metadata.name), None)
            for grant in new_grants:
                self._put("reference_grants", (to, grant.metadata.name), grant)


def _names_of(grants: SortedMap[Grant, int], start: tuple[str, str, str, str]) -> Iterator[str]:
    """Give the names of the objects that a grant is for, in order."""
    for one in grants.starting_at(start):
        if one[:4] != start:
            return
        yield one[4]
