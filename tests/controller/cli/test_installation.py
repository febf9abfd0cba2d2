"""Which controller a command speaks of, and what stands in for Secrets that may not be read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from controller.cli.installation import Installation, InstallationError, find_installation
from controller.cli.placeholder import make_placeholder
from controller.kube.errors import ApiError
from edgefast.api.core.configmap import ConfigMap
from edgefast.api.snapshot import Snapshot
from edgefast.translate.settings import Settings
from edgefast.translate.tls.certificate import check_bundle, parse_pair
from tests.controller.kube.script import failure, page, scripted

pytestmark = pytest.mark.pure

TEXT = """apiVersion: config.gateway.edge.io/v1alpha1
kind: EdgeGateway
gateway: {controllerName: example.com/x}
"""


def config_map(namespace: str, name: str, release: str = "edge-gateway", text: str = TEXT) -> Any:
    labels = {"app.kubernetes.io/instance": release, "app.kubernetes.io/name": "edge-gateway"}
    return {
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "data": {"edge-gateway.yaml": text},
    }


def find(*there: Any, name: str = "", file: Path | None = None, status: int = 404) -> Installation:
    async def handler(request: web.Request) -> web.Response:
        if request.path == "/api/v1/configmaps":
            return page(1, *there)
        for one in there:
            meta = one["metadata"]
            if request.path == f"/api/v1/namespaces/{meta['namespace']}/configmaps/{meta['name']}":
                return web.json_response(one)
        return failure(status, "NotFound" if status == 404 else "Forbidden")

    async def work() -> Installation:
        async with scripted(handler) as kube:
            return await find_installation(kube, name, file)

    return asyncio.run(work())


DEFAULT = config_map("edge-gateway-system", "edge-gateway-config")
TENANT = config_map("shop", "tenant-edge-gateway-config", "tenant")


def test_the_default_release_comes_first() -> None:
    found = find(TENANT, DEFAULT)
    assert found.namespace == "edge-gateway-system"
    assert found.source == "ConfigMap edge-gateway-system/edge-gateway-config"
    assert found.config.gateway.controller_name == "example.com/x"


def test_the_only_one_is_found_wherever_it_is() -> None:
    assert find(TENANT).namespace == "shop"


def test_of_several_one_must_be_named() -> None:
    other = config_map("blog", "edge-gateway-config")
    with pytest.raises(InstallationError, match="one of blog/edge-gateway, shop/tenant"):
        find(TENANT, other)
    assert find(TENANT, other, name="shop/tenant").namespace == "shop"
    assert find(TENANT, other, name="blog").namespace == "blog"
    with pytest.raises(
        InstallationError, match="ConfigMap edge-gateway-config not found in namespace shop"
    ):
        find(TENANT, other, name="shop")
    with pytest.raises(InstallationError, match="no controller is installed"):
        find()


def test_nothing_is_assumed_of_one_that_cannot_be_read() -> None:
    with pytest.raises(ApiError):
        find(status=403)
    wrong = config_map("edge-gateway-system", "edge-gateway-config", text=TEXT + "nonsense: 1\n")
    with pytest.raises(
        InstallationError, match="edge-gateway.yaml:4.*uses its previous configuration"
    ):
        find(wrong)


def test_a_file_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(TEXT)
    found = find(file=path, name="shop/tenant", status=403)
    assert (found.namespace, found.source) == ("shop", str(path))
    with pytest.raises(InstallationError, match="cannot be read"):
        find(file=tmp_path / "none")


def test_a_stand_in_is_sound() -> None:
    secret = make_placeholder(("Secret", "shop", "cert"), Settings())
    assert not isinstance(secret, ConfigMap) and secret.type == "kubernetes.io/tls"
    chain, key, bundle = (secret.value(one) for one in ("tls.crt", "tls.key", "ca.crt"))
    assert chain and key and bundle
    assert not isinstance(parse_pair(chain, key), str)
    assert not check_bundle(bundle)
    held = make_placeholder(("ConfigMap", "shop", "ca"), Settings())
    wide = make_placeholder(("ClusterTrustBundle", "", "example.com:internal:v1"), Settings())
    snapshot = Snapshot().replace(changed=[secret, held, wide])
    assert snapshot.cluster_trust_bundles.keys() == {("", "example.com:internal:v1")}
    (bundle,) = (one.spec.trust_bundle for one in snapshot.cluster_trust_bundles.values())
    assert not check_bundle(bundle.encode())
    assert snapshot.secrets.keys() == {("shop", "cert")}
    assert snapshot.config_maps.keys() == {("shop", "ca")}
