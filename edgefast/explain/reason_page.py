"""Reason page: the page of a reason: its meaning, where it occurs, an example with the real messages, the fix.

In: a `Page` of the catalogue (edgefast/diagnostics/reasons). Out: Markdown, for docs/problems and
`edgefast problem`. Decoding and translating the example gives its messages, so a page cannot
promise what does not happen.
Must never: write a message of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.diagnostics.reasons.catalogue import PAGES
from edgefast.diagnostics.reasons.objects import BASE
from edgefast.diagnostics.reasons.plain_text import plain_text
from edgefast.diagnostics.reasons.word import Page, Place
from edgefast.translate.conditions.reasons import GOOD, REASONS
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings

__all__ = ["bring_about", "first_sentence", "is_bad", "render_index", "render_reason"]

_FILE = "example.yaml"
_MADE = (
    "<!-- Made from edgefast/diagnostics/reasons by `pytest tests/explain/test_reason_page.py --update-goldens`; "
    "do not edit. -->\n"
)
_SETTINGS: dict[Place, Settings] = {
    "files": Settings(),
    "bound": Settings(addresses=("127.0.0.1",)),
    "adopted": Settings(adopt=True),
    "cluster": Settings(standalone=False),
    "release": Settings(standalone=False, bundle_version="v0.8.0"),
    "removed": Settings(
        standalone=False, missing=("SecurityPolicy",), retained=("SecurityPolicy",)
    ),
}
_BESIDE = {
    "files": "With `edgefast check -f`",
    "bound": "With `edgefast run --bind 127.0.0.1`",
    "adopted": "With `edgefast check --adopt -f`",
    "cluster": "With `edgefast translate --to status -o table --cluster -f`",
    "release": "In a cluster with the CRDs of release v0.8.0",
    "removed": "In a cluster without the CRD `securitypolicies.gateway.edge.io`, after its deletion",
}
#: Characters; an example with a longer line is told, not shown.
_WIDEST = 160


def is_bad(reason: str) -> bool:
    """Tell whether a condition with this reason is worth a page."""
    return reason not in GOOD


def bring_about(page: Page) -> list[str]:
    """Decode and translate the example; return what is said with the page's word.

    From files problems, else conditions; in a cluster conditions, which are all that its objects show.
    """
    base = decode_documents(BASE.encode(), "base.yaml")
    own = decode_documents(page.example.encode(), _FILE)
    named = [(one.ref.kind, one.ref.namespace, one.ref.name) for one in own.objects]
    kept = [
        one for one in base.objects if (one.ref.kind, one.ref.namespace, one.ref.name) not in named
    ]
    snapshot = msgspec.structs.replace(
        Snapshot.of([*own.objects, *filter(None, (one.closed for one in own.refused)), *kept]),
        foreign_policies=own.policies,
    )
    translation = translate(snapshot, _SETTINGS[page.place])
    problems = [
        f"{one.line()}{' (warning)' if one.severity == 'warning' else ''}"
        for one in (*own.problems, *translation.problems)
        if one.reason == page.word
    ]
    if problems and page.place in ("files", "bound", "adopted"):
        return problems
    return [
        text
        for ref, status in translation.statuses.items()
        for text in _conditions(ref, msgspec.to_builtins(status), page.word)
    ]


def render_reason(page: Page, *, links: bool = True) -> str:
    """Return the page as Markdown; without `links` as a terminal has it."""
    lines = [_MADE] if links else []
    lines += [f"# {page.word}", "", _plain(page.means, links), "", "## What to do", ""]
    lines += [f"- {_plain(one, links)}" for one in page.fix]
    lines += ["", "## Where it appears", "", *_places(page, links), ""]
    if page.example:
        message = bring_about(page)
        beside = _BESIDE[page.place]
        if page.place == "files" and re.search(rf"  \w+  \w+  {page.word}  ", message[0]):
            beside = "With `edgefast translate --to status -o table -f`"
        lines += [f"{beside}, from", "", "```text", *_shown(page.example), "```", ""]
        lines += ["comes", "", "```text", *message, "```"]
        if links:
            lines += [
                "",
                "beside the objects of [the examples](README.md#the-objects-of-the-examples).",
            ]
    else:
        lines += ["```text", page.seen, "```"]
    return "\n".join(lines) + "\n"


def render_index() -> str:
    """Return docs/problems/README.md: every reason with its first sentence."""
    lines = [
        _MADE,
        "# Problems",
        "",
        "edgefast reports a problem with the same text everywhere: place, object, field path, "
        "reason, what is wrong, what is allowed,",
        "and a suggestion if there is one. Each reason has a page here; `edgefast problem "
        "REASON` prints it without files or",
        "network. `edgefast check`, `run`, `explain` and `status` end with this command, and the",
        "messages of conditions and Events in a cluster do, too. The console shows a summary, "
        "and `edgefast check -o json` has the field `page`.",
        "[Statuses](../reference/statuses.md) lists the reasons of each condition.",
        "",
        "| reason | meaning |",
        "|---|---|",
    ]
    lines += [f"| [{word}]({word}.md) | {first_sentence(page)} |" for word, page in PAGES.items()]
    lines += ["", "## The objects of the examples", "", "```yaml", BASE.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def _article(kind: str) -> str:
    """Return the article of a kind as it is spoken: an HTTPRoute, an XBackend, an Event, a Gateway."""
    return "an" if kind.startswith(("A", "E", "HTTP", "I", "O", "X")) else "a"


def _places(page: Page, links: bool) -> Iterator[str]:
    """Say which conditions have the word."""
    found = [
        f"- condition `{one.type}` {one.status} of {_article(kind)} {kind}: {one.meaning}"
        for kind, reasons in REASONS.items()
        for one in reasons
        if one.reason == page.word
    ]
    if page.where:
        yield page.where
    elif found:
        yield from found
        yield "- and in the messages of problems" if links else "- in the messages of problems"
    else:
        yield "In problems of `edgefast check`, in the log, and in messages of conditions and Events."


def _conditions(ref: ObjectRef, status: dict[str, Any], word: str) -> Iterator[str]:
    """Give rows of the table of `edgefast translate --to status`, columns two spaces apart."""
    holders = [("", status)]
    holders += [(str(one["name"]), one) for one in status.get("listeners", ())]
    for field in ("parent", "ancestor"):
        for one in status.get(f"{field}s", ()):
            reference = one[f"{field}Ref"]
            section = reference.get("sectionName")
            holders.append(
                (f"{reference['name']}/{section}" if section else reference["name"], one)
            )
    for at, holder in holders:
        for one in holder.get("conditions", ()):
            if one["reason"] == word:
                cells = (str(ref), at, one["type"], one["status"], word, one["message"])
                yield "  ".join(cell for cell in cells if cell)


def _shown(example: str) -> Iterator[str]:
    for line in example.rstrip().split("\n"):
        yield line if len(line) <= _WIDEST else f"{line[: _WIDEST - 4]} ..."


def first_sentence(page: Page) -> str:
    """Return what the word means in one sentence, without links."""
    return plain_text(page.means, targets=False).partition(". ")[0].rstrip(".") + "."


def _plain(text: str, links: bool) -> str:
    """Leave links out for a terminal."""
    return text if links else plain_text(text)
