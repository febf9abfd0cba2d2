"""Version: rules of one version of a kind that its other versions do not have.

In: a built object, the version that its document names. Out: violations, as an API server reports
them. An API server checks a document by its version, and converts an object to another one. Objects
of an API server are therefore not checked here.
Source: Gateway API v1.7 CRDs of TLSRoute, TCPRoute, UDPRoute, in both channels.
Must never: refuse what a version allows because a newer one does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast.api.gateway.layer4_route import TCPRoute, TLSRoute, UDPRoute
from edgefast.api.validation.rule import Violation

__all__ = ["check_version"]

_MANY_RULES = "v1alpha2"  # has up to 16, and of TLSRoute needs no hostname


def check_version(obj: object, version: str) -> Iterator[Violation]:
    """Give what an object of this version must have and has not, or has too much of."""
    if not isinstance(obj, TLSRoute | TCPRoute | UDPRoute) or version == _MANY_RULES:
        return
    if isinstance(obj, TLSRoute) and not obj.spec.hostnames:
        message = f"at least 1 item in {version}"
        yield Violation(
            ("spec", "hostnames"), "Required", message, "list the names of its listener"
        )
    if len(obj.spec.rules) > 1:
        message = f"{len(obj.spec.rules)} items (at most 1 in {version})"
        yield Violation(("spec", "rules"), "TooMany", message)
