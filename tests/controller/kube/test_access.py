"""Access: the files of a pod, kubeconfigs, and credentials that are read again."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from aiohttp import web

from controller.kube.access import AccessError, InCluster, Kubeconfig, Plain, open_access
from controller.kube.client import Kube
from controller.kube.errors import ApiError

from .script import scripted

ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A certificate in PEM."""
    folder = tmp_path_factory.mktemp("ca")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        + ["-keyout", "key", "-out", "crt", "-days", "2", "-subj", "/CN=test"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return (folder / "crt").read_text()


def account(folder: Path, authority: str, token: str = "first") -> Path:
    (folder / "ca.crt").write_text(authority)
    (folder / "namespace").write_text("mine\n")
    (folder / "token").write_text(f"{token}\n")
    return folder


async def test_a_pod_has_all_it_needs(tmp_path: Path, authority: str) -> None:
    access = InCluster(account(tmp_path, authority), ENVIRON)
    assert (access.host, access.namespace) == ("https://10.96.0.1:443", "mine")
    assert access.tls is not None
    assert await access.headers() == {"Authorization": "Bearer first"}
    (tmp_path / "token").write_text("second")
    assert await access.headers() == {"Authorization": "Bearer first"}
    assert await access.headers(fresh=True) == {"Authorization": "Bearer second"}
    (tmp_path / "token").write_text("")  # half written
    assert await access.headers(fresh=True) == {"Authorization": "Bearer second"}
    (tmp_path / "token").write_text("third")
    six = {**ENVIRON, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert InCluster(tmp_path, six).host == "https://[fd00::1]:443"


def test_outside_of_a_pod_it_says_what_is_missing(tmp_path: Path, authority: str) -> None:
    with pytest.raises(AccessError, match="KUBERNETES_SERVICE_HOST"):
        InCluster(account(tmp_path, authority), {})
    (tmp_path / "token").unlink()
    with pytest.raises(AccessError, match="token"):
        InCluster(tmp_path, ENVIRON)


class Renewing(Plain):
    """Credentials that are good once they are read anew."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.token = "old"

    async def headers(self, *, fresh: bool = False) -> Mapping[str, str]:
        if fresh:
            self.token = "new"
        return {"Authorization": f"Bearer {self.token}"}


async def test_a_refused_credential_is_read_again_once() -> None:
    seen: list[str] = []
    good = "Bearer new"

    async def serve(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers["Authorization"])
        status = 200 if seen[-1] == good else 401
        return web.json_response({"body": (await request.read()).decode()}, status=status)

    async with scripted(serve) as plain:
        host = plain._connection.access.host
        async with Kube(Renewing(host)) as kube:
            assert await kube.patch("/x", {"a": 1}) == {"body": '{"a":1}'}
            assert seen == ["Bearer old", "Bearer new"]
            good = "none"
            with pytest.raises(ApiError) as refused:
                await kube.get("/x")
            assert refused.value.status == 401 and len(seen) == 4


def kubeconfig(path: Path, **user: str) -> Path:
    context = {"cluster": "c", "user": "u", "namespace": "tools"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1/"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": context}],
    }
    path.write_text(json.dumps(content))
    return path


async def test_a_kubeconfig(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", token="abc")
    access = await open_access(file)
    assert isinstance(access, Kubeconfig)
    assert (access.host, access.namespace, access.tls) == ("http://127.0.0.1:1", "tools", None)
    assert await access.headers() == {"Authorization": "Bearer abc"}


async def test_a_token_file_of_a_kubeconfig_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    file = kubeconfig(tmp_path / "config", tokenFile=str(token))
    access = await open_access(file)
    assert await access.headers() == {"Authorization": "Bearer one"}
    token.write_text("two")
    assert await access.headers(fresh=True) == {"Authorization": "Bearer two"}


@pytest.mark.parametrize("text", ["", "nonsense: [", "{}", "[]"])
def test_what_is_no_kubeconfig(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(AccessError, match="config cannot be used"):
        asyncio.run(open_access(file))


def test_where_there_is_no_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said in these words, whichever way the file was named; of several one is enough."""
    missing = tmp_path / "config"
    with pytest.raises(AccessError, match=f"^kubeconfig {missing} not found$"):
        asyncio.run(open_access(missing))
    monkeypatch.setenv("KUBECONFIG", f"{missing}:{tmp_path / 'other'}")
    with pytest.raises(AccessError, match="^kubeconfig .* not found$"):
        asyncio.run(open_access())
    (tmp_path / "other").write_text("{}")
    with pytest.raises(AccessError, match="cannot be used"):
        asyncio.run(open_access())
