"""The same objects give the same bytes, and translation changes and reads nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from edgefast.api.snapshot import Snapshot
from edgefast.translate import translate
from tests.translate.golden import HERE, read_input, render
from tests.translate.test_goldens import CASES

_TABLES = tuple(
    name
    for name in Snapshot.__struct_fields__
    if name not in ("loaded", "foreign_policies", "unread")
)


def _freeze(snapshot: Snapshot) -> bytes:
    tables = {
        name: [(list(key), repr(value)) for key, value in getattr(snapshot, name).items()]
        for name in _TABLES
    }
    return msgspec.json.encode(tables)


@pytest.mark.pure
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.removesuffix(".in.yaml"))
def test_same_input_same_bytes_and_input_unchanged(path: Path) -> None:
    found = read_input(path)
    before = _freeze(found.snapshot)
    first = translate(found.snapshot, found.case.settings)
    memo = {key: id(value) for key, value in first.memo.routes.items()}
    second = translate(found.snapshot, found.case.settings)
    third = translate(found.snapshot, found.case.settings, first)
    assert msgspec.msgpack.Encoder(enc_hook=tuple).encode(first.ir) == msgspec.msgpack.Encoder(
        enc_hook=tuple
    ).encode(second.ir)
    assert msgspec.msgpack.Encoder(enc_hook=tuple).encode(first.ir) == msgspec.msgpack.Encoder(
        enc_hook=tuple
    ).encode(third.ir)
    assert render(found, first) == render(found, second) == render(found, third)
    assert third.work.routes == third.work.virtual_hosts == third.work.clusters == 0
    assert _freeze(found.snapshot) == before
    assert {key: id(value) for key, value in first.memo.routes.items()} == memo


@pytest.mark.pure
def test_order_of_objects_does_not_matter() -> None:
    chooser = random.Random(1)
    for path in CASES:
        found = read_input(path)
        items = [
            found.snapshot.loaded.get((type(one).__name__, *key), one)
            for name in _TABLES
            if name not in ("slices_by_service", "pods", "namespaces")
            for key, one in getattr(found.snapshot, name).items()
        ]
        items += found.snapshot.namespaces.values()
        chooser.shuffle(items)
        again = msgspec.structs.replace(Snapshot.of(items), pods=found.snapshot.pods)
        shuffled = translate(again, found.case.settings)
        straight = translate(found.snapshot, found.case.settings)
        assert render(found, shuffled) == render(found, straight), path.name


@pytest.mark.pure
def test_no_secret_is_ever_printed() -> None:
    for path in sorted((HERE / "cases").glob("tls-*.in.yaml")):
        found = read_input(path)
        translation = translate(found.snapshot, found.case.settings)
        shown = (
            f"{translation!r} {translation.ir!r} {translation.problems!r} {translation.statuses!r}"
        )
        assert "PRIVATE KEY" not in shown, path.name
        assert "BEGIN CERTIFICATE" not in shown, path.name
