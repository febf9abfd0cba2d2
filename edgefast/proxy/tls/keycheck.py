"""Keycheck: whether the TLS library will take the key material of a translation, before any worker does.

In: the fleets of an IR. Out: a problem for each secret that a worker would refuse. The translation
has judged them already and by the same rules; this asks the very code that will load them, because
the rules of a TLS library are set by its build and its configuration. Must never print key material.
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
