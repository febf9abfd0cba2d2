"""`edgefast check`: exit statuses, one line per problem, formats, standard input, several files and folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cli.calling import call

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples/quickstart.yaml"
BAD = QUICKSTART.read_text().replace("type: PathPrefix", "type: PathPrefx")
LINE = 1 + next(number for number, line in enumerate(BAD.splitlines()) if "PathPrefx" in line)
PROBLEM = (
    "HTTPRoute default/quickstart spec.rules[0].matches[0].path.type: "
    'NotSupported "PathPrefx" (supported: Exact, PathPrefix, RegularExpression), did you mean PathPrefix?'
)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A file with one mistake."""
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    return path


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.name
)
def test_examples_have_no_problems(path: Path) -> None:
    if path.name == "tls.yaml":
        return  # its certificates are made when it is tried: tests/examples runs it
    outcome = call("check", "-f", str(path))
    assert (outcome.status, outcome.out) == (0, ""), outcome
    assert outcome.err.startswith("no problems (")


def test_a_problem_is_one_line_with_its_place(bad: Path) -> None:
    outcome = call("check", "-f", str(bad))
    assert outcome.status == 1
    assert outcome.out.splitlines()[0] == f"{bad}:{LINE} {PROBLEM}"


def test_standard_input() -> None:
    outcome = call("check", "-f", "-", stdin=BAD)
    assert outcome.status == 1
    assert outcome.out.splitlines()[0] == f"<stdin>:{LINE} {PROBLEM}"


def test_json_and_yaml_say_the_same(bad: Path) -> None:
    as_json = call("check", "-f", str(bad), "-o", "json")
    as_yaml = call("check", "-f", str(bad), "-o", "yaml")
    assert as_json.status == as_yaml.status == 1
    told = json.loads(as_json.out)
    assert told == yaml.safe_load(as_yaml.out)
    assert told[0]["object"] == {"kind": "HTTPRoute", "namespace": "default", "name": "quickstart"}
    assert (told[0]["line"], told[0]["reason"], told[0]["severity"]) == (
        LINE,
        "NotSupported",
        "error",
    )
    assert told[0]["text"] == PROBLEM


def test_no_problem_is_an_empty_list() -> None:
    assert json.loads(call("check", "-f", str(QUICKSTART), "-o", "json").out) == []


def test_all_problems_of_all_files_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BAD)
    (tmp_path / "b.json").write_text('{"apiVersion": "v1", "kind": "Service"}')
    (tmp_path / "ignored.txt").write_text("{")
    outcome = call("check", "-f", str(tmp_path))
    assert outcome.status == 1
    assert PROBLEM in outcome.out
    assert any(line.startswith(f"{tmp_path}/b.json:1 ") for line in outcome.out.splitlines())


def test_two_objects_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "again.yaml").write_text(QUICKSTART.read_text())
    outcome = call("check", "-f", str(QUICKSTART), "-f", str(tmp_path))
    assert outcome.status == 1
    assert "Duplicate" in outcome.out


def test_what_translation_finds_is_a_problem_too(tmp_path: Path) -> None:
    path = tmp_path / "dangling.yaml"
    path.write_text(
        QUICKSTART.read_text().replace("{name: api, port: 80}", "{name: apo, port: 80}")
    )
    outcome = call("check", "-f", str(path))
    assert outcome.status == 1
    (line,) = [line for line in outcome.out.splitlines() if "BackendNotFound" in line]
    assert "HTTPRoute default/quickstart spec.rules[0].backendRefs[0]" in line
    assert line.endswith("Service default/apo not found")


def test_wrong_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("apiVersion: config.gateway.edge.io/v1alpha1\nkind: EdgeGateway\ngatway: {}\n")
    outcome = call("check", "-f", str(QUICKSTART), "--config", str(path))
    assert outcome.status == 1
    assert f"{path}:3 " in outcome.out


def test_an_empty_folder_is_a_problem(tmp_path: Path) -> None:
    outcome = call("check", "-f", str(tmp_path))
    assert outcome.status == 1
    assert "no file ends in" in outcome.out


@pytest.mark.parametrize(
    "arguments",
    [(), ("-f", "/no/such/file"), ("-f", str(QUICKSTART), "-o", "xml"), ("--nonsense",)],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    outcome = call("check", *arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert "Usage:" in outcome.err


def test_names_from_files_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "escape.yaml"
    path.write_text('apiVersion: v1\nkind: "Serv\\e[31mice"\nmetadata: {name: a}\n')
    assert "\x1b" not in call("check", "-f", str(path)).out
