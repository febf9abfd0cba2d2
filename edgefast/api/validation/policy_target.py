"""Policy target: rules about targets beside routes and what is above them, each with its CEL twin for the CRD.

In: specs of edgefast's policies. Out: violations; `cel` is the same rule for an API server. A
policy at a backend cannot set what is decided before a request has a backend, and cannot decide
access.
Must never: differ from its CEL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicySpec
from edgefast.api.edge.policy_target import BACKEND_TARGETS, TARGET_KINDS
from edgefast.api.edge.securitypolicy import SecurityPolicySpec
from edgefast.api.validation.rule import RuleBook, Violation

__all__ = ["BOOK", "check_backend_leaves", "list_request_leaves"]

BOOK = RuleBook()

_KINDS = ", ".join(f"'{kind}'" for kind in BACKEND_TARGETS)
#: Fields of a BackendTrafficPolicy that are settled before a request has a backend, or are about its answer to the client.
_OF_REQUESTS = {
    "request_buffer": "requestBuffer",
    "fault_injection": "faultInjection",
    "compressor": "compressor",
    "compression": "compression",
    "bandwidth_limit": "bandwidthLimit",
    "response_override": "responseOverride",
    "session_persistence": "sessionPersistence",
}
_TIMES_OF_REQUESTS = {
    "request_timeout": "requestTimeout",
    "stream_idle_timeout": "streamIdleTimeout",
}


@BOOK.on(
    SecurityPolicySpec,
    "target_refs",
    cel=f"self.targetRefs.all(ref, !(ref.kind in [{_KINDS}]))",
    message="a SecurityPolicy is for Gateways, ListenerSets and routes",
)
def check_security_targets(spec: SecurityPolicySpec) -> Iterable[Violation]:
    """Who may enter is settled before a request has a backend."""
    for at, ref in enumerate(spec.target_refs):
        if ref.kind in BACKEND_TARGETS:
            message = (
                f"a SecurityPolicy cannot target a {ref.kind} (supported: {', '.join(TARGET_KINDS)}), "
                "target the route; requests pass without this policy"
            )
            yield Violation(("targetRefs", at, "kind"), "NotSupported", message)


@BOOK.on(
    BackendTrafficPolicySpec,
    "target_refs",
    *_OF_REQUESTS,
    "timeout",
    cel=f"!self.targetRefs.exists(ref, ref.kind in [{_KINDS}]) || !("
    + " || ".join(f"has(self.{name})" for name in _OF_REQUESTS.values())
    + " || (has(self.timeout) && has(self.timeout.http) && ("
    + " || ".join(f"has(self.timeout.http.{name})" for name in _TIMES_OF_REQUESTS.values())
    + ")))",
    message=", ".join((*_OF_REQUESTS.values(), *_TIMES_OF_REQUESTS.values()))
    + " do not apply to Services, Backends and XBackends",
)
def check_backend_leaves(spec: BackendTrafficPolicySpec) -> Iterable[Violation]:
    """What is settled before a request has a backend cannot be the backend's."""
    kind = next((ref.kind for ref in spec.target_refs if ref.kind in BACKEND_TARGETS), "")
    for path in list_request_leaves(spec) if kind else ():
        message = f"for a {kind}: it applies before edgefast selects a backend; use a Gateway or route as target"
        yield Violation(path, "Forbidden", message)


def list_request_leaves(spec: BackendTrafficPolicySpec) -> Iterator[tuple[str, ...]]:
    """Give the paths of what a spec says that is not for a backend to say."""
    for attr, name in _OF_REQUESTS.items():
        if getattr(spec, attr) is not None:
            yield (name,)
    http = spec.timeout.http if spec.timeout is not None else None
    for attr, name in _TIMES_OF_REQUESTS.items():
        if http is not None and getattr(http, attr) is not None:
            yield ("timeout", "http", name)
