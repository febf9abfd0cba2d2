"""Page: docs/migrating.md, made from the tables of what other projects' policies have here.

In: the projects. Out: Markdown. Must never: be edited by hand; a test holds the page to the tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast.resources.foreign.counterpart import (
    Annotations,
    Counterpart,
    ForeignKind,
    Project,
)
from edgefast.resources.foreign.counterparts import PROJECTS
from edgefast.resources.foreign.guards import PRODUCTS, Product

_HEAD = """<!-- Made from edgefast/resources/foreign by `pytest tests/resources/test_counterparts.py --update-goldens`; do not edit. -->

# From another gateway

This page lists the replacement of each field of other projects' policies, and of each annotation of ingress-nginx, or why it has no
equivalent. [Policies](policies.md) describes the policies of edgefast. Gateways, HTTPRoutes and GRPCRoutes of other projects need no change.

edgefast never applies a policy of another project. In files such a policy of a served target is an error
([PolicyIgnored](problems/PolicyIgnored.md)); the message contains the replacement of each field that the policy sets. A filter
that refers to an object of another project closes its rule: 500.

## Policies that decide access

In files each of these closes its target: requests get 500, unless `--ignore-foreign-policies` is given
([configuration](configuration.md#policies-of-other-projects)). A policy of any other product does the same if its kind is named after access.

| product | policies | annotations |
|---|---|---|
"""
_PLACES = {"later": "no equivalent", "never": "no equivalent"}


def write_page() -> str:
    """Return the page."""
    guards = "".join(f"{_guards(one)}\n" for one in PRODUCTS)
    return "\n".join([_HEAD + guards, *(line for one in PROJECTS for line in _project(one))])


def _guards(one: Product) -> str:
    kinds = []
    for guard in one.guards:
        said = f" ({', '.join(f'`{field}`' for field in guard.only)})" if guard.only else ""
        said = (
            f" (any field but {', '.join(f'`{field}`' for field in guard.but)})"
            if guard.but
            else said
        )
        kinds.append(f"{guard.kind}{said}")
    groups = f" of {' and '.join(f'`{group}`' for group in one.groups)}" if one.groups else ""
    named = ", ".join(kinds) + groups if kinds else ""
    return f"| {one.title} | {named} | {', '.join(f'`{name}`' for name in one.annotations)} |"


def _project(one: Project) -> Iterator[str]:
    yield f"## From {one.title}"
    yield ""
    groups = " and ".join(f"`{group}`" for group in one.groups)
    yield f"Group {groups}; read in {one.title} {one.version}."
    yield ""
    if one.about:
        yield one.about
        yield ""
    for kind in one.kinds:
        yield from _kind(kind)
    if one.annotations is not None:
        yield from _annotations(one.annotations)


def _kind(one: ForeignKind) -> Iterator[str]:
    yield f"### {one.kind}"
    yield ""
    if one.about:
        yield one.about
        yield ""
    yield "| field | use |"
    yield "|---|---|"
    for name, found in one.fields.items():
        yield f"| `{name}` | {_say(found)} |"
        for below, part in one.inner.items():
            if below.startswith((f"{name}.", f"{name}[].")):
                yield f"| `{below}` | {_say(part)} |"
    yield ""


def _annotations(one: Annotations) -> Iterator[str]:
    for title, table in (("access", one.guards), ("anything else", one.others)):
        yield f"### Annotations that decide {title}"
        yield ""
        yield f"| `{one.domain}/` | use |"
        yield "|---|---|"
        for name, found in table.items():
            yield f"| `{name}` | {_say(found)} |"
        yield ""


def _say(one: Counterpart) -> str:
    if one.place == "here":
        return one.said
    meanwhile = "; meanwhile " if one.place == "later" else ", because "
    return f"{_PLACES[one.place]}{meanwhile}{one.said}" if one.said else _PLACES[one.place]
