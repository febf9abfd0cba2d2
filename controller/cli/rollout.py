"""Rollout: applies an installation to a cluster: CRDs, certificates, then the rest; removes objects of an older one.

In: manifests, a kubeconfig.
Out: objects by server-side apply with field manager "edgefast"; a line per step.
Must never: touch a release that helm manages, or an object without the release's label.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from controller.kube.access import AccessError
from controller.kube.apis import Api, api_of
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from controller.manifests.certgen import HOOK
from controller.manifests.monitoring import OPERATOR
from controller.manifests.naming import Release
from controller.manifests.objects import RELEASE_NAMESPACE, Install, Manifest
from controller.manifests.render import render_namespace

MANAGER = "edgefast"
_POLL = 0.25  # seconds
Say = Callable[[str], None]
Key = tuple[str, str, str]  # kind, namespace, name

#: Kinds of a release, in the order in which they are removed.
KINDS = tuple(
    api_of(version, kind)
    for version, kind in (
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("policy/v1", "PodDisruptionBudget"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("apps/v1", "Deployment"),
        ("batch/v1", "Job"),
        ("v1", "Service"),
        ("v1", "ConfigMap"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("v1", "ServiceAccount"),
    )
)
#: Kinds that only some clusters have.
_OPTIONAL = tuple(
    api_of(OPERATOR, kind) for kind in ("PrometheusRule", "ServiceMonitor", "PodMonitor")
)
_GATEWAY_CRD = "gateways.gateway.networking.k8s.io"


class Refused(Exception):
    """The installation cannot go on; its text says why."""


async def roll_out(
    install: Install,
    manifests: Sequence[Manifest],
    kubeconfig: Path | None,
    context: str | None,
    seconds: float,
    say: Say,
) -> None:
    """Apply an installation and wait until its controller is ready. Refused when the cluster says no."""
    async with opened(kubeconfig, context) as kube:
        await check_helm(kube, install.release)
        await _check_gateway_api(kube, say)
        crds = [one for one in manifests if one["kind"] == "CustomResourceDefinition"]
        hooks = [one for one in manifests if HOOK in one["metadata"].get("annotations", {})]
        rest = [one for one in manifests if one not in crds and one not in hooks]
        await _apply(kube, [render_namespace(install.release), *crds])
        for crd in crds:
            await _until(kube, crd, _is_established, seconds)
        say(f"applied: {len(crds)} CRDs")
        await _run_hooks(kube, hooks, seconds)
        say("certificates exist")
        await _apply(kube, rest)
        gone = await remove(kube, install.release, {_key(one) for one in rest})
        say(f"applied: {len(rest)} objects" + (f", removed: {gone}" if gone else ""))
        (deployment,) = (one for one in rest if one["kind"] == "Deployment")
        await _until(kube, deployment, _is_rolled_out, seconds)


@contextlib.asynccontextmanager
async def opened(kubeconfig: Path | None, context: str | None) -> AsyncIterator[Kube]:
    """Connect to the cluster for a while; what it refuses becomes Refused."""
    try:
        async with await Kube.open(kubeconfig, context) as kube:
            yield kube
    except (AccessError, ApiError) as error:
        raise Refused(str(error)) from error


async def remove(kube: Kube, release: Release, keep: Iterable[Key] = ()) -> int:
    """Remove every object labelled as the release's but those to keep; return how many there were."""
    selector = (
        f"app.kubernetes.io/name=edge-gateway,app.kubernetes.io/instance={release.name},"
        f"{RELEASE_NAMESPACE}={release.namespace}"
    )
    kept = set(keep)
    gone = 0
    for api in (*_OPTIONAL, *KINDS):
        try:
            listed = await kube.list_all(api, label_selector=selector)
        except ApiError as error:
            if api in _OPTIONAL and (error.not_found or error.forbidden):
                continue  # forbidden: whoever may not look has made none
            raise
        for found in listed:
            meta = found["metadata"]
            namespace = meta.get("namespace", "")
            if (api.kind, namespace, meta["name"]) not in kept:
                gone += await kube.delete(api.path(namespace, meta["name"]), uid=meta["uid"])
    return gone


