"""`edgefast convert`: files, standard output, reports, and a cluster."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from cli.calling import Outcome, call
from cli.fake_cluster import BASE, FakeCluster
from edgefast.api.snapshot import Snapshot
from edgefast.cli.live import Objects
from edgefast.translate.settings import IngressSettings

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/ingress.yaml"
_PREFIX = "nginx.ingress.kubernetes.io/"


def _documents(annotations: dict[str, str], controller: str = "k8s.io/ingress-nginx") -> list[Any]:
    path = {
        "path": "/",
        "pathType": "Prefix",
        "backend": {"service": {"name": "web", "port": {"number": 80}}},
    }
    return [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": "nginx"},
            "spec": {"controller": controller},
        },
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {
                "name": "web",
                "namespace": "shop",
                "annotations": {_PREFIX + key: value for key, value in annotations.items()},
            },
            "spec": {
                "ingressClassName": "nginx",
                "rules": [{"host": "a.test", "http": {"paths": [path]}}],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"ports": [{"port": 80}]},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "users", "namespace": "shop"},
            "stringData": {"auth": "anna:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="},
        },
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


def _convert(folder: Path, annotations: dict[str, str], *words: str) -> Outcome:
    (folder / "all.yaml").write_text(yaml.safe_dump_all(_documents(annotations)))
    return call("convert", "-f", str(folder), *words)


def test_the_example_converts_to_what_serves_the_same(tmp_path: Path) -> None:
    """The commands of docs/guides/ingress.md."""
    out = str(tmp_path / "out")
    done = call("convert", "-f", str(EXAMPLE), "-o", out, "--self-contained")
    assert (done.status, "0 different, 0 refused" in done.err) == (0, True)
    assert call("check", "--strict", "-f", out).status == 0
    compared = call("diff", str(EXAMPLE), out)
    assert (compared.status, compared.out) == (0, "")


def test_standard_output_is_yaml_and_the_report_is_apart(folder: Path) -> None:
    done = _convert(folder, {"rewrite-target": "/"})
    assert done.status == 0
    kinds = [one["kind"] for one in yaml.safe_load_all(done.out)]
    assert kinds[:3] == ["GatewayClass", "EdgeProxy", "Gateway"]
    assert kinds[-1] == "HTTPRoute"
    assert "shop/web  rewrite-target  same" in done.err
    assert "1 Ingress converted to" in done.err


def test_a_secret_is_not_printed(folder: Path) -> None:
    auth = {"auth-type": "basic", "auth-secret": "users"}
    done = _convert(folder, auth)
    assert "Secret shop/users-htpasswd: not printed" in done.err
    assert "kind: Secret" not in done.out
    assert "W6ph5Mm5" not in done.out + done.err


def test_a_file_with_a_secret_is_for_its_owner(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _convert(folder, {"auth-type": "basic", "auth-secret": "users"}, "-o", str(out))
    assert sorted(one.name for one in out.iterdir()) == [
        "gateway.yaml",
        "namespace-shop.yaml",
        "shop.web.yaml",
    ]
    assert stat.S_IMODE((out / "namespace-shop.yaml").stat().st_mode) == 0o600


def test_no_file_is_overwritten(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert _convert(folder, {}, "-o", str(out)).status == 0
    before = {one.name: one.read_text() for one in out.iterdir()}
    again = _convert(folder, {"rewrite-target": "/"}, "-o", str(out))
    assert (again.status, "overwrites no file" in again.err) == (2, True)
    assert {one.name: one.read_text() for one in out.iterdir()} == before


def test_a_refused_annotation_is_an_exit_status(folder: Path) -> None:
    done = _convert(folder, {"app-root": "/$x"})
    assert (done.status, "1 refused" in done.err) == (1, True)


def test_an_ingress_that_is_not_served_is_refused(folder: Path) -> None:
    done = _convert(folder, {"configuration-snippet": "return 200;", "affinity": "cookie"})
    assert (done.status, "0 settings the same, 0 different, 2 refused" in done.err) == (1, True)
    assert "needs annotations-risk-level Critical" in done.err


def test_nothing_converted_is_an_exit_status(folder: Path) -> None:
    done = _convert(folder, {}, "--ingress-class", "internal")
    assert (done.status, done.out, "--ingress-class NAME" in done.err) == (1, "", True)


def test_files_without_ingresses(tmp_path: Path) -> None:
    file = tmp_path / "service.yaml"
    file.write_text(yaml.safe_dump(_documents({})[2]))
    done = call("convert", "-f", str(file))
    assert (done.status, "no Ingress found" in done.err) == (1, True)


def test_the_defaults_of_ingress_nginx_are_reported(folder: Path) -> None:
    done = _convert(folder, {})
    assert "no ConfigMap of ingress-nginx found: its defaults apply" in done.err
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "ingress-nginx-controller", "namespace": "ingress-nginx"},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    assert "no ConfigMap" not in _convert(folder, {}).err


def test_a_missing_config_map_is_wrong_usage(folder: Path, tmp_path: Path) -> None:
    """All locations would answer 503."""
    out = tmp_path / "out"
    done = _convert(folder, {}, "--ingress-config", "a/b", "-o", str(out))
    assert (done.status, "ConfigMap a/b not found" in done.err) == (2, True)
    assert not out.exists()


def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    out = folder / "all.yaml" / "out"
    assert _convert(folder, {}, "-o", str(out)).status == 2


def test_the_report_as_json(folder: Path, tmp_path: Path) -> None:
    done = _convert(folder, {"affinity": "cookie"}, "-o", str(tmp_path / "o"), "--report", "json")
    found = orjson.loads(done.out)
    assert found["results"] == {"same": 1, "differs": 1, "refused": 0}
    assert found["lines"][1] == {
        "object": "Ingress shop/web",
        "setting": "affinity",
        "result": "differs",
        "how": "the cookie has another value; each client gets one new session",
        "fix": "",
    }


def test_the_report_as_markdown(folder: Path, tmp_path: Path) -> None:
    words = ("-o", str(tmp_path / "o"), "--report", "markdown")
    lines = _convert(folder, {"rewrite-target": "/"}, *words).out.splitlines()
    assert lines[:2] == ["| Ingress | setting | result | how |", "|---|---|---|---|"]
    assert "| shop/web | rewrite-target | same | |" in lines


def test_the_gateway_has_a_name(folder: Path) -> None:
    documents = list(yaml.safe_load_all(_convert(folder, {}, "--gateway", "infra/edge").out))
    assert documents[1]["metadata"] == {"name": "edge", "namespace": "infra"}
    route = documents[-1]["spec"]["parentRefs"]
    assert route == [{"namespace": "infra", "name": "edge", "sectionName": "http"}]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "pass -f FILE"),
        (("--live", "-f", str(EXAMPLE)), "--live cannot be used with files"),
        (("-f", str(EXAMPLE), "--self-contained"), "requires -f and -o"),
        (("-f", str(EXAMPLE), "--context", "a"), "only with --live"),
        (("-f", str(EXAMPLE), "--gateway", "edge"), "expected NAMESPACE/NAME"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], why: str) -> None:
    done = call("convert", *words)
    assert (done.status, why in done.err) == (2, True)


def test_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Secrets and ConfigMaps of Ingresses are asked for with the classes that are converted."""
    annotations = {"auth-type": "basic", "auth-secret": "users"}
    cluster = _Cluster(tmp_path, [*BASE[:1], *_documents(annotations)])
    monkeypatch.setattr("edgefast.cli.convert.open_cluster", lambda where: cluster)
    out = tmp_path / "out"
    done = call("convert", "--live", "-o", str(out))
    assert done.status == 0, done.err
    assert "no ConfigMap of ingress-nginx found" in done.err
    assert "name: users-htpasswd" in (out / "namespace-shop.yaml").read_text()
    (asked,) = cluster.asked
    assert asked.enabled and "k8s.io/ingress-nginx" in asked.controllers
    assert cluster.closed == 1


class _Cluster(FakeCluster):
    """A cluster that notes the settings with which it is completed."""

    def __init__(self, folder: Path, documents: list[Any]) -> None:
        super().__init__(folder, documents)
        self.asked: list[IngressSettings] = []

    def complete(self, objects: Objects, snapshot: Snapshot) -> Objects:
        self.asked.append(objects.settings.ingress)
        return super().complete(objects, snapshot)
