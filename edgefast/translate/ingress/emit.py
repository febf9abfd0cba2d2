"""Emit: the rules of all hosts as objects: Gateways, HTTPRoutes, filters, policies, grants.

In: Servers, Names, the settings, a Lookup. Out: `Made`: objects by table of the Snapshot, and the Origin of each. Names are
deterministic and contain an upper-case letter, so that no object of a file has the same one.
Must never: make an object larger than the Gateway API allows: rules, host names and listeners are divided among several.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar, get_args

import msgspec

from edgefast.api.edge.backendtrafficpolicy import (
    BackendTrafficPolicy,
    BackendTrafficPolicySpec,
    HTTPTrafficTimeout,
    RequestBuffer,
    TrafficSession,
    TrafficTimeout,
)
from edgefast.api.edge.edgeproxy import EdgeProxy, EdgeProxySpec
from edgefast.api.edge.edgeproxy_headers import ForwardedHeader, ProxyHeaders
from edgefast.api.edge.edgeproxy_protocols import ProxyClientAddress
from edgefast.api.edge.httproutefilter import HTTPRouteFilter as EdgeFilter
from edgefast.api.edge.httproutefilter import HTTPRouteFilterSpec
from edgefast.api.edge.policy_target import PolicyTargetReference
from edgefast.api.edge.securitypolicy import (
    Authorization,
    ExtAuth,
    SecurityPolicy,
    SecurityPolicySpec,
)
from edgefast.api.gateway.backendtlspolicy import (
    BackendTLSPolicy,
    BackendTLSPolicySpec,
    BackendTLSPolicyValidation,
)
from edgefast.api.gateway.gateway import Gateway, GatewaySpec
from edgefast.api.gateway.gatewayclass import GatewayClass, GatewayClassSpec
from edgefast.api.gateway.httproute import (
    HTTPPathMatch,
    HTTPRoute,
    HTTPRouteMatch,
    HTTPRouteRetry,
    HTTPRouteRule,
    HTTPRouteSpec,
    HTTPRouteTimeouts,
)
from edgefast.api.gateway.httproutefilter import HTTPRouteFilter
from edgefast.api.gateway.listener import (
    AllowedRoutes,
    Listener,
    ListenerTLSConfig,
    RouteNamespaces,
)
from edgefast.api.gateway.referencegrant import (
    ReferenceGrant,
    ReferenceGrantFrom,
    ReferenceGrantSpec,
    ReferenceGrantTo,
)
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.origin import Origin, RuleOrigin
from edgefast.api.model.reference import (
    GATEWAY_GROUP,
    LocalObjectReference,
    LocalPolicyTargetReferenceWithSectionName,
    ParametersReference,
    ParentReference,
    SecretObjectReference,
)
from edgefast.api.model.session_persistence import SessionCookie
from edgefast.api.snapshot import Key
from edgefast.translate.ingress.access import Access
from edgefast.translate.ingress.annotations import Annotations
from edgefast.translate.ingress.backends import MARK
from edgefast.translate.ingress.configmap import Globals
from edgefast.translate.ingress.names import DEFAULT, Name, Names
from edgefast.translate.ingress.redirects import Scheme, redirect_to_name
from edgefast.translate.ingress.rules import Draft, Findings, Guard, draft_host
from edgefast.translate.ingress.servers import CATCH_ALL, Servers, Source
from edgefast.translate.policy.backendtlspolicy import INSECURE
from edgefast.translate.settings import Settings

#: The name of the GatewayClass, of its EdgeProxy, and what names of Gateways begin with.
NAME = "Ingress"
# Bounds of the Gateway API and of edgefast's policies.
_LISTENERS = 64
_RULES = 16
_HOSTNAMES = 16
_TARGETS = 16
_GRANTS = 16
#: Seconds of an EdgeProxy's trusted ranges.
_TRUSTED = 256
#: Bytes: a limit that no body reaches.
_UNLIMITED = 2**62
#: Tries of a request in place of "no limit".
_TRIES = 17
_LONGEST_LABEL = 100

_T = TypeVar("_T")


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """Objects by table of the Snapshot and key; `origins` by kind and key."""

    tables: dict[str, dict[Key, Any]]
    origins: dict[tuple[str, str, str], Origin]


def emit_objects(servers: Servers, names: Names, findings: Findings, settings: Settings) -> Made:
    """Return the objects for all servers."""
    return _Emitter(servers, names, findings, settings).emit()


_TABLES: dict[type[Any], str] = {
    GatewayClass: "gateway_classes",
    EdgeProxy: "edge_proxies",
    Gateway: "gateways",
    HTTPRoute: "http_routes",
    EdgeFilter: "http_route_filters",
    SecurityPolicy: "security_policies",
    BackendTrafficPolicy: "backend_traffic_policies",
    ReferenceGrant: "reference_grants",
    BackendTLSPolicy: "backend_tls_policies",
}


class _Emitter:
    def __init__(
        self, servers: Servers, names: Names, findings: Findings, settings: Settings
    ) -> None:
        self._servers = servers
        self._names = names
        self._findings = findings
        self._globals: Globals = findings.settings
        self._settings = settings
        self._made = Made(tables={}, origins={})
        #: Hostname of a TLS listener -> Gateway and listener.
        self._sections: dict[str, tuple[str, str]] = {}
        #: Routes with backends by Ingress, and by its guard.
        self._served: dict[Source, list[str]] = {}
        self._guarded: dict[tuple[Source, Guard], list[str]] = {}
        self._grants: dict[tuple[str, str, str, str], set[str]] = {}

    def emit(self) -> Made:
        gateways = self._emit_gateways()
        for host in sorted(self._servers.by_host):
            self._emit_host(host)
        for one, target, owner in self._names.www:
            self._emit_www(one, target, owner)
        self._emit_policies(gateways)
        self._emit_tls()
        self._emit_grants()
        for key, backend in sorted(self._findings.backends.items()):
            namespace, _, name = key.partition("/")
            self._made.tables.setdefault("backends", {})[namespace, name] = backend
            self._made.origins["Backend", namespace, name] = Origin(ingress=None)
        for source, access in self._accesses():
            if access.secret is not None:
                meta = access.secret.metadata
                self._made.tables.setdefault("secrets", {})[meta.namespace, meta.name] = (
                    access.secret
                )
                path = _annotation("auth-secret")
                self._made.origins["Secret", meta.namespace, meta.name] = Origin(
                    ingress=source.ref, path=path
                )
        return self._made

    def _accesses(self) -> Iterator[tuple[Source, Any]]:
        for source in dict.fromkeys((*self._served, *(one for one, _ in self._guarded))):
            yield source, self._findings.access_of(source)

    def _add(self, obj: Any, origin: Origin) -> None:
        meta = obj.metadata
        self._made.tables.setdefault(_TABLES[type(obj)], {})[meta.namespace, meta.name] = obj
        self._made.origins[type(obj).__name__, meta.namespace, meta.name] = origin

    # --- Gateways ---

    def _emit_gateways(self) -> list[str]:
        space = self._settings.namespace
        proxy = EdgeProxySpec(merge_gateways=True, headers=self._headers())
        if self._globals.forwarded_headers:
            trusted = ProxyClientAddress(trusted_cidrs=self._globals.real_ip[:_TRUSTED])
            proxy = msgspec.structs.replace(proxy, client_address=trusted)
        nothing = Origin(ingress=None)
        self._add(EdgeProxy(metadata=ObjectMeta(name=NAME, namespace=space), spec=proxy), nothing)
        parameters = ParametersReference(
            group=EDGE_GROUP, kind="EdgeProxy", name=NAME, namespace=space
        )
        spec = GatewayClassSpec(
            controller_name=self._settings.controller_name, parameters_ref=parameters
        )
        self._add(GatewayClass(metadata=ObjectMeta(name=NAME), spec=spec), nothing)
        names = []
        for number, part in enumerate(_chunks(list(self._listeners()), _LISTENERS)):
            name = NAME if number == 0 else f"{NAME}-{number}"
            names.append(name)
            for hostname, listener, _ in part:
                if hostname is not None:
                    self._sections[hostname] = (name, listener.name)
            gateway = Gateway(
                metadata=ObjectMeta(name=name, namespace=space),
                spec=GatewaySpec(
                    gateway_class_name=NAME, listeners=tuple(one for _, one, _ in part)
                ),
            )
            self._add(gateway, Origin(ingress=None, rules=tuple(one for _, _, one in part)))
        return names

    def _headers(self) -> ProxyHeaders:
        """Return the headers about the client that nginx.tmpl sets."""
        full = self._globals.forwarded_headers and self._globals.full_forwarded_for
        return ProxyHeaders(
            forwarded=tuple(
                one
                for one in get_args(ForwardedHeader)
                if one != "X-Original-URI" or self._globals.original_uri
            ),
            x_forwarded_for="Append" if full else "Overwrite",
            request_id="PreserveOrGenerate",
        )

    def _listeners(self) -> Iterator[tuple[str | None, Listener, RuleOrigin]]:
        """Give the listeners: hostname (None: of HTTP), the listener, its origin."""
        ports = self._settings.ingress
        allowed = AllowedRoutes(namespaces=RouteNamespaces(from_="All"))
        yield (
            None,
            Listener(name="http", port=ports.http_port, protocol="HTTP", allowed_routes=allowed),
            RuleOrigin(ingress=None),
        )
        default = _parse_key(ports.certificate)
        if default is not None:
            tls = self._tls(default)
            one = Listener(
                name="https",
                port=ports.https_port,
                protocol="HTTPS",
                tls=tls,
                allowed_routes=allowed,
            )
            yield DEFAULT, one, RuleOrigin(ingress=None)
        for name, found in sorted(self._names.listeners.items()):
            one = Listener(
                name=f"https.{_label(name)}",
                hostname=name,
                port=ports.https_port,
                protocol="HTTPS",
                tls=self._tls(found.secret),
                allowed_routes=allowed,
            )
            yield name, one, RuleOrigin(ingress=found.owner.ref, path=found.field)

    def _tls(self, secret: Key) -> ListenerTLSConfig:
        self._grant("Gateway", self._settings.namespace, "Secret", secret)
        ref = SecretObjectReference(namespace=secret[0], name=secret[1])
        return ListenerTLSConfig(certificate_refs=(ref,))

    # --- routes ---

    def _emit_host(self, host: str) -> None:
        server = self._servers.by_host[host]
        schemes: tuple[Scheme, ...] = ("http", "https")
        for scheme in schemes:
            groups: dict[tuple[bool, bool, bool], list[Name]] = {}
            for name in self._names.by_host[host]:
                if scheme == "https" and name.listener is None:
                    continue
                own = scheme == "https" and name.listener != DEFAULT
                is_alias = name.name != host
                groups.setdefault((name.redirects, own, is_alias), []).append(name)
            for number, ((redirects, _, is_alias), found) in enumerate(sorted(groups.items())):
                drafts = draft_host(
                    server, self._findings, scheme, redirects=redirects, is_alias=is_alias
                )
                for at, part in enumerate(_chunks(found, _HOSTNAMES)):
                    label = f"{scheme}-{_label(host)}" + (f"-{number}.{at}" if number or at else "")
                    self._emit_routes(drafts, part, scheme, label)

    def _emit_www(self, name: Name, target: str, owner: Source) -> None:
        redirect = redirect_to_name(target, self._globals.redirect_code)
        origin = RuleOrigin(
            ingress=owner.ref,
            path=_annotation("from-to-www-redirect"),
            rank=1,
            trim_slash=redirect.trim_slash,
            write_port=redirect.write_port,
        )
        draft = Draft(
            source=owner,
            origin=origin,
            match=HTTPRouteMatch(path=HTTPPathMatch(type="PathPrefix", value="/")),
            filters=redirect.filters,
        )
        schemes: tuple[Scheme, ...] = ("http", "https")
        for scheme in schemes:
            if scheme == "http" or name.listener is not None:
                self._emit_routes([draft], [name], scheme, f"{scheme}-{_label(name.name)}")

    def _emit_routes(
        self, drafts: Iterable[Draft], names: Sequence[Name], scheme: Scheme, label: str
    ) -> None:
        groups: dict[tuple[Source, Guard], list[Draft]] = {}
        for draft in drafts:
            if draft.source is not None:
                groups.setdefault((draft.source, self._guard_of(draft)), []).append(draft)
        parents = tuple(dict.fromkeys(self._parent(one, scheme) for one in names))
        hostnames = tuple(one.name for one in names if one.name != CATCH_ALL)
        for (source, guard), found in groups.items():
            for number, part in enumerate(_chunks(found, _RULES)):
                name = f"{source.ingress.metadata.name}{MARK}-{label}"
                name += "" if guard == "open" else f"-{guard}"
                name += f"-{number}" if number else ""
                self._emit_route(name, source, guard, part, parents, hostnames)

    def _guard_of(self, draft: Draft) -> Guard:
        """Return the access rules that a rule needs, of those that its Ingress has."""
        if draft.guard == "open" or draft.source is None:
            return "open"
        access = self._findings.access_of(draft.source)
        if draft.guard == "all" and (access.basic is not None or access.check is not None):
            return "all"
        return "lists" if access.authorization is not None else "open"

    def _parent(self, name: Name, scheme: Scheme) -> ParentReference:
        gateway, section = NAME, "http"
        if scheme == "https":
            assert name.listener is not None
            gateway, section = self._sections[name.listener]
        return ParentReference(
            namespace=self._settings.namespace, name=gateway, section_name=section
        )

    def _emit_route(
        self,
        name: str,
        source: Source,
        guard: Guard,
        drafts: Sequence[Draft],
        parents: tuple[ParentReference, ...],
        hostnames: tuple[str, ...],
    ) -> None:
        origin = Origin(ingress=source.ref, path="spec", rules=tuple(one.origin for one in drafts))
        route = HTTPRoute(
            metadata=ObjectMeta(name=name, namespace=source.namespace),
            spec=HTTPRouteSpec(
                parent_refs=parents,
                hostnames=hostnames,
                rules=tuple(self._rule(one, source) for one in drafts),
            ),
            origin=origin,
        )
        self._add(route, origin)
        if any(one.backends for one in drafts):
            self._served.setdefault(source, []).append(name)
        if guard != "open":
            self._guarded.setdefault((source, guard), []).append(name)

    def _rule(self, draft: Draft, source: Source) -> HTTPRouteRule:
        filters = list(draft.filters)
        for spec in draft.specs:
            ref = LocalObjectReference(
                group=EDGE_GROUP, kind="HTTPRouteFilter", name=self._filter(spec, source)
            )
            filters.append(HTTPRouteFilter(type="ExtensionRef", extension_ref=ref))
        timeouts, retry = None, None
        if draft.backends:
            annotations = source.annotations
            tries = annotations.tries or _TRIES
            timeouts = HTTPRouteTimeouts(request="0s")
            retry = HTTPRouteRetry(
                codes=tuple(one for one in annotations.retry_codes if one >= 400),
                attempts=min(max(0, tries - 1), _TRIES - 1),
            )
            for one in draft.backends:
                if one.namespace not in (None, source.namespace):
                    key = (one.namespace or "", one.name)
                    self._grant("HTTPRoute", source.namespace, one.kind, key)
        return HTTPRouteRule(
            matches=(draft.match,),
            filters=tuple(filters),
            backend_refs=draft.backends,
            timeouts=timeouts,
            retry=retry,
        )

    def _filter(self, spec: HTTPRouteFilterSpec, source: Source) -> str:
        """Return the name of the HTTPRouteFilter with a spec in a namespace; equal ones are one object."""
        digest = hashlib.blake2s(msgspec.json.encode(spec), digest_size=8).hexdigest()
        name = f"filter{MARK}-{digest}"
        if (source.namespace, name) not in self._made.tables.get("http_route_filters", {}):
            meta = ObjectMeta(name=name, namespace=source.namespace)
            origin = Origin(ingress=source.ref, path="metadata.annotations")
            self._add(EdgeFilter(metadata=meta, spec=spec), origin)
        return name

    # --- policies ---

    def _emit_policies(self, gateways: list[str]) -> None:
        plain = Annotations(
            body_size=self._globals.body_size,
            read_timeout=self._globals.read_timeout,
            send_timeout=self._globals.send_timeout,
        )
        space = self._settings.namespace
        for number, part in enumerate(_chunks(gateways, _TARGETS)):
            policy = BackendTrafficPolicy(
                metadata=ObjectMeta(name=f"{NAME}-{number}", namespace=space),
                spec=_traffic(plain, _targets("Gateway", part)),
            )
            self._add(policy, Origin(ingress=None))
        for source, routes in self._served.items():
            if _is_plain(source.annotations, plain):
                continue
            for number, part in enumerate(_chunks(routes, _TARGETS)):
                meta = self._policy_meta(source, "traffic", number)
                spec = _traffic(source.annotations, _targets("HTTPRoute", part))
                origin = Origin(ingress=source.ref, path="metadata.annotations")
                self._add(BackendTrafficPolicy(metadata=meta, spec=spec), origin)
        for (source, guard), routes in self._guarded.items():
            access = self._findings.access_of(source)
            for number, part in enumerate(_chunks(routes, _TARGETS)):
                any_one = guard == "all" and source.annotations.satisfy_any
                policy_spec = SecurityPolicySpec(
                    target_refs=_targets("HTTPRoute", part),
                    satisfy="Any" if any_one else "All",
                    authorization=_deny_others(access.authorization, any_one=any_one),
                    basic_auth=access.basic if guard == "all" else None,
                    ext_auth=self._check(access, source) if guard == "all" else None,
                )
                path = "metadata.annotations"
                if guard == "all" and (access.basic is None) != (access.check is None):
                    path = _annotation("auth-secret" if access.check is None else "auth-url")
                origin = Origin(ingress=source.ref, path=path)
                meta = self._policy_meta(source, guard, number)
                self._add(SecurityPolicy(metadata=meta, spec=policy_spec), origin)

    def _emit_tls(self) -> None:
        """Make a BackendTLSPolicy for each port that gets TLS without verification."""
        for (namespace, service, number), port in sorted(self._findings.encrypted.items()):
            meta = ObjectMeta(name=f"{service}{MARK}-{number}", namespace=namespace)
            target = LocalPolicyTargetReferenceWithSectionName(
                group="", kind="Service", name=service, section_name=port or None
            )
            spec = BackendTLSPolicySpec(
                target_refs=(target,),
                validation=BackendTLSPolicyValidation(
                    well_known_ca_certificates="System", hostname=f"{service}.{namespace}.svc"
                ),
                options={INSECURE: "true"},
            )
            # Findings have noted it for each Ingress.
            self._add(BackendTLSPolicy(metadata=meta, spec=spec), Origin(ingress=None))

    def _check(self, access: Access, source: Source) -> ExtAuth | None:
        check = access.check
        if check is None:
            return None
        if check.service is not None:
            self._grant("SecurityPolicy", source.namespace, "Service", check.service)
        if check.backend is not None:
            meta = check.backend.metadata
            self._made.tables.setdefault("backends", {})[meta.namespace, meta.name] = check.backend
            self._made.origins["Backend", meta.namespace, meta.name] = Origin(
                ingress=source.ref, path=_annotation("auth-url")
            )
        return check.ext_auth

    def _policy_meta(self, source: Source, kind: str, number: int) -> ObjectMeta:
        name = f"{source.ingress.metadata.name}{MARK}-{kind}-{number}"
        return ObjectMeta(name=name, namespace=source.namespace)

    def _grant(self, kind: str, namespace: str, to_kind: str, to: Key) -> None:
        if namespace != to[0]:
            self._grants.setdefault((kind, namespace, to_kind, to[0]), set()).add(to[1])

    def _emit_grants(self) -> None:
        for (kind, namespace, to_kind, to), names in sorted(self._grants.items()):
            group = EDGE_GROUP if to_kind == "Backend" else ""
            for number, part in enumerate(_chunks(sorted(names), _GRANTS)):
                spec = ReferenceGrantSpec(
                    from_=(
                        ReferenceGrantFrom(
                            group=EDGE_GROUP if kind == "SecurityPolicy" else GATEWAY_GROUP,
                            kind=kind,
                            namespace=namespace,
                        ),
                    ),
                    to=tuple(ReferenceGrantTo(group=group, kind=to_kind, name=one) for one in part),
                )
                name = f"{kind.lower()}.{namespace}{MARK}-{to_kind}-{number}"
                meta = ObjectMeta(name=name, namespace=to)
                self._add(ReferenceGrant(metadata=meta, spec=spec), Origin(ingress=None))


def _deny_others(given: Authorization | None, *, any_one: bool) -> Authorization | None:
    """Return the lists of addresses; with satisfy: any a denylist alone admits no client."""
    if given is None or not any_one:
        return given
    return msgspec.structs.replace(given, default_action="Deny")


def _is_plain(annotations: Annotations, plain: Annotations) -> bool:
    """Tell whether the policy of the Gateways is enough for an Ingress."""
    found = (annotations.body_size, annotations.read_timeout, annotations.send_timeout)
    usual = (plain.body_size, plain.read_timeout, plain.send_timeout)
    return found == usual and annotations.affinity is None


def _traffic(
    annotations: Annotations, targets: tuple[PolicyTargetReference, ...]
) -> BackendTrafficPolicySpec:
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


def _targets(kind: str, names: Iterable[str]) -> tuple[PolicyTargetReference, ...]:
    return tuple(PolicyTargetReference(group=GATEWAY_GROUP, kind=kind, name=one) for one in names)


def _annotation(name: str) -> str:
    return f"metadata.annotations[nginx.ingress.kubernetes.io/{name}]"


def _label(host: str) -> str:
    """Return a host as a part of a name: short, and different for each host."""
    text = "catch-all" if host == CATCH_ALL else host.replace("*", "any", 1)
    if host == CATCH_ALL or host.startswith("*") or len(text) > _LONGEST_LABEL:
        digest = hashlib.blake2s(host.encode(), digest_size=4).hexdigest()
        return f"{text[:_LONGEST_LABEL].rstrip('.-')}-{digest}"
    return text


def _parse_key(text: str) -> Key | None:
    namespace, slash, name = text.partition("/")
    return (namespace, name) if slash and namespace and name else None


def _chunks(items: Sequence[_T], size: int) -> Iterator[list[_T]]:
    for at in range(0, len(items), size):
        yield list(items[at : at + size])
