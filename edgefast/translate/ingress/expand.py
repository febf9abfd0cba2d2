"""Expand: a snapshot with Ingresses -> the same with the objects that serve them, before the pipeline translates it.

In: the snapshot, settings, the previous expansion. Out: an `Expansion`. Without Ingresses of ours it is the snapshot itself; in a
cluster that serves Ingresses it has their Gateway all the same, so that the fleet keeps its address. The
work is done again only when an Ingress, a class, or an object that was read has changed; objects that are equal to the previous
ones stay the same, so that the pipeline does nothing for them.
Must never: depend on the previous expansion in what it returns, or replace an object of a user.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edgefast.api.core.configmap import ConfigMap
from edgefast.api.edge.edgeproxy import EdgeProxySpec
from edgefast.api.ingress.ingress import Ingress
from edgefast.api.kinds import ref_of
from edgefast.api.model.origin import Origin, place_of
from edgefast.api.snapshot import Key, Snapshot
from edgefast.collections.sorted_map import EMPTY, SortedMap, find_unlike
from edgefast.diagnostics.problem import Problem
from edgefast.translate.ingress.annotations import Annotations, read_annotations
from edgefast.translate.ingress.classes import Classes, class_of, find_classes
from edgefast.translate.ingress.configmap import DEFAULT_NAME, Globals, Note, read_globals
from edgefast.translate.ingress.emit import Made, emit_objects
from edgefast.translate.ingress.lookup import Lookup, Reads, is_same
from edgefast.translate.ingress.names import find_names
from edgefast.translate.ingress.rules import Findings
from edgefast.translate.ingress.servers import Servers, Source, find_servers, sort_sources
from edgefast.translate.settings import IngressSettings, Settings

__all__ = ["Expansion", "expand_ingresses", "place_problem"]

_NOTHING = Made(tables={}, origins={})
_PREFIX = "nginx.ingress.kubernetes.io/"


class Expansion(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A snapshot with the objects that serve its Ingresses."""

    base: Snapshot
    snapshot: Snapshot
    made: Made = _NOTHING
    problems: tuple[Problem, ...] = ()
    reads: Reads = {}
    settings: IngressSettings = IngressSettings()
    #: By Ingress: the Ingress, the settings, and the annotations as parsed with them.
    parsed: Mapping[Key, tuple[Ingress, Globals, Source]] = {}
    #: Ingresses of ours that are served.
    served: SortedMap[Key, Ingress] = EMPTY


def expand_ingresses(
    snapshot: Snapshot, settings: Settings, previous: Expansion | None
) -> Expansion:
    """Expand a snapshot; with `previous`, only what has changed is made again."""
    if previous is not None and _is_current(snapshot, settings, previous):
        merged = _merge(snapshot, previous.made, previous)
        return msgspec.structs.replace(previous, base=snapshot, snapshot=merged)
    if not settings.serves_ingresses or (settings.standalone and not snapshot.ingresses):
        return Expansion(base=snapshot, snapshot=snapshot, settings=settings.ingress)
    made = _Work(snapshot, settings, previous).expand()
    return msgspec.structs.replace(made, snapshot=_merge(snapshot, made.made, previous))


def _is_current(snapshot: Snapshot, settings: Settings, previous: Expansion) -> bool:
    return (
        snapshot.ingresses is previous.base.ingresses
        and snapshot.ingress_classes is previous.base.ingress_classes
        and (settings.watch_selector is None or snapshot.namespaces is previous.base.namespaces)
        and settings.ingress == previous.settings
        and (
            not settings.standalone
            or bool(settings.ingress.config_map)
            or not snapshot.ingresses
            or _find_map(snapshot) is _find_map(previous.base)
        )
        and is_same(previous.reads, snapshot)
    )


