"""Traffic: body size, timeouts and sessions of an Ingress -> the spec of a BackendTrafficPolicy.

In: annotations, targets. Out: the spec, and whether the policy of the Gateways is enough.
Must never: make a policy for what the Gateways' own policy expresses.
"""

from __future__ import annotations

from edgefast.api.edge.backendtrafficpolicy import (
    BackendTrafficPolicySpec,
    HTTPTrafficTimeout,
    RequestBuffer,
    TrafficSession,
    TrafficTimeout,
)
from edgefast.api.edge.policy_target import PolicyTargetReference
from edgefast.api.model.session_persistence import SessionCookie
from edgefast.translate.ingress.annotations import Annotations
from edgefast.translate.ingress.configmap import Globals

__all__ = ["is_plain", "plain_annotations", "translate_traffic"]

#: Bytes: a limit that no body reaches.
_UNLIMITED = 2**62


def plain_annotations(globals_: Globals) -> Annotations:
    """Return the annotations that the policies of the Gateways express."""
    return Annotations(
        body_size=globals_.body_size,
        read_timeout=globals_.read_timeout,
        send_timeout=globals_.send_timeout,
    )


def is_plain(annotations: Annotations, plain: Annotations) -> bool:
    """Tell whether the policy of the Gateways is enough for an Ingress."""
    found = (annotations.body_size, annotations.read_timeout, annotations.send_timeout)
    usual = (plain.body_size, plain.read_timeout, plain.send_timeout)
    return found == usual and annotations.affinity is None


def translate_traffic(
    annotations: Annotations, targets: tuple[PolicyTargetReference, ...]
) -> BackendTrafficPolicySpec:
    """Return the spec of a BackendTrafficPolicy."""
    session = None
    if annotations.affinity is not None:
        found = annotations.affinity
        session = TrafficSession(
            absolute_timeout=_duration(found.max_age) if found.max_age else None,
            cookie=SessionCookie(
                name=found.name,
                path=found.path or "/",
                lifetime_type="Permanent" if found.max_age else "Session",
            ),
        )
    return BackendTrafficPolicySpec(
        target_refs=targets,
        request_buffer=RequestBuffer(limit=annotations.body_size or _UNLIMITED),
        timeout=TrafficTimeout(
            http=HTTPTrafficTimeout(
                stream_idle_timeout=_duration(annotations.read_timeout),
                send_timeout=_duration(annotations.send_timeout),
            )
        ),
        session_persistence=session,
    )


def _duration(seconds: int) -> str:
    """Return seconds as a duration of the Gateway API: at most five digits of each unit."""
    hours, rest = divmod(max(0, seconds), 3600)
    return f"{min(hours, 99_999)}h{rest}s" if hours else f"{rest}s"
