"""Traffic: rules about BackendTrafficPolicies, each with its CEL twin for the CRD.

In: parts of the kind. Out: violations; `cel` is the same rule for an API server. policy.py has the
rules of both kinds of policies.
Must never: differ from its CEL.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.edge.backendtrafficpolicy import (
    BackendTrafficPolicySpec,
    FaultAbort,
    FaultDelay,
    FaultInjection,
)
from edgefast.api.edge.response_override import (
    ResponseOverride,
    StatusCodeMatch,
    StatusCodeRange,
)
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

#: Milliseconds that a request is made to wait at most.
MAX_DELAY = 60_000


@BOOK.on(
    FaultInjection,
    "delay",
    "abort",
    cel="has(self.delay) || has(self.abort)",
    message="faultInjection must have delay or abort",
)
def check_fault(one: FaultInjection) -> Iterable[Violation]:
    """A fault that is none was meant to be one."""
    if one.delay is None and one.abort is None:
        return (Violation((), "Required", "delay or abort"),)
    return ()


@BOOK.on(
    FaultDelay,
    "fixed_delay",
    cel="duration(self.fixedDelay) > duration('0s') && duration(self.fixedDelay) <= duration('60s')",
    message="fixedDelay must be more than 0s and at most 60s",
)
def check_delay(one: FaultDelay) -> Iterable[Violation]:
    """Who waits holds something."""
    if 0 < parse_duration(one.fixed_delay) <= MAX_DELAY:
        return ()
    message = f'"{one.fixed_delay}" (expected more than 0s, at most 60s)'
    return (Violation(("fixedDelay",), "Invalid", message),)


@BOOK.on(
    FaultAbort,
    "http_status",
    "grpc_status",
    cel="has(self.httpStatus) != has(self.grpcStatus)",
    message="exactly one of httpStatus and grpcStatus must be set",
)
def check_abort(one: FaultAbort) -> Iterable[Violation]:
    """There is one answer."""
    if one.http_status is None and one.grpc_status is None:
        return (Violation(("httpStatus",), "Required", "this or grpcStatus"),)
    if one.http_status is not None and one.grpc_status is not None:
        return (Violation(("grpcStatus",), "Forbidden", "together with httpStatus"),)
    return ()


# --- responseOverride -----------------------------------------------------------------------------------------------


@BOOK.on(
    ResponseOverride,
    "response",
    "redirect",
    "service",
    cel="[has(self.response), has(self.redirect), has(self.service)].filter(x, x).size() == 1",
    message="exactly one of response, redirect and service must be set",
)
def check_override(one: ResponseOverride) -> Iterable[Violation]:
    """There is one answer."""
    named = ("response", "redirect", "service")
    found = [name for name in named if getattr(one, name) is not None]
    if not found:
        return (Violation(("response",), "Required", "this, redirect or service"),)
    return tuple(Violation((name,), "Forbidden", f"together with {found[0]}") for name in found[1:])


@BOOK.on(
    StatusCodeMatch,
    "type",
    "value",
    "range",
    cel="self.type == 'Value' ? has(self.value) && !has(self.range) : has(self.range) && !has(self.value)",
    message="exactly the one of value and range that matches type must be set",
)
def check_statuses(one: StatusCodeMatch) -> Iterable[Violation]:
    """Statuses are said in one way."""
    named, other = ("value", "range") if one.type == "Value" else ("range", "value")
    if getattr(one, named) is None:
        yield Violation((named,), "Required", f"with type {one.type}")
    if getattr(one, other) is not None:
        yield Violation((other,), "Forbidden", f"with type {one.type}")


@BOOK.on(
    StatusCodeRange,
    "start",
    "end",
    cel="self.start <= self.end",
    message="start must not be more than end",
)
def check_range(one: StatusCodeRange) -> Iterable[Violation]:
    """A range that is empty holds for nothing."""
    if one.start <= one.end:
        return ()
    return (Violation(("end",), "Invalid", f"{one.end} (expected at least {one.start})"),)


# --- compressor -----------------------------------------------------------------------------------------------------


@BOOK.on(
    BackendTrafficPolicySpec,
    "compressor",
    "compression",
    cel="!has(self.compressor) || !has(self.compression)",
    message="only one of compressor and compression may be set",
)
def check_spelling(spec: BackendTrafficPolicySpec) -> Iterable[Violation]:
    """They are two names of one field."""
    if spec.compressor is not None and spec.compression is not None:
        return (Violation(("compression",), "Forbidden", "together with compressor"),)
    return ()


@BOOK.on(
    BackendTrafficPolicySpec,
    "compressor",
    "compression",
    cel="(!has(self.compressor) || self.compressor.all(one, "
    "self.compressor.exists_one(other, other.type == one.type))) && "
    "(!has(self.compression) || self.compression.all(one, "
    "self.compression.exists_one(other, other.type == one.type)))",
    message="each type of compressor can be listed only once",
)
def check_types(spec: BackendTrafficPolicySpec) -> Iterable[Violation]:
    """An encoding has one place in the order."""
    for name, ones in (("compressor", spec.compressor), ("compression", spec.compression)):
        seen: set[str] = set()
        for index, one in enumerate(ones or ()):
            if one.type in seen:
                yield Violation((name, index, "type"), "Duplicate", f'"{one.type}"')
            seen.add(one.type)
