"""How a container is to be started: command, environment, mounts, user, from its spec and its image's entry.

In: a pod and a container spec. Out: a `Launch`; `BadConfig` when the image has no meaning here or its user is forbidden.
Source: Kubernetes API, Container (command, args), SecurityContext; a container's context wins over its pod's.
Must never: start as root what says runAsNonRoot.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster.world.node.environment import environment_of, expand, hostname_of
from cluster.world.node.process import Launch, mounts_of
from cluster.world.node.settings import find_image, read_images

if TYPE_CHECKING:
    from cluster.world.node.pod import Pod


class BadConfig(Exception):
    """A container that cannot be started until its spec or the image file changes."""


async def plan_launch(pod: Pod, spec: dict[str, Any], restarts: int) -> Launch:
    """Return what is to be started."""
    settings = pod.agent.settings
    image = find_image(read_images(Path(settings.folder) / "images.json"), spec["image"])
    if image is None:
        raise BadConfig(f'image "{spec["image"]}" stands for no command of this machine')
    env = await environment_of(
        pod.obj, spec, pod.address, pod.agent.objects, path=settings.path, image_env=image.env
    )
    entry = spec.get("command") or list(image.entrypoint)
    arguments = spec.get("args") or ([] if spec.get("command") else list(image.arguments))
    command = [expand(word, env) for word in [*entry, *arguments]]
    if not command:
        raise BadConfig(f'image "{spec["image"]}" has no command, and neither has the container')
    context = {**(pod.spec.get("securityContext") or {}), **(spec.get("securityContext") or {})}
    uid = int(context.get("runAsUser", image.user))
    if context.get("runAsNonRoot") and uid == 0:
        raise BadConfig("container has runAsNonRoot and image will run as root")
    groups = [*context.get("supplementalGroups", ())]
    if "fsGroup" in context:
        groups.append(context["fsGroup"])
    folder = pod.folder / spec["name"]
    return Launch(
        folder=folder / "box",
        log=folder / f"{restarts}.log",
        netns=pod.netns,
        hostname=hostname_of(pod.obj),
        namespace=pod.namespace,
        address=pod.address,
        command=command,
        env=env,
        cwd=spec.get("workingDir") or "/",
        mounts=mounts_of(spec, pod.volumes.ready),
        uid=uid,
        gid=int(context.get("runAsGroup", uid if uid == image.user else 0)),
        groups=groups,
        flags=_flags(context),
    )


def _flags(context: dict[str, Any]) -> str:
    dropped = (context.get("capabilities") or {}).get("drop") or []
    return "".join(
        flag
        for flag, wanted in (
            ("r", context.get("readOnlyRootFilesystem")),
            ("c", "ALL" in dropped),
            ("n", context.get("allowPrivilegeEscalation") is False),
        )
        if wanted
    )
