"""Rules: what each location of a host becomes, in the order of one request in nginx.

In: a Server, the settings, a Lookup. Out: `Draft`s: the rules of a host at one of both ports, in order.
The order of one request: app-root; location; 301 for a missing slash; 503 of a closed location; 204 of a CORS preflight; temporal or
permanent redirect; redirect of a rewrite-target; ssl-redirect; access; canary; backend.
Source: ingress-nginx nginx.tmpl, lua_ingress.lua.
Must never: serve a location that is closed, or one whose backend or rewrite is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from edgefast.api.edge.httproutefilter import (
    DirectResponse,
    HTTPRouteFilterMatch,
    HTTPRouteFilterSpec,
)
from edgefast.api.gateway.httproute import (
    HTTPHeaderMatch,
    HTTPPathMatch,
    HTTPRouteMatch,
)
from edgefast.api.model.origin import RuleOrigin
from edgefast.translate.ingress.backends import Target
from edgefast.translate.ingress.canary import Share, split_shares
from edgefast.translate.ingress.closing import closing_of_source, find_closing
from edgefast.translate.ingress.configmap import Note
from edgefast.translate.ingress.cors import match_origins, translate_cors
from edgefast.translate.ingress.draft import Draft, access_rules_of
from edgefast.translate.ingress.error_pages import (
    Page,
    describe_origin,
    make_page,
    page_headers,
)
from edgefast.translate.ingress.filters import make_filters
from edgefast.translate.ingress.findings import Findings
from edgefast.translate.ingress.locations import Place, arrange, needs_rewrite, target_of
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
from edgefast.translate.ingress.responseheaders import add_strict_transport
from edgefast.translate.ingress.rewrite import translate_rewrite
from edgefast.translate.ingress.servers import (
    Location,
    Server,
    Source,
    Upstream,
    named_upstream,
)
from edgefast.translate.ingress.snippet import ConditionAnswer, SnippetAnswer
from edgefast.translate.ingress.snippet_conditions import UnsupportedMatch, narrow
from edgefast.translate.ingress.snippet_edits import edit_answers
from edgefast.translate.ingress.values import annotation_path

_PORTS: Mapping[Scheme, int] = {"http": 80, "https": 443}


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
                yield self._answer(source, annotation_path("auth-tls-match-cn"), place.match, 403)
            return
        yield from self._draft_root()
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
        if self._closing(place, source):
            return draft
        edited, notes = edit_answers(draft, source.annotations.snippet)
        self._findings.note(source, *notes)
        return edited

    def _closing(self, place: Place, source: Source) -> str:
        return find_closing(place, source, self._server, self._findings)

    def _find_page(self, place: Place) -> Page | None:
        source = place.location.source
        if source is None:
            return None
        closed = bool(self._closing(place, source))
        found = (
            None if place.location.upstream is None else self._findings.default_backend_of(source)
        )
        origin = self._describe(place, source)
        return make_page(source.annotations.pages, self._settings, found, origin, closed=closed)

    def _describe(self, place: Place, source: Source) -> tuple[tuple[str, str], ...]:
        found, name = place.location.upstream, source.ingress.metadata.name
        upstream = named_upstream(source, self._server.host, place.location.path) or found
        service, port = ("", "") if upstream is None else (upstream.service, upstream.port)
        return describe_origin(source.namespace, name, service, port)

    def _draft_root(self) -> Iterator[Draft]:
        """Redirect "/" to the app-root of the first location that has one, also if another one takes all of its requests."""
        for location in self._server.locations:
            source = location.source
            if source is None or location.plain or not source.annotations.app_root:
                continue
            match = HTTPPathMatch(type="Exact", value="/")
            redirect = redirect_to_root(source.annotations.app_root)
            field = annotation_path("app-root")
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
        annotations = source.annotations
        closed = self._closing(place, source)
        if place.kind == "slash":
            redirect = redirect_to_slash(
                place.path,
                self._scheme,
                port=self._port(self._scheme) if annotations.port_in_redirects else None,
                relative=annotations.relative_redirects,
            )
            yield self._redirect(source, location.field, place.match, redirect)
        elif closed:
            yield self._answer(source, closed, place.match, 503)
        else:
            yield from self._draft_preflights(place, source)
            yield from self._draft_branches(place, source, annotations.snippet.branches)

    def _draft_branches(
        self, place: Place, source: Source, branches: tuple[ConditionAnswer, ...]
    ) -> Iterator[Draft]:
        """Answer the requests of each `if` in order; serve the others."""
        if not branches:
            yield from self._draft_open(place, source)
            return
        condition, rest = branches[0].condition, branches[1:]
        if condition.scheme and not condition.applies(self._scheme):
            yield from self._draft_branches(place, source, rest)
        elif condition.scheme:
            yield self._answer_snippet(place, source, branches[0].answer)
        elif condition.negative:
            for match in condition.matches:
                for one in self._draft_branches(place, source, rest):
                    yield from self._narrow(place, source, one, match)
            yield self._answer_snippet(place, source, branches[0].answer)
        else:
            for match in condition.matches:
                made = self._answer_snippet(place, source, branches[0].answer)
                yield from self._narrow(place, source, made, match)
            yield from self._draft_branches(place, source, rest)

    def _narrow(
        self, place: Place, source: Source, draft: Draft, condition: HTTPRouteMatch
    ) -> Iterator[Draft]:
        """Give a rule with one more condition; 503 where a match cannot have both."""
        try:
            match = narrow(draft.match, condition)
        except UnsupportedMatch as error:
            name = "configuration-snippet"
            message = (
                f"two conditions on the header {error} are not supported; the locations answer 503"
            )
            note = Note(name=name, message=message, error=True, reason="NotSupported")
            self._findings.note(source, note)
            made = self._answer(source, annotation_path(name), place.match, 503)
            yield msgspec.structs.replace(made, origin=draft.origin)
            return
        if match is not None:
            yield msgspec.structs.replace(draft, match=match)

    def _answer_snippet(self, place: Place, source: Source, answer: SnippetAnswer) -> Draft:
        field = annotation_path("configuration-snippet")
        if not answer.url and not answer.template:
            return self._answer(source, field, place.match, answer.code)
        redirect = redirect_to_url(answer.url, answer.code)
        if answer.template:
            redirect = redirect_to_template(answer.template, answer.code)
        return self._redirect(source, field, place.match, redirect)

    def _draft_open(self, place: Place, source: Source) -> Iterator[Draft]:
        annotations = source.annotations
        if annotations.snippet.answer is not None:
            yield self._answer_snippet(place, source, annotations.snippet.answer)
        elif annotations.redirection is not None and not place.location.plain:
            found = annotations.redirection
            redirect = redirect_to_url(found.url, found.code)
            if found.template:
                redirect = redirect_to_template(found.template, found.code)
            yield self._redirect(source, annotation_path(found.name), place.match, redirect)
        else:
            rewritten = self._rewrite(place, source)
            if isinstance(rewritten, Redirect):
                yield self._redirect(
                    source, annotation_path("rewrite-target"), place.match, rewritten
                )
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
            made = self._answer(source, annotation_path("enable-cors"), place.match, 204)
            yield msgspec.structs.replace(made, match=match, filters=(*made.filters, cors))

    def _is_closed(self, location: Location, path: str) -> bool:
        source = location.source
        if source is None:
            return False
        return bool(closing_of_source(path, source, self._server, self._findings))

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
        field = annotation_path("force-ssl-redirect") if forced else "spec.tls"
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
            filters = add_strict_transport(filters, self._settings)
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

    # --- answers and backends ---

    def _answer(self, source: Source | None, field: str, path: HTTPPathMatch, status: int) -> Draft:
        filters = add_strict_transport((), self._settings) if self._scheme == "https" else ()
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
        default = None if available else self._findings.default_backend_of(source)
        if default is not None and rewritten is not None:
            yield from self._draft_default(place, source, rewritten, headers, default)
            return
        if target.ref is None:
            field = annotation_path(target.setting) if target.setting else field
            note = Note(
                name=target.setting or field,
                message=f"{target.wrong}; requests get 503",
                error=True,
                reason=target.reason,
            )
            self._findings.note(source, note)
            yield self._answer(source, field, place.match, 503)
            return
        if rewritten is None:
            yield self._answer(source, annotation_path("rewrite-target"), place.match, 503)
            return
        filters = make_filters(place, source, self._server, self._scheme, self._findings)
        if filters is None:
            yield self._answer(source, annotation_path("custom-headers"), place.match, 503)
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
                guard=access_rules_of(place.path, self._settings),
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
        filters = make_filters(place, source, self._server, self._scheme, self._findings)
        if filters is None or target.ref is None:
            yield self._answer(source, annotation_path("custom-headers"), place.match, 503)
            return
        first = filters[0].request_header_modifier
        assert first is not None
        upstream = place.location.upstream
        assert upstream is not None
        message = (
            f"Service {upstream.namespace}/{upstream.service} has no endpoints now; its requests go to the Service of "
            "default-backend; edgefast convert makes this permanent if the Service has an EndpointSlice"
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
                ingress=source.ref, path=annotation_path("default-backend"), rank=self._next_rank()
            ),
            match=self._match(place.match, headers),
            guard=access_rules_of(place.path, self._settings),
            filters=(changed, *filters[1:]),
            specs=(*rewritten, *self._rewrite_responses(source)),
            backends=(target.ref,),
            limited=True,
        )

    def _default(self, place: Place, source: Source, headers: tuple[HTTPHeaderMatch, ...]) -> Draft:
        """The default backend of the controller, behind the access rules of the location."""
        made = self._answer(source, place.location.field, place.match, 404)
        return msgspec.structs.replace(
            made,
            guard=access_rules_of(place.path, self._settings),
            match=self._match(place.match, headers),
            limited=True,
        )

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


def _status(code: int) -> HTTPRouteFilterSpec:
    return HTTPRouteFilterSpec(direct_response=DirectResponse(status_code=code))
