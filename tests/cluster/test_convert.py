"""Converted Ingresses: an API server with all CRDs accepts every object, and `edgefast convert --live` reads a cluster without edgefast."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cli.calling import call
from cluster.world.api import PATCHES
from cluster.world.apiserver import ApiServer
from ingress.generate import Generator
from ingress.nginx_servers import without_duplicates
from tests.convert.documents import SERVICE, ingress
from tests.convert.round_trip import GATEWAY, convert_objects

_SPACES = ("shop", "web", "ingress-nginx", GATEWAY[0])
#: Fields that the API does not know are errors, and nothing is kept.
_STRICT = {
    "fieldManager": "test",
    "force": "true",
    "fieldValidation": "Strict",
    "dryRun": "All",
}


@pytest.fixture(scope="module")
def server(apiserver: ApiServer) -> ApiServer:
    for name in _SPACES:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        if apiserver.admin.find(f"/api/v1/namespaces/{name}") is None:
            apiserver.admin.create(namespace)
    return apiserver


@pytest.mark.parametrize("standard", [False, True], ids=["edgefast", "standard"])
def test_an_api_server_accepts_the_output(server: ApiServer, standard: bool) -> None:
    admin = server.admin
    for seed in range(30):
        objects = without_duplicates(Generator(seed).objects())
        for document in yaml.safe_load_all(convert_objects(objects, standard=standard).text):
            body = json.dumps(document).encode()
            path = admin.path_of(document)
            admin.request("PATCH", path, body, content_type=PATCHES["apply"], query=_STRICT)


def test_a_cluster_without_edgefast_is_converted(server: ApiServer, tmp_path: Path) -> None:
    auth = {"auth-type": "basic", "auth-secret": "users", "proxy-body-size": "8m"}
    kinds = ("IngressClass", "Secret", "Service")
    documents = [one for one in SERVICE if one["kind"] in kinds]
    documents = [one for one in documents if one["metadata"].get("namespace") in (None, "shop")]
    made = [*documents, ingress("/", auth, tls="exact")]
    server.admin.apply(*made)
    try:
        out = tmp_path / "out"
        words = ("--kubeconfig", str(server.kubeconfig), "-o", str(out))
        done = call("convert", "--live", *words)
        assert (done.status, "0 refused" in done.err) == (0, True), done.err
        assert "https.a.test" in (out / "gateway.yaml").read_text()
        assert "users-htpasswd" in (out / "shop.one.yaml").read_text()
    finally:
        server.admin.remove(*made)
