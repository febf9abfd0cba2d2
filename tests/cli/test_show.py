"""What `edgefast translate` shows: everything but what opens something."""

from __future__ import annotations

import json

import pytest

from edgefast import ir
from edgefast.api.snapshot import Snapshot
from edgefast.cli.show import REDACTED, ir_value
from edgefast.translate import Settings, translate
from tests.translate import world

pytestmark = pytest.mark.pure


def test_the_store_of_counters_is_shown_without_its_secrets() -> None:
    store = ir.RateLimitStore(
        kind="redis",
        addresses=("redis:6379",),
        user="edge",
        password="hunter2",
        ca=b"authority",
        private_key=b"key",
    )
    translation = translate(Snapshot.of([world.gateway_class(), world.gateway()]), Settings())
    fleet = ir.Fleet(name="f", limit_store=store, secrets=(ir.Secret(name="s", ca=b"authority"),))
    translation = type(translation)(
        ir=ir.IR(fleets=(fleet,)),
        infra=(),
        statuses=translation.statuses,
        told=translation.told,
        work=translation.work,
        memo=translation.memo,
    )
    shown = ir_value(translation)
    assert shown["fleets"][0]["limit_store"] == {
        "kind": "redis",
        "addresses": ("redis:6379",),
        **dict.fromkeys(("user", "password", "ca", "private_key"), REDACTED),
    }
    assert "hunter2" not in json.dumps(shown)
