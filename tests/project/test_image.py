"""The Dockerfile keeps its promises as far as its text can tell: targets, user, build argument, complete sources."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from controller.manifests.workload import PORTS
from edgefast.cli.run import run
from edgefast.httpd.address import EVERYWHERE, parse_address
from edgefast.proxy.settings import ProxySettings

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text()


def test_targets_and_their_base() -> None:
    bases = {name: base for base, name in re.findall(r"^FROM (\S+) AS (\S+)$", TEXT, re.M)}
    assert bases == {
        "environment": "${BASE}",
        "build": "environment",
        "dist": "scratch",
        "wheel": "${WHEEL}",
        "proxy-packages": "environment",
        "controller-packages": "environment",
        "runtime": "${BASE}",
        "controller": "runtime",
        "proxy": "runtime",
    }
    assert re.search(r"^ARG BASE=\S+$", TEXT, re.M)
    assert re.search(r"^ARG WHEEL=build$", TEXT, re.M)
    assert TEXT.rindex("AS proxy") > TEXT.rindex("AS controller"), (
        "the last stage is the default target"
    )


def test_each_target_has_what_it_alone_needs() -> None:
    """Extras of pyproject.toml; a proxy carries no Kubernetes client, a controller no stream client it does not need."""
    stages = dict(re.findall(r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM|\Z)", TEXT, re.M | re.S))
    for target, extra in (("proxy", "xds,tracing"), ("controller", "controller")):
        assert f'"$wheel[{extra}]"' in stages[f"{target}-packages"]
        assert f"COPY --from={target}-packages /opt/edgefast /opt/edgefast" in stages[target]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert not any("kubernetes" in one for one in extras["xds"])


def test_commands_exist() -> None:
    entries = re.findall(r'^ENTRYPOINT \["(\S+)"\]$', TEXT, re.M)
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert entries == ["edgefast-controller", "edgefast"] and set(entries) <= set(scripts)


def test_runs_as_nobody_in_particular() -> None:
    assert re.findall(r"^USER (\S+)$", TEXT, re.M) == ["65532:65532"]


def test_all_that_is_copied_exists_and_is_sent() -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    sent = [line[1:] for line in ignore if line.startswith("!")]
    for line in re.findall(r"^COPY (?!--from)(.+)$", TEXT, re.M):
        for name in line.split()[:-1]:
            made = name.startswith("dist/")  # by make wheels
            assert made or (ROOT / name).exists(), name
            assert any(
                fnmatch(name, pattern) or name.startswith(f"{pattern}/") for pattern in sent
            ), f"{name} is kept out by .dockerignore"


def test_what_is_exposed_is_reachable_and_admin_is_not() -> None:
    """Probes and Prometheus come from outside of the container, whose command leaves the addresses as they are."""
    of_controller, exposed = re.findall(r"^EXPOSE (.+)$", TEXT, re.M)
    assert set(of_controller.split()) == {str(port) for port in PORTS.values()}
    _, command = re.findall(r"^CMD (.+)$", TEXT, re.M)
    settings = ProxySettings()
    for address in (settings.metrics, settings.ready):
        assert address is not None
        assert str(address.port) in exposed.split()
        assert address.host == EVERYWHERE
    assert settings.admin is not None
    assert ipaddress.ip_address(settings.admin.host).is_loopback
    assert str(settings.admin.port) not in exposed.split()
    assert not re.search(r"--(admin|metrics|ready)", command)
    defaults = {one.name: one.default for one in run.params}
    for name in ("admin", "metrics", "ready"):
        assert parse_address(str(defaults[name])) == getattr(settings, name)


def test_debian_s_own_python_is_enough() -> None:
    """What an image named python brings along is in packages of Debian."""
    for package in ("python3-venv", "python3-dev"):
        assert package in TEXT
