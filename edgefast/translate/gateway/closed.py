"""Closed Gateways and ListenerSets in translation: what is said of those that only keep the places of one with a mistake.

In: an object with `closed`, its report. Out: one warning, what becomes of requests meanwhile. The mistake itself has been told
where it was decoded. That no broader listener takes a place is held.py's affair.
Must never: promise a place that cannot be told.
"""

from __future__ import annotations

from edgefast.resources.gatewayapi.gateway import Gateway, GatewaySpec
from edgefast.resources.gatewayapi.listenerset import ListenerSet
from edgefast.translate.report.report import Report

_TOLD = 4  # hostnames that a message names


def warn_closed(obj: Gateway | ListenerSet, report: Report) -> None:
    """Warn of an object that is `closed`."""
    assert obj.closed is not None
    kind, spec = type(obj).__name__, obj.spec
    nobody = not (
        spec.gateway_class_name if isinstance(spec, GatewaySpec) else spec.parent_ref.name
    )
    places = dict.fromkeys(f"{one.hostname}:{one.port}" for one in spec.listeners if one.hostname)
    fate = f"{obj.closed.since.format(kind)}, none of its listeners is served"
    if places and not nobody:
        named = ", ".join([*places][:_TOLD])
        more = f" and {len(places) - _TOLD} more" if len(places) > _TOLD else ""
        fate += f"; {named}{more} answers 404 or ends the TLS handshake"
    if obj.closed.lost:
        what = "class or parent" if nobody else "listener whose port or hostname cannot be read"
        fate += (
            f"; without a {what} a place cannot be told, and other listeners may take its requests"
        )
    report.warn(obj.closed.path, "Invalid", fate)
