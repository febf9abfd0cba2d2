"""Encoding: the effective response encodings of a rule, as text. The head of a response decides whether it is encoded.

In: a rule's traffic units in their order: overrides, the highest first, then the most specific one.
Out: the effective settings and their policy.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgefast import ir
from edgefast.explain.traffic import find_first

__all__ = ["describe_compression", "find_compression"]


def find_compression(units: Sequence[ir.PolicyUnit]) -> tuple[ir.Compression, str] | None:
    """Return what is in force, and whose it is."""
    return find_first(units, lambda one: one.compression)


def describe_compression(one: ir.Compression) -> str:
    """Return what it does."""
    if not one.encodings:
        return "answers are not encoded"
    return f"answers of {one.min_size} bytes or more may be encoded: {', '.join(one.encodings)}"
