"""The tables of states in the heads of modules are those that the engine runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgefast.core import engine

pytestmark = pytest.mark.pure

_CORE = Path(engine.__file__).parent


def states(file: str, prefix: str, enum: str) -> set[str]:
    """Return the names of an enum."""
    text = (_CORE / file).read_text().partition(f"cdef enum {enum}:")[2].partition("\n\n")[0]
    return set(re.findall(rf"^    ({prefix}\w+) = ", text, re.MULTILINE))


def rows(file: str, prefix: str) -> list[list[str]]:
    """Return the cells of the table in the head of a module."""
    head = re.split(r"^(?!#)", (_CORE / file).read_text(), maxsplit=1, flags=re.MULTILINE)[0]
    found = [re.split(r"  +", line.strip("# ")) for line in head.splitlines() if line]
    return [cells for cells in found if len(cells) == 3 and prefix in cells[2]]


def bits(file: str, table: str, prefix: str) -> dict[str, set[str]]:
    """Return the states that may follow each state, by the array of a module."""
    text = (_CORE / file).read_text()
    named = dict(re.findall(r"^cdef uint32_t (\w+) = (.*)$", text, re.MULTILINE))
    found: dict[str, set[str]] = {}
    for line in re.findall(rf"^({table}\[<int>\w+\] = .*?[^(])(?=\n\S|\n\n)", text, re.M | re.S):
        for name, said in named.items():
            line = re.sub(rf"\b{name}\b", said, line)
        for state in re.findall(rf"{table}\[<int>(\w+)\]", line):
            found[state] = set(re.findall(rf"1 << ({prefix}\w+)", line))
    return found


def test_authentication() -> None:
    file, prefix = "policy/auth_flow.pyx", "AUTH_"
    known = states("hooks.pxd", prefix, "AuthState")
    table = rows(file, prefix)
    steps = {
        cells[0]: set(re.findall(r"AUTH_\w+", cells[2])) for cells in table if "step" in cells[1]
    }
    assert bits(file, "AUTH_STEPS", prefix) == steps
    text = (_CORE / file).read_text().partition("cdef AuthState state_after")[2]
    code = {
        (state, event, after)
        for tests, after in re.findall(r"    if (.*):\n        return (AUTH_\w+)", text)
        for state in re.findall(r"state == (AUTH_\w+)", tests)
        for event in re.findall(r"event == (AUTH_\w+)", tests)
        if f"state == {state} and event == {event}" in tests or tests.count("state ==") == 1
    }
    events = {
        (cells[0], event, cells[2].split(" ")[0])
        for cells in table
        for event in cells[1].split(", ")
        if event.startswith(prefix)
    }
    assert code == events
    assert {cells[0] for cells in table} | {"AUTH_ENDED"} == known | {"each"}


@pytest.mark.parametrize(
    ("file", "enum", "prefix", "table"),
    [
        ("exchange/retry_state", "TryState", "TRY_", "TRY_NEXT"),
        ("exchange/body", "BodyState", "BODY_", "BODY_NEXT"),
    ],
)
def test_parts_of_an_exchange(file: str, enum: str, prefix: str, table: str) -> None:
    known = states(f"{file}.pxd", prefix, enum)
    found: dict[str, set[str]] = {state: set() for state in known}
    for before, _, after in rows(f"{file}.pyx", prefix):
        but = set(re.findall(r"but (\w+)", before))
        for state in known - but if "each" in before else set(before.split(", ")):
            found[state].add(after)
    code = bits(f"{file}.pyx", table, prefix)
    assert {state: code.get(state, set()) for state in known} == found
    written = "".join(path.read_text() for path in _CORE.glob("*/*.pyx"))
    assert set(re.findall(rf"\.enter\(({prefix}\w+)\)", written)) <= known
    assert not re.search(rf"\.state = {prefix}", written)  # past the check of debug builds
