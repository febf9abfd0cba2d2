"""Render diff: a difference as text for a terminal.

In: a `Difference`. Out: lines without control characters; granted access and broken traffic come
first.
Must never: add a fact of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast.explain.changes import Change, Difference, Example, Side
from edgefast.explain.render import escape_text


def render_difference(one: Difference) -> list[str]:
    """Return the lines; none when nothing changes."""
    lines = [line for change in one.changes for line in _change(change)]
    return [escape_text(line) for line in lines]


def _change(one: Change) -> Iterator[str]:
    of_policies = one.kind in ("opened", "refused")
    mark = "breaks" if one.breaks and not of_policies else one.kind.replace("_", " ")
    yield f"{mark:<17} {one.text}"
    if one.example is not None:
        more = f" (and {one.requests - 1} more)" if one.requests > 1 else ""
        yield f"{'':<19} {_example(one.example)}{more}"
    for sign, side in (("-", one.before), ("+", one.after)):
        if side is not None:
            yield f"{'':<19} {sign} {_side(side)}"


def _example(one: Example) -> str:
    headers = "".join(f" -H '{name}: {value}'" for name, value in one.headers)
    source = f" --source {one.source}" if one.source else ""
    source += f" --address {one.address}" if one.address else ""
    source += " --http1.0" if one.http10 else ""
    return f"{one.method} {one.url}{headers}{source}".strip()


def _side(one: Side) -> str:
    message = f"{one.rule}: {one.answer}" if one.rule else one.answer
    return f"{message} ({one.source})" if one.source else message


def summarise_difference(one: Difference) -> str:
    """Return the last line."""
    if not one.changes:
        return f"no request changes ({_count(one.examples, 'example')})"
    message = _count(len(one.changes), "change")
    opens = sum(change.opens for change in one.changes)
    if opens:
        message += f", {opens} of them {'grants' if opens == 1 else 'grant'} access that was denied"
    breaks = sum(change.breaks for change in one.changes)
    if breaks:
        message += f", {breaks} of them {'breaks' if breaks == 1 else 'break'} requests"
    return f"{message} ({_count(one.examples, 'example')})"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
