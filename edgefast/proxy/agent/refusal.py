"""Refusal: a worker's refusal of a resource as a problem of the object behind it.

In: refusals of the worker tables.
Out: problems.
Must never: decide which version is served instead; the worker tables do.
"""

from __future__ import annotations

from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.proxy.sockets.listeners import place_listener
from edgefast.proxy.tables.worker_tables import Refusal

__all__ = ["describe_refusal"]


def describe_refusal(one: Refusal) -> Problem:
    """Name the object behind a refused resource."""
    reference: ObjectRef | None = None
    path = ""
    match one.type, one.name.split("/"):
        case "listener", _:
            reference, path = place_listener(one.name)
        case (("virtual_host" | "fragment" | "stream_route"), _):
            reference, path = place_listener(one.name.rpartition("/")[0])
        case "secret", ["secret", namespace, name]:
            reference = ObjectRef("Secret", namespace, name)
    message = f"{one.type} {one.name} was refused by a worker: {one.error}"
    return Problem(reference, path, "Invalid", message, hint="the previous version stays in use")
