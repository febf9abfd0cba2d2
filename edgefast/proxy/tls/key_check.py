"""Key check: tests whether the TLS library accepts the key material of a translation, before any worker loads it.

In: the fleets of an IR.
Out: a problem for each secret that a worker would refuse. The translation has already applied the
same rules. This check runs the code that will load the secrets, because build and configuration of
a TLS library set its rules.
Must never: print key material.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgefast import ir
from edgefast.api.core.clustertrustbundle import CERTIFICATES_GROUP
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.proxy.tls.server import check_secret

__all__ = ["check_fleets"]

_KINDS = {"secret": "Secret", "configmap": "ConfigMap"}
_WIDE = "ClusterTrustBundle"  # in no namespace


def check_fleets(fleets: Iterable[ir.Fleet]) -> Iterator[Problem]:
    """Yield what the TLS library refuses; loading takes about a millisecond for each secret."""
    for fleet in fleets:
        for secret in fleet.secrets:
            if error := check_secret(secret):
                yield Problem(_object_of(secret.name), "data", "Invalid", error)


def _object_of(name: str) -> ObjectRef | None:
    kind, *rest = name.split("/")
    if kind == _WIDE.lower() and len(rest) == 1:
        return ObjectRef(_WIDE, "", rest[0], CERTIFICATES_GROUP)
    if kind not in _KINDS or len(rest) != 2:
        return None  # a bundle of several
    return ObjectRef(_KINDS[kind], *rest)
