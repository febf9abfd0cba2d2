"""Expand: a snapshot with Ingresses -> the same with the objects that serve them, before the pipeline translates it.

In: the snapshot, settings, the previous expansion. Out: an `Expansion`. Without Ingresses of ours it is the snapshot itself; in a
cluster that serves Ingresses it has their Gateway all the same, so that the fleet keeps its address. A changed Ingress, or a
changed object that hosts have read, costs the work of its hosts (assemble.py). Everything is done again if the class, the
settings, or what hosts have in common changes.
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
from edgefast.api.model.origin import Origin, is_made, place_of
from edgefast.api.snapshot import Key, Snapshot
from edgefast.collections.sorted_map import EMPTY, SortedMap, find_unlike
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.ingress.annotation_fields import Annotations
from edgefast.translate.ingress.annotations import read_annotations
from edgefast.translate.ingress.assemble import Context, IngressObjects, assemble, step
from edgefast.translate.ingress.classes import Classes, class_of, find_classes
from edgefast.translate.ingress.configmap import DEFAULT_NAME, Globals, Note, read_globals
from edgefast.translate.ingress.lookup import ALL, LookupIndex, changed_facts
from edgefast.translate.ingress.servers import Source
from edgefast.translate.settings import IngressSettings, Settings

__all__ = ["Expansion", "expand_ingresses", "find_config_map", "place_problem"]

_PREFIX = "nginx.ingress.kubernetes.io/"


class Expansion(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A snapshot with the objects that serve its Ingresses."""

    base: Snapshot
    snapshot: Snapshot
    settings: Settings
    classes: Classes = Classes(names=frozenset(), default=False)
    #: Ingresses of ours with their annotations, those that are not served included.
    sources: SortedMap[Key, Source] = EMPTY
    #: Those that are served.
    served: SortedMap[Key, Ingress] = EMPTY
    config_map: ConfigMap | None = None
    globals_: Globals = Globals()
    proxy: EdgeProxySpec = EdgeProxySpec()
    missing: tuple[Problem, ...] = ()  # objects that the settings name
    objects: IngressObjects = IngressObjects()

    @property
    def origins(self) -> Mapping[tuple[str, str, str], Origin]:
        """The Origin of each made object, by kind and key."""
        return self.objects.origins

    def find_problems(self) -> Iterator[Problem]:
        """Give all problems of Ingresses and of their settings."""
        yield from self.missing
        if self.config_map is not None and (self.sources or not self.settings.standalone):
            ref = ref_of(self.config_map)
            for one in self.globals_.notes:
                yield _problem(ref, f"data[{one.name}]", one)
        if self.settings.standalone:
            yield from _report_others(self)
        for source in self.sources.values():
            if source.ingress.closed is not None and not self.settings.standalone:
                # A file's mistake is a problem of its own.
                closed = source.ingress.closed
                message = f"{closed.said}; its locations answer 503"
                yield _note(source, Note(name=closed.path or "spec", message=message, error=True))
            for one in (*source.annotations.notes, *_find_resources(source.ingress)):
                yield _note(source, one)
        for source, one in self.objects.notes():
            yield _note(source, one)


def expand_ingresses(
    snapshot: Snapshot, settings: Settings, previous: Expansion | None
) -> Expansion:
    """Expand a snapshot; with `previous`, only what has changed is made again."""
    core = settings.core()
    if not settings.serves_ingresses or (settings.standalone and not snapshot.ingresses):
        return Expansion(base=snapshot, snapshot=snapshot, settings=core)
    made = _step(snapshot, core, previous) if previous is not None else None
    if made is None:
        made = _expand(snapshot, core, previous)
    return msgspec.structs.replace(made, snapshot=_merge(snapshot, made.objects, previous))


