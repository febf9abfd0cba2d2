"""Texts on a terminal of 80 columns: lines are continued and no word is lost; piped text has whole lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import call
from cli.test_check_served import BACKEND, CLASS, GATEWAY, ROUTE
from edgefast.cli.counters import Rate
from edgefast.cli.output import wrap_line
from edgefast.cli.show_status import render_screen
from edgefast.cli.status_model import ProblemRow, RouteRow, StatusReport

pytestmark = pytest.mark.pure

WIDTH = 80


def check_fits(text: str, whole: str) -> None:
    assert max(map(len, whole.splitlines())) > WIDTH  # else this test shows nothing
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.split() == whole.split()


def test_a_line_is_continued_below_its_beginning() -> None:
    line = "  took: " + "word " * 20 + "end"
    first, *rest = wrap_line(line, 40)
    assert first.startswith("  took: word")
    assert rest
    assert all(one.startswith("    word") or one == "    end" for one in rest)
    continued = wrap_line("gained      " + "word " * 20, 40)
    assert [one.index("word") for one in continued] == [12] * len(continued)
    assert wrap_line(line, 0) == [line]
    assert wrap_line("x" * 90, 80) == ["x" * 90]  # a word is copied as a whole


@pytest.mark.parametrize("command", ["diff", "explain"])
def test_answers_fit(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    old, new = Path("old.yaml"), Path("new.yaml")
    long = "name: " + "a-rather-long-name-of-a-route"
    other = ROUTE.replace("name: api, namespace", f"{long}, namespace")
    old.write_text("---\n".join((CLASS, GATEWAY, ROUTE, BACKEND)))
    new.write_text("---\n".join((CLASS, GATEWAY, other.replace("80}", "81}"), ROUTE, BACKEND)))
    arguments = {
        "diff": ("diff", str(new), str(old)),
        "explain": ("explain", "-f", str(new), "http://127.0.0.1:8080/a/b/c?d=e"),
    }[command]
    whole = call(*arguments).out
    monkeypatch.setattr(f"edgefast.cli.{command}.terminal_width", lambda: WIDTH)
    check_fits(call(*arguments).out, whole)


def test_the_screen_fits() -> None:
    name = "a-namespace/a-rather-long-name-of-a-route"
    made = StatusReport(
        source="cluster https://192.0.2.1:6443",
        routes=(
            RouteRow(
                name=name,
                hostnames=("one.shop.example", "two.shop.example", "three.shop.example"),
                parent="a-namespace/a-rather-long-name-of-a-gateway",
                accepted="True",
                resolved="False",
            ),
        ),
        seconds=2.0,
        traffic=(Rate(route=name, requests_per_second=9.0, error_share=0.5, p50_ms=1, p99_ms=2),),
        problems=(ProblemRow(object="HTTPRoute a/b", reason="Invalid", message="wrong " * 30),),
        notes=("note " * 30,),
    )
    whole = list(render_screen(made))
    lines = list(render_screen(made, width=WIDTH, wrap=True))
    assert max(map(len, whole)) > WIDTH
    assert max(map(len, lines)) <= WIDTH
    # Cells are continued in their columns, so the order of words differs.
    assert sorted("".join(lines).replace(" ", "")) == sorted("".join(whole).replace(" ", ""))
