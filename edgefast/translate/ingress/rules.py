"""Rules: what each location of a host becomes, in the order of one request in nginx.

In: a Server, the settings, a Lookup. Out: `Draft`s: the rules of a host at one of both ports, in order.
The order of one request: app-root; location; 301 for a missing slash; 503 of a closed location; 204 of a CORS preflight; temporal or
permanent redirect; redirect of a rewrite-target; ssl-redirect; access; canary; backend.
Source: ingress-nginx nginx.tmpl, lua_ingress.lua.
Must never: serve a location that is closed, or one whose backend or rewrite is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import msgspec

from edgefast.api.edge.backend import Backend
from edgefast.api.edge.httproutefilter import (
    AddedHeader,
    DirectResponse,
    HTTPRouteFilterMatch,
    HTTPRouteFilterSpec,
    ResponseHeaders,
)
from edgefast.api.gateway.httproute import (
    HTTPBackendRef,
    HTTPHeaderMatch,
    HTTPPathMatch,
    HTTPRouteMatch,
)
from edgefast.api.gateway.httproutefilter import (
    HTTPHeader,
    HTTPHeaderFilter,
    HTTPRouteFilter,
    HTTPURLRewriteFilter,
)
from edgefast.api.model.origin import RuleOrigin
from edgefast.translate.ingress.access import Access
from edgefast.translate.ingress.annotations import Annotations
from edgefast.translate.ingress.backend_tls import BackendTls
from edgefast.translate.ingress.backends import ServicePortKey, Target, TlsUse, find_target
from edgefast.translate.ingress.canary import Share, split_shares
from edgefast.translate.ingress.configmap import Globals, Note
from edgefast.translate.ingress.cors import match_origins, translate_cors
from edgefast.translate.ingress.error_pages import (
    Page,
    describe_origin,
    find_default_backend,
    make_page,
    page_headers,
)
from edgefast.translate.ingress.locations import Place, arrange, needs_rewrite, target_of
from edgefast.translate.ingress.lookup import Lookup
from edgefast.translate.ingress.mirror import Mirror, translate_mirror
from edgefast.translate.ingress.redirects import (
    Redirect,
    Scheme,
    redirect_to_https,
    redirect_to_root,
    redirect_to_slash,
    redirect_to_template,
    redirect_to_url,
)
from edgefast.translate.ingress.response_rewrite import absolute_locations
from edgefast.translate.ingress.responseheaders import find_custom_headers
from edgefast.translate.ingress.rewrite import translate_rewrite
from edgefast.translate.ingress.servers import Location, Server, Servers, Source, Upstream

#: Which access rules a rule has: none, the lists of addresses, or all.
Guard = Literal["open", "lists", "all"]

#: Annotations that authenticate; no-auth-locations are without.
_AUTHENTICATION = ("auth-url", "global-auth-url")
_HTTPS = 443
_PORTS: Mapping[Scheme, int] = {"http": 80, "https": _HTTPS}
_HOST = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a host at one port."""

    source: Source | None  # None: the default backend of all Ingresses
    origin: RuleOrigin
    match: HTTPRouteMatch
    guard: Guard = "open"
    filters: tuple[HTTPRouteFilter, ...] = ()
    specs: tuple[HTTPRouteFilterSpec, ...] = ()  # filters of edgefast, as objects of their own
    backends: tuple[HTTPBackendRef, ...] = ()
    limited: bool = False  # the limits of its Ingress count its requests
    page: Page | None = None  # in place of its errors


