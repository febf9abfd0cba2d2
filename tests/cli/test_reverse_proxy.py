"""`edgefast run --to`: the objects that it makes, and the message for each wrong value."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from cli.calling import Outcome, call
from edgefast.httpd.address import EVERYWHERE, Address
from edgefast.ir import Fleet
from edgefast.providers.document import Document
from edgefast.providers.files import FileSource
from edgefast.providers.reverseproxy import FilePair, ReverseProxy, parse_target
from edgefast.table import compile_fleet
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import settings_from
from wire.harness.certificates import Authority

pytestmark = pytest.mark.pure

TWO = ("--to", "localhost:3000", "--to", "http://[2001:db8::1]")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a certificate, its key and an authority, which is the working folder."""
    authority = Authority()
    pair = authority.issue(["shop.example.com"])
    (tmp_path / "cert.pem").write_bytes(pair.certificate)
    (tmp_path / "key.pem").write_bytes(pair.key)
    (tmp_path / "other.pem").write_bytes(authority.issue(["other.example.com"]).key)
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def show(*arguments: str) -> Outcome:
    return call("run", *arguments, "--print")


def compile_files(paths: list[Path], *documents: Document) -> tuple[Fleet, str]:
    """Return the fleet, and the version of its table; every object has to be valid."""
    reading = FileSource(paths, documents=documents).read()
    assert not reading.problems
    translation = translate(reading.snapshot, settings_from(None, now=0))
    assert not [one for one in translation.problems if one.severity == "error"]
    (fleet,) = translation.ir.fleets
    replace = msgspec.structs.replace
    hosts = tuple(
        # The file of a route appears in `edgefast explain`, and nowhere else.
        replace(host, rules=tuple(replace(rule, source="") for rule in host.rules))
        for host in fleet.virtual_hosts
    )
    return fleet, compile_fleet(replace(fleet, virtual_hosts=hosts)).version


