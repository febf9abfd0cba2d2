"""The small rules on their own: hostnames, paths, regexes, precedence, references, certificates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast import ir
from edgefast.translate.certificate import check_bundle, parse_pair
from edgefast.translate.condition import MESSAGE_LIMIT, cut_message
from edgefast.translate.edgeproxy import MAX_HEAD, MAX_HEADERS
from edgefast.translate.hostname import intersects, matching_hostnames
from edgefast.translate.path import MAX_SEGMENTS, check_path, normalize_path, strip_slash
from edgefast.translate.precedence import match_order
from edgefast.translate.regex import check_regex
from edgefast.translate.settings import Settings, settings_from

pytestmark = pytest.mark.pure

_NAMES = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4).map(".".join)
_PATTERNS = st.one_of(_NAMES, _NAMES.map(lambda name: f"*.{name}"), st.just("*"))


def _matches(pattern: str, host: str) -> bool:
    """Say what Listener.hostname says, label by label."""
    if pattern == "*":
        return True
    wanted, labels = pattern.split("."), host.split(".")
    if wanted[0] != "*":
        return wanted == labels
    return len(labels) >= len(wanted) and labels[len(labels) - len(wanted) + 1 :] == wanted[1:]


@given(_PATTERNS, _PATTERNS)
def test_patterns_intersect_exactly_when_a_host_matches_both(one: str, other: str) -> None:
    hosts = [
        ".".join(labels)
        for size in range(1, 6)
        for labels in _words(size)
        if _matches(one, ".".join(labels)) and _matches(other, ".".join(labels))
    ]
    assert intersects(one, other) == bool(hosts)
    assert intersects(other, one) == intersects(one, other)


def _words(size: int) -> list[tuple[str, ...]]:
    if size == 0:
        return [()]
    return [(letter, *rest) for rest in _words(size - 1) for letter in "ab"]


def test_hostnames_come_once_and_in_order() -> None:
    assert matching_hostnames("*", ("b", "a", "b")) == ("b", "a")
    assert matching_hostnames("*.example.com", ()) == ("*",)
    assert matching_hostnames("a.example.com", ("example.com",)) == ()


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "/a b",
        "/a?b",
        "/a#b",
        "/%",
        "/%zz",
        "/a//b",
        "/./a",
        "/a/..",
        "/%2e",
        "/%2F",
        "/a%5c",
        "/é",
        "/\r\n",
    ],
)
def test_paths_that_no_request_has(path: str) -> None:
    assert check_path(path)


@pytest.mark.parametrize(
    "path", ["/", "/a/", "/a/b;c=1,d", "/%20", "/~user/@x", "/...", "/.well-known"]
)
def test_paths_that_requests_have(path: str) -> None:
    assert not check_path(path)


@given(st.text("abc%2fF7eE/.~-", max_size=12))
def test_normal_form_is_stable(path: str) -> None:
    assert normalize_path(normalize_path(path)) == normalize_path(path) or "%25" in path
    assert not strip_slash("/")


def test_regex_is_re2() -> None:
    assert not check_regex(r"/v[0-9]+/.*")
    assert check_regex(r"(a)\1") and check_regex("(?=a)") and check_regex("[")


def test_order_of_matches() -> None:
    header = ir.ValueMatch(name="h", value="v")
    ordered = [
        ir.Match(kind="exact", path="/aa"),
        ir.Match(kind="exact", path="/a"),
        ir.Match(kind="regex", path="/.*"),
        ir.Match(kind="prefix", path="/aa"),
        ir.Match(kind="prefix", path="/a", method="GET"),
        ir.Match(kind="prefix", path="/a", headers=(header,), query=(header,)),
        ir.Match(kind="prefix", path="/a", headers=(header,)),
        ir.Match(kind="prefix", path="/a", query=(header,)),
        ir.Match(kind="prefix", path="/a"),
        ir.Match(kind="prefix", path=""),
    ]
    backwards = list(reversed(ordered))
    assert sorted(backwards, key=match_order) == ordered


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"x",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"A" * 2_000_000,
    ],
)
def test_broken_certificates_are_said_and_never_raise(text: bytes) -> None:
    assert check_bundle(text)
    assert isinstance(parse_pair(text, text), str)


def test_messages_are_cut_at_the_limit_of_the_api() -> None:
    assert cut_message("x" * MESSAGE_LIMIT) == "x" * MESSAGE_LIMIT
    cut = cut_message("x" * (MESSAGE_LIMIT + 1))
    assert len(cut) == MESSAGE_LIMIT and cut.endswith("(cut)")


def test_settings_of_an_empty_configuration() -> None:
    assert settings_from() == Settings()
    cluster = settings_from(standalone=False)
    assert not cluster.standalone and not cluster.enable_backend


def test_limits_are_those_of_the_table() -> None:
    lib = pytest.importorskip("edgefast._csrc").lib
    assert MAX_SEGMENTS == lib.EF_MAX_SEGMENTS - 1
    assert MAX_HEAD == lib.EF_MAX_HEAD
    assert MAX_HEADERS == lib.EF_MAX_HEADERS