def _expand(snapshot: Snapshot, settings: Settings, previous: Expansion | None) -> Expansion:
    """Do all of the work; annotations of unchanged Ingresses are known."""
    lookups = LookupIndex(snapshot, settings.ingress.assumed_certificates)
    classes = find_classes(snapshot, settings.ingress, standalone=settings.standalone)
    missing: list[Problem] = []
    config_map, globals_ = _read_globals(snapshot, settings, lookups, missing)
    proxy = _find_proxy(settings, lookups, missing)
    known: Mapping[Key, Source] = {}
    if previous is not None and previous.globals_ == globals_:
        known = previous.sources
    sources = {
        key: _parse(ingress, globals_, known.get(key))
        for key, ingress in snapshot.ingresses.items()
        if _is_ours(ingress, classes, snapshot, settings)
    }
    context = Context(snapshot=snapshot, settings=settings, globals_=globals_, proxy=proxy)
    objects = IngressObjects()
    if sources or not settings.standalone:
        before = previous.objects if previous is not None else IngressObjects()
        objects = assemble(sources, context, lookups, before)
    served = (previous.served if previous is not None else EMPTY).edit()
    for key in previous.served if previous is not None else ():
        if key not in sources:
            served.pop(key, None)
    for key, source in sources.items():
        _put_served(served, key, source)
    return Expansion(
        base=snapshot,
        snapshot=snapshot,
        settings=settings,
        classes=classes,
        sources=SortedMap(sources),
        served=served.done(),
        config_map=config_map,
        globals_=globals_,
        proxy=proxy,
        missing=tuple(missing),
        objects=objects,
    )


def _step(snapshot: Snapshot, settings: Settings, previous: Expansion) -> Expansion | None:
    """Do the work of what has changed; None: everything has to be done again."""
    before = previous.base
    if (
        settings != previous.settings
        or snapshot.ingress_classes is not before.ingress_classes
        or (settings.watch_selector is not None and snapshot.namespaces is not before.namespaces)
        or (settings.standalone and not previous.sources)
        or find_config_map(snapshot, settings) is not previous.config_map
    ):
        return None
    objects = previous.objects
    owners = {
        owner for fact in changed_facts(before, snapshot) for owner in objects.readers.get(fact, ())
    }
    gone, come = find_unlike(before.ingresses, snapshot.ingresses)
    if ALL in owners:
        return None
    if not owners and not gone and not come:
        return msgspec.structs.replace(previous, base=snapshot)
    sources, served = previous.sources.edit(), previous.served.edit()
    for key in gone:
        sources.pop(key, None)
        served.pop(key, None)
    changed: dict[Key, tuple[Source | None, Source | None]] = {}
    for key in {**gone, **come}:
        ingress, now = snapshot.ingresses.get(key), None
        if ingress is not None and _is_ours(ingress, previous.classes, snapshot, settings):
            now = sources[key] = _parse(ingress, previous.globals_, None)
            _put_served(served, key, now)
        was = previous.sources.get(key)
        if was is not None or now is not None:
            changed[key] = (was, now)
    after = sources.done()
    if settings.standalone and not after:
        return None
    context = Context(
        snapshot=snapshot,
        settings=settings,
        globals_=previous.globals_,
        proxy=previous.proxy,
    )
    made = step(after, changed, owners, context, objects)
    if made is None:
        return None
    return msgspec.structs.replace(
        previous, base=snapshot, sources=after, served=served.done(), objects=made
    )


def _put_served(served: Any, key: Key, source: Source) -> None:
    if source.annotations.refused:
        served.pop(key, None)
    else:
        served[key] = source.ingress


def _is_ours(ingress: Ingress, classes: Classes, snapshot: Snapshot, settings: Settings) -> bool:
    """Tell whether the class of an Ingress is ours, and its namespace is watched."""
    if not classes.has(ingress):
        return False
    namespace = ingress.metadata.namespace
    found = snapshot.namespaces.get(("", namespace))
    return settings.watches(namespace, found.metadata.labels if found else {})


def _parse(ingress: Ingress, globals_: Globals, known: Source | None) -> Source:
    """Read the annotations of an Ingress."""
    if known is not None and known.ingress is ingress:
        return known
    if ingress.closed is not None:
        return Source(ingress=ingress, annotations=Annotations())
    annotations = read_annotations(
        ingress.metadata.annotations, globals_, ingress.metadata.namespace
    )
    return Source(ingress=ingress, annotations=annotations)


# --- what the settings name ---


def _read_globals(
    snapshot: Snapshot, settings: Settings, lookups: LookupIndex, missing: list[Problem]
) -> tuple[ConfigMap | None, Globals]:
    text = settings.ingress.config_map
    found = find_config_map(snapshot, settings)
    if not text:
        return found, read_globals(found)
    namespace, _, name = text.partition("/")
    lookups.of(*ALL).config_map((namespace, name))
    if found is None:
        field = "--ingress-config" if settings.standalone else "ingress.configMap"
        message = f'"{text}" not found; all locations answer 503'
        missing.append(Problem(None, field, "NotFound", message))
        return None, Globals(closed=field)
    return found, read_globals(found)