class _Work:
    def __init__(self, snapshot: Snapshot, settings: Settings, previous: Expansion | None) -> None:
        self._snapshot = snapshot
        self._settings = settings
        self._previous = previous
        self._lookup = Lookup(snapshot, settings.ingress.assumed_certificates)
        self._problems: list[Problem] = []
        self._parsed: dict[Key, tuple[Ingress, Globals, Source]] = {}
        self._served: dict[Key, Ingress] = {}

    def expand(self) -> Expansion:
        standalone = self._settings.standalone
        classes = find_classes(self._snapshot, self._settings.ingress, standalone=standalone)
        found, settings = self._read_globals()
        ours = [one for one in self._snapshot.ingresses.values() if self._has(classes, one)]
        if standalone:
            self._report_others(classes, served=bool(ours))
        made = _NOTHING
        if ours or not standalone:
            if found is not None:
                self._report_map(found, settings)
            made = self._make(ours, settings)
        return Expansion(
            base=self._snapshot,
            snapshot=self._snapshot,
            made=_keep(made, self._previous),
            problems=tuple(self._problems),
            reads=self._lookup.reads,
            settings=self._settings.ingress,
            parsed=self._parsed,
            served=_keep_served(self._served, self._previous),
        )

    def _has(self, classes: Classes, ingress: Ingress) -> bool:
        """Tell whether an Ingress is served: its class is ours, and its namespace is watched."""
        if not classes.has(ingress):
            return False
        namespace = ingress.metadata.namespace
        found = self._snapshot.namespaces.get(("", namespace))
        return self._settings.watches(namespace, found.metadata.labels if found else {})

    def _make(self, ours: list[Ingress], settings: Globals) -> Made:
        sources = []
        for ingress in ours:
            source = self._parse(ingress, settings)
            if ingress.closed is not None and not self._settings.standalone:
                # A file's mistake is a problem of its own.
                message = f"{ingress.closed.said}; its locations answer 503"
                note = Note(name=ingress.closed.path or "spec", message=message, error=True)
                self._note(source, note)
            self._note(source, *source.annotations.notes)
            self._note(source, *_find_resources(ingress))
            if not source.annotations.refused:
                sources.append(source)
                self._served[ingress.metadata.namespace, ingress.metadata.name] = ingress
        servers = find_servers(sort_sources(sources), self._lookup)
        self._report_servers(servers)
        named = self._settings.ingress.certificate.partition("/")
        names = find_names(servers, (named[0], named[2]) if named[2] else None)
        for source, note in names.notes:
            self._note(source, note)
        ports = (self._settings.ingress.http_port, self._settings.ingress.https_port)
        findings = Findings(servers, settings, self._lookup, ports)
        made = emit_objects(servers, names, findings, self._settings, self._find_proxy())
        for source, notes in findings.notes.items():
            self._note(source, *notes)
        return made

    def _find_proxy(self) -> EdgeProxySpec:
        """Return the settings of the fleet."""
        name = self._settings.ingress.edge_proxy
        found = self._lookup.edge_proxy((self._settings.namespace, name)) if name else None
        if name and found is None:
            message = (
                f'"{name}": no EdgeProxy in namespace {self._settings.namespace}; defaults apply'
            )
            self._problems.append(Problem(None, "ingress.edgeProxy", "NotFound", message))
        return found.spec if found is not None else EdgeProxySpec()

    def _parse(self, ingress: Ingress, settings: Globals) -> Source:
        """Read the annotations of an Ingress; those of an unchanged one are known."""
        key = (ingress.metadata.namespace, ingress.metadata.name)
        known = self._previous.parsed.get(key) if self._previous is not None else None
        if known is not None and known[0] is ingress and known[1] == settings:
            found = known[2]
        elif ingress.closed is not None:
            found = Source(ingress=ingress, annotations=Annotations())
        else:
            annotations = read_annotations(ingress.metadata.annotations, settings)
            found = Source(ingress=ingress, annotations=annotations)
        self._parsed[key] = (ingress, settings, found)
        return found

    def _read_globals(self) -> tuple[ConfigMap | None, Globals]:
        text = self._settings.ingress.config_map
        if text:
            namespace, _, name = text.partition("/")
            found = self._lookup.config_map((namespace, name))
            if found is None:
                field = "--ingress-config" if self._settings.standalone else "ingress.configMap"
                message = f'"{text}" not found; all locations answer 503'
                self._problems.append(Problem(None, field, "NotFound", message))
                return None, Globals(closed=field)
        elif not self._settings.standalone:
            found = None  # any namespace could have one of that name
        else:
            found = _find_map(self._snapshot)
        return found, read_globals(found)

    # --- problems ---

    def _note(self, source: Source, *notes: Note) -> None:
        for one in notes:
            path = one.name
            if not any(mark in path for mark in ".["):
                path = f"metadata.annotations[{_PREFIX}{one.name}]"
            self._problems.append(
                Problem(
                    object=source.ref,
                    path=path,
                    reason=one.reason,
                    message=one.message,
                    hint=one.hint,
                    severity="error" if one.error else "warning",
                )
            )

    def _report_map(self, found: ConfigMap, settings: Globals) -> None:
        for one in settings.notes:
            self._problems.append(
                Problem(
                    object=ref_of(found),
                    path=f"data[{one.name}]",
                    reason=one.reason,
                    message=one.message,
                    hint=one.hint,
                    severity="error" if one.error else "warning",
                )
            )

    def _report_others(self, classes: Classes, *, served: bool) -> None:
        """Report Ingresses of other classes: as errors when no Ingress is served."""
        for ingress in self._snapshot.ingresses.values():
            if classes.has(ingress):
                continue
            name = class_of(ingress)
            which = "no class" if name is None else f'class "{name}"'
            hint = "serve a class with --ingress-class NAME"
            if name:
                hint = f"serve it with --ingress-class {name}"
            elif self._settings.ingress.classes:
                hint = "write spec.ingressClassName"
            self._problems.append(
                Problem(
                    object=ref_of(ingress),
                    path="spec.ingressClassName",
                    reason="NotSupported",
                    message=f"the Ingress has {which}, which edgefast does not serve here",
                    hint=hint,
                    severity="warning" if served or classes.names else "error",
                )
            )

    def _report_servers(self, servers: Servers) -> None:
        for source, field, owner in servers.shadowed:
            message = f"the host already has this path and type; {owner.ref} owns it"
            self._note(source, Note(name=field, message=message, reason="Shadowed"))
        for source, field in servers.void:
            message = "no path and type of an Ingress with a Service; the canary gets no requests"
            self._note(source, Note(name=field, message=message, reason="NotFound"))


