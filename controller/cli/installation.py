"""Installation: the controller of a command, and its configuration, from the mounted ConfigMap.

In: an API server; "NAMESPACE[/RELEASE]" or nothing; a file instead of the ConfigMap.
Out: `Installation`. Without a name, the default release is used, else the only one that exists.
Must never: use defaults when the configuration exists but cannot be read; the output would describe
another controller.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from controller.kube.apis import APIS
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from controller.manifests.naming import CONFIG_KEY, DEFAULT_RELEASE, Release
from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.api.decode.decode import decode_config
from edgefast.diagnostics.problem import Problem

__all__ = ["Installation", "InstallationError", "find_installation"]

_CONFIG_MAP = APIS["v1", "ConfigMap"]
_LABELS = "app.kubernetes.io/name=edge-gateway"


class InstallationError(Exception):
    """There is no controller to speak of, or its configuration cannot be used; the text says what to do."""


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """One controller."""

    namespace: str
    config: EdgeGateway
    source: str  # where the configuration is from


async def find_installation(
    kube: Kube, name: str = "", file: Path | None = None, *, optional: bool = False
) -> Installation:
    """Find a controller and read its configuration; ApiError when the server refuses.

    `optional`: without a controller in the cluster, return the default configuration.
    """
    namespace, _, release = name.partition("/")
    try:
        wanted = Release(release or DEFAULT_RELEASE, namespace) if namespace else Release()
    except ValueError as error:
        raise InstallationError(f"--controller {name[:100]}: {error}") from None
    if file is not None:
        return Installation(
            namespace=wanted.namespace, config=_decode(_read(file), str(file)), source=str(file)
        )
    key = (wanted.namespace, wanted.config)
    try:
        found = await kube.get(_CONFIG_MAP.path(*key))
    except ApiError as error:
        if not error.not_found:
            raise
        if name:
            raise InstallationError(
                f"ConfigMap {wanted.config} not found in namespace {wanted.namespace}; pass "
                "--controller NAMESPACE[/RELEASE] or --config FILE"
            ) from None
        only = await _find_only(kube, optional=optional)
        if only is None:
            return Installation(namespace=wanted.namespace, config=EdgeGateway(), source="defaults")
        found = only
    meta = found["metadata"]
    source = f"ConfigMap {meta['namespace']}/{meta['name']}"
    text = (found.get("data") or {}).get(CONFIG_KEY, "")
    return Installation(
        namespace=meta["namespace"],
        config=_decode(text.encode(), f"{source} {CONFIG_KEY}"),
        source=source,
    )


async def _find_only(kube: Kube, *, optional: bool) -> dict[str, object] | None:
    """Return the ConfigMap of the only release in the cluster; with `optional`, None without a release."""
    listed = await kube.list_all(_CONFIG_MAP, label_selector=_LABELS)
    found = [one for one in listed if CONFIG_KEY in (one.get("data") or {})]
    if len(found) == 1:
        return dict(found[0])
    names = ", ".join(
        f"{one['metadata']['namespace']}/{_release_of(one)}"
        for one in sorted(
            found, key=lambda one: (one["metadata"]["namespace"], one["metadata"]["name"])
        )
    )
    if names:
        raise InstallationError(
            f"the cluster has several controllers; pass --controller with one of {names}"
        )
    if optional:
        return None
    raise InstallationError(
        "no controller is installed in this cluster (--controller NAMESPACE[/RELEASE], or --config FILE)"
    )


def _release_of(config_map: dict[str, dict[str, dict[str, str]]]) -> str:
    labels = config_map["metadata"].get("labels") or {}
    return labels.get("app.kubernetes.io/instance", DEFAULT_RELEASE)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InstallationError(f"{file} cannot be read: {error.strerror or error}") from None


def _decode(text: bytes, source: str) -> EdgeGateway:
    config, problems = decode_config(text, source)
    if config is None:
        raise InstallationError(_write_message(problems))
    return config


def _write_message(problems: tuple[Problem, ...]) -> str:
    message = "; ".join(one.line() for one in problems)
    return f"{message} (the controller uses its previous configuration, which is unknown here)"
