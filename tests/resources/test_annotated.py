"""Annotations of other projects: which of an object's are known, in which order, how many of them, and that values go nowhere."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from edgefast.resources.decode.decode import decode_documents
from edgefast.resources.foreign.annotated import Rest, find_annotated, hint_annotated

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
    assert [(one.short, one.guards) for one in found] == [
        ("auth-url", True),
        ("satisfy", True),
        ("app-root", False),
        ("limit-rate", False),
    ]
    assert rest == Rest() and "secret" not in repr(found)


def test_one_that_is_in_no_table_may_decide_it() -> None:
    ((one,), _) = find_annotated({f"{NGINX}/whitelist-sorce-range": "10.0.0.0/8"})
    assert one.guards and one.said == "whitelist-sorce-range is not here"


def test_many_and_long_ones_are_bounded() -> None:
    many = {f"{NGINX}/{'x' * 10_000}{at:03}": "v" * 10_000 for at in range(100)}
    found, rest = find_annotated({**many, f"{NGINX}/auth-url": "v"})
    assert len(found) == 32 and rest == Rest(69, guards=True)
    assert found[0].short == "auth-url"
    assert len(repr(found)) < 32 * 1_000


def test_an_ingress_keeps_a_bounded_message_and_no_value() -> None:
    annotations = {f"{NGINX}/{'x' * 1_000}{at:03}": "hunter2" * 100 for at in range(100)}
    raw = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "many", "annotations": annotations},
        "spec": {"rules": [{"host": "a.example"}]},
    }
    (problem,) = decode_documents(yaml.safe_dump(raw).encode(), "a.yaml").problems
    assert problem.severity == "error"
    assert problem.hint.endswith("; and 68 more; see edgefast docs migrating")
    assert len(problem.text()) < 32 * 500 and "hunter2" not in problem.text()


@pytest.mark.parametrize(
    "metadata",
    [None, 7, [], {}, {"annotations": None}, {"annotations": ["a"]}, {"annotations": {7: 8}}],
)
def test_what_is_no_metadata_says_nothing(metadata: Any) -> None:
    assert hint_annotated({"metadata": metadata}) == "see edgefast docs migrating"


def test_of_those_that_are_not_told_one_by_one_it_is_known_whether_any_guards() -> None:
    guards = [f"{NGINX}/x{at}" for at in range(32)]  # in no table: they may
    _, rest = find_annotated([*guards, f"{NGINX}/proxy-buffering"])
    assert rest == Rest(1, guards=False)
    _, rest = find_annotated([*guards, f"{NGINX}/auth-url"])
    assert rest == Rest(1, guards=True)
