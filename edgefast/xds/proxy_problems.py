"""Proxy problems: errors that only a proxy can see, other than rejected resources, as text in a node's metadata.

In: a proxy's problems.
Out: JSON of at most TROUBLES_LIMIT `ProxyProblem`s, errors first; values parsed from such a text.
Rejected resources of the table are in rejections.py. Entries of another form are ignored and never
end a proxy's stream.
Must never: carry a client's values or a secret, or accept a proxy's report about objects that the
proxy cannot observe.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, cast, get_args

import msgspec

from edgefast.diagnostics.problem import ObjectRef, Problem, Severity
from edgefast.diagnostics.reasons.word import Word
from edgefast.xds.limits import REASON_LIMIT, TROUBLES_LIMIT

__all__ = ["ProxyProblem", "decode_proxy_problems", "encode_proxy_problems", "find_proxy_problems"]

#: Reasons of problems that are no refusals, and that nobody but a proxy can know.
_REASONS = ("EndpointsNotFound", "EvictingStore", "KeysNotFetched", "NotCounted")
#: What those are about. A Gateway or a route is not among them: other fleets may serve it, too.
_KINDS = ("Backend", "EdgeGateway", "RateLimitFilter", "SecurityPolicy", "Service", "XBackend")
#: Characters of what Kubernetes names, and of a path.
_NAME = 253
_Name = Annotated[str, msgspec.Meta(max_length=_NAME)]
_Text = Annotated[str, msgspec.Meta(max_length=REASON_LIMIT)]


class ProxyProblem(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A problem (edgefast.diagnostics.problem) on its way."""

    kind: _Name
    namespace: _Name
    name: _Name
    path: _Name
    reason: _Name
    message: _Text
    severity: _Name = "error"

    @property
    def known(self) -> bool:
        """Whether this release has such troubles; replicas of another one may relay others."""
        return _is_told(self.kind, self.reason) and self.severity in get_args(Severity)

    def problem(self, message: str = "") -> Problem:
        """Return the problem again, with `message` after its message. Only of one that is known."""
        assert self.known
        return Problem(
            ObjectRef(self.kind, self.namespace, self.name),
            self.path,
            cast(Word, self.reason),
            self.message + message,
            severity=cast(Severity, self.severity),
        )


def _is_told(kind: str, reason: str) -> bool:
    """Tell whether a proxy reports this; for a SecurityPolicy it reports key sets that it cannot fetch, and no other problem."""
    policy = kind == "SecurityPolicy"
    return kind in _KINDS and reason in _REASONS and policy == (reason == "KeysNotFetched")


_decode = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_one = msgspec.json.Decoder(ProxyProblem).decode


def find_proxy_problems(problems: Iterable[Problem]) -> Iterator[ProxyProblem]:
    """Yield those that a controller is to know, too; texts are cut where they are too long."""
    for one in problems:
        owner = one.object
        if owner is None or not _is_told(owner.kind, one.reason):
            continue
        yield ProxyProblem(
            kind=owner.kind,
            namespace=_cut(owner.namespace, _NAME),
            name=_cut(owner.name, _NAME),
            path=_cut(one.path, _NAME),
            reason=one.reason,
            message=_cut(f"{one.message}, {one.hint}" if one.hint else one.message, REASON_LIMIT),
            severity=one.severity,
        )


def encode_proxy_problems(problems: Sequence[ProxyProblem]) -> str:
    """Return the text; "" for none. The last one of those that fit counts those that do not."""
    if not problems:
        return ""
    ordered = sorted(problems, key=lambda one: one.severity != "error")
    reported = ordered[:TROUBLES_LIMIT]
    if left := len(ordered) - len(reported):
        more = f"; and {left} more problems, which the status of the proxy lists"
        last = _cut(reported[-1].message, REASON_LIMIT - len(more)) + more
        reported[-1] = msgspec.structs.replace(reported[-1], message=last)
    return msgspec.json.encode(reported).decode()


def decode_proxy_problems(text: str) -> tuple[ProxyProblem, ...]:
    """Read the text back; of one of another form there are none, and none that this release does not know."""
    return tuple(_read(text))


def _read(text: str) -> Iterator[ProxyProblem]:
    try:
        rows = _decode(text) if text else []
    except (ValueError, RecursionError):
        return
    for row in rows[:TROUBLES_LIMIT]:
        with contextlib.suppress(ValueError):
            if (one := _decode_one(row)).known:
                yield one


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
