"""Reasons: every condition that a status can have, with its reason and meaning.

In: nothing. Out: `REASONS`, the source of docs/reference/statuses.md. Tests compare it with the golden cases: every reason that occurs is
here, and every reason here occurs.
Source: Gateway API condition types and reasons; reasons that it does not name are marked as edgefast's.
Must never: be read to decide a status.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast.api.kinds import EDGE_GROUP
from edgefast.translate.conditions.condition import Reason
from edgefast.translate.conditions.listener_reasons import LISTENER_REASONS
from edgefast.translate.conditions.policy_reasons import POLICY_REASONS


def _affected(what: str) -> tuple[Reason, ...]:
    return tuple(
        Reason(
            f"{EDGE_GROUP}/{kind}Affected",
            "True",
            "PolicyAffected",
            f"The message names each {kind} attached to {what} that has an effect. The "
            "condition is absent without one.",
        )
        for kind in ("SecurityPolicy", "BackendTrafficPolicy")
    )


REASONS: dict[str, tuple[Reason, ...]] = {
    "GatewayClass": (
        Reason("Accepted", "True", "Accepted", "The class is served."),
        Reason(
            "Accepted",
            "False",
            "InvalidParameters",
            "`parametersRef` does not name an EdgeProxy: Gateways of the class are not served. "
            "Or the class or its EdgeProxy has a field that this release does not know: their "
            "listeners answer 404.",
        ),
        Reason("SupportedVersion", "True", "SupportedVersion", "The CRDs are of a known release."),
        Reason(
            "SupportedVersion",
            "False",
            "UnsupportedVersion",
            "The CRDs are of another release; edgefast serves the fields that it knows.",
        ),
        Reason(
            f"{EDGE_GROUP}/KindsInstalled",
            "False",
            "KindRemoved",
            "The CRD of a kind was deleted while objects of it were in force: the controller keeps them in force as last seen. The condition is absent otherwise.",
            ours=True,
        ),
    ),
    "Gateway": (
        Reason("Accepted", "True", "Accepted", "All listeners are served."),
        Reason("Accepted", "True", "ListenersNotValid", "Some listeners are served, others not."),
        Reason("Accepted", "False", "ListenersNotValid", "No listener is valid."),
        Reason(
            "Accepted",
            "False",
            "InvalidParameters",
            "The class is not accepted, or `infrastructure.parametersRef` does not name an "
            "EdgeProxy. Or the class or an EdgeProxy has a field that this release does not "
            "know, and all listeners answer 404.",
        ),
        Reason(
            "Accepted",
            "False",
            "Invalid",
            "A field of it is not supported: all listeners answer 404.",
        ),
        Reason(
            "Accepted",
            "False",
            "UnsupportedAddress",
            "An address has a type other than IPAddress and Hostname, or has a `routability`: "
            "all listeners answer 404.",
        ),
        Reason("Programmed", "True", "Programmed", "Proxies serve it."),
        Reason("Programmed", "False", "Invalid", "No listener is served."),
        Reason("Programmed", "False", "AddressNotAssigned", "The fleet has no address yet."),
        Reason("Programmed", "False", "NoResources", "No proxy of the fleet is available."),
        Reason(
            "AddressesAssigned",
            "True",
            "AddressesAssigned",
            "All requested addresses are assigned.",
        ),
        Reason(
            "AddressesAssigned",
            "False",
            "PartiallyAssigned",
            "Some requested addresses are not assigned.",
        ),
        Reason("AddressesAssigned", "False", "NotAssigned", "No requested address is assigned."),
        Reason(
            "Programmed",
            "False",
            "AddressNotUsable",
            "A requested address is invalid or not bound (standalone: `--bind`), or it is the "
            "second one of a load balancer. The bound addresses are served.",
        ),
        Reason(
            "ResolvedRefs",
            "True",
            "ResolvedRefs",
            "All references of the Gateway and its listeners are resolved.",
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "InvalidClientCertificateRef",
            "The client certificate for backends is missing or broken.",
        ),
        Reason("ResolvedRefs", "False", "RefNotPermitted", "No ReferenceGrant allows it."),
        Reason(
            "ResolvedRefs",
            "False",
            "ListenersNotResolved",
            "A listener has an unresolved reference.",
        ),
        Reason(
            "InsecureFrontendValidationMode",
            "True",
            "ConfigurationChanged",
            "`AllowInsecureFallback` accepts clients with a missing or invalid certificate.",
        ),
        *_affected("the Gateway"),
    ),
    "Listener": (*LISTENER_REASONS, *_affected("the listener, or its ListenerSet")),
    "HTTPRoute": (
        Reason(
            "Accepted", "True", "Accepted", "A listener accepts it, and at least one rule is valid."
        ),
        Reason(
            "Accepted",
            "False",
            "NoMatchingParent",
            "The parent, or the named listener or port of it, does not exist.",
        ),
        Reason(
            "Accepted",
            "False",
            "NotAllowedByListeners",
            "No listener allows routes of this kind and namespace.",
        ),
        Reason(
            "Accepted",
            "False",
            "NoMatchingListenerHostname",
            "No hostname of the route matches a listener's hostname.",
        ),
        Reason(
            "Accepted",
            "False",
            "UnsupportedValue",
            "No rule is valid, or a hostname is an IP address.",
        ),
        Reason(
            "Accepted",
            "False",
            "IncompatibleFilters",
            "No rule is valid; the filters of the first one exclude each other.",
        ),
        Reason("ResolvedRefs", "True", "ResolvedRefs", "All references are resolved."),
        Reason("ResolvedRefs", "False", "BackendNotFound", "A backend or filter does not exist."),
        Reason("ResolvedRefs", "False", "RefNotPermitted", "No ReferenceGrant allows it."),
        Reason(
            "ResolvedRefs",
            "False",
            "InvalidKind",
            "A reference has a kind that is not supported or not enabled.",
        ),
        Reason("ResolvedRefs", "False", "PortNotFound", "The backend has no such port.", ours=True),
        Reason(
            "ResolvedRefs",
            "False",
            "UnsupportedProtocol",
            "The port has a protocol that is not supported for backends.",
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "UnsupportedValue",
            "The Service is of type ExternalName.",
        ),
        Reason(
            "ResolvedRefs",
            "False",
            "InvalidBackendRef",
            "The Backend, or the BackendTLSPolicy of the Service, is invalid.",
            ours=True,
        ),
        Reason(
            "BackendsAvailable",
            "False",
            "EndpointsNotFound",
            "A backend has no endpoints; its share of the requests gets 503.",
            ours=True,
        ),
        Reason(
            "PartiallyInvalid",
            "True",
            "UnsupportedValue",
            "Some rules are invalid and answer 500. The message names them, and for an invalid "
            "match the requests that it could have matched.",
        ),
        Reason(
            "RouteRulesOverlap",
            "True",
            "RouteRulesOverlap",
            "A match equals one of another route, so one of the two never gets a request.",
            ours=True,
        ),
        Reason(
            "RouteRulesShadowed",
            "True",
            "RouteRulesShadowed",
            "A rule, a match or a hostname never gets a request, because others take all of "
            "them; the message names it. The route is served.",
            ours=True,
        ),
    ),
    "GRPCRoute": (
        Reason(
            "Accepted", "True", "Accepted", "A listener accepts it, and at least one rule is valid."
        ),
        Reason(
            "Accepted",
            "False",
            "NotAllowedByListeners",
            "Same as for an HTTPRoute. Or an HTTPRoute with precedence has a host of the "
            "listener in common with it, or the other way round: a listener serves only one "
            "kind of route for a host, the kind of the older route.",
        ),
        Reason("ResolvedRefs", "True", "ResolvedRefs", "All references are resolved."),
        Reason(
            "ResolvedRefs",
            "False",
            "UnsupportedProtocol",
            "The port has a protocol that gRPC does not use.",
        ),
        Reason(
            "PartiallyInvalid",
            "True",
            "UnsupportedValue",
            "Same as for an HTTPRoute.",
        ),
    ),
    **POLICY_REASONS,
    "ListenerSet": (
        Reason("Accepted", "True", "Accepted", "All listeners are served."),
        Reason("Accepted", "True", "ListenersNotValid", "Some listeners are served, others not."),
        Reason("Accepted", "False", "ListenersNotValid", "No listener is served."),
        Reason(
            "Accepted",
            "False",
            "NotAllowed",
            "`allowedListeners` of the Gateway does not allow it.",
        ),
        Reason("Accepted", "False", "ParentNotAccepted", "The Gateway is not accepted."),
        Reason("Programmed", "True", "Programmed", "All valid listeners are served."),
        Reason("Programmed", "False", "ListenersNotValid", "No listener is served."),
        Reason("Programmed", "False", "NotAllowed", "As Accepted."),
        Reason("Programmed", "False", "ParentNotProgrammed", "The Gateway is not programmed."),
    ),
}

#: Good news needs no page of its own.
GOOD = frozenset(
    {
        "Accepted",
        "AddressesAssigned",
        "PolicyAffected",
        "Programmed",
        "ResolvedRefs",
        "SupportedVersion",
    }
)

_HEAD = """\
<!-- Made from edgefast/translate/conditions/reasons.py by `pytest tests/translate/test_reasons.py --update-goldens`; do not edit. -->
# Statuses

