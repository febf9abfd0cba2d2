"""What an authorization says of a request: the first rule that holds decides, and what cannot be told lets nobody in."""

from __future__ import annotations

import pytest

from edgefast import ir
from edgefast.explain.access import describe_access, evaluate_access
from edgefast.table import Request

pytestmark = pytest.mark.pure

INSIDE = ir.AccessRule(allow=True, name="inside", sources=("10.0.0.0/8", "2001:db8::/32"))
READING = ir.AccessRule(allow=True, methods=("GET", "HEAD"), paths=(("prefix", "/public"),))
GOLD = ir.AccessRule(allow=True, headers=(("x-plan", ("gold", "silver")),))
NO_GUESTS = ir.AccessRule(allow=False, headers=(("x-user", ("guest",)),))


def decide(
    *rules: ir.AccessRule,
    method: str = "GET",
    path: str = "/",
    client: str = "192.0.2.1",
    headers: tuple[tuple[str, str], ...] = (),
    allow: bool = False,
) -> tuple[bool, int | None]:
    found = evaluate_access(
        ir.Authorization(rules, allow), Request(method=method, path=path, headers=headers), client
    )
    return found.allow, found.rule


def test_the_first_rule_that_holds_decides() -> None:
    assert decide(NO_GUESTS, INSIDE, client="10.1.2.3") == (True, 1)
    assert decide(NO_GUESTS, INSIDE, client="10.1.2.3", headers=(("X-User", "guest"),)) == (
        False,
        0,
    )
    assert decide(INSIDE, NO_GUESTS, client="10.1.2.3", headers=(("X-User", "guest"),)) == (True, 0)


def test_without_one_the_default_does() -> None:
    assert decide(INSIDE) == (False, None)
    assert decide(INSIDE, allow=True) == (True, None)
    assert decide() == (False, None)


@pytest.mark.parametrize(
    ("path", "holds"),
    [("/public", True), ("/public/a", True), ("/publication", False), ("/", False)],
)
def test_a_prefix_covers_whole_segments(path: str, holds: bool) -> None:
    assert decide(READING, path=path) == ((True, 0) if holds else (False, None))


def test_all_conditions_have_to_hold() -> None:
    assert decide(READING, path="/public", method="POST") == (False, None)
    assert decide(READING, path="/public", method="HEAD") == (True, 0)


@pytest.mark.parametrize(
    ("kind", "wanted", "path", "holds"),
    [
        ("exact", "/a", "/a", True),
        ("exact", "/a", "/a/", False),
        ("prefix", "", "/whatever", True),
        ("regex", "/v[0-9]+/.*", "/v1/x", True),
        ("regex", "/v[0-9]+", "/v1/x", False),
    ],
)
def test_paths(kind: ir.PathKind, wanted: str, path: str, holds: bool) -> None:
    rule = ir.AccessRule(allow=True, paths=((kind, wanted),))
    assert decide(rule, path=path)[0] is holds


@pytest.mark.parametrize(
    ("client", "holds"),
    [("10.255.0.1", True), ("11.0.0.1", False), ("2001:db8::1", True), ("::ffff:10.0.0.1", True)],
)
def test_addresses(client: str, holds: bool) -> None:
    assert decide(INSIDE, client=client)[0] is holds


def test_a_header_that_came_twice_lets_nobody_in() -> None:
    assert decide(GOLD, headers=(("x-plan", "gold"),)) == (True, 0)
    assert decide(GOLD, headers=(("x-plan", "gold"), ("X-Plan", "gold"))) == (False, None)
    twice = (("x-user", "ann"), ("x-user", "guest"))
    assert decide(NO_GUESTS, headers=twice, allow=True) == (False, 0)


@pytest.mark.parametrize("lines", [["ann, guest"], ["ann", "x,guest"], ["guest,"]])
def test_a_list_is_denied_by_each_of_its_elements(lines: list[str]) -> None:
    headers = tuple(("x-user", one) for one in lines)
    assert decide(NO_GUESTS, headers=headers, allow=True) == (False, 0)


def test_lines_are_denied_as_the_one_that_they_may_be_joined_to() -> None:
    rule = ir.AccessRule(allow=False, headers=(("x-a", ("1,2",)),))
    assert decide(rule, headers=(("x-a", "1"), ("x-a", "2")), allow=True) == (False, 0)


def test_an_address_that_is_none_lets_nobody_in() -> None:
    assert decide(INSIDE, client="") == (False, None)
    denied = ir.AccessRule(allow=False, sources=("10.0.0.0/8",))
    assert decide(denied, client="", allow=True) == (False, 0)


def test_values_are_told_from_one_another_by_case() -> None:
    assert decide(GOLD, headers=(("x-plan", "Gold"),)) == (False, None)


def test_it_says_which_rule_and_why_the_others_do_not_hold() -> None:
    access = ir.Authorization((NO_GUESTS, GOLD, INSIDE))
    found = evaluate_access(access, Request(headers=(("x-plan", "iron"),)), "10.0.0.1")
    assert found.why == "rules[2] (inside) allows"
    assert found.failed == (
        "rules[0]: header x-user is missing",
        "rules[1]: header x-plan: iron is not gold or silver",
    )


def test_credentials_are_told_by_their_length() -> None:
    rule = ir.AccessRule(allow=True, headers=(("x-api-key", ("k-17",)),))
    found = evaluate_access(
        ir.Authorization((rule,)), Request(headers=(("x-api-key", "?"),)), "::1"
    )
    assert "k-17" not in str(found) + describe_access(rule)
    assert "<4 characters, not shown>" in describe_access(rule)


@pytest.mark.parametrize(
    ("names", "allowed", "denied"),
    [
        (("X_Plan",), False, True),
        (("x.plan",), False, True),
        (("x-plan", "x_plan"), False, True),
        (("x-plan",), True, True),
        (("x-plans",), False, False),
    ],
)
def test_spellings_of_one_name_let_nobody_in(
    names: tuple[str, ...], allowed: bool, denied: bool
) -> None:
    headers = tuple((one, "gold") for one in names)
    rule = ir.AccessRule(allow=False, headers=GOLD.headers)
    assert decide(GOLD, headers=headers)[0] is allowed
    assert decide(rule, headers=headers, allow=True)[0] is not denied


@pytest.mark.parametrize(
    ("kind", "wanted", "path", "denied"),
    [
        ("prefix", "/admin", "/admin;a/x", True),
        ("prefix", "/admin", "/;a/admin", True),
        ("prefix", "/admin", "/admin%3Ba/x", True),
        ("prefix", "/admin", "/admin%2Fx", True),
        ("prefix", "/admin", "/x%2F..;%2Fy", True),
        ("prefix", "/admin", "/x%2Fadmin", False),
        ("prefix", "/admin", "/a;/admin", False),
        ("exact", "/a@b", "/a%40b", True),
        ("exact", "/a%40b", "/a@b", True),
        ("exact", "/a;b", "/a", False),
        ("exact", "/a;b", "/a;c", False),
        ("regex", "/admin(/.*)?", "/admin;a/x", True),
        ("regex", "/a@b", "/a%40b", True),
    ],
)
def test_paths_that_servers_read_as_another_are_denied(
    kind: ir.PathKind, wanted: str, path: str, denied: bool
) -> None:
    rule = ir.AccessRule(allow=False, paths=((kind, wanted),))
    assert decide(rule, path=path, allow=True)[0] is not denied
    allows = ir.AccessRule(allow=True, paths=((kind, wanted),))
    assert decide(allows, path=path)[0] is False