def find_config_map(snapshot: Snapshot, settings: Settings) -> ConfigMap | None:
    """Return the ConfigMap that is named; from files also the only one with the name that ingress-nginx gives it."""
    if settings.ingress.config_map:
        namespace, _, name = settings.ingress.config_map.partition("/")
        return snapshot.config_maps.get((namespace, name))
    if not settings.standalone:
        return None  # any namespace could have one of that name
    found = [one for (_, name), one in snapshot.config_maps.items() if name == DEFAULT_NAME]
    return found[0] if len(found) == 1 else None


def _find_proxy(settings: Settings, lookups: LookupIndex, missing: list[Problem]) -> EdgeProxySpec:
    """Return the settings of the fleet."""
    name = settings.ingress.edge_proxy
    if not name:
        return EdgeProxySpec()
    found = lookups.of(*ALL).edge_proxy((settings.namespace, name))
    if found is None:
        message = f'"{name}": no EdgeProxy in namespace {settings.namespace}; defaults apply'
        missing.append(Problem(None, "ingress.edgeProxy", "NotFound", message))
    return found.spec if found is not None else EdgeProxySpec()


# --- problems ---


def _note(source: Source, one: Note) -> Problem:
    path = one.name
    if not any(mark in path for mark in ".["):
        path = f"metadata.annotations[{_PREFIX}{one.name}]"
    return _problem(source.ref, path, one)


def _problem(ref: ObjectRef, path: str, one: Note) -> Problem:
    return Problem(
        object=ref,
        path=path,
        reason=one.reason,
        message=one.message,
        hint=one.hint,
        severity="error" if one.error else "warning",
    )


def _report_others(made: Expansion) -> Iterator[Problem]:
    """Report Ingresses of other classes: as errors when no Ingress is served."""
    settings: IngressSettings = made.settings.ingress
    for ingress in made.base.ingresses.values():
        if made.classes.has(ingress):
            continue
        name = class_of(ingress)
        which = "no class" if name is None else f'class "{name}"'
        hint = "serve a class with --ingress-class NAME"
        if name:
            hint = f"serve it with --ingress-class {name}"
        elif settings.classes:
            hint = "write spec.ingressClassName"
        yield Problem(
            object=ref_of(ingress),
            path="spec.ingressClassName",
            reason="NotSupported",
            message=f"the Ingress has {which}, which edgefast does not serve here",
            hint=hint,
            severity="warning" if made.sources or made.classes.names else "error",
        )


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


def place_problem(
    problem: Problem, origins: Mapping[tuple[str, str, str], Origin]
) -> Problem | None:
    """Return a problem of a made object as one of its Ingress; None: it follows from what is reported there, or is of no Ingress."""
    ref = problem.object
    if ref is None or not is_made(ref.name):
        return problem
    origin = origins.get((ref.kind, ref.namespace, ref.name), Origin(ingress=None))
    found, path = place_of(origin, problem.path)
    if found is None:
        return problem if problem.severity == "error" else None
    if found.kind == ref.kind:
        path = problem.path  # of the EdgeProxy that the made one repeats
    return msgspec.structs.replace(problem, object=found, path=path)


# --- the snapshot ---


def _merge(snapshot: Snapshot, made: IngressObjects, previous: Expansion | None) -> Snapshot:
    """Return the snapshot with the made objects; tables without a change are those of the previous one."""
    tables: dict[str, SortedMap[Key, Any]] = {}
    for table, objects in made.tables.items():
        base: SortedMap[Key, Any] = getattr(snapshot, table)
        before: SortedMap[Key, Any] = EMPTY
        old, merged = base, base
        if previous is not None and table in previous.objects.tables:
            before = previous.objects.tables[table]
            old, merged = getattr(previous.base, table), getattr(previous.snapshot, table)
        gone, come = find_unlike(old, base)
        lost, won = find_unlike(before, objects)
        if not (gone or come or lost or won):
            tables[table] = merged
            continue
        draft = merged.edit()
        for key in (*gone, *lost):
            draft.pop(key, None)
        for key, one in (*come.items(), *won.items()):
            draft[key] = one
        tables[table] = draft.done()
    return msgspec.structs.replace(snapshot, **tables) if tables else snapshot