The controller writes these conditions into the objects, and `edgefast translate` prints them for files:

```text
edgefast translate --to status -f DIR -o table
```

A message is the text of the problems behind it, as `edgefast check` shows it. A reason in *italics* belongs to edgefast; the others are those of
the Gateway API. Each has a [page](../problems/README.md). Conditions about a part of an object (`PartiallyInvalid`,
`BackendsAvailable`, `Conflicted`, ...) exist only while the problem does. In a cluster, messages of problems end with the command that
prints the page of the reason (`edgefast problem BackendNotFound`).

## In a cluster

- **Pending.** A status never precedes the proxies. Until they have the tables, a new Gateway, policy or listener has `Programmed` False with
  the reason `Pending`. The same applies to a listener of a fleet without a ready proxy.
- **Refused tables.** A table that proxies refuse is an error of edgefast, or a lack of memory. Listeners then have `Programmed` False with `Invalid`,
  routes with *RefusedByProxies*. The proxies keep the previous table.
- **Key sets.** While a proxy cannot fetch the key set of a provider, a SecurityPolicy has `KeysAvailable` False with the reason
  [*KeysNotFetched*](../problems/KeysNotFetched.md) at each Gateway that this proxy serves. `lastTransitionTime` is the start of the problem. The
  condition is absent otherwise.
