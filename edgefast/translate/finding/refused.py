"""Refused objects: what else is wrong with an object of a file that decoding has refused.

In: the world, whose snapshot knows the sound references of such objects. Out: a problem for each backend
that cannot be resolved, as a sound route would have it, so that all mistakes of an object are told at
once. Few objects are refused, so all are looked at each time.
Must never: bring anything of a refused object into service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from edgefast.problem import Problem
from edgefast.resources.loaded import render_path
from edgefast.resources.model.reference import BackendObjectReference
from edgefast.resources.model.routename import ROUTE_KINDS
from edgefast.translate.backend.backend import resolve_backend
from edgefast.translate.facts.clusterref import ClusterRef, ClusterState
from edgefast.translate.facts.facts import Reader, World
from edgefast.translate.report.report import Report


def check_references(
    world: World, clusters: Callable[[ClusterRef], ClusterState]
) -> Iterator[Problem]:
    """Report the backends of refused routes that lead nowhere."""
    for (kind, namespace, _), refused in world.snapshot.refused.items():
        if kind not in ROUTE_KINDS:
            continue
        for path, ref in refused.references:
            if isinstance(ref, BackendObjectReference):
                report = Report(refused.ref)
                reader = Reader(world, clusters)
                resolve_backend(ref, namespace, "", reader, report, render_path(path), kind=kind)
                for problem in report.problems:
                    source = refused.source_at(path)
                    yield msgspec.structs.replace(problem, source=source)