def start(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Document:
    """Return what the proxy would serve; it is not started."""
    made: list[Document] = []

    async def serve(source: FileSource, *_: object, **__: object) -> None:
        made.extend(source._documents.values())

    monkeypatch.setattr("edgefast.cli.run._serve", serve)
    monkeypatch.setattr("edgefast.cli.run.start_logging", lambda _: None)
    outcome = call("run", *arguments)
    assert outcome.status == 0, outcome.err
    return made[0]


def test_the_class_has_the_controller_name_of_the_configuration(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "apiVersion: config.gateway.edge.io/v1alpha1\nkind: EdgeGateway\n"
    (folder / "config.yaml").write_text(head + "gateway: {controllerName: example.com/mine}\n")
    made = start(monkeypatch, "--to", ":3000", "--config", "config.yaml")
    assert b"controllerName: example.com/mine\n" in made.read()


def test_the_objects_of_two_targets() -> None:
    outcome = show(*TWO, "--host", "Shop.example.com", "--listen", "127.0.0.1:8081")
    assert (outcome.status, outcome.err) == (0, "")
    assert (
        outcome.out
        == """\
# Written by edgefast run --print. Serve it with edgefast run -f FILE.
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata:
  name: edge
spec:
  controllerName: gateway.edge.io/gatewayclass-controller
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: edge
  namespace: default
spec:
  gatewayClassName: edge
  addresses:
  - type: IPAddress
    value: 127.0.0.1
  listeners:
  - name: http
    protocol: HTTP
    port: 8081
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: edge
  namespace: default
spec:
  parentRefs:
  - name: edge
  hostnames:
  - shop.example.com
  rules:
  - backendRefs:
    - group: gateway.edge.io
      kind: Backend
      name: backend
---
apiVersion: gateway.edge.io/v1alpha1
kind: Backend
metadata:
  name: backend
  namespace: default
spec:
  endpoints:
  - ip:
      address: 127.0.0.1
      port: 3000
  - ip:
      address: 2001:db8::1
      port: 80
"""
    )


@pytest.mark.parametrize(
    "arguments",
    [
        TWO,
        (*TWO, "--host", "*.example.com", "--host", "example.com", "--listen", "127.0.0.1:8081"),
        ("--to", "unix:/run/app.sock", "--to", ":3000"),
        ("--to", "https://a.example.com", "--to", "https://b.example.com:8443", "--rewrite-host"),
        ("--to", "https://192.0.2.1", "--to-server-name", "a.example.com", "--to-ca", "ca.pem"),
        ("--to", ":3000", "--to", "https://a.example.com", "--to", "https://localhost:3001"),
        ("--to", "h2c://a.example.com:9000", "--to", "h2c://[2001:db8::1]", "--to", ":9000"),
    ],
)
def test_a_file_of_the_printed_objects_has_the_same_table(
    arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = start(monkeypatch, *arguments)
    file = folder / "gateway.yaml"
    file.write_text(show(*arguments).out)
    assert compile_files([], made)[1] == compile_files([file])[1]
    assert call("check", "-f", str(file), "--strict").status == 0


def test_https_targets_are_verified_and_balanced(folder: Path) -> None:
    names = ("https://a.example.com", "https://b.example.com", "https://a.example.com:8443", ":3000")  # fmt: skip
    targets = tuple(map(parse_target, names))
    fleet, _ = compile_files([], ReverseProxy(targets=targets, listen=Address(EVERYWHERE, 8080)))
    seen = [(one.tls.sni, one.tls.ca) if one.tls else None for one in fleet.clusters]
    assert seen == [("a.example.com", ""), ("b.example.com", ""), None]
    (host,) = fleet.virtual_hosts
    assert sorted(one.weight for one in host.rules[0].backends) == [1, 1, 2]


def test_h2c_targets_have_a_backend_of_their_own() -> None:
    targets = tuple(
        map(parse_target, ("h2c://a.example.com", "http://a.example.com", "h2c://localhost:1"))
    )
    fleet, _ = compile_files([], ReverseProxy(targets=targets, listen=Address(EVERYWHERE, 8080)))
    assert [(one.protocol, len(one.endpoints)) for one in fleet.clusters] == [("h2", 2), ("http1", 1)]  # fmt: skip


def test_http_requests_are_redirected_to_https(folder: Path) -> None:
    arguments = ("--to", ":3000", "--host", "shop.example.com", "--tls", "cert.pem,key.pem")
    outcome = show(*arguments, "--listen", "127.0.0.1:443", "--redirect-http", ":80")
    assert outcome.status == 0, outcome.err
    file = folder / "gateway.yaml"
    file.write_text(outcome.out)
    proxy = ReverseProxy(
        targets=(parse_target(":3000"),),
        hosts=("shop.example.com",),
        listen=Address("127.0.0.1", 443),
        redirect_port=80,
        tls=FilePair(Path("cert.pem"), Path("key.pem")),
    )
    fleet, version = compile_files([], proxy)
    command = next(line for line in outcome.out.splitlines() if line.startswith("#   "))
    subprocess.run(["sh", "-euc", command.removeprefix("#   ")], check=True, cwd=folder)
    assert compile_files([file, folder / "certificate.yaml"])[1] == version
    assert [(one.port, one.protocol) for one in fleet.listeners] == [(80, "HTTP"), (443, "HTTPS")]
    assert [(one.hostname, one.listener, len(one.rules)) for one in fleet.virtual_hosts] == [
        ("shop.example.com", "default/edge/http", 1),
        ("shop.example.com", "default/edge/https", 1),
    ]


def test_the_private_key_is_not_printed(folder: Path) -> None:
    outcome = show("--to", ":3000", "--tls", "cert.pem,key.pem")
    assert outcome.status == 0
    assert (
        "kind: Secret" not in outcome.out.replace("\\n", "\n").partition("apiVersion: gateway")[2]
    )
    key = (folder / "key.pem").read_text()
    assert not [line for line in key.splitlines() if line in outcome.out]
    (folder / "gateway.yaml").write_text(outcome.out)
    command = next(line for line in outcome.out.splitlines() if line.startswith("#   "))
    subprocess.run(["sh", "-euc", command.removeprefix("#   ")], check=True, cwd=folder)
    assert os.stat(folder / "certificate.yaml").st_mode & 0o777 == 0o600
    proxy = ReverseProxy(
        targets=(parse_target(":3000"),),
        listen=Address(EVERYWHERE, 8443),
        tls=FilePair(Path("cert.pem"), Path("key.pem")),
    )
    files = [folder / "gateway.yaml", folder / "certificate.yaml"]
    assert compile_files([], proxy)[1] == compile_files(files)[1]


def test_a_renewed_certificate_is_applied_and_a_broken_one_is_not(folder: Path) -> None:
    proxy = ReverseProxy(
        targets=(parse_target(":3000"),),
        listen=Address(EVERYWHERE, 8443),
        tls=FilePair(folder / "cert.pem", folder / "key.pem"),
    )
    source = FileSource([], settle=0.0, documents=[proxy])
    assert set(source.folders()[folder] or ()) == {"cert.pem", "key.pem"}
    first = source.read()
    assert first.usable and not source.read().changed
    pair = Authority("another").issue(["shop.example.com"])
    (folder / "cert.pem").write_bytes(pair.certificate)
    broken = source.read()
    assert broken.snapshot.secrets == first.snapshot.secrets
    (problem,) = broken.problems
    assert f"{folder}/key.pem does not belong to {folder}/cert.pem" in problem.message
    (folder / "key.pem").write_bytes(pair.key)
    assert source.read().snapshot.secrets != first.snapshot.secrets


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("", ("-f FILE", "--to URL", "edgefast init", "edgefast demo")),
        ("--to ftp://a", ("'--to'", 'scheme "ftp" is not supported', "https://HOST[:PORT]")),
        ("--to web", ("'--to'", "port is missing", "HOST:PORT")),
        ("--to http://", ("'--to'", "invalid host")),
        ("--to http://a_b", ("'--to'", "invalid host")),
        ("--to http://a/b", ("'--to'", "a path, query or fragment is not supported")),
        ("--to http://a?b", ("'--to'", "a path, query or fragment is not supported")),
        ("--to :0", ("'--to'", "port must be 1-65535")),
        ("--to http://a:123456", ("'--to'", "port must be 1-65535")),
        ("--to http://2001:db8::1", ("'--to'", "[ADDRESS]:PORT")),
        ("--to http://[::1", ("'--to'", "allowed: http://")),
        ("--to http://0.0.0.0", ("'--to'", "use 127.0.0.1")),
        ("--to unix:run", ("'--to'", "unix:/PATH")),
        ("--to https://192.0.2.1", ("'--to'", "--to-server-name NAME")),
        ("--to :8080", ("'--to'", "would loop", "another port for --listen")),
        ("--to 192.0.2.1:80 --listen 192.0.2.1:80", ("'--to'", "would loop")),
        ("--to :1 --listen 80", ("'--listen'", "allowed: :PORT", "write :80")),
        ("--to :1 --listen web:80", ("'--listen'", '"web" is not an IP address', "--host")),
        ("--to :1 --listen ::1:80", ("'--listen'", "[ADDRESS]:PORT")),
        ("--to :1 --host *", ("'--host'", "without --host all names are served")),
        ("--to :1 --host a:80", ("'--host'", "without port")),
        ("--to :1 --host 192.0.2.1", ("'--host'", "a DNS name")),
        ("--to :1 --tls cert.pem", ("'--tls'", "CERT,KEY")),
        ("--to :1 --tls cert.pem,no.pem", ("'--tls'", "no.pem: No such file")),
        ("--to :1 --tls cert.pem,other.pem", ("'--tls'", "other.pem does not belong to cert.pem")),
        ("--to :1 --tls key.pem,key.pem", ("'--tls'", "not a PEM certificate chain")),
        ("--to grpc://a:9000", ("'--to'", "use h2c://a:9000 for gRPC")),
        ("--to grpcs://a", ("'--to'", "use https://a for gRPC")),
        ("--to :1 --redirect-http :80", ("--redirect-http needs --tls CERT,KEY",)),
        ("--to :1 --tls cert.pem,key.pem --redirect-http 80", ("'--redirect-http'", "write :80")),
        (
            "--to :1 --tls cert.pem,key.pem --redirect-http :8443",
            ("'--redirect-http'", "8443 is the port of --listen"),
        ),
        (
            "--to :1 --tls cert.pem,key.pem --redirect-http 127.0.0.1:80",
            ("'--redirect-http'", "127.0.0.1 is not the address of --listen", "write :80"),
        ),
        (
            "--to :80 --tls cert.pem,key.pem --redirect-http :80",
            ("'--to'", "would loop", "another port for --redirect-http"),
        ),
        ("-f gateway.yaml --redirect-http :80", ("--redirect-http needs --to",)),
        ("--to :1 --to-ca ca.pem", ("--to-ca needs an https target",)),
        ("--to :1 --rewrite-host", ("--rewrite-host needs an https target",)),
        ("--to https://a --to-ca key.pem", ("'--to-ca'", "not a PEM bundle")),
        ("--to https://a --to-server-name *.a", ("'--to-server-name'", "without wildcard")),
        ("--to :1 -f gateway.yaml", ("-f cannot be combined with --to", "--print")),
        ("--to :1 --backend a=127.0.0.1:1", ("--backend cannot be combined with --to",)),
        ("--to :1 --echo", ("--echo cannot be combined with --to",)),
        ("--listen :80", ("--listen needs --to",)),
        ("-f gateway.yaml --host a", ("--host needs --to",)),
        ("-f gateway.yaml --print", ("--print needs --to",)),
        ("--to :1 " * 65, ("'--to'", "given 65 times (at most 64)")),
        ("--to :1 " + "--host a " * 17, ("'--host'", "given 17 times (at most 16)")),
        (
            " ".join(f"--to https://a{number}.example.com" for number in range(17)),
            ("'--to'", "17 different protocols and certificate names (at most 16)"),
        ),
    ],
)
def test_wrong_usage(arguments: str, parts: tuple[str, ...], folder: Path) -> None:
    outcome = call("run", *arguments.split())
    assert outcome.status == 2 and outcome.out == ""
    for part in parts:
        assert part in outcome.err


def test_a_password_is_not_repeated() -> None:
    outcome = show("--to", "http://ann:opensesame@a.example.com")
    assert outcome.status == 2 and "opensesame" not in outcome.err
    assert "a user name or password in a URL is not supported" in outcome.err
