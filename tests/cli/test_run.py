"""`edgefast run`: what of the configuration file becomes a setting, and that flags win."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Outcome, call
from edgefast.httpd.address import Address
from edgefast.proxy.settings import ProxySettings
from edgefast.translate.settings import IngressSettings

pytestmark = pytest.mark.pure

QUICKSTART = str(Path(__file__).parents[2] / "examples/quickstart.yaml")
HEAD = "apiVersion: config.gateway.edge.io/v1alpha1\nkind: EdgeGateway\n"
CONFIG = "logging: {level: warn}\nadmin: {address: {host: '::1', port: 29555}}\n"


class Started:
    """A call that ends where the proxy would begin; `settings` is what it would have."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.config = folder / "config.yaml"
        self.settings: list[ProxySettings] = []
        self.levels: list[str] = []

        async def serve(
            *arguments: object, take_over: bool, ingress: IngressSettings, **flags: bool
        ) -> int:
            assert not any(flags.values()) and ingress == IngressSettings()
            assert not take_over
            assert isinstance(arguments[-1], ProxySettings)
            self.settings.append(arguments[-1])
            return 0

        monkeypatch.setattr("edgefast.cli.run._serve", serve)
        monkeypatch.setattr("edgefast.cli.run.start_logging", self.levels.append)

    def run(self, config: str, *arguments: str) -> Outcome:
        self.config.write_text(HEAD + config)
        return call("run", "-f", QUICKSTART, "--config", str(self.config), *arguments)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(tmp_path, monkeypatch)


def test_the_file_has_defaults_of_flags(started: Started) -> None:
    assert started.run(CONFIG).status == 0
    (settings,) = started.settings
    assert (settings.admin, settings.log_level) == (Address("::1", 29555), "warning")
    assert started.levels == ["warning"]


def test_flags_win(started: Started) -> None:
    # Also when they say what they say by default.
    flags = ("--admin", "127.0.0.1:19000", "--log-level", "info")
    assert started.run(CONFIG, *flags).status == 0
    (settings,) = started.settings
    assert (settings.admin, settings.log_level) == (Address("127.0.0.1", 19000), "info")
    assert started.run(CONFIG, "--admin", "off").status == 0
    assert started.settings[-1].admin is None


def test_an_empty_file_changes_nothing(started: Started) -> None:
    assert started.run("").status == 0
    (settings,) = started.settings
    assert (settings.admin, settings.log_level) == (Address("127.0.0.1", 19000), "info")


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ("gatway: {}\n", ":3 EdgeGateway gatway: NotSupported"),
        (f"---\n{HEAD}", ":4 EdgeGateway: TooMany a second document"),
        (
            "admin: {address: {host: gateway.example.com}}\n",
            ':3 EdgeGateway admin.address.host: Invalid "gateway.example.com" is not an IPv4 or IPv6',
        ),
    ],
)
def test_a_broken_file_is_wrong_usage(started: Started, config: str, line: str) -> None:
    outcome = started.run(config)
    assert outcome.status == 2
    assert line in outcome.err
    assert started.settings == []


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--bind", "localhost"), "not an IPv4 or IPv6 address"),
        (("--workers", "0"), "--workers"),
        (("--log-level", "loud"), "--log-level"),
        (("--access-log", "/no/such/folder/x.log"), "No such file or directory"),
        (("--access-log", "/dev"), "--access-log"),
    ],
)
def test_a_wrong_flag_is_wrong_usage(
    started: Started, arguments: tuple[str, str], part: str
) -> None:
    outcome = started.run("", *arguments)
    assert outcome.status == 2
    assert part in outcome.err
    assert started.settings == []
