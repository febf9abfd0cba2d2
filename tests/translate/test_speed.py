"""A bound that a change of complexity would break: processor time, not wall time."""

from __future__ import annotations

import gc
import time

import pytest

from edgefast.translate import Settings, translate
from tests.translate import world


@pytest.mark.pure
def test_thousand_routes_in_150_ms_and_one_more_in_a_tenth() -> None:
    snapshot = world.many(1000)
    changed = snapshot.replace([world.route(5, path="/new")])
    whole, again = [], []
    gc.collect()
    for _ in range(5):
        begin = time.process_time()
        translation = translate(snapshot, Settings())
        middle = time.process_time()
        translate(changed, Settings(), translation)
        again.append(time.process_time() - middle)
        whole.append(middle - begin)
    assert min(whole) < 0.150
    assert min(again) < 0.015
