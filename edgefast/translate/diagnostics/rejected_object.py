"""Refused objects: what else is wrong with an object of a file that decoding has refused.

In: the world, whose snapshot knows the sound references of such objects. Out: a problem for each backend
that cannot be resolved, as a sound route would have it, so that all mistakes of an object are told at
once. Few objects are refused, so all are looked at each time.
Must never: bring anything of a refused object into service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from edgefast.api.loaded import render_path
from edgefast.api.model.reference import BackendObjectReference
from edgefast.api.model.routename import ROUTE_KINDS
from edgefast.diagnostics.problem import Problem
from edgefast.translate.backend.backend import resolve_backend
from edgefast.translate.deps.clusterref import ClusterRef, ClusterState
from edgefast.translate.deps.world import Reader, World
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
