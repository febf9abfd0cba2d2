"""Backend reference: policy targets that are Services, Backends or XBackends, and the Gateways that use them.

In: one target, the Gateways with rules that send to it and have units of the policy.
Out: a `Place`, as policy_target.py gives for targets above.
Source: GEP-713: a policy's ancestors are Gateways; a sectionName that does not exist attaches
nowhere.
Must never: count a Service as used only because a route names it.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.snapshot import Key
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.deps.dependency_facts import World
from edgefast.translate.deps.policy_summary import Target
from edgefast.translate.policy.missing_target import report_missing_section, report_missing_target
from edgefast.translate.status.policy_target import Place

__all__ = ["find_backend_place"]


def find_backend_place(
    target: Target, path: str, policy: ObjectRef, world: World, gateways: Iterable[Key]
) -> Place:
    """Look for a target of a policy; `path` is its field path, `gateways` have rules for which units of the policy are known."""
    kind, namespace, name, section = target
    named, snapshot = f"{kind} {namespace}/{name}", world.snapshot
    ports: tuple[str, ...] = ()
    if kind == "Service":
        service = snapshot.services.get((namespace, name))
        known = service is not None
        ports = tuple(one.name for one in service.spec.ports if one.name) if service else ()
    else:
        table = snapshot.backends if kind == "Backend" else snapshot.x_backends
        known = (namespace, name) in table
    if not known:
        return Place(missing=report_missing_target(policy, path, named), attached=False)
    if section and section not in ports:
        missing = report_missing_section(policy, path, named, section, ports, "named port")
        return Place(dict.fromkeys(gateways, ()), missing, attached=False)
    return Place(dict.fromkeys(gateways, ()))
