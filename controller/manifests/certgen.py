"""The Job that creates the first certificates, with its permissions: hooks before an installation or an upgrade.

In: `Install`.
Out: objects with helm's hook annotations; `edgefast install` runs them first as well.
Must never: replace existing certificates without certgen.overwrite.
"""

from __future__ import annotations

from controller.manifests.objects import (
    Install,
    Manifest,
    container_security,
    environment,
    labels,
    metadata,
    pod_security,
    reference,
)
from controller.manifests.rbac import CERTGEN
from controller.manifests.workload import place, plain

HOOK = "helm.sh/hook"


def _hook(weight: int, annotations: dict[str, str] | None = None) -> dict[str, str]:
    return {
        **(annotations or {}),
        HOOK: "pre-install,pre-upgrade",
        "helm.sh/hook-weight": str(weight),
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    }


def render_certgen(install: Install) -> list[Manifest]:
    """ServiceAccount, Role, RoleBinding and Job, in the order in which they are needed."""
    release = install.release
    name = release.certgen
    subject = {"kind": "ServiceAccount", "name": name, "namespace": release.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata(release, name, _hook(-3)),
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": metadata(release, name, _hook(-3)),
            "rules": [one.rule(release.base) for one in CERTGEN.grants],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": metadata(release, name, _hook(-2)),
            "roleRef": role,
            "subjects": [subject],
        },
        _job(install),
    ]


def _job(install: Install) -> Manifest:
    release, values = install.release, install.values.certgen
    deployment = install.values.deployment
    arguments = [
        "certgen",
        "--namespace=$(POD_NAMESPACE)",
        f"--name={release.base}",
        f"--cluster-domain={install.values.kubernetes_cluster_domain}",
    ]
    if values.overwrite:
        arguments.append("--overwrite")
    container: Manifest = {
        "name": "certgen",
        "image": reference(deployment.edge_gateway.image),
        "imagePullPolicy": deployment.edge_gateway.image_pull_policy,
        "args": arguments,
        "env": [*environment(), *plain(deployment.edge_gateway.env)],
        "resources": plain(values.resources),
        "securityContext": container_security(),
    }
    pod: Manifest = {
        "serviceAccountName": release.certgen,
        "securityContext": pod_security(),
        "restartPolicy": "Never",
        "containers": [container],
    }
    where = place(deployment.pod, {})
    for name in ("affinity", "topologySpreadConstraints"):  # they are about the controller's pods
        where.pop(name, None)
    if deployment.image_pull_secrets:
        pod["imagePullSecrets"] = plain(deployment.image_pull_secrets)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(release, release.certgen, _hook(-1, values.annotations)),
        "spec": {
            "backoffLimit": 3,
            "ttlSecondsAfterFinished": values.ttl_seconds_after_finished,
            "template": {
                "metadata": {
                    "labels": {**labels(release), "app.kubernetes.io/component": "certgen"}
                },
                "spec": {**pod, **where},
            },
        },
    }
