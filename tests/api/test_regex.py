"""Replacing by a regular expression: every match as RE2's GlobalReplace has it, groups, and substitutions that are none."""

from __future__ import annotations

import pytest

from edgefast import ir
from edgefast.api.model.regex import replace_regex
from edgefast.explain.forwarded import rewrite_path

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("pattern", "value", "text", "made"),
    [
        ("o", "0", "/foo/o", "/f00/0"),
        ("^/v([0-9])/(.*)$", r"/\2/\1\0", "/v2/a", "/a/2/v2/a"),
        ("x*", "-", "axxb", "-a-b-"),
        ("", "-", "ab", "-a-b-"),
        ("^", "/p", "/a", "/p/a"),
        ("$", "/end", "/a", "/a/end"),
        (".*", "/all", "/a/b", "/all"),
        ("(a)?b", r"<\1>", "bab", "<><a>"),
        ("a", r"\\1", "a", r"\1"),
        ("none", "x", "/foo", "/foo"),
        ("a", r"\1", "a", None),
        ("a", "x\\", "a", None),
        ("a", r"\n", "a", None),
        ("(", "x", "a", None),
    ],
)
def test_replacing(pattern: str, value: str, text: str, made: str | None) -> None:
    found = replace_regex(pattern, value.encode(), text.encode())
    assert found == (made.encode() if made is not None else None)


@pytest.mark.parametrize(
    ("value", "is_path"),
    [("/a", True), ("a", False), ("", False), ("/a b", False), ("/a?b", False), ("/a#b", False)]
    + [("/a/../b", False), ("//a", False), ("/%2Fa", False), ("/%41", False), ("/a%c3", False)]
    + [("/%C3", True), ("/.a", True), ("/a\\b", False), ("/a..;/b", True), ("/..;/b", False)]
    + [("/\x7f", False), ("/" + "a" * 8191, True), ("/" + "a" * 8192, False)],
)
def test_what_is_no_path(value: str, is_path: bool) -> None:
    found = rewrite_path(b"/x", ir.PathRewrite("regex", value.replace("\\", r"\\"), ".*"))
    assert found == (value.encode() if is_path else None)


def test_escaped_slashes_stay_where_they_were() -> None:
    rewrite = ir.PathRewrite("regex", "b", "x")
    assert rewrite_path(b"/a%2Fx", rewrite) == b"/a%2Fb"
    assert rewrite_path(b"/..%2Fx", rewrite) == b"/..%2Fb"
