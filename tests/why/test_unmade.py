"""Health checks that nobody makes: explain says so of the rules that have them, and of no others."""

from __future__ import annotations

import pytest

from edgefast.ir import CHECKS_MOST
from edgefast.translate import translate
from edgefast.why import read_ask, serve_translation
from edgefast.why.explain import explain
from tests.translate import world
from tests.translate.policy.test_treatments import PLAIN, aged

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("count", [CHECKS_MOST, CHECKS_MOST + 1])
def test_a_check_that_is_one_too_many_is_told(count: int) -> None:
    snapshot = world.many(count).replace([aged(at) for at in range(count)])
    served = serve_translation(translate(snapshot, PLAIN))
    told = {
        at
        for at in range(count)
        for note in explain(served, read_ask("GET", f"http://h{at}.example.com/")).notes
        if "is not used" in note
    }
    assert told == ({0} if count > CHECKS_MOST else set())  # the youngest