class Findings:
    """What the locations of a host have in common: access rules, made objects, notes."""

    def __init__(
        self,
        servers: Servers,
        settings: Globals,
        lookup: Lookup,
        ports: tuple[int, int],
        find_access: Callable[[Source], Access],
        speaks_tls: Mapping[ServicePortKey, TlsUse],
    ) -> None:
        """`speaks_tls`: of `backends.find_encrypted`."""
        self.servers = servers
        self.settings = settings
        self.lookup = lookup
        self.ports = ports
        self.access_of = find_access
        self.backends: dict[str, Backend] = {}
        #: Ports of Services that get TLS, with their names and the settings of an Ingress.
        self.encrypted: dict[ServicePortKey, tuple[str, BackendTls | None]] = {}
        self._speaks_tls = speaks_tls
        #: By Ingress: notes about an annotation, or about a field (with a dot or bracket in its name).
        self.notes: dict[Source, dict[Note, None]] = {}

    def note(self, source: Source | None, *notes: Note) -> None:
        """Note problems of an Ingress, each once."""
        if source is not None:
            self.notes.setdefault(source, {}).update(dict.fromkeys(notes))

    def target_of(self, upstream: Upstream, source: Source) -> Target:
        """Return where requests to an upstream go."""
        annotations = source.annotations
        found = find_target(
            upstream,
            annotations.protocol,
            self.lookup,
            service_upstream=annotations.service_upstream,
            speaks_tls=self._speaks_tls,
            verifies=annotations.verifies_backend,
            backend_tls=annotations.backend_tls,
        )
        verified = found.settings is not None and found.settings.verifies
        if not verified and (
            found.tls is not None or (found.backend is not None and found.backend.spec.tls)
        ):
            message = "the certificate of the backend is not verified, as in ingress-nginx; write a BackendTLSPolicy for its Service"
            self.note(source, Note(name="backend-protocol", message=message))
        if annotations.backend_tls and found.port and self.lookup.has_tls_policy(upstream.key):
            message = "no effect: the BackendTLSPolicy of the Service decides"
            self.note(source, Note(name="proxy-ssl-secret", message=message))
        if found.tls is not None:
            self.encrypted[*upstream.key, found.tls.port] = (found.tls.name, found.settings)
        if found.backend is not None:
            meta = found.backend.metadata
            self.backends[f"{meta.namespace}/{meta.name}"] = found.backend
        return found


def draft_host(
    server: Server, findings: Findings, scheme: Scheme, *, redirects: bool, alias: str
) -> list[Draft]:
    """Return the rules of a host in order, or of its aliases.

    `redirects`: these names have a certificate (ssl-redirect). `alias`: "" for the host, a wildcard name for this alias, any other
    text for several aliases.
    """
    return list(_Host(server, findings, scheme, redirects=redirects, alias=alias).draft())


