"""Policy: rules about SecurityPolicy and BackendTrafficPolicy, each with its CEL twin for the CRD.

In: parts of these kinds. Out: violations; `cel` is the same rule for an API server. An empty condition would match every client, so it is
invalid; a path that is not normalised would never match.
Must never: differ from its CEL.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicySpec
from edgefast.api.edge.credentials import ExtractFrom
from edgefast.api.edge.policy_target import (
    BACKEND_TARGETS,
    ROUTE_TARGETS,
    TARGET_KINDS,
    PolicyTargetReference,
)
from edgefast.api.edge.securitypolicy import (
    AuthorizationOperation,
    AuthorizationPrincipal,
    AuthorizationRule,
    ClientCertificateNames,
    ExtAuth,
    ExtAuthCache,
    ExtAuthGRPC,
    ExtAuthHTTP,
    OperationPath,
    SecurityPolicySpec,
)
from edgefast.api.migration.target_kinds import hint_at_kind
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.model.regex import explain_regex
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.edge import bad_cidr, is_cidr
from edgefast.api.validation.httproute import check_literal
from edgefast.api.validation.rule import RuleBook, Violation
from edgefast.diagnostics.problem import did_you_mean, supported_text

BOOK = RuleBook()

#: Milliseconds that a request waits for an authorisation service at most, and that its answer is believed at most.
MAX_AUTH_TIME = 60_000

#: Kinds whose policies may replace what is above.
_LOWER = (*ROUTE_TARGETS, *BACKEND_TARGETS)
_ROUTES = ", ".join(f"'{kind}'" for kind in _LOWER)
_PLAIN = ", ".join(f"'{kind}'" for kind in ROUTE_TARGETS)
_TARGETS = ", ".join(f"'{kind}'" for kind in TARGET_KINDS)
_SUPPORTED = (
    f"{', '.join(TARGET_KINDS)}, of a BackendTrafficPolicy also {', '.join(BACKEND_TARGETS)}"
)
#: `self.value` as `check_literal` takes it.
_LITERAL = (
    r"self.value.matches('^/(?:[-A-Za-z0-9/._~!$&\'()*+,;=:@]|%[0-9a-fA-F]{2})*$') && "
    r"!self.value.matches('//|/\\.\\.?/|%2[fF]|/\\.\\.?$')"
)


@BOOK.on(
    PolicyTargetReference,
    "group",
    "kind",
    cel=f"(self.group == '{GATEWAY_GROUP}' && self.kind in [{_TARGETS}])"
    + "".join(
        f" || (self.group == '{group}' && self.kind == '{kind}')"
        for kind, group in BACKEND_TARGETS.items()
    ),
    message="a target must be a Gateway, a ListenerSet or a route of the Gateway API, a Service, a Backend of "
    "gateway.edge.io, or an XBackend of gateway.networking.x-k8s.io",
)
def check_target(one: PolicyTargetReference) -> Iterable[Violation]:
    """Policies are attached to what requests and connections go through; of those at a Service policy_target.py knows more."""
    if BACKEND_TARGETS.get(one.kind) == one.group:
        return
    if hint := hint_at_kind(one.group, one.kind):
        message = f'"{one.kind}" is not a kind of group {one.group}'
        yield Violation(("kind",), "NotSupported", message, hint)
        return
    if one.kind in BACKEND_TARGETS:
        wanted = BACKEND_TARGETS[one.kind]
        message = f'"{one.group}" is not the group of a {one.kind}, which is "{wanted}"'
        yield Violation(("group",), "NotSupported", message)
        return
    if one.group not in (GATEWAY_GROUP, *BACKEND_TARGETS.values()) or one.kind in TARGET_KINDS:
        if one.group != GATEWAY_GROUP:
            message = supported_text(one.group, (GATEWAY_GROUP,))
            guess = did_you_mean(one.group, (GATEWAY_GROUP,))
            yield Violation(("group",), "NotSupported", message, guess)
    if one.kind not in TARGET_KINDS:
        message = f'"{one.kind}" (supported: {_SUPPORTED})'
        hint = did_you_mean(one.kind, (*TARGET_KINDS, *BACKEND_TARGETS))
        yield Violation(("kind",), "NotSupported", message, hint)


@BOOK.on(
    SecurityPolicySpec,
    "target_refs",
    "merge_type",
    cel="self.mergeType == 'Inherit' || self.targetRefs.all(ref, "
    f"(ref.kind in [{_PLAIN}]) == (self.mergeType == 'Replace'))",
    message="mergeType Replace is for routes, Override for Gateways and ListenerSets",
)
@BOOK.on(
    BackendTrafficPolicySpec,
    "target_refs",
    "merge_type",
    cel="self.mergeType == 'Inherit' || self.targetRefs.all(ref, "
    f"(ref.kind in [{_ROUTES}]) == (self.mergeType == 'Replace'))",
    message="mergeType Replace is for routes and backends, Override for Gateways and ListenerSets",
)
def check_merge_type(spec: SecurityPolicySpec | BackendTrafficPolicySpec) -> Iterable[Violation]:
    """Only what is below something can replace it, and only what is above can override."""
    if spec.merge_type == "Inherit":
        return ()
    replaces = spec.merge_type == "Replace"
    below = isinstance(spec, BackendTrafficPolicySpec)
    kinds = _LOWER if below else ROUTE_TARGETS
    wrong = [ref.kind for ref in spec.target_refs if (ref.kind in kinds) != replaces]
    if not wrong:
        return ()
    lower = "routes, Service, Backend and XBackend" if below else "routes"
    where = lower if replaces else "Gateway and ListenerSet"
    message = f"{spec.merge_type} with a target of kind {wrong[0]} (it is for {where})"
    return (Violation(("mergeType",), "Forbidden", message),)


# --- authorization ------------------------------------------------------------------------------------------------


@BOOK.on(
    AuthorizationRule,
    "operation",
    "principal",
    cel="has(self.operation) || has(self.principal)",
    message="a rule must have operation or principal",
)
def check_rule(one: AuthorizationRule) -> Iterable[Violation]:
    """What holds for everybody is said by defaultAction."""
    if one.operation is None and one.principal is None:
        message = "operation or principal (defaultAction applies to all other requests)"
        return (Violation((), "Required", message),)
    return ()


@BOOK.on(
    AuthorizationOperation,
    "methods",
    "path",
    cel="has(self.path) || (has(self.methods) && size(self.methods) > 0)",
    message="operation must have methods or path",
)
def check_operation(one: AuthorizationOperation) -> Iterable[Violation]:
    """An operation that is nothing in particular would be any."""
    if not one.methods and one.path is None:
        return (Violation((), "Required", "methods or path"),)
    return ()


@BOOK.on(
    AuthorizationPrincipal,
    "client_cidrs",
    "server_names",
    "client_certificate",
    "headers",
    "jwt",
    cel="(has(self.clientCIDRs) && size(self.clientCIDRs) > 0) || "
    "(has(self.serverNames) && size(self.serverNames) > 0) || has(self.clientCertificate) || "
    "(has(self.headers) && size(self.headers) > 0) || has(self.jwt)",
    message="principal must have clientCIDRs, serverNames, clientCertificate, headers or jwt",
)
def check_principal(one: AuthorizationPrincipal) -> Iterable[Violation]:
    """A principal without a condition would match every client."""
    if is_empty_principal(one):
        message = "clientCIDRs, serverNames, clientCertificate, headers or jwt"
        return (Violation((), "Required", message),)
    return ()


def is_empty_principal(one: AuthorizationPrincipal) -> bool:
    """Tell whether a principal has no condition."""
    return not (
        one.client_cidrs
        or one.server_names
        or one.client_certificate is not None
        or one.headers
        or one.jwt is not None
    )


@BOOK.on(
    ClientCertificateNames,
    "dns_names",
    "uris",
    cel="(has(self.dnsNames) && size(self.dnsNames) > 0) || (has(self.uris) && size(self.uris) > 0)",
    message="clientCertificate must have dnsNames or uris",
)
def check_certificate_names(one: ClientCertificateNames) -> Iterable[Violation]:
    """A condition without names would match every certificate."""
    if not one.dns_names and not one.uris:
        return (Violation((), "Required", "dnsNames or uris"),)
    return ()


@BOOK.on(
    AuthorizationPrincipal,
    "client_cidrs",
    cel="!has(self.clientCIDRs) || self.clientCIDRs.all(range, isCIDR(range))",
    message="clientCIDRs must be ranges of addresses",
)
def check_client_cidrs(one: AuthorizationPrincipal) -> Iterable[Violation]:
    """Ranges are ranges."""
    for index, value in enumerate(one.client_cidrs):
        if not is_cidr(value):
            yield bad_cidr(("clientCIDRs", index), value)


@BOOK.on(
    AuthorizationPrincipal,
    "headers",
    # Lowered once outside of the inner loop: an API server bounds the estimated cost of a rule.
    cel="!has(self.headers) || self.headers.map(one, one.name.lowerAscii()).all(name, "
    "self.headers.exists_one(other, other.name.lowerAscii() == name))",
    message="headers must have different names, whatever their case",
)
def check_header_names(one: AuthorizationPrincipal) -> Iterable[Violation]:
    """All headers must match: of two with one name the values belong into one list."""
    seen: set[str] = set()
    for index, header in enumerate(one.headers):
        name = header.name.lower()
        if name in seen:
            hint = "put the values into one list"
            yield Violation(("headers", index, "name"), "Duplicate", f'"{header.name}"', hint)
        seen.add(name)


@BOOK.on(
    AuthorizationPrincipal,
    "headers",
    cel="!has(self.headers) || self.headers.all(one, one.name.lowerAscii() != 'host')",
    message="headers must not have Host: use hostnames of routes and listeners instead",
)
def check_host(one: AuthorizationPrincipal) -> Iterable[Violation]:
    """Hosts are compared where routes are found."""
    for index, header in enumerate(one.headers):
        if message := host_problem(header.name):
            yield Violation(("headers", index, "name"), "Forbidden", message)


def host_problem(name: str) -> str:
    """Return why a header is no condition, "" when it is one.

    One host has many spellings: `a.example`, `A.Example`, `a.example.` and `a.example:80`.
    """
    if name.lower() != "host":
        return ""
    return f'"{name}" (use hostnames of routes and listeners instead)'


@BOOK.on(
    OperationPath,
    "type",
    "value",
    cel=f"self.type == 'RegularExpression' || ({_LITERAL})",
    message="value must be an absolute path without //, /./, /../ and %2F",
)
def check_path(one: OperationPath) -> Iterable[Violation]:
    """Paths are compared when they are normalised; one that is not would hold for no request."""
    message = "" if one.type == "RegularExpression" else check_literal(one.value)
    return (Violation(("value",), "Invalid", f'"{one.value}" ({message})'),) if message else ()


@BOOK.on(
    OperationPath,
    "type",
    "value",
    # `in`, because `||` would swallow the error of a pattern that does not compile.
    cel="self.type != 'RegularExpression' || ''.matches(self.value) in [true, false]",
    message="value must be an RE2 expression",
)
def check_path_regex(one: OperationPath) -> Iterable[Violation]:
    """Expressions are RE2, as the proxy compiles them."""
    message = explain_regex(one.value) if one.type == "RegularExpression" else ""
    return (Violation(("value",), "Invalid", message),) if message else ()


@BOOK.on(
    OperationPath,
    "type",
    "value",
    cel=r"self.type != 'RegularExpression' || self.value.matches('^[\\x00-\\x7F]*$')",
    message="value must be ASCII: paths have all other characters percent-encoded",
)
def check_path_ascii(one: OperationPath) -> Iterable[Violation]:
    """What is compared is the path as requests have it."""
    message = tell_ascii(one.value) if one.type == "RegularExpression" else ""
    return (Violation(("value",), "Invalid", message),) if message else ()


def tell_ascii(pattern: str) -> str:
    """Return why an expression holds for no path that there is, "" when that cannot be said."""
    if pattern.isascii():
        return ""
    other = next(one for one in pattern if not one.isascii())
    return f'"{pattern}" has "{other}", which is {quote(other)} in a path'


# --- credentials ---------------------------------------------------------------------------------------------------


@BOOK.on(
    ExtractFrom,
    "headers",
    "cookies",
    "params",
    cel="(has(self.headers) && size(self.headers) > 0) || "
    "(has(self.cookies) && size(self.cookies) > 0) || (has(self.params) && size(self.params) > 0)",
    message="one of headers, cookies and params must be set",
)
def check_places(one: ExtractFrom) -> Iterable[Violation]:
    """A place that is none holds no key."""
    if not (one.headers or one.cookies or one.params):
        return (Violation((), "Required", "headers, cookies or params"),)
    return ()


# --- extAuth ------------------------------------------------------------------------------------------------------


@BOOK.on(
    ExtAuth,
    "http",
    "grpc",
    cel="has(self.http) != has(self.grpc)",
    message="exactly one of http and grpc must be set",
)
def check_protocol(one: ExtAuth) -> Iterable[Violation]:
    """One service is asked, in one way."""
    if one.http is None and one.grpc is None:
        return (Violation(("http",), "Required", "field is missing"),)
    if one.http is not None and one.grpc is not None:
        return (Violation(("grpc",), "Forbidden", "together with http"),)
    return ()


@BOOK.on(
    ExtAuth,
    "timeout",
    cel="duration(self.timeout) > duration('0s') && duration(self.timeout) <= duration('60s')",
    message="timeout must be more than 0s and at most 60s",
)
def check_timeout(one: ExtAuth) -> Iterable[Violation]:
    """Whoever waits for a verdict waits for a while only."""
    return _check_time(one.timeout, "timeout")


@BOOK.on(
    ExtAuthCache,
    "ttl",
    cel="duration(self.ttl) > duration('0s') && duration(self.ttl) <= duration('60s')",
    message="ttl must be more than 0s and at most 60s",
)
def check_ttl(one: ExtAuthCache) -> Iterable[Violation]:
    """Whoever loses the right to enter keeps it for a minute at most."""
    return _check_time(one.ttl, "ttl")


def _check_time(text: str, name: str) -> Iterable[Violation]:
    if 0 < parse_duration(text) <= MAX_AUTH_TIME:
        return ()
    return (Violation((name,), "Invalid", f'"{text}" (expected more than 0s, at most 60s)'),)


@BOOK.on(
    ExtAuthGRPC,
    "backend_ref",
    "backend_refs",
    cel="has(self.backendRef) != (has(self.backendRefs) && size(self.backendRefs) > 0)",
    message="exactly one of backendRef and backendRefs must be set",
)
@BOOK.on(
    ExtAuthHTTP,
    "backend_ref",
    "backend_refs",
    cel="has(self.backendRef) != (has(self.backendRefs) && size(self.backendRefs) > 0)",
    message="exactly one of backendRef and backendRefs must be set",
)
def check_service(one: ExtAuthHTTP | ExtAuthGRPC) -> Iterable[Violation]:
    """The service is named in one place."""
    if one.backend_ref is None and not one.backend_refs:
        return (Violation(("backendRefs",), "Required", "this or backendRef"),)
    if one.backend_ref is not None and one.backend_refs:
        return (Violation(("backendRef",), "Forbidden", "together with backendRefs"),)
    return ()


@BOOK.on(
    ExtAuthHTTP,
    "path",
    "path_override",
    "path_template",
    cel="(has(self.path) ? 1 : 0) + (has(self.pathOverride) ? 1 : 0) + (has(self.pathTemplate) ? 1 : 0) <= 1",
    message="only one of path, pathOverride and pathTemplate may be set",
)
def check_paths(one: ExtAuthHTTP) -> Iterable[Violation]:
    """A path stands before the request's own or in its place."""
    given = [
        name
        for name, value in (
            ("path", one.path),
            ("pathOverride", one.path_override),
            ("pathTemplate", one.path_template),
        )
        if value is not None
    ]
    if len(given) > 1:
        return (Violation((given[1],), "Forbidden", f"together with {given[0]}"),)
    return ()
