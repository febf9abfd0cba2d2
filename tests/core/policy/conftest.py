"""The suites about services that are asked, a second time: for questions of a listener, in place of those of a rule.

In: test functions. Out: each of these modules' tests twice, but for those that say what is different (`of_a_rule`).
Must never: change what a test of another module sees.
"""

from __future__ import annotations

import pytest

from core.policy.authorized import PLACE

TWINS = frozenset(
    {
        "test_auth_bodies",
        "test_auth_cache",
        "test_auth_calls",
        "test_auth_chaos",
        "test_auth_failures",
        "test_auth_headers",
        "test_auth_http2",
        "test_auth_memory",
        "test_auth_spans",
        "test_auth_waits",
        "test_check_cache",
        "test_check_calls",
        "test_check_denials",
        "test_check_failures",
    }
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask for both places."""
    named = metafunc.module.__name__.rpartition(".")[2]
    if named in TWINS and not hasattr(metafunc.function, "of_a_rule"):
        metafunc.parametrize("guard_place", ["rule", "listener"], indirect=True)


@pytest.fixture(autouse=True)
def guard_place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the question stands."""
    monkeypatch.setenv(PLACE, getattr(request, "param", "rule"))
