"""Emit: the rules of hosts as objects: Gateways, HTTPRoutes, filters, grants; emit_policies.py makes the policies of an Ingress.

In: a server with its names, the settings, what was found for it. Out: `Made`, for all hosts or for one. Names are deterministic and
contain an upper-case letter, so that no object of a file has the same one.
Must never: make an object larger than the Gateway API allows: rules, host names and listeners are divided among several.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

import msgspec

from edgefast.api.edge.backendtrafficpolicy import (
    BackendTrafficPolicy,
)
from edgefast.api.edge.edgeproxy import EdgeProxy, EdgeProxySpec, ProxyHTTP, ProxyHTTP10
from edgefast.api.edge.edgeproxy_headers import ForwardedHeader, ProxyHeaders
from edgefast.api.edge.edgeproxy_protocols import ProxyClientAddress
from edgefast.api.edge.httproutefilter import HTTPRouteFilter as EdgeFilter
from edgefast.api.edge.httproutefilter import HTTPRouteFilterSpec
from edgefast.api.gateway.backendtlspolicy import BackendTLSPolicy
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
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.origin import MARK, Origin, RuleOrigin
from edgefast.api.model.reference import (
    LocalObjectReference,
    ParametersReference,
    ParentReference,
    SecretObjectReference,
)
from edgefast.api.snapshot import Key
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.ingress.auth_url import AuthCheck
from edgefast.translate.ingress.backend_tls import make_tls_policy
from edgefast.translate.ingress.client_tls import ClientTls
from edgefast.translate.ingress.configmap import Globals, Note
from edgefast.translate.ingress.draft import Draft, Guard
from edgefast.translate.ingress.emitter import (
    MAX_TARGETS,
    Emitter,
    Made,
    Objects,
    chunk,
    target_objects,
)
from edgefast.translate.ingress.error_pages import Page, label_page
from edgefast.translate.ingress.findings import Findings
from edgefast.translate.ingress.limits import refer_to_filter
from edgefast.translate.ingress.names import Name, Names, TlsListener
from edgefast.translate.ingress.passthrough import find_passed, make_tls_route
from edgefast.translate.ingress.redirects import Scheme, redirect_to_name
from edgefast.translate.ingress.rules import draft_host
from edgefast.translate.ingress.sections import DEFAULT, NAME, Sections, label_of, section_of
from edgefast.translate.ingress.servers import CATCH_ALL, Server, Source
from edgefast.translate.ingress.traffic import plain_annotations, translate_traffic
from edgefast.translate.ingress.values import annotation_path
from edgefast.translate.settings import Settings
from edgefast.translate.tls.client_rule import write_client_options

# Bounds of the Gateway API.
_RULES = 16
_HOSTNAMES = 16
#: Seconds of an EdgeProxy's trusted ranges.
_TRUSTED = 256
#: Tries of a request in place of "no limit".
_TRIES = 17
#: $host of a request without Host: the server_name of the server without a host. No Ingress can have this host.
_NO_HOST = "_"


class HostMade(Made, frozen=True, kw_only=True, eq=False):
    """What one host becomes."""

    server: Server
    listeners: dict[str, TlsListener]
    served: tuple[tuple[Source, str], ...] = ()  # routes with backends, by Ingress
    guarded: tuple[tuple[Source, Guard, str], ...] = ()  # routes with access rules
    limited: tuple[Source, ...] = ()  # Ingresses with limits that rules here use
    paged: tuple[tuple[Source, Page, str], ...] = ()  # routes with error pages
    checks: Mapping[Source, AuthCheck] = {}  # of auth-url, by Ingress, that are of this host alone
    notes: tuple[tuple[Source, Note], ...] = ()


# --- Gateways ---


def emit_gateways(
    listeners: Mapping[str, TlsListener],
    sections: Sections,
    settings: Settings,
    globals_: Globals,
    proxy: EdgeProxySpec,
) -> Made:
    """Return the Gateways, their class and policies; `proxy`: the settings of the proxies."""
    return _GatewayEmitter(settings, globals_).emit(listeners, sections, proxy)


class _GatewayEmitter(Emitter):
    def emit(
        self, listeners: Mapping[str, TlsListener], sections: Sections, proxy: EdgeProxySpec
    ) -> Made:
        space = self._settings.namespace
        proxy = _serve_http10(msgspec.structs.replace(proxy, merge_gateways=True))
        if self._globals.forwarded_address:
            trusted = ProxyClientAddress(trusted_cidrs=self._globals.real_ip[:_TRUSTED])
            proxy = msgspec.structs.replace(proxy, client_address=trusted)
        asks = any(one.client is not None for one in listeners.values())
        if proxy.headers is None:
            proxy = msgspec.structs.replace(proxy, headers=self._headers(asks=asks))
        elif asks:
            proxy = msgspec.structs.replace(proxy, headers=_add_client_headers(proxy.headers))
        nothing, named = Origin(ingress=None), self._settings.ingress.edge_proxy
        source = Origin(ingress=ObjectRef("EdgeProxy", space, named, EDGE_GROUP))
        self._add(
            EdgeProxy(metadata=ObjectMeta(name=NAME, namespace=space), spec=proxy),
            source if named else nothing,
        )
        parameters = ParametersReference(
            group=EDGE_GROUP, kind="EdgeProxy", name=NAME, namespace=space
        )
        spec = GatewayClassSpec(
            controller_name=self._settings.controller_name, parameters_ref=parameters
        )
        self._add(GatewayClass(metadata=ObjectMeta(name=NAME), spec=spec), nothing)
        gateways: dict[str, list[tuple[Listener, RuleOrigin]]] = {NAME: list(self._plain())}
        for name in sorted(listeners):
            found = listeners[name]
            one = self._listener(section_of(name), found.secret, name, found.client)
            origin = RuleOrigin(ingress=found.owner, path=found.field)
            gateways.setdefault(sections.gateway(name), []).append((one, origin))
        for name in sorted(gateways):
            part = gateways[name]
            gateway = Gateway(
                metadata=ObjectMeta(name=name, namespace=space),
                spec=GatewaySpec(gateway_class_name=NAME, listeners=tuple(one for one, _ in part)),
            )
            self._add(gateway, Origin(ingress=None, rules=tuple(one for _, one in part)))
        self._emit_policies(sorted(gateways))
        return Made(objects=self._objects, origins=self._origins, grants=frozenset(self._grants))

    def _headers(self, *, asks: bool) -> ProxyHeaders:
        """Return the headers about the client that nginx.tmpl sets."""
        full = self._globals.forwarded_headers and self._globals.full_forwarded_for
        return ProxyHeaders(
            forwarded=tuple(
                one
                for one in get_args(ForwardedHeader)
                if one != "X-Original-URI" or self._globals.original_uri
                if asks or not one.startswith("SSL-Client-")
            ),
            x_forwarded_for="Append" if full else "Overwrite",
            request_id="PreserveOrGenerate",
        )

    def _plain(self) -> Iterator[tuple[Listener, RuleOrigin]]:
        """Give the listeners without a host name."""
        ports = self._settings.ingress
        allowed = AllowedRoutes(namespaces=RouteNamespaces(from_="All"))
        http = Listener(name="http", port=ports.http_port, protocol="HTTP", allowed_routes=allowed)
        yield http, RuleOrigin(ingress=None)
        default = parse_key(ports.certificate)
        if default is not None:
            yield self._listener(section_of(DEFAULT), default, None), RuleOrigin(ingress=None)

    def _listener(
        self,
        section: str,
        secret: Key | None,
        hostname: str | None,
        client: ClientTls | None = None,
    ) -> Listener:
        if secret is None:
            return Listener(
                name=section,
                hostname=hostname,
                port=self._settings.ingress.https_port,
                protocol="TLS",
                tls=ListenerTLSConfig(mode="Passthrough"),
                allowed_routes=AllowedRoutes(namespaces=RouteNamespaces(from_="All")),
            )
        options: dict[str, str] = {}
        if client is not None and client.rule is not None:
            self._grant("Gateway", self._settings.namespace, "Secret", client.secret)
            options = write_client_options("/".join(client.secret), client.rule)
        secrets = [secret]
        settings = self._settings.ingress
        other = parse_key(settings.additional_certificate)
        if other is not None and secret == parse_key(settings.certificate):
            secrets.append(other)
        for one in secrets:
            self._grant("Gateway", self._settings.namespace, "Secret", one)
        refs = tuple(SecretObjectReference(namespace=one[0], name=one[1]) for one in secrets)
        return Listener(
            name=section,
            hostname=hostname,
            port=self._settings.ingress.https_port,
            protocol="HTTPS",
            tls=ListenerTLSConfig(certificate_refs=refs, options=options),
            allowed_routes=AllowedRoutes(namespaces=RouteNamespaces(from_="All")),
        )

    def _emit_policies(self, gateways: list[str]) -> None:
        for number, part in enumerate(chunk(gateways, MAX_TARGETS)):
            policy = BackendTrafficPolicy(
                metadata=ObjectMeta(name=f"{NAME}-{number}", namespace=self._settings.namespace),
                spec=translate_traffic(
                    plain_annotations(self._globals), target_objects("Gateway", part)
                ),
            )
            self._add(policy, Origin(ingress=None))


def _serve_http10(proxy: EdgeProxySpec) -> EdgeProxySpec:
    """Return the settings with HTTP/1.0 enabled where they do not set it, as in nginx."""
    http = proxy.http or ProxyHTTP()
    http10 = http.http10 or ProxyHTTP10()
    http10 = msgspec.structs.replace(http10, default_host=http10.default_host or _NO_HOST)
    http = msgspec.structs.replace(http, http10=http10)
    return msgspec.structs.replace(proxy, http=http)


# --- hosts ---


def emit_host(
    server: Server, names: Names, findings: Findings, sections: Sections, settings: Settings
) -> HostMade:
    """Return the objects of one host."""
    return _HostEmitter(findings, sections, settings).emit(server, names)


class _HostEmitter(Emitter):
    def __init__(self, findings: Findings, sections: Sections, settings: Settings) -> None:
        super().__init__(settings, findings.settings)
        self._findings = findings
        self._sections = sections
        self._served: list[tuple[Source, str]] = []
        self._guarded: list[tuple[Source, Guard, str]] = []
        self._limited: dict[Source, None] = {}
        self._paged: list[tuple[Source, Page, str]] = []

    def emit(self, server: Server, names: Names) -> HostMade:
        self._emit_host(server, names)
        if server.host in names.www:
            self._emit_www(*names.www[server.host], server.host)
        if server.passthrough is not None and server.host in names.listeners:
            self._emit_passthrough(server, server.passthrough)
        own = {one.name for one in names.by_host[server.host]}
        own |= {names.www[server.host][0].name} if server.host in names.www else set()
        shared: Objects = {
            ("backends", (one.metadata.namespace, one.metadata.name)): one
            for one in self._findings.backends.values()
        }
        for one in self._tls_policies():
            shared["backend_tls_policies", (one.metadata.namespace, one.metadata.name)] = one
        notes = [*_shadowed(server), *names.notes.get(server.host, ())]
        for source, found in self._findings.notes.items():
            notes += ((source, one) for one in found)
        return HostMade(
            objects=self._objects,
            origins=self._origins,
            shared=shared,
            grants=frozenset(self._grants),
            server=server,
            listeners={name: one for name, one in names.listeners.items() if name in own},
            served=tuple(self._served),
            guarded=tuple(self._guarded),
            limited=tuple(self._limited),
            paged=tuple(self._paged),
            checks=dict(self._findings.checks),
            notes=tuple(notes),
        )

    def _tls_policies(self) -> Iterator[BackendTLSPolicy]:
        """Give a BackendTLSPolicy for each port that gets TLS; findings have noted what is not verified."""
        for (namespace, service, number), (port, tls) in sorted(
            self._findings.encrypted.items(), key=lambda one: one[0]
        ):
            yield make_tls_policy((namespace, service), number, port, tls)

    def _emit_host(self, server: Server, names: Names) -> None:
        host = server.host
        schemes: tuple[Scheme, ...] = ("http", "https")
        for scheme in schemes:
            groups: dict[tuple[bool, bool, str], list[Name]] = {}
            for name in names.by_host[host]:
                if scheme == "https" and name.listener is None:
                    continue
                own = scheme == "https" and name.listener != DEFAULT
                alias = "" if name.name == host else "all"
                if alias and name.redirects and name.name.startswith("*."):
                    alias = name.name
                groups.setdefault((name.redirects, own, alias), []).append(name)
            for number, ((redirects, _, alias), found) in enumerate(sorted(groups.items())):
                drafts = draft_host(
                    server, self._findings, scheme, redirects=redirects, alias=alias
                )
                for at, part in enumerate(chunk(found, _HOSTNAMES)):
                    label = f"{scheme}-{label_of(host)}" + (
                        f"-{number}.{at}" if number or at else ""
                    )
                    self._emit_routes(drafts, part, scheme, label)

    def _emit_passthrough(self, server: Server, owner: Source) -> None:
        """Pass the TLS connections of a host through."""
        if server.host.startswith("*."):
            return
        found = find_passed(server, owner, self._findings.lookup)
        if found.ref is None:
            message = f"{found.wrong}; TLS connections for {server.host} are closed"
            note = Note(name=found.field, message=message, error=True, reason=found.reason)
            self._findings.note(found.source, note)
            return
        parent = ParentReference(
            namespace=self._settings.namespace,
            name=self._sections.gateway(server.host),
            section_name=section_of(server.host),
        )
        route = make_tls_route(server.host, found, found.ref, parent)
        rule = RuleOrigin(ingress=found.source.ref, path=found.field)
        self._add(route, Origin(ingress=found.source.ref, path="spec", rules=(rule,)))

    def _emit_www(self, name: Name, owner: Source, target: str) -> None:
        redirect = redirect_to_name(target, self._globals.redirect_code)
        origin = RuleOrigin(
            ingress=owner.ref,
            path=annotation_path("from-to-www-redirect"),
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
                self._emit_routes([draft], [name], scheme, f"{scheme}-{label_of(name.name)}")

    def _emit_routes(
        self, drafts: Iterable[Draft], names: Sequence[Name], scheme: Scheme, label: str
    ) -> None:
        groups: dict[tuple[Source, Guard, Page | None], list[Draft]] = {}
        for draft in drafts:
            if draft.source is not None:
                key = (draft.source, self._guard_of(draft), draft.page)
                groups.setdefault(key, []).append(draft)
        parents = tuple(dict.fromkeys(self._parent(one, scheme) for one in names))
        hostnames = tuple(one.name for one in names if one.name != CATCH_ALL)
        for (source, guard, page), found in groups.items():
            for number, part in enumerate(chunk(found, _RULES)):
                name = f"{source.ingress.metadata.name}{MARK}-{label}"
                name += "" if guard == "open" else f"-{guard}"
                name += "" if page is None else f"-{label_page(page)}"
                name += f"-{number}" if number else ""
                self._emit_route(name, source, guard, part, parents, hostnames)
                if page is not None:
                    self._paged.append((source, page, name))

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
            gateway = self._sections.gateway(name.listener)
            section = section_of(name.listener)
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
                rules=tuple(self._rule(one, source, name) for one in drafts),
            ),
            origin=origin,
        )
        self._add(route, origin)
        if any(one.backends for one in drafts):
            self._served.append((source, name))
        if guard != "open":
            self._guarded.append((source, guard, name))

    def _rule(self, draft: Draft, source: Source, route: str) -> HTTPRouteRule:
        filters = list(draft.filters)
        for spec in draft.specs:
            ref = LocalObjectReference(
                group=EDGE_GROUP, kind="HTTPRouteFilter", name=self._filter(spec, source, route)
            )
            filters.append(HTTPRouteFilter(type="ExtensionRef", extension_ref=ref))
        if draft.limited and source.annotations.limits is not None:
            self._limited[source] = None
            filters.append(refer_to_filter(source.ingress))
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

    def _filter(self, spec: HTTPRouteFilterSpec, source: Source, route: str) -> str:
        """Return the name of the HTTPRouteFilter with a spec of a route; equal ones are one object."""
        digest = hashlib.blake2s(msgspec.json.encode(spec), digest_size=8).hexdigest()
        name = f"{route}-{digest}"
        if ("http_route_filters", (source.namespace, name)) not in self._objects:
            meta = ObjectMeta(name=name, namespace=source.namespace)
            origin = Origin(ingress=source.ref, path="metadata.annotations")
            self._add(EdgeFilter(metadata=meta, spec=spec), origin)
        return name


def _shadowed(server: Server) -> Iterator[tuple[Source, Note]]:
    for source, field, owner in server.shadowed:
        message = f"the host already has this path and type; {owner.ref} owns it"
        yield source, Note(name=field, message=message, reason="Shadowed")


def parse_key(text: str) -> Key | None:
    """Return the key of an object from "namespace/name", None for another form."""
    namespace, slash, name = text.partition("/")
    return (namespace, name) if slash and namespace and name else None


def _add_client_headers(given: ProxyHeaders) -> ProxyHeaders:
    """Add the headers about certificates, because backends believe them: a client must not be able to write one."""
    before = given.forwarded or ()
    added = (
        one
        for one in get_args(ForwardedHeader)
        if one.startswith("SSL-Client-") and one not in before
    )
    return msgspec.structs.replace(given, forwarded=(*before, *added))
