"""Golden texts of `edgefast explain`: cases/explain.yaml asks, cases/explain/*.txt are the answers."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
import yaml

from cli.calling import call

pytestmark = pytest.mark.pure

CASES = Path(__file__).parent / "cases"
ASKED: dict[str, list[str]] = yaml.safe_load((CASES / "explain.yaml").read_text())


@pytest.mark.parametrize("name", ASKED)
def test_text(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES)
    outcome = call("explain", "-f", "shop.yaml", *ASKED[name])
    text = f"{outcome.out}exit status {outcome.status}\n"
    golden = CASES / "explain" / f"{name}.txt"
    if request.config.getoption("--update-goldens"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


def test_every_golden_is_asked_for() -> None:
    assert {path.stem for path in (CASES / "explain").iterdir()} == ASKED.keys()


@pytest.mark.parametrize("name", ["backend", "limits", "no-rule"])
def test_json(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoding is a promise: a field may come, none may go."""
    monkeypatch.chdir(CASES)
    told = orjson.loads(call("explain", "-f", "shop.yaml", "-o", "json", *ASKED[name]).out)
    golden = CASES / f"explain-{name}.json"
    if request.config.getoption("--update-goldens"):
        golden.write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n")
    assert told == orjson.loads(golden.read_bytes())


def test_yaml_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES)
    words = ("explain", "-f", "shop.yaml", *ASKED["backend"])
    assert yaml.safe_load(call(*words, "-o", "yaml").out) == orjson.loads(
        call(*words, "-o", "json").out
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["GET", "http://a/"], "one of -f"),
        (["-f", "shop.yaml", "--admin", "127.0.0.1:1", "GET", "http://a/"], "one of -f"),
        (["-f", "shop.yaml", "GET", "ftp://a/"], "not a URL"),
        (["-f", "shop.yaml", "GET", "http://a:99999/"], "99999"),
        (["-f", "shop.yaml", "GET", "http://a/", "-H", "x"], "not a header"),
        (["-f", "shop.yaml", "GET", "http://a/", "--source", "here"], "not an IP address"),
    ],
)
def test_wrong_usage(arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES)
    outcome = call("explain", *arguments)
    assert outcome.status == 2
    assert said in outcome.err
    assert outcome.out == ""


def test_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES)
    outcome = call("explain", "-f", "shop.yaml", "--most", "1", *ASKED["no-rule"])
    assert sum(line.startswith("not ") for line in outcome.out.splitlines()) == 1
    assert "more (--most)" in outcome.out


def test_control_characters_do_not_reach_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES)
    outcome = call(
        "explain", "-f", "shop.yaml", "GET", "http://www.example.com/", "-H", "a: \x1b[1m"
    )
    assert "\x1b" not in outcome.out
    assert "400" in outcome.out
