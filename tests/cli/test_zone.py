"""--zone: a name as labels of nodes have it, from the command line or the environment."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from cli.calling import call
from edgefast.cli.serving import serving_options
from edgefast.proxy.settings import ProxySettings

pytestmark = pytest.mark.pure


def settings_of(*arguments: str) -> ProxySettings:
    @click.command()
    @serving_options
    def serve(settings: ProxySettings) -> ProxySettings:
        return settings

    made = serve.main(list(arguments), standalone_mode=False)
    assert isinstance(made, ProxySettings)
    return made


def test_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGEFAST_ZONE", raising=False)
    assert settings_of().zone == ""
    assert settings_of("--zone", "eu-central-1a").zone == "eu-central-1a"
    for said, zone in (("b", "b"), ("", "")):
        monkeypatch.setenv("EDGEFAST_ZONE", said)
        assert settings_of().zone == zone
    monkeypatch.setenv("EDGEFAST_ZONE", "b")
    assert settings_of("--zone", "a").zone == "a"


@pytest.mark.parametrize("zone", ["a b", "-a", "a/b", "a" * 64, "a\n"])
def test_what_is_no_zone_is_refused(zone: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("")
    outcome = call("run", "-f", str(tmp_path), "--zone", zone)
    assert outcome.status == 2 and "is not a zone" in outcome.err