- **Objects of no controller** (another `controllerName`, a namespace that is not watched) have `Accepted` and `Programmed` `Unknown` with the
  reason `Pending`. The message names the reason, the fleet that serves its last table, and whether new pods get one. `addresses` are
  those of that fleet. Entries in routes and policies are removed.
- **XBackends.** After `extensionApis.enableXBackend` is disabled, entries in XBackends stay as they were, because the controller may no longer write
  them. Requests to XBackends get 500, and the routes report it.
- **Ingresses** have no conditions. `status.loadBalancer` contains the addresses of the Service that serves them, and Events report problems
  ([Ingress](../guides/ingress.md)).
"""


def render_page() -> str:
    """Return the text of docs/reference/statuses.md."""
    return "\n".join((_HEAD, *_lines()))


def _lines() -> Iterator[str]:
    for kind, reasons in REASONS.items():
        title = "Listener, in the status of its Gateway" if kind == "Listener" else kind
        yield from (f"## {title}", "")
        if kind == "GRPCRoute":
            yield from ("All reasons of an HTTPRoute, and:", "")
        yield "| condition | status | reason | meaning |"
        yield "|---|---|---|---|"
        for one in reasons:
            word = f"*{one.reason}*" if one.ours else one.reason
            if one.reason not in GOOD:
                word = f"[{word}](../problems/{one.reason}.md)"
            yield f"| {one.type} | {one.status} | {word} | {one.meaning} |"
        yield ""
