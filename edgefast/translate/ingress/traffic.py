"""Traffic: body size, timeouts and sessions of an Ingress -> the spec of a BackendTrafficPolicy.

In: annotations, targets. Out: the spec, and whether the policy of the Gateways is enough.
Must never: make a policy for what the Gateways' own policy expresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from edgefast.api.edge.backendtrafficpolicy import (
    BackendTrafficPolicySpec,
    BandwidthLimit,
    BandwidthRate,
    HTTPTrafficTimeout,
    RequestBuffer,
    ResponseBandwidth,
    TCPTrafficTimeout,
    TrafficCookie,
    TrafficSession,
    TrafficTimeout,
)
from edgefast.api.edge.policy_target import PolicyTargetReference
from edgefast.translate.ingress.annotation_fields import Affinity, Annotations
from edgefast.translate.ingress.balancing import translate_balancing
from edgefast.translate.ingress.configmap import Globals

__all__ = ["is_plain", "plain_annotations", "translate_traffic"]

#: Settings of a policy that all Ingresses have.
_SETTINGS = (
    "body_size",
    "read_timeout",
    "send_timeout",
    "connect_timeout",
    "retry_timeout",
    "balancer",
    "rate",
    "rate_after",
)
_SAME_SITE: Mapping[str, Literal["Strict", "Lax", "None"]] = {
    "Strict": "Strict",
    "Lax": "Lax",
    "None": "None",
}
#: Bytes: a limit that no body reaches.
_UNLIMITED = 2**62


def plain_annotations(globals_: Globals) -> Annotations:
    """Return the annotations that the policies of the Gateways express."""
    return Annotations(
        body_size=globals_.body_size,
        connect_timeout=globals_.connect_timeout,
        retry_timeout=globals_.retry_timeout,
        balancer=translate_balancing(globals_.load_balance, "")[0],
        rate=globals_.rate,
        rate_after=globals_.rate_after,
        read_timeout=globals_.read_timeout,
        send_timeout=globals_.send_timeout,
    )


def is_plain(annotations: Annotations, plain: Annotations) -> bool:
    """Tell whether the policy of the Gateways is enough for an Ingress."""
    if annotations.affinity is not None:
        return False
    return all(getattr(annotations, one) == getattr(plain, one) for one in _SETTINGS)


def translate_traffic(
    annotations: Annotations, targets: tuple[PolicyTargetReference, ...]
) -> BackendTrafficPolicySpec:
    """Return the spec of a BackendTrafficPolicy."""
    session = None
    if annotations.affinity is not None:
        found = annotations.affinity
        session = TrafficSession(
            absolute_timeout=_duration(found.max_age) if found.max_age else None,
            cookie=TrafficCookie(
                name=found.name,
                path=found.path or "/",
                lifetime_type="Permanent" if found.max_age else "Session",
                domain=found.domain or None,
                same_site=_same_site(found),
                secure="Always" if found.secure else "Auto",
            ),
            change_on_failure=found.change_on_failure,
            precedence="Session",
        )
    return BackendTrafficPolicySpec(
        target_refs=targets,
        request_buffer=RequestBuffer(limit=annotations.body_size or _UNLIMITED),
        timeout=TrafficTimeout(
            http=HTTPTrafficTimeout(
                stream_idle_timeout=_duration(annotations.read_timeout),
                send_timeout=_duration(annotations.send_timeout),
                retry_timeout=_duration(annotations.retry_timeout)
                if annotations.retry_timeout
                else None,
            ),
            tcp=TCPTrafficTimeout(connect_timeout=_duration(annotations.connect_timeout)),
        ),
        bandwidth_limit=_limit_bandwidth(annotations),
        load_balancer=annotations.balancer if session is None else None,
        session_persistence=session,
    )


def _limit_bandwidth(annotations: Annotations) -> BandwidthLimit | None:
    if not annotations.rate:
        return None
    return BandwidthLimit(
        response=ResponseBandwidth(
            limit=BandwidthRate(value=f"{annotations.rate}Ki", unit="Second"),
            scope="Response",
            unlimited_bytes=f"{annotations.rate_after}Ki" if annotations.rate_after else None,
        )
    )


def _same_site(found: Affinity) -> Literal["Strict", "Lax", "None", "NoneIfSupported", "Unset"]:
    """Return the attribute; nginx's library leaves out words that are written otherwise."""
    if found.same_site == "None" and found.conditional:
        return "NoneIfSupported"
    return _SAME_SITE.get(found.same_site, "Unset")


def _duration(seconds: int) -> str:
    """Return seconds as a duration of the Gateway API: at most five digits of each unit."""
    hours, rest = divmod(max(0, seconds), 3600)
    return f"{min(hours, 99_999)}h{rest}s" if hours else f"{rest}s"
