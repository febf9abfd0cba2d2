"""render_fleet: all objects of one fleet, in the order in which they are to be made.

In: a fleet and the placement. Out: manifests as plain values, the same for the same input. The client certificate's
Secret is made by controller/certs, since keys come by chance; `metadata.adopt` makes it the fleet's.
Source: spec section 2 (generated data plane resources).
Must never: do I/O or change its input.
"""

from __future__ import annotations

from controller.infra.autoscaler import render_hpa
from controller.infra.configmap import render_config_map
from controller.infra.disruptionbudget import render_pdb
from controller.infra.placement import Manifest, Placement
from controller.infra.service import render_service
from controller.infra.serviceaccount import render_service_account
from controller.infra.workload import render_workload
from edgefast import ir


def render_fleet(infra: ir.Infra, place: Placement) -> tuple[Manifest, ...]:
    """Return the manifests of a fleet; what a pod needs to start comes before the workload."""
    manifests = [
        render_service_account(infra, place),
        render_config_map(infra, place),
        render_service(infra, place),
        render_workload(infra, place),
    ]
    if infra.hpa is not None:
        manifests.append(render_hpa(infra, place, infra.hpa))
    if infra.pdb is not None:
        manifests.append(render_pdb(infra, place, infra.pdb))
    return tuple(manifests)
