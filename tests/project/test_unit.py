"""The systemd unit keeps the promises of docs/guides/operations.md, and fits the command's own defaults."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from edgefast.cli.run import run
from edgefast.proxy.agent.drain import LAST_REQUESTS
from edgefast.proxy.settings import EXIT_GRACE, ProxySettings

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "edgefast.service"
OPERATIONS = (ROOT / "docs" / "guides" / "operations.md").read_text()


@pytest.fixture(scope="module")
def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(FILE)
    return parser


def test_it_never_gives_up(unit: configparser.ConfigParser) -> None:
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"
    assert unit["Service"]["Restart"] == "always"


def test_it_is_started_when_it_serves(unit: configparser.ConfigParser) -> None:
    assert unit["Service"]["Type"] == "notify"
    assert unit["Service"]["NotifyAccess"] == "main"
    assert "AF_UNIX" in unit["Service"]["RestrictAddressFamilies"].split()


def test_keys_stay_in_memory_and_with_one_group(unit: configparser.ConfigParser) -> None:
    service = unit["Service"]
    words = shlex.split(service["ExecStart"])
    assert words[words.index("--state-dir") + 1] == f"/run/{service['RuntimeDirectory']}"
    assert service["RuntimeDirectoryMode"] == "0700"
    assert service["RuntimeDirectoryPreserve"] == "restart"
    assert "StateDirectory" not in service
    group = service["SupplementaryGroups"]
    assert f"groupadd --system {group}" in OPERATIONS
    assert f"install -d -m 2750 -g {group} /etc/edgefast" in OPERATIONS


def test_there_is_time_to_drain(unit: configparser.ConfigParser) -> None:
    longest = ProxySettings().drain_timeout + LAST_REQUESTS + EXIT_GRACE
    assert float(unit["Service"]["TimeoutStopSec"]) > longest


def test_sockets_are_kept_while_it_restarts(unit: configparser.ConfigParser) -> None:
    room = unit["Service"]["FileDescriptorStoreMax"]
    assert unit["Service"]["Environment"] == f"FDSTORE={room}"
    assert int(room) >= 1024


def test_its_command_is_one(unit: configparser.ConfigParser) -> None:
    _, command, *arguments = shlex.split(unit["Service"]["ExecStart"])
    assert command == "run"
    known = {option for parameter in run.params for option in parameter.opts}
    assert {word for word in arguments if word.startswith("-")} <= known


def test_systemd_understands_it(tmp_path: Path) -> None:
    """Where systemd is there to ask."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        assert FILE.read_text().count("[Service]") == 1
        return
    fitting = tmp_path / "edgefast.service"
    text = FILE.read_text().replace("/opt/edgefast/bin/edgefast", "/bin/true")
    fitting.write_text(text)
    done = subprocess.run([analyze, "verify", fitting], capture_output=True, text=True, timeout=60)
    assert "edgefast.service:" not in done.stderr, done.stderr