class _Host:
    def __init__(
        self,
        server: Server,
        findings: Findings,
        scheme: Scheme,
        *,
        redirects: bool,
        alias: str,
    ) -> None:
        self._server = server
        self._findings = findings
        self._settings = findings.settings
        self._scheme = scheme
        self._redirects = redirects
        self._alias = alias
        self._rank = 0

    def draft(self) -> Iterator[Draft]:
        _, places = arrange(self._server, self._is_closed)
        client = self._server.client_tls
        if self._scheme == "http" and client and client.rule and client.rule.subject:
            # No subject matches without TLS.
            for place in places:
                source = place.location.source
                yield self._answer(source, _annotation("auth-tls-match-cn"), place.match, 403)
            return
        yield from self._draft_root(places)
        for place in places:
            page = self._find_page(place)
            for one in self._draft_place(place):
                made = one if page is None else msgspec.structs.replace(one, page=page)
                yield self._apply_snippet(place, made)

    def _apply_snippet(self, place: Place, draft: Draft) -> Draft:
        """Add the header edits of a configuration-snippet to all answers of an open location."""
        source = place.location.source
        if source is None or not source.annotations.snippet.edits_answers:
            return draft
        if self._closing(place, source, self._findings.access_of(source)):
            return draft
        found = source.annotations.snippet
        others = tuple(one for one in draft.filters if one.response_header_modifier is None)
        before = HTTPHeaderFilter()
        for one in draft.filters:
            before = one.response_header_modifier or before
        # nginx runs the edits of a snippet behind those of custom-headers.
        names = {*(name for name, _ in found.sets), *found.removes}
        kept = tuple(one for one in before.set if one.name.lower() not in names)
        taken = {one.name.lower() for one in kept}
        for name, _ in found.adds:
            if name in taken:
                message = "add_header of a header that custom-headers sets is not served; clients get the header of custom-headers"
                note = Note(name="configuration-snippet", message=message, reason="NotSupported")
                self._findings.note(source, note)
        edits = HTTPHeaderFilter(
            set=(*kept, *(HTTPHeader(name=name, value=value) for name, value in found.sets)),
            add=tuple(
                HTTPHeader(name=name, value=value)
                for name, value in found.adds
                if name not in taken
            ),
            remove=found.removes,
        )
        filters = others
        if edits != HTTPHeaderFilter():
            made = HTTPRouteFilter(type="ResponseHeaderModifier", response_header_modifier=edits)
            filters = (*others, made)
        specs = draft.specs
        if found.successes:
            headers = tuple(AddedHeader(name=name, value=value) for name, value in found.successes)
            added = ResponseHeaders(add_on_success=headers)
            specs = (*specs, HTTPRouteFilterSpec(response_headers=added))
        return msgspec.structs.replace(draft, filters=filters, specs=specs)

    def _find_page(self, place: Place) -> Page | None:
        source = place.location.source
        if source is None:
            return None
        closed = bool(self._closing(place, source, self._findings.access_of(source)))
        found = None if place.location.upstream is None else self._default_backend(source)
        origin = self._describe(place, source)
        return make_page(source.annotations.pages, self._settings, found, origin, closed=closed)

    def _default_backend(self, source: Source) -> Target | None:
        """Return the target of default-backend; None without endpoints."""
        lookup = self._findings.lookup
        found, notes = find_default_backend(source.annotations.pages, source.namespace, lookup)
        self._findings.note(source, *notes)
        if found is not None and found.backend is not None:
            meta = found.backend.metadata
            self._findings.backends[f"{meta.namespace}/{meta.name}"] = found.backend
        return found

    def _describe(self, place: Place, source: Source) -> tuple[tuple[str, str], ...]:
        upstream, name = place.location.upstream, source.ingress.metadata.name
        service, port = ("", "") if upstream is None else (upstream.service, upstream.port)
        return describe_origin(source.namespace, name, service, port)

    def _draft_root(self, places: list[Place]) -> Iterator[Draft]:
        """Redirect "/" to the app-root of the first location that has one."""
        for place in places:
            source = place.location.source
            if source is None or place.location.plain or not source.annotations.app_root:
                continue
            match = HTTPPathMatch(type="Exact", value="/")
            redirect = redirect_to_root(source.annotations.app_root)
            field = _annotation("app-root")
            yield self._redirect(source, field, match, redirect)
            return

    def _draft_place(self, place: Place) -> Iterator[Draft]:
        location = place.location
        source = location.source
        if source is None:
            # Without this rule another host would take requests for an alias, or for a path without its slash.
            owner = place.neighbour or (self._server.alias_owner if self._alias else None)
            yield self._answer(owner, location.field, place.match, 404)
            return
        annotations, access = source.annotations, self._findings.access_of(source)
        closed = self._closing(place, source, access)
        if closed:
            yield self._answer(source, closed, place.match, 503)
        elif place.kind == "slash":
            redirect = redirect_to_slash(
                place.path,
                self._scheme,
                port=self._port(self._scheme) if annotations.port_in_redirects else None,
                relative=annotations.relative_redirects,
            )
            yield self._redirect(source, location.field, place.match, redirect)
        elif annotations.snippet.code:
            field, snippet = _annotation("configuration-snippet"), annotations.snippet
            yield from self._draft_preflights(place, source)
            if snippet.url:
                redirect = redirect_to_url(snippet.url, snippet.code)
                yield self._redirect(source, field, place.match, redirect)
            else:
                yield self._answer(source, field, place.match, snippet.code)
        elif annotations.redirection is not None and not location.plain:
            found = annotations.redirection
            redirect = redirect_to_url(found.url, found.code)
            if found.template:
                redirect = redirect_to_template(found.template, found.code)
            yield from self._draft_preflights(place, source)
            yield self._redirect(source, _annotation(found.name), place.match, redirect)
        else:
            yield from self._draft_preflights(place, source)
            rewritten = self._rewrite(place, source)
            if isinstance(rewritten, Redirect):
                yield self._redirect(source, _annotation("rewrite-target"), place.match, rewritten)
            else:
                yield from self._draft_https(place, source, rewritten)

    def _draft_preflights(self, place: Place, source: Source) -> Iterator[Draft]:
        """Answer OPTIONS of an allowed origin with 204, before redirects and access rules, as nginx does."""
        if source.annotations.cors is None:
            return
        cors, _ = translate_cors(source.annotations.cors)
        if cors is None or cors.cors is None:
            return
        for pattern in match_origins(cors.cors.allow_origins):
            headers: tuple[HTTPHeaderMatch, ...] = ()
            if pattern:
                headers = (HTTPHeaderMatch(type="RegularExpression", name="origin", value=pattern),)
            match = msgspec.structs.replace(self._match(place.match, headers), method="OPTIONS")
            made = self._answer(source, _annotation("enable-cors"), place.match, 204)
            yield msgspec.structs.replace(made, match=match, filters=(*made.filters, cors))

    def _closing(self, place: Place, source: Source, access: Access) -> str:
        """Return the field for which a location answers 503, "" if it does not."""
        field = self._closing_of_source(place.path, source, access)
        if field or place.kind != "refused":
            return field
        field = f"{place.location.field}.path"
        message = f'"{place.path}": {place.wrong}; requests that it can match get 503'
        note = Note(name=field, message=message, error=True, reason="NotSupported")
        self._findings.note(source, note)
        return field

    def _closing_of_source(self, path: str, source: Source, access: Access) -> str:
        if source.ingress.closed is not None:
            return source.ingress.closed.path or "spec"
        if self._server.closed_by is not None:
            return "metadata.annotations"
        open_ = self._guard(path) == "lists"  # authentication does not apply here
        for name in source.annotations.closed:
            if name == "ConfigMap":
                return "metadata.annotations"
            if name not in _AUTHENTICATION or not open_ or source.annotations.closes_no_auth:
                return _annotation(name)
        if access.closed and (
            access.closed not in _AUTHENTICATION or not open_ or source.annotations.closes_no_auth
        ):
            is_global = access.closed == "global-auth-url"
            return "metadata.annotations" if is_global else _annotation(access.closed)
        custom = find_custom_headers(source, self._settings, self._findings.lookup)
        if custom.closed:
            self._findings.note(source, *custom.notes)
            return _annotation("custom-headers")
        return ""

    def _is_closed(self, location: Location, path: str) -> bool:
        source = location.source
        if source is None:
            return False
        return bool(self._closing_of_source(path, source, self._findings.access_of(source)))

    # --- redirects ---

    def _draft_https(
        self, place: Place, source: Source, rewritten: tuple[HTTPRouteFilterSpec, ...] | None
    ) -> Iterator[Draft]:
        """Redirect to HTTPS where the location asks for it; else serve it."""
        annotations, settings = source.annotations, self._settings
        forced = annotations.force_ssl_redirect and not place.location.plain
        wanted = annotations.ssl_redirect and self._redirects and not place.location.plain
        excluded = any(place.path.startswith(one) for one in settings.no_redirect)
        serves = self._draft_serving(place, source, rewritten)
        if not (forced or wanted) or excluded:
            yield from serves
            return
        redirect = redirect_to_https(
            settings.redirect_code,
            preserve_slash=annotations.preserve_trailing_slash,
            port=self._port("https") if annotations.port_in_redirects else None,
        )
        field = _annotation("force-ssl-redirect") if forced else "spec.tls"
        # The certificate of a wildcard alias covers one label; nginx redirects deeper names only if forced.
        covered = () if forced or not self._alias.startswith("*.") else (_one_label(self._alias),)
        if not settings.forwarded_headers:
            if self._scheme == "http":
                yield self._redirect(source, field, place.match, redirect, covered)
            if self._scheme == "https" or covered:
                yield from serves
            return
        # The proxy in front decides: X-Forwarded-Proto of the request comes before the scheme of the connection.
        plain = HTTPHeaderMatch(name="x-forwarded-proto", value="http")
        yield self._redirect(source, field, place.match, redirect, (plain, *covered))
        if self._scheme == "https":
            yield from serves
            return
        given = HTTPHeaderMatch(type="RegularExpression", name="x-forwarded-proto", value="(?s).+")
        yield from self._draft_serving(place, source, rewritten, (given,))
        yield self._redirect(source, field, place.match, redirect, covered)
        if covered:
            yield from serves

    def _port(self, scheme: Scheme) -> int:
        plain, tls = self._findings.ports
        return tls if scheme == "https" else plain

    def _redirect(
        self,
        source: Source,
        field: str,
        path: HTTPPathMatch,
        redirect: Redirect,
        headers: tuple[HTTPHeaderMatch, ...] = (),
    ) -> Draft:
        filters = redirect.filters
        if self._scheme == "https" and not redirect.drop_query:
            filters = self._add_strict_transport(filters)
        return Draft(
            source=source,
            origin=RuleOrigin(
                ingress=source.ref,
                path=field,
                rank=self._next_rank(),
                trim_slash=redirect.trim_slash,
                write_port=redirect.write_port,
                drop_query=redirect.drop_query,
            ),
            match=self._match(path, headers),
            filters=filters,
            specs=() if redirect.spec is None else (redirect.spec,),
        )

    def _add_strict_transport(
        self, filters: tuple[HTTPRouteFilter, ...]
    ) -> tuple[HTTPRouteFilter, ...]:
        value = self._settings.strict_transport
        if not value:
            return filters
        header = HTTPHeader(name="strict-transport-security", value=value)
        present = [one for one in filters if one.response_header_modifier is not None]
        others = tuple(one for one in filters if one.response_header_modifier is None)
        before: tuple[HTTPHeader, ...] = ()
        if present and present[0].response_header_modifier is not None:
            before = present[0].response_header_modifier.set
        return (*others, _response_headers((*before, header)))

    # --- answers and backends ---

    def _answer(self, source: Source | None, field: str, path: HTTPPathMatch, status: int) -> Draft:
        filters = self._add_strict_transport(()) if self._scheme == "https" else ()
        return Draft(
            source=source,
            origin=RuleOrigin(
                ingress=source.ref if source is not None else None,
                path=field,
                rank=self._next_rank(),
            ),
            match=self._match(path),
            filters=filters,
            specs=(_status(status),),
        )

    def _draft_serving(
        self,
        place: Place,
        source: Source,
        rewritten: tuple[HTTPRouteFilterSpec, ...] | None,
        headers: tuple[HTTPHeaderMatch, ...] = (),
    ) -> Iterator[Draft]:
        location = place.location
        upstream = location.upstream
        if upstream is None:
            yield self._default(place, source, headers)
            return
        target = self._findings.target_of(upstream, source)
        field = location.field
        available = target.ref is not None and (
            not source.annotations.pages.service or self._is_available(upstream, target)
        )
        default = None if available else self._default_backend(source)
        if default is not None and rewritten is not None:
            yield from self._draft_default(place, source, rewritten, headers, default)
            return
        if target.ref is None:
            note = Note(
                name=field,
                message=f"{target.wrong}; requests get 503",
                error=True,
                reason=target.reason,
            )
            self._findings.note(source, note)
            yield self._answer(source, field, place.match, 503)
            return
        if rewritten is None:
            yield self._answer(source, _annotation("rewrite-target"), place.match, 503)
            return
        filters = self._filters(source, place)
        if filters is None:
            yield self._answer(source, _annotation("custom-headers"), place.match, 503)
            return
        rewritten = (*rewritten, *self._rewrite_responses(source))
        for share in self._shares(upstream, target, source):
            specs = rewritten
            if share.cookie is not None:
                match = HTTPRouteFilterMatch(cookies=(share.cookie,))
                specs = (*specs, HTTPRouteFilterSpec(matches=(match,)))
            yield Draft(
                source=source,
                origin=RuleOrigin(
                    ingress=source.ref,
                    path=field,
                    rank=self._next_rank(),
                    http2=target.http2,
                ),
                match=self._match(place.match, (*headers, *share.headers)),
                guard=self._guard(place.path),
                filters=filters,
                specs=specs,
                backends=share.backends,
                limited=True,
            )

    def _draft_default(
        self,
        place: Place,
        source: Source,
        rewritten: tuple[HTTPRouteFilterSpec, ...],
        headers: tuple[HTTPHeaderMatch, ...],
        target: Target,
    ) -> Iterator[Draft]:
        """default-backend serves a Service without endpoints."""
        filters = self._filters(source, place)
        if filters is None or target.ref is None:
            yield self._answer(source, _annotation("custom-headers"), place.match, 503)
            return
        first = filters[0].request_header_modifier
        assert first is not None
        upstream = place.location.upstream
        assert upstream is not None
        message = (
            f"Service {upstream.namespace}/{upstream.service} has no endpoints now; its requests go to the Service of "
            "default-backend, in the output of convert for good"
        )
        note = Note(name="default-backend", message=message, reason="EndpointsNotFound")
        self._findings.note(source, note)
        sets = (*first.set, *page_headers(self._describe(place, source)))
        changed = msgspec.structs.replace(
            filters[0], request_header_modifier=msgspec.structs.replace(first, set=sets)
        )
        yield Draft(
            source=source,
            origin=RuleOrigin(
                ingress=source.ref, path=_annotation("default-backend"), rank=self._next_rank()
            ),
            match=self._match(place.match, headers),
            guard=self._guard(place.path),
            filters=(changed, *filters[1:]),
            specs=rewritten,
            backends=(target.ref,),
            limited=True,
        )

    def _default(self, place: Place, source: Source, headers: tuple[HTTPHeaderMatch, ...]) -> Draft:
        """The default backend of the controller, behind the access rules of the location."""
        made = self._answer(source, place.location.field, place.match, 404)
        return msgspec.structs.replace(
            made,
            guard=self._guard(place.path),
            match=self._match(place.match, headers),
            limited=True,
        )

    def _guard(self, path: str) -> Guard:
        if any(path.startswith(one) for one in self._settings.no_auth):
            return "lists"
        return "all"

    def _rewrite(
        self, place: Place, source: Source
    ) -> tuple[HTTPRouteFilterSpec, ...] | Redirect | None:
        """Return the rewrite of a location; None: it cannot be served."""
        location = place.location
        if not needs_rewrite(location, place.path):
            return ()
        found = translate_rewrite(place.path, target_of(location))
        if found.wrong:
            message = f"not served: {found.wrong}; its locations answer 503"
            self._findings.note(
                source,
                Note(name="rewrite-target", message=message, error=True, reason="NotSupported"),
            )
            return None
        if found.redirect is not None:
            return found.redirect
        assert found.spec is not None
        return (found.spec,)

    def _rewrite_responses(self, source: Source) -> Iterator[HTTPRouteFilterSpec]:
        """Rewrite Location and cookies of backends; nginx writes the scheme of the connection."""
        rewrite = source.annotations.responses
        if rewrite is None:
            return
        if not source.annotations.relative_redirects:
            port, scheme = self._port(self._scheme), "{scheme}"
            if self._settings.forwarded_address or source.annotations.port_in_redirects:
                scheme = self._scheme
            written = source.annotations.port_in_redirects and port != _PORTS[self._scheme]
            origin = f"{scheme}://{{host}}" + (f":{port}" if written else "")
            rewrite = absolute_locations(rewrite, origin)
        yield HTTPRouteFilterSpec(response_rewrite=rewrite)

    def _shares(self, upstream: Upstream, target: Target, source: Source) -> list[Share]:
        """Return the rules of a location by the canary of its Service."""
        assert target.ref is not None
        known = self._findings.servers.canaries.get(upstream)
        if known is None or not self._is_available(upstream, target):
            return [Share(backends=(target.ref,))]
        alternative, canary, owner = known
        found = self._findings.target_of(alternative, source)
        if found.ref is None or not self._is_available(alternative, found):
            message = (
                found.wrong
                or f"Service {alternative.namespace}/{alternative.service} has no endpoints"
            )
            note = Note(
                name="canary",
                message=f"{message}; the canary gets no requests",
                reason="EndpointsNotFound",
            )
            self._findings.note(owner, note)
            return [Share(backends=(target.ref,))]
        return split_shares(target.ref, found.ref, canary)

    def _is_available(self, upstream: Upstream, target: Target) -> bool:
        """Tell whether a target has a ready endpoint."""
        if target.port is None:
            return True
        return self._findings.lookup.has_endpoints(upstream.key, target.port)

    # --- filters ---

    def _filters(self, source: Source, place: Place) -> tuple[HTTPRouteFilter, ...] | None:
        """Return the filters of requests to a backend; None: the custom headers cannot be served."""
        annotations = source.annotations
        custom = find_custom_headers(source, self._settings, self._findings.lookup)
        self._findings.note(source, *custom.notes)
        if custom.closed:
            return None
        filters: list[HTTPRouteFilter] = [self._request_headers(annotations, place)]
        if annotations.upstream_vhost:
            filters += self._rewrite_host(source)
        if annotations.cors is not None:
            cors, notes = translate_cors(annotations.cors)
            self._findings.note(source, *notes)
            filters += () if cors is None else (cors,)
        if annotations.mirror:
            filters += self._mirror(source)
        if custom.headers:
            filters.append(_response_headers(custom.headers))
        made = tuple(filters)
        return self._add_strict_transport(made) if self._scheme == "https" else made

    def _request_headers(self, annotations: Annotations, place: Place) -> HTTPRouteFilter:
        """The headers to backends that differ from those of the EdgeProxy, and those that never reach one."""
        sets: list[HTTPHeader] = []
        settings, (plain, tls) = self._settings, self._findings.ports
        if settings.forwarded_address and not settings.forwarded_headers:
            # enable-real-ip trusts addresses alone, and the EdgeProxy other headers of trusted peers, too.
            port = _HTTPS if self._scheme == "https" else plain
            sets = [
                HTTPHeader(name="x-forwarded-port", value=str(port)),
                HTTPHeader(name="x-forwarded-scheme", value=self._scheme),
                HTTPHeader(name="x-scheme", value=self._scheme),
            ]
        elif self._scheme == "https" and not settings.forwarded_headers and tls != _HTTPS:
            # nginx writes 443 for TLS, also at another port.
            sets = [HTTPHeader(name="x-forwarded-port", value=str(_HTTPS))]
        if annotations.prefix_header and needs_rewrite(place.location, place.path):
            sets.append(HTTPHeader(name="x-forwarded-prefix", value=annotations.prefix_header))
        requests = annotations.snippet.requests
        sets += (HTTPHeader(name=name, value=value) for name, value in requests)
        removes = ["proxy"]
        if annotations.basic is not None and self._guard(place.path) == "all":
            removes.append("authorization")
        client = self._server.client_tls
        if client is not None and client.rule is not None and not client.passes:
            removes.append("ssl-client-cert")
        headers = HTTPHeaderFilter(set=tuple(sets), remove=tuple(removes))
        return HTTPRouteFilter(type="RequestHeaderModifier", request_header_modifier=headers)

    def _rewrite_host(self, source: Source) -> Iterator[HTTPRouteFilter]:
        host = source.annotations.upstream_vhost
        if not _HOST.fullmatch(host):
            message = "not a host name without a port; backends get the Host of the request"
            self._findings.note(
                source,
                Note(name="upstream-vhost", message=message, error=True, reason="NotSupported"),
            )
            return
        yield HTTPRouteFilter(type="URLRewrite", url_rewrite=HTTPURLRewriteFilter(hostname=host))

    def _mirror(self, source: Source) -> Iterator[HTTPRouteFilter]:
        found: Mirror = translate_mirror(source)
        self._findings.note(source, *found.notes)
        if found.backend is not None and found.filter is not None:
            meta = found.backend.metadata
            self._findings.backends[f"{meta.namespace}/{meta.name}"] = found.backend
            yield found.filter

    # --- matches ---

    def _match(
        self, path: HTTPPathMatch, headers: tuple[HTTPHeaderMatch, ...] = ()
    ) -> HTTPRouteMatch:
        host = self._server.host
        if host.startswith("*.") and not self._alias:
            headers = (
                _one_label(host),
                *headers,
            )  # nginx serves deeper names by the catch-all host
        return HTTPRouteMatch(path=path, headers=headers)

    def _next_rank(self) -> int:
        self._rank += 1
        return self._rank


def _one_label(wildcard: str) -> HTTPHeaderMatch:
    """Match the names with one label below a wildcard name."""
    value = rf"(?i)[-a-z0-9_]+{re.escape(wildcard[1:])}\.?(:[0-9]+)?"
    return HTTPHeaderMatch(type="RegularExpression", name="host", value=value)


def _annotation(name: str) -> str:
    return f"metadata.annotations[nginx.ingress.kubernetes.io/{name}]"


def _status(code: int) -> HTTPRouteFilterSpec:
    return HTTPRouteFilterSpec(direct_response=DirectResponse(status_code=code))


def _response_headers(headers: tuple[HTTPHeader, ...]) -> HTTPRouteFilter:
    return HTTPRouteFilter(
        type="ResponseHeaderModifier", response_header_modifier=HTTPHeaderFilter(set=headers)
    )
