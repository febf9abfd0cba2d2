"""Installing CRDs: those of the Gateway API release and our own, and waiting until they are served.

In: an admin `Api`. Out: every kind usable. Our own come from the chart in controller/manifests, so that what is tested is
what is installed.
Must never: return before the API server accepts objects of the kinds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from cluster.tools.crds import gateway_api_crds
from cluster.world.api import Api, ApiError, read_manifests
from cluster.world.folder import PROJECT

OWN = PROJECT / "controller" / "manifests" / "chart" / "crds"

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def install_gateway_api(api: Api, channel: str = "experimental") -> None:
    """Install the Gateway API of one channel."""
    install(api, gateway_api_crds(channel))


def wait_gateway_api(api: Api, channel: str = "experimental") -> None:
    """Wait until the Gateway API of one channel, installed before, is served."""
    wait_served(api, _names(gateway_api_crds(channel)))


def install_own(api: Api) -> None:
    """Install our own CRDs."""
    install(api, own_crds())


def own_crds() -> list[dict[str, Any]]:
    """Return our own CRDs."""
    files = sorted(OWN.glob("*.yaml"))
    if not files:
        raise FileNotFoundError(f"no CRDs in {OWN}")
    return [dict(one) for one in read_manifests(files)]


def install(api: Api, documents: Iterable[dict[str, Any]]) -> None:
    """Create what is not there yet, and wait for the kinds."""
    documents = list(documents)
    for document in documents:
        try:
            api.create(document)
        except ApiError as error:
            if error.status != 409:
                raise
    wait_served(api, _names(documents))


def wait_served(api: Api, names: Iterable[str], seconds: float = 60.0) -> None:
    """Wait until CRDs are established and every served version of theirs can be listed."""
    for name in names:
        found = api.wait(f"{_DEFINITIONS}/{name}", _established, seconds)
        spec = found["spec"]
        for version in spec["versions"]:
            if version["served"]:
                path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
                _wait_list(api, path, seconds)


def _names(documents: Iterable[dict[str, Any]]) -> list[str]:
    crds = (one for one in documents if one["kind"] == "CustomResourceDefinition")
    return [str(one["metadata"]["name"]) for one in crds]


def _established(found: Any) -> bool:
    conditions = (found or {}).get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _wait_list(api: Api, path: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            api.get(path, limit="1")
            return
        except ApiError as error:
            if error.status != 404 or time.monotonic() > deadline:
                raise TimeoutError(json.dumps([path, str(error)])) from error
            time.sleep(0.02)