async def _apply(kube: Kube, manifests: Iterable[Manifest]) -> None:
    for one in manifests:
        try:
            await kube.apply(one, MANAGER, force=True)
        except ApiError as error:
            missing = error.not_found and one["apiVersion"] == OPERATOR
            why = "the Prometheus operator is not installed in this cluster" if missing else error
            raise Refused(f"{one['kind']} {one['metadata']['name']}: {why}") from error


async def _run_hooks(kube: Kube, hooks: Sequence[Manifest], seconds: float) -> None:
    """What helm does with them: removed if there, made, waited for, removed."""
    jobs = [one for one in hooks if one["kind"] == "Job"]
    for job in jobs:  # a Job cannot be changed
        await _remove(kube, job, seconds)
    await _apply(kube, hooks)
    for job in jobs:
        done = await _until(kube, job, _is_over, seconds)
        if _condition(done, "Failed"):
            raise Refused(
                f"the Job {job['metadata']['name']} failed: kubectl -n {job['metadata']['namespace']} "
                f"logs job/{job['metadata']['name']}"
            )
    for one in reversed(hooks):
        await kube.delete(_api(one).path_of(one))


async def _remove(kube: Kube, manifest: Manifest, seconds: float) -> None:
    path = _api(manifest).path_of(manifest)
    if await kube.delete(path):
        await _wait(lambda: _is_gone(kube, path), seconds, f"{path} was not deleted")


async def _is_gone(kube: Kube, path: str) -> bool | None:
    try:
        await kube.get(path)
    except ApiError as error:
        if error.not_found:
            return True
        raise
    return None


async def _until(
    kube: Kube, manifest: Manifest, done: Callable[[Any], bool], seconds: float
) -> Any:
    """Wait until an object is as wanted, and return it."""
    path = _api(manifest).path_of(manifest)

    async def look() -> Any | None:
        found = await kube.get(path)
        return found if done(found) else None

    meta = manifest["metadata"]
    return await _wait(look, seconds, f"{manifest['kind']} {meta['name']} is not ready")


async def _wait(look: Callable[[], Awaitable[Any]], seconds: float, otherwise: str) -> Any:
    try:
        async with asyncio.timeout(seconds):
            while True:
                found = await look()
                if found is not None:
                    return found
                await asyncio.sleep(_POLL)
    except TimeoutError:
        raise Refused(f"{otherwise} after {seconds:g} s") from None


def _api(manifest: Manifest) -> Api:
    return api_of(manifest["apiVersion"], manifest["kind"])


def _key(manifest: Manifest) -> Key:
    meta = manifest["metadata"]
    return manifest["kind"], meta.get("namespace", ""), meta["name"]


def _condition(found: Any, name: str) -> bool:
    conditions = found.get("status", {}).get("conditions") or ()
    return any(one["type"] == name and one["status"] == "True" for one in conditions)


def _is_established(found: Any) -> bool:
    return _condition(found, "Established")


def _is_over(found: Any) -> bool:
    return _condition(found, "Complete") or _condition(found, "Failed")


def _is_rolled_out(found: Any) -> bool:
    """As `kubectl rollout status` judges."""
    status = found.get("status", {})
    if status.get("observedGeneration", 0) < found["metadata"]["generation"]:
        return False
    updated = int(status.get("updatedReplicas", 0))
    return updated >= int(found["spec"].get("replicas", 1)) and int(
        status.get("replicas", 0)
    ) <= updated <= int(status.get("availableReplicas", 0))


async def check_helm(kube: Kube, release: Release) -> None:
    """Refuse a release that helm manages."""
    path = api_of("apps/v1", "Deployment").path(release.namespace, release.base)
    try:
        found = await kube.get(path)
    except ApiError as error:
        if error.not_found:
            return
        raise
    if "meta.helm.sh/release-name" in found["metadata"].get("annotations", {}):
        raise Refused(f"release {release.name} is managed by helm; use helm")


async def _check_gateway_api(kube: Kube, say: Say) -> None:
    crd = api_of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    try:
        await kube.read(crd.path(name=_GATEWAY_CRD), metadata_only=True)
    except ApiError as error:
        if not error.not_found:
            raise
        say("the Gateway API is not installed in this cluster yet; see edgefast docs kubernetes")
