"""Row label: the name of the counters of a rule, or of one of its limits, in a segment (csrc/stat.h).

In: names of the IR. Out: labels as readers of rows see them: long ones are cut, and a digest
separates them.
Must never: know what is counted.
"""

from __future__ import annotations

from edgefast import ir
from edgefast._csrc import ffi, lib

__all__ = ["label_limit", "label_policy", "label_rule"]

_LIMIT = b"limit\t"  # before it is cut
_POLICY = b"policy\t"


def label_rule(rule: ir.Rule) -> bytes:
    """Return the label of a rule's row, "route\\trule"."""
    return _cut(f"{rule.route}\t{rule.name or rule.index}".encode())


def label_limit(route: str, limit: str) -> bytes:
    """Return the label of the row of a limit that a route has, without what tells it from a rule: "route\\tlimit"."""
    return _cut(_LIMIT + f"{route}\t{limit}".encode()).removeprefix(_LIMIT)


def label_policy(name: str) -> bytes:
    """Return the label of the row of a policy's unit, without what tells it from a rule: "kind/namespace/policy\\tunit"."""
    policy, _, unit = name.partition("#")
    text = f"{policy}\t{unit or policy.partition('/')[0]}"
    return _cut(_POLICY + text.encode()).removeprefix(_POLICY)


def _cut(label: bytes) -> bytes:
    if len(label) < lib.EF_STAT_LABEL - 8:  # all but a few
        return label
    out = ffi.new("uint8_t[]", lib.EF_STAT_LABEL)
    return bytes(ffi.buffer(out, lib.ef_stat_label(out, label, len(label))))
