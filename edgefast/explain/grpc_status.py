"""gRPC status: the status that replaces an HTTP one for gRPC calls, and the settings of the port for gRPC.

In: the answers of a request, whether it is gRPC for the proxy, settings.
Out: the same with `grpc_status`, where the proxy itself answers; notes. The twin of
core/exchange/grpc.pyx (`grpc_status_of`); a test compares it with an engine. Source:
docs/guides/grpc.md.
Must never: name the status of a backend's response; it is unknown before the call.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edgefast import ir
from edgefast.explain.explanation import Answer
from edgefast.translate.edgeproxy.protocols import GRPC_CODES

_STATUSES = {
    400: "INTERNAL",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def name_statuses(answers: Iterable[Answer], *, grpc: bool) -> tuple[Answer, ...]:
    """Name what a client of gRPC is told."""
    if not grpc:
        return tuple(answers)
    return tuple(
        msgspec.structs.replace(one, grpc_status=_STATUSES.get(one.status, "UNKNOWN"))
        if one.status and not one.grpc_status
        else one
        for one in answers
    )


def note_call(grpc: ir.GrpcSettings, *, web: bool) -> tuple[str, ...]:
    """Tell what EdgeProxy spec.grpc does about a call that a rule takes; `web`: it came as gRPC-Web."""
    notes = ["gRPC-Web is translated (EdgeProxy spec.grpc.web)"] if web else []
    if grpc.retry_codes and grpc.retry_attempts:
        codes = ", ".join(GRPC_CODES[one - 1] for one in grpc.retry_codes)
        notes.append(
            f"retried for {codes}, at most {grpc.retry_attempts} times (EdgeProxy spec.grpc.retry)"
        )
    return tuple(notes)
