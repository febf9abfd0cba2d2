"""Fault: the effective fault injection of a rule, its policy and its effect on a request.

In: a rule's traffic units in their order: overrides, the highest first, then the most specific one.
Out: `FaultInForce`, the response of an abort. The twin of core/policy/fault.pyx. Must never: report which request it affects.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgefast import ir
from edgefast.explain.duration import write_time
from edgefast.explain.explanation import Answer
from edgefast.explain.traffic import find_first
from edgefast.translate.edgeproxy.protocols import GRPC_CODES

__all__ = ["FaultInForce", "describe_fault", "find_fault"]

_MILLION = 1_000_000


class FaultInForce(msgspec.Struct, frozen=True):
    """The fault injection that applies to a rule, and its effect on a request."""

    fault: ir.Fault
    unit: str

    def share(self, *, grpc: bool) -> float:
        """Return the part of such requests that it refuses, 0 to 1."""
        answers = self.fault.status or (grpc and self.fault.grpc_status is not None)
        return self.fault.abort_share / _MILLION if answers else 0.0

    def answer(self, *, grpc: bool) -> Answer:
        """Return what those get."""
        status = self.fault.status or 503
        named = grpc and self.fault.grpc_status is not None
        return Answer(
            kind="status",
            check="fault",
            status=status,
            grpc_status=_name(self.fault.grpc_status or 0) if named else "",
            why=f"{self.unit} refuses requests because of faultInjection",
            fix="remove faultInjection from the policy",
        )


def find_fault(units: Sequence[ir.PolicyUnit]) -> FaultInForce | None:
    """Return the fault that is in force."""
    found = find_first(units, lambda one: one.fault)
    return None if found is None else FaultInForce(*found)


def describe_fault(fault: ir.Fault) -> str:
    """Return what it does."""
    words = []
    if fault.delay and fault.delay_share:
        words.append(f"{_part(fault.delay_share)} wait {write_time(fault.delay)}")
    if fault.abort_share and fault.status:
        words.append(f"{_part(fault.abort_share)} are answered {fault.status}")
    if fault.abort_share and fault.grpc_status is not None:
        name = _name(fault.grpc_status)
        words.append(f"{_part(fault.abort_share)} of gRPC are answered {name}")
    return " and ".join(words) or "nothing happens"


def _name(status: int) -> str:
    return GRPC_CODES[status - 1] if status else "OK"


def _part(share: int) -> str:
    return "all requests" if share >= _MILLION else f"{share / 10_000:g} % of requests"
