"""Reasons: each has a page, each page a reason; examples bring about what they show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef, Problem, ask_for_more, page_of
from edgefast.diagnostics.reasons.catalogue import PAGES
from edgefast.diagnostics.reasons.mentions import BEHIND, BY_PROXIES, name_reasons
from edgefast.diagnostics.reasons.objects import BASE
from edgefast.diagnostics.reasons.word import Page, Word
from edgefast.explain.reason_page import bring_about, is_bad, render_index, render_reason
from edgefast.translate import Settings, translate
from edgefast.translate.conditions.reasons import REASONS

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "problems"
WORDS = set(get_args(Word))


def test_every_word_has_a_page_and_every_page_a_word() -> None:
    assert set(PAGES) == WORDS
    assert list(get_args(Word)) == sorted(WORDS)


def test_no_problem_can_have_another_word() -> None:
    """mypy holds whoever makes a Problem to it."""
    assert get_type_hints(Problem)["reason"] == Word
    assert set(get_args(get_args(get_type_hints(Problem)["condition"])[0])) <= {*WORDS, ""}


def test_every_condition_that_tells_of_trouble_has_a_page() -> None:
    found = {one.reason for reasons in REASONS.values() for one in reasons}
    assert {one for one in found if is_bad(one)} <= set(PAGES)


def test_conditions_that_only_a_controller_makes_have_a_page() -> None:
    """These rooms write conditions and Events as plain values."""
    texts = [path.read_text() for path in (ROOT / "controller").rglob("*.py")]
    written = {
        one
        for text in texts
        for one in re.findall(r'"reason": "([A-Z]\w+)"|events\.warn\([^,]+, "([A-Z]\w+)"', text)
        for one in one
        if one
    }
    events = {"FleetFailed", "FleetKept", "ConfigurationRefused", "TicketKeysNotKept"}
    assert {"Pending", "RefusedByProxies", *events} <= written
    assert written <= {*PAGES, "Accepted"}


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.word)
def test_examples_bring_about_what_they_show(page: Page) -> None:
    assert bool(page.example) != bool(page.seen)
    assert page.means.endswith(".") and page.fix
    if page.example:
        said = bring_about(page)
        assert said and all(page.word in line for line in said)
    else:
        assert page.word in page.seen


def test_what_files_can_bring_about_is_shown_by_an_example() -> None:
    told = {page.word for page in PAGES.values() if page.seen}
    # These need keys, proxies, an API server or objects that the strict decoder refuses.
    assert told == {
        "AccessDenied",
        "CertificateExpiring",
        "CertificateNotValid",
        "ConfigurationRefused",
        "EvictingStore",
        "FleetFailed",
        "FleetKept",
        "IncompatibleFilters",
        "KeysNotFetched",
        "NoResources",
        "NotAssigned",
        "NotCounted",
        "OrdersNotServed",
        "OverlappingHostnames",
        "PartiallyAssigned",
        "PartiallyInvalidCertificateRef",
        "Pending",
        "PodsNotRead",
        "PortNotSpecified",
        "RefusedByProxies",
        "TicketKeysNotKept",
        "ZoneNotKnown",
    }


def test_the_objects_of_the_examples_are_sound() -> None:
    decoded = decode_documents(BASE.encode(), "base.yaml")
    translation = translate(Snapshot.of(decoded.objects), Settings())
    assert not decoded.problems and not translation.problems


def test_pages_are_written(pytestconfig: pytest.Config) -> None:
    pages = {f"{word}.md": render_reason(page) for word, page in PAGES.items()}
    pages["README.md"] = render_index()
    if pytestconfig.getoption("--update-goldens"):
        FOLDER.mkdir(exist_ok=True)
        for name, text in pages.items():
            (FOLDER / name).write_text(text)
    assert {path.name for path in FOLDER.iterdir()} == set(pages)
    stale = [name for name, text in pages.items() if (FOLDER / name).read_text() != text]
    assert not stale


def test_links_of_pages_lead_somewhere() -> None:
    for path in FOLDER.iterdir():
        for target in re.findall(r"\]\(([^)#]+)", path.read_text()):
            assert (FOLDER / target).exists(), (path.name, target)


def test_a_terminal_gets_no_links() -> None:
    for page in PAGES.values():
        assert "](" not in render_reason(page, links=False)
    assert "reference (edgefast docs reference) lists all" in render_reason(
        PAGES["Invalid"], links=False
    )
    assert "(how (edgefast docs guides/explain))" in render_reason(PAGES["Shadowed"], links=False)


def test_texts_name_their_reasons() -> None:
    said = 'HTTPRoute default/a spec.rules[0].matches[0].path.type: NotSupported "PathPrefx" (supported: Exact)'
    assert name_reasons(said) == ("NotSupported",)
    assert name_reasons(
        "Dropped Rule 4: HTTPRoute a/b spec: NotFound x; HTTPRoute a/b: Invalid"
    ) == ("NotFound", "Invalid")
    assert name_reasons("InvalidCertificateRef Secret a/Invalid not found") == (
        "InvalidCertificateRef",
    )
    assert name_reasons("Service default/Forbidden has no endpoints") == ()
    for page in PAGES.values():
        for line in bring_about(page) if page.example else ():
            assert page.word in name_reasons(line) or f"  {page.word}  " in line


@pytest.mark.parametrize(
    "value", ["x: Forbidden y", 'a"b: Forbidden c', "x; NotFound", "(: Required"]
)
def test_users_text_names_no_reason(value: str) -> None:
    """What stands in double quotes is somebody's; a quote that is not closed (a message was cut) reaches to the end."""
    assert name_reasons(f'HTTPRoute a/b spec.x: Invalid "{value}", and no more') == ("Invalid",)
    assert name_reasons(f'HTTPRoute a/b spec.x: Invalid "{value}') == ("Invalid",)
    keyed = f"HTTPRoute a/b spec[{value}].x: NotSupported unknown field"
    assert name_reasons(keyed) == ("NotSupported",)
    both = f'HTTPRoute a/b: Invalid "{value}"; HTTPRoute a/c spec: TooMany 3'
    assert name_reasons(both) == ("Invalid", "TooMany")


def test_proxies_text_names_no_reason() -> None:
    said = "waiting for the proxies to apply the tables"
    assert name_reasons(f"{said}{BEHIND}ns/p (read failed: Invalid table)") == ()
    assert name_reasons(f"{said}; {BY_PROXIES}listener a: PortUnavailable 80") == ()
    assert name_reasons(f"Gateway a/b: TooMany 3; {BY_PROXIES}x: Invalid") == ("TooMany",)


def test_messages_name_the_page() -> None:
    ref = ObjectRef("HTTPRoute", "default", "web")
    many = [Problem(ref, "spec", "Invalid", ""), Problem(ref, "", "TooMany", "")] * 2
    assert ask_for_more(many) == "edgefast problem Invalid TooMany"
    assert ask_for_more([]) == ""
    assert (ROOT / page_of("Invalid")).exists()
