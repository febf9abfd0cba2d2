"""Annotations of other projects: which of an object's are known, in which order, how many of them, and that values go nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from edgefast.api.migration.annotations import Rest, find_annotated, name_annotations

pytestmark = pytest.mark.pure

NGINX = "nginx.ingress.kubernetes.io"


def test_others_are_left_alone() -> None:
    others = {
        "kubectl.kubernetes.io/last-applied-configuration": f'{{"{NGINX}/auth-url": 1}}',
        "nginx.ingress.kubernetes.io": "no name",
        "nginx.org/rewrites": "of another project",
        "haproxy.org/allow-list": "of another project",
        f"x{NGINX}/auth-url": "1",
    }
    assert find_annotated(others) == ([], Rest())
    assert find_annotated({}) == ([], Rest())


def test_who_decides_who_gets_in_comes_first() -> None:
    found, rest = find_annotated(
        {f"{NGINX}/{one}": "secret" for one in ("app-root", "satisfy", "auth-url", "limit-rate")}
    )
    assert [(one.short, one.access_policies) for one in found] == [
        ("auth-url", True),
        ("satisfy", True),
        ("app-root", False),
        ("limit-rate", False),
    ]
    assert rest == Rest() and "secret" not in repr(found)


def test_one_that_is_in_no_table_may_decide_it() -> None:
    ((one,), _) = find_annotated({f"{NGINX}/whitelist-sorce-range": "10.0.0.0/8"})
    assert one.access_policies and one.said == "whitelist-sorce-range: no equivalent"


def test_many_and_long_ones_are_bounded() -> None:
    many = {f"{NGINX}/{'x' * 10_000}{at:03}": "v" * 10_000 for at in range(100)}
    found, rest = find_annotated({**many, f"{NGINX}/auth-url": "v"})
    assert len(found) == 32 and rest == Rest(69, access_policies=True)
    assert found[0].short == "auth-url"
    assert len(repr(found)) < 32 * 1_000


@pytest.mark.parametrize(
    "metadata",
    [None, 7, [], {}, {"annotations": None}, {"annotations": ["a"]}, {"annotations": {7: 8}}],
)
def test_what_is_no_metadata_says_nothing(metadata: Any) -> None:
    assert list(name_annotations({"metadata": metadata})) == []


def test_of_those_that_are_not_told_one_by_one_it_is_known_whether_any_guards() -> None:
    guards = [f"{NGINX}/x{at}" for at in range(32)]  # in no table: they may
    _, rest = find_annotated([*guards, f"{NGINX}/proxy-buffering"])
    assert rest == Rest(1, access_policies=False)
    _, rest = find_annotated([*guards, f"{NGINX}/auth-url"])
    assert rest == Rest(1, access_policies=True)