def _find_map(snapshot: Snapshot) -> ConfigMap | None:
    """Return the ConfigMap of ingress-nginx: the one of its name, None if no namespace or several have it."""
    found = [one for (_, name), one in snapshot.config_maps.items() if name == DEFAULT_NAME]
    return found[0] if len(found) == 1 else None


def _find_resources(ingress: Ingress) -> Iterator[Note]:
    """Report backends that are no Services."""
    message = "only Services are served; requests get the default backend"
    default = ingress.spec.default_backend
    if default is not None and default.resource is not None:
        yield Note(
            name="spec.defaultBackend.resource", message=message, error=True, reason="NotSupported"
        )
    for at, rule in enumerate(ingress.spec.rules):
        for index, path in enumerate(rule.http.paths if rule.http else ()):
            if path.backend.resource is not None:
                name = f"spec.rules[{at}].http.paths[{index}].backend.resource"
                yield Note(name=name, message=message, error=True, reason="NotSupported")


# --- the snapshot ---


def _keep_served(served: dict[Key, Ingress], previous: Expansion | None) -> SortedMap[Key, Ingress]:
    """Return the Ingresses that are served; entries without a change are shared with the previous map."""
    draft = (previous.served if previous is not None else EMPTY).edit()
    for key in [
        one for one in (previous.served if previous is not None else ()) if one not in served
    ]:
        del draft[key]
    draft.update(served)
    return draft.done()


def _keep(made: Made, previous: Expansion | None) -> Made:
    """Return the objects; one that equals the previous one of its name is that one."""
    if previous is None:
        return made
    for table, objects in made.tables.items():
        known = previous.made.tables.get(table, {})
        for key, one in objects.items():
            old = known.get(key)
            if old is not None and old == one:
                objects[key] = old
    return made


def _merge(snapshot: Snapshot, made: Made, previous: Expansion | None) -> Snapshot:
    """Return the snapshot with the made objects; tables without a change are those of the previous one."""
    if not made.tables:
        return snapshot
    tables: dict[str, SortedMap[Key, Any]] = {}
    for table, objects in made.tables.items():
        base: SortedMap[Key, Any] = getattr(snapshot, table)
        before = previous.made.tables.get(table) if previous is not None else None
        if previous is None or not before:
            draft = base.edit()
            for key, one in objects.items():
                draft[key] = one
            tables[table] = draft.done()
            continue
        merged: SortedMap[Key, Any] = getattr(previous.snapshot, table)
        gone, come = find_unlike(getattr(previous.base, table), base)
        if not gone and not come and before is objects:
            tables[table] = merged
            continue
        removed = {*gone, *(before.keys() - objects.keys())} - come.keys() - objects.keys()
        changed = {
            key: one for key, one in {**come, **objects}.items() if merged.get(key) is not one
        }
        if not removed and not changed:
            tables[table] = merged
            continue
        draft = merged.edit()
        for key in removed:
            draft.pop(key, None)
        for key, one in changed.items():
            draft[key] = one
        tables[table] = draft.done()
    return msgspec.structs.replace(snapshot, **tables)


def place_problem(
    problem: Problem, origins: Mapping[tuple[str, str, str], Origin]
) -> Problem | None:
    """Return a problem of a made object as one of its Ingress; None: it follows from what is reported there, or is of no Ingress."""
    ref = problem.object
    origin = origins.get((ref.kind, ref.namespace, ref.name)) if ref is not None else None
    if ref is None or origin is None:
        return problem
    found, path = place_of(origin, problem.path)
    if found is not None and found.kind == ref.kind:
        path = problem.path  # of the EdgeProxy that the made one repeats
    if found is None:
        return problem if problem.severity == "error" else None
    return msgspec.structs.replace(problem, object=found, path=path)
