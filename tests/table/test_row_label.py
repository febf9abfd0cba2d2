"""Labels of rows as a worker writes them: what fits, what is cut, and where."""

from __future__ import annotations

import pytest

from edgefast import ir
from edgefast._csrc import ffi, lib
from edgefast.table.row_label import label_limit, label_rule

pytestmark = pytest.mark.pure

NAMES = ("web", "w" * 253, "\u00e9" * 120, "w" * 178, "w" * 179, "w" * 180)
RULES = ("", "r" * 60, "r" * 63, "r" * 64, "r" * 253)


def written(label: str) -> bytes:
    """The label that a worker's row of this name has."""
    size = lib.ef_stat_size(4)
    memory = ffi.new("uint64_t[]", size // 8)
    assert lib.ef_stat_init(memory, size, 4) == 0
    row = lib.ef_stat_hold(ffi.cast("ef_stat *", memory), label.encode(), len(label.encode()))
    found = ffi.string(ffi.cast("char *", row.label))
    assert isinstance(found, bytes)
    return found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", NAMES)
def test_rules(name: str, rule: str) -> None:
    label = label_rule(ir.Rule(f"ns/{name}", 7, name=rule))
    assert label == written(f"ns/{name}\t{rule or 7}")
    assert len(label) < 184
    label.decode()  # whole characters


@pytest.mark.parametrize("limit", RULES[1:])
@pytest.mark.parametrize("name", NAMES)
def test_limits(name: str, limit: str) -> None:
    label = label_limit(f"ns/{name}", f"ns/{limit}#0")
    assert b"limit\t" + label == written(f"limit\tns/{name}\tns/{limit}#0")
