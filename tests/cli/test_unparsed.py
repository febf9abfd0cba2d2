"""Files that cannot be parsed: `check` reports them, and no other command answers as if the set were complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import call

pytestmark = pytest.mark.pure

WHOLE = "examples/quickstart.yaml"


@pytest.mark.parametrize(
    "command",
    [
        ("explain", "-f", "{}", "http://localhost:8080/api"),
        ("diff", WHOLE, "{}"),
        ("diff", "{}", WHOLE),
        ("translate", "-f", "{}"),
    ],
)
def test_no_answer_is_given_for_a_set_that_is_not_whole(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    broken = tmp_path / "b.yaml"
    (tmp_path / "a.yaml").write_text(Path(WHOLE).read_text())
    broken.write_text("apiVersion: gateway.edge.io/v1alpha1\nkind: SecurityPolicy\nspec: [\n")
    checked = call("check", "-f", str(tmp_path))
    assert checked.status == 1 and f"{broken}:3 Invalid " in checked.out
    done = call(*(one.format(tmp_path) for one in command))
    assert (done.status, done.out) == (2, "")
    assert f"{broken}:3 Invalid " in done.err
    assert "no answer: a file cannot be parsed; correct or remove it" in done.err
