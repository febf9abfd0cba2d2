"""Rejected object: the other mistakes of an object of a file that decoding refused.

In: the world; its snapshot knows the valid references of such objects.
Out: a problem for each unresolved backend, as for a valid route, so that one run reports all
mistakes of an object. Few objects are refused, so each run checks all of them.
Must never: serve anything of a refused object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from edgefast.api.loaded import render_path
from edgefast.api.model.reference import BackendObjectReference
from edgefast.api.model.route_name import ROUTE_KINDS
from edgefast.diagnostics.problem import Problem
from edgefast.translate.backend.backend import resolve_backend
from edgefast.translate.deps.cluster_ref import ClusterRef, ClusterState
from edgefast.translate.deps.dependency_facts import Reader, World
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
