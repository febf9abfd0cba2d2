"""Health checks that nobody makes: explain says so of the rules that have them, and of no others."""

from __future__ import annotations

import pytest

from edgefast.explain import read_request_spec, serve_translation
from edgefast.explain.explain import explain
from edgefast.ir import CHECKS_MOST
from edgefast.translate import translate
from tests.translate import world
from tests.translate.policy.test_backend_policies import PLAIN, aged

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("count", [CHECKS_MOST, CHECKS_MOST + 1])
def test_a_check_that_is_one_too_many_is_told(count: int) -> None:
    snapshot = world.many(count).replace([aged(at) for at in range(count)])
    served = serve_translation(translate(snapshot, PLAIN))
    told = {
        at
        for at in range(count)
        for note in explain(served, read_request_spec("GET", f"http://h{at}.example.com/")).notes
        if "is not used" in note
    }
    assert told == ({0} if count > CHECKS_MOST else set())  # the youngest
