"""All objects of an installation, equal to what `helm template` makes of the chart.

In: `Install` (see `load.py`). Out: manifests in the order in which they are applied: CRDs, hooks, the rest.
Must never: read a file or a clock; two calls give the same.
"""

from __future__ import annotations

from controller.manifests.certgen import render_certgen
from controller.manifests.crds import render_crds
from controller.manifests.monitoring import render_monitoring
from controller.manifests.naming import Release
from controller.manifests.networkpolicy import render_network_policy
from controller.manifests.objects import Install, Manifest
from controller.manifests.roles import render_roles
from controller.manifests.services import render_account, render_config, render_services
from controller.manifests.workload import render_autoscaler, render_budget, render_deployment


def render_install(install: Install, *, crds: bool = True) -> tuple[Manifest, ...]:
    """Return every object of an installation."""
    return (
        *(render_crds() if crds else ()),
        *render_certgen(install),
        render_account(install),
        render_config(install),
        *render_roles(install),
        *render_services(install),
        render_deployment(install),
        *render_autoscaler(install),
        *render_budget(install),
        *render_network_policy(install),
        *render_monitoring(install),
    )


def render_namespace(release: Release) -> Manifest:
    """The release's namespace; proxies and controller meet the restricted Pod Security Standard."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": release.namespace}}
