"""Auth location: the Service that serves the path of an auth-url, if its host is one of the Ingresses.

In: the request of an authorization check, the hosts of Ingresses. Out: an `AuthTarget`: the Service and the path after the rewrite of
the location, or why a check cannot go there directly. nginx sends the check to its own address, where the location of the path
serves it. This is usually an Ingress with the path /oauth2 for oauth2-proxy.
Source: ingress-nginx nginx.tmpl (`proxy_pass` of `auth_request`).
Must never: return a Service whose location has access rules, or answers some checks itself; or give an Ingress of another namespace the
checks of a host that DNS resolves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from edgefast.api.model.reference import BackendObjectReference
from edgefast.api.model.regex import compile_regex, replace_regex
from edgefast.translate.ingress.annotation_fields import Annotations
from edgefast.translate.ingress.auth_url import AuthRequest, AuthTarget
from edgefast.translate.ingress.backends import ServicePortKey, TlsUse, find_target
from edgefast.translate.ingress.configmap import Globals
from edgefast.translate.ingress.draft import access_rules_of
from edgefast.translate.ingress.locations import Place, arrange, needs_rewrite, target_of
from edgefast.translate.ingress.lookup import Lookup
from edgefast.translate.ingress.names import Others
from edgefast.translate.ingress.rewrite import translate_rewrite
from edgefast.translate.ingress.servers import CATCH_ALL, Location, Server, Servers, Source
from edgefast.translate.ingress.snippet import Snippet

__all__ = ["AuthLocations"]

#: A path that its normal form and nginx' rewrites do not change.
_PLAIN = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[-A-Za-z0-9._~!&'()*+,;=:@]+)*/?")
#: Annotations of a location that answer a check, count it, or change the request or its answer.
_DECIDING: tuple[tuple[str, Callable[[Annotations], object]], ...] = (
    ("allowlist-source-range", lambda one: one.allow),
    ("denylist-source-range", lambda one: one.deny),
    ("limit-rps", lambda one: one.limits),
    ("configuration-snippet", lambda one: one.snippet != Snippet()),
    ("custom-headers", lambda one: one.custom_headers),
    ("custom-http-errors", lambda one: one.pages.codes),
    ("default-backend", lambda one: one.pages.service),
    ("mirror-target", lambda one: one.mirror),
    ("affinity", lambda one: one.affinity),
    ("upstream-vhost", lambda one: one.upstream_vhost),
    ("x-forwarded-prefix", lambda one: one.prefix_header),
    ("backend-protocol", lambda one: one.protocol != "HTTP"),
    ("proxy-redirect-* or proxy-cookie-*", lambda one: one.responses),
)


class AuthLocations:
    """The locations of Ingresses that authorization checks reach, for the owner of a Lookup."""

    def __init__(
        self,
        servers: Servers,
        others: Others,
        settings: Globals,
        lookup: Lookup,
        speaks_tls: Mapping[ServicePortKey, TlsUse],
    ) -> None:
        """`speaks_tls`: of `backends.find_encrypted`."""
        self._servers = servers
        self._others = others
        self._settings = settings
        self._lookup = lookup
        self._speaks_tls = speaks_tls

    def find(self, request: AuthRequest) -> AuthTarget | None:
        """Return the Service that serves a check; None: its host is not one of the Ingresses."""
        self._lookup.note_host(request.host)
        if request.host == CATCH_ALL or request.host.startswith("*."):
            return AuthTarget(wrong="the Ingress serves more than one host")
        server = self._servers.by_host.get(request.host)
        if server is None:
            return None
        if not request.path or not _PLAIN.fullmatch(request.path):
            return AuthTarget(wrong="the path contains a variable or a special character")
        place = _find_place(server, request.path)
        location = place.location
        named = f"{request.path} of {request.host}"
        if location.source is None or location.upstream is None:
            return AuthTarget(wrong=f"no Ingress has a Service for {named}")
        if request.namespace not in ("", location.source.namespace):
            return AuthTarget(wrong=f"{location.source.ref} is in another namespace")
        wrong = self._find_decision(request, server, place, location.source)
        if wrong:
            return AuthTarget(wrong=f"{wrong} of {location.source.ref} applies to {named}")
        path = _rewrite(location, place.path, request.path)
        if not path or not _PLAIN.fullmatch(path):
            wrong = f"rewrite-target of {location.source.ref} gives no supported path for {named}"
            return AuthTarget(wrong=wrong)
        found = find_target(
            location.upstream,
            "HTTP",
            self._lookup,
            service_upstream=location.source.annotations.service_upstream,
            speaks_tls=self._speaks_tls,
        )
        if found.ref is None:
            return AuthTarget(wrong=found.wrong)
        ref = BackendObjectReference(
            group=found.ref.group,
            kind=found.ref.kind,
            name=found.ref.name,
            namespace=found.ref.namespace,
            port=found.ref.port,
        )
        return AuthTarget(ref=ref, backend=found.backend, path=path)

    def _find_decision(
        self, request: AuthRequest, server: Server, place: Place, source: Source
    ) -> str:
        """Return the setting that answers or changes a check before its Service; "" if none does."""
        annotations, settings, location = source.annotations, self._settings, place.location
        if place.kind != "serve":
            return (
                "a refused path" if place.kind == "refused" else "the redirect to a trailing slash"
            )
        if source.closed or settings.closed:
            return source.closed or settings.closed
        if server.closed_by is not None or server.client is not None:
            return "auth-tls-secret or a snippet"
        if server.passthrough is not None and request.scheme == "https":
            return "ssl-passthrough"
        if settings.block:
            return "block-cidrs"
        if settings.error_codes:
            return "custom-http-errors"
        if access_rules_of(place.path, settings) == "all":
            if annotations.basic is not None:
                return "auth-type"
            if annotations.auth is not None:
                return annotations.auth.name
        for name, is_set in _DECIDING:
            if is_set(annotations):
                return name
        if annotations.app_root and request.path == "/":
            return "app-root"
        if annotations.redirection is not None:
            return annotations.redirection.name
        if annotations.cors is not None and request.method == "OPTIONS":
            return "enable-cors"
        if request.scheme == "http" and self._redirects(server, place, annotations):
            return "ssl-redirect"
        if location.upstream in self._servers.canaries:
            return "canary"
        return ""

    def _redirects(self, server: Server, place: Place, annotations: Annotations) -> bool:
        """Tell whether a location redirects plain HTTP."""
        if any(place.path.startswith(one) for one in self._settings.no_redirect):
            return False
        name = f"*.{server.host.partition('.')[2]}"
        above = self._servers.by_host.get(name) or self._others.server(name)
        secured = server.certificate or (above.certificate if above is not None else None)
        return annotations.force_ssl_redirect or bool(annotations.ssl_redirect and secured)


def _find_place(server: Server, path: str) -> Place:
    """Return the match of a host that a path has; "/" always has one."""
    regex, places = arrange(server, lambda location, path: False)
    found: list[tuple[tuple[bool, int], Place]] = []
    for place in places:
        value = place.match.value
        if place.match.type == "RegularExpression":
            if compile_regex(value).fullmatch(path):
                return place
        elif place.match.type == "Exact":
            if value == path:
                found.append(((True, 0), place))
        elif value == "/" or path == value or path.startswith(f"{value}/"):
            found.append(((False, len(value)), place))
    return max(found, key=lambda one: one[0])[1]


def _rewrite(location: Location, place_path: str, path: str) -> str:
    """Return the path after the rewrite-target of a location, "" if that cannot be served."""
    if not needs_rewrite(location, place_path):
        return path
    made = translate_rewrite(place_path, target_of(location)).spec
    modifier = made.url_rewrite.path if made is not None and made.url_rewrite else None
    found = None if modifier is None else modifier.replace_regex_match
    if found is None:
        return ""
    text = replace_regex(found.pattern, found.substitution.encode(), path.encode())
    return (text or b"").decode()
