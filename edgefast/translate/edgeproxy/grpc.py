"""EdgeProxy `spec.grpc`: retries by status, gRPC-Web.

In: the merged settings. Out: ir.GrpcSettings. Source: docs/guides/grpc.md; defaults in `resources/edge/edgeproxy_defaults.py`.
Must never: take a word that it does not know for a status: it counts as absent.
"""

from __future__ import annotations

from typing import get_args

from edgefast import ir
from edgefast.resources.edge.edgeproxy_grpc import (
    MAX_GRPC_ATTEMPTS,
    GRPCCode,
    ProxyGRPC,
    ProxyGRPCRetry,
)
from edgefast.resources.model.duration import parse_duration

__all__ = ["GRPC_CODES", "translate_grpc"]

#: In the order of their numbers, from 1 on.
GRPC_CODES: tuple[str, ...] = get_args(GRPCCode)


def translate_grpc(grpc: ProxyGRPC) -> ir.GrpcSettings:
    """Translate merged settings: of the fields only `codes` may be absent then."""
    retry = grpc.retry or ProxyGRPCRetry()
    named = {GRPC_CODES.index(one) + 1 for one in retry.codes or () if one in GRPC_CODES}
    return ir.GrpcSettings(
        web=bool(grpc.web),
        retry_codes=tuple(sorted(named)),
        retry_attempts=min(retry.attempts or 0, MAX_GRPC_ATTEMPTS),
        retry_backoff=parse_duration(retry.backoff or "0s"),
    )
