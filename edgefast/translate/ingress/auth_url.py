"""Auth url: auth-url and global-auth-url with what belongs to them -> the extAuth of a SecurityPolicy.

In: the annotations of an Ingress, or the settings of the ConfigMap. Out: `AuthUrl`, then an `AuthCheck`: the check, the Backend that
it needs, or why the locations answer 503. As in nginx 2xx lets a request pass, 401 and 403 deny it, all other answers are errors
(500), and 401 becomes a redirect to auth-signin. If the host of the URL is one of the Ingresses, the check goes directly to the Service
that serves its path there (auth_location.py).
Source: ingress-nginx authreq/main.go, nginx.tmpl (`auth_request`), template.go (`buildAuthSignURL`), set-misc-nginx-module.
Must never: leave out a header that the service decides by, or show the value of one.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Callable
from typing import get_args
from urllib.parse import SplitResult, urlsplit

import msgspec

from edgefast.api.edge.backend import (
    Backend,
    BackendEndpoint,
    BackendSpec,
    BackendTLS,
    FQDNEndpoint,
    IPEndpoint,
)
from edgefast.api.edge.securitypolicy import (
    CheckMethod,
    ExtAuth,
    ExtAuthHeader,
    ExtAuthHTTP,
    ExtAuthSignIn,
)
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.model.location_template import CHECK_PATH_LENGTH, CHECK_PATH_PATTERN
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import BackendObjectReference
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.ingress.lookup import Lookup
from edgefast.translate.match.header_name import check_header_name

__all__ = [
    "AuthCheck",
    "AuthRequest",
    "AuthTarget",
    "AuthUrl",
    "FindAuthTarget",
    "RequestHost",
    "asks_request_host",
    "named_host",
    "translate_auth_url",
]

_METHODS: tuple[CheckMethod, ...] = get_args(CheckMethod)
_HOST = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_PATH = re.compile(r"/[-A-Za-z0-9/._~!&'()*+,;=:@%]*(\?[-A-Za-z0-9/._~!&'()*+,;=:@?%]*)?")
_VARIABLE = re.compile(r"\$([a-z_0-9]+)")
#: Variables of nginx in auth-signin -> those of extAuth.http.signIn.
_VARIABLES = {
    "escaped_request_uri": "{escapedTarget}",
    "host": "{host}",
    "http_host": "{authority}",
    "pass_access_scheme": "{scheme}",
    "remote_addr": "{clientAddress}",
    "request_uri": "{target}",
    "scheme": "{scheme}",
}
#: Variables of nginx in the path of auth-url -> those of extAuth.http.pathTemplate. Others, such as $args, belong to the check itself.
_PATH_VARIABLES = {
    "escaped_request_uri": "{escapedTarget}",
    "host": "{host}",
    "http_host": "{authority}",
    "pass_access_scheme": "{scheme}",
    "request_method": "{method}",
    "request_uri": "{target}",
    "scheme": "{scheme}",
}
_NAMED = re.compile(r"\$(?:\{([a-zA-Z_0-9]+)\}|([a-zA-Z_0-9]+))")
#: The host of a URL that is the host of the request.
_REQUEST_HOST = re.compile(r"\$(?:\{(?:http_)?host\}|(?:http_)?host)(?::[0-9]{1,5})?")
_PORTS = {"http": 80, "https": 443}
_PATH_TEMPLATE = re.compile(CHECK_PATH_PATTERN)
_TEMPLATE = re.compile(r"(https?://|\{scheme\}://|/)[-A-Za-z0-9/._~!&'()*+,;=:@?%#{}]{0,2000}")
#: Headers of an answer that backends never get from a service.
_NEVER = frozenset({"content-type", "date", "host", "http2-settings", "server", "via"})
_FIXED_NEVER = frozenset({"x-forwarded-for", "x-forwarded-proto", "x-request-id", "via"})


class AuthUrl(msgspec.Struct, frozen=True, kw_only=True):
    """An authorization service of nginx, as it is written."""

    name: str  # of the annotation or key
    url: str
    method: str = ""
    response_headers: tuple[str, ...] = ()
    signin: str = ""
    signin_parameter: str = "rd"
    request_redirect: str = ""
    always_set_cookie: bool = False
    headers: str = ""  # "namespace/name" of a ConfigMap with headers for the service


class AuthCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The check of an authorization service."""

    ext_auth: ExtAuth | None = None
    ref: BackendObjectReference | None = None  # it needs a grant in another namespace
    backend: Backend | None = None  # made for the address
    wrong: str = ""  # why the locations answer 503
    reason: Word = "NotSupported"
    verifies: bool = False  # the certificate, which nginx does not


class RequestHost(msgspec.Struct, frozen=True, kw_only=True):
    """The host of an Ingress whose requests an authorization service checks."""

    name: str
    aliases: bool = False  # requests for its aliases have another Host


class AuthRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request of nginx to an authorization service."""

    host: str
    scheme: str
    path: str  # without the query; "": it has variables
    method: str
    namespace: str = ""  # the only one whose locations may serve it; "": all


class AuthTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The Service behind a location of an Ingress that a URL names."""

    ref: BackendObjectReference | None = None
    backend: Backend | None = None  # made for the address of a Service
    path: str = ""  # after the rewrite of the location
    wrong: str = ""  # why a check cannot go to it directly


#: Returns the Service that serves a request; None: no Ingress has its host.
FindAuthTarget = Callable[[AuthRequest], AuthTarget | None]


def asks_request_host(found: AuthUrl) -> bool:
    """Tell whether the host of a URL is the host of the request: `$host` or `$http_host`."""
    parts = _split(found.url)
    return parts is not None and _REQUEST_HOST.fullmatch(parts.netloc) is not None


def named_host(found: AuthUrl) -> str:
    """Return the host that a URL names, "" if it contains a variable."""
    parts = _split(found.url)
    host = "" if parts is None else (parts.hostname or "").rstrip(".")
    return "" if "$" in host else host


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def translate_auth_url(
    found: AuthUrl,
    namespace: str,
    lookup: Lookup,
    find_target: FindAuthTarget,
    request_host: RequestHost | None = None,
) -> AuthCheck:
    """Translate a service for an Ingress in `namespace`; `request_host`: of `$host` and `$http_host`."""
    try:
        parts = urlsplit(found.url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return AuthCheck(wrong="not a URL", reason="Invalid")
    own = request_host if asks_request_host(found) else None
    if "$" in parts.scheme or ("$" in parts.netloc and own is None):
        message = "a variable in the host is not supported; write the name of the service"
        return AuthCheck(wrong=message)
    if own is not None:
        host = own.name
    if parts.scheme not in ("http", "https") or not host or ".." in host:
        return AuthCheck(wrong="not a URL of http or https", reason="Invalid")
    target: AuthTarget | None = None
    if port in (None, _PORTS[parts.scheme]):
        asked = AuthRequest(
            host=host,
            scheme=parts.scheme,
            path="" if "$" in parts.path else parts.path or "/",
            method=found.method or "GET",
            # An Ingress of another namespace must not take the checks of a host that DNS may resolve to another place.
            namespace="" if own is not None else namespace,
        )
        target = find_target(asked)
    if own is not None and (target is None or target.wrong):
        wrong = f"port {port} is not the default of its scheme" if target is None else target.wrong
        message = f"the variable in the host is not supported for {host}: {wrong}; write the name of the service"
        return AuthCheck(wrong=message)
    if target is not None and target.wrong:
        target = None  # the host is asked by its name
    path = parts.path or "/" if target is None else target.path
    path += f"?{parts.query}" if parts.query else ""
    template = ""
    if "$" in path:
        template, wrong = _translate_path(path)
        if wrong:
            return AuthCheck(wrong=wrong)
    if not (template or _PATH.fullmatch(path)) or not (_HOST.fullmatch(host) or _is_address(host)):
        return AuthCheck(wrong="invalid or unsupported URL", reason="Invalid")
    if parts.scheme == "https" and target is None and _is_address(host):
        return AuthCheck(
            wrong="https to an address is not served, because its certificate is verified"
        )
    method = next((one for one in _METHODS if one == (found.method or "GET")), None)
    if method is None:
        return AuthCheck(wrong=f"method {found.method[:16]} is not served")
    headers, wrong = _find_headers(found, lookup)
    if wrong:
        return AuthCheck(wrong=wrong)
    signin = _translate_signin(found)
    if found.signin and not signin:
        return AuthCheck(wrong="the sign-in address has a form that is not served")
    for one in found.response_headers:
        if check_header_name(one) or one.lower() in _NEVER:
            return AuthCheck(wrong=f"response header {one[:64]} is not served")
    backend: Backend | None
    if target is None or target.ref is None:
        tls = parts.scheme == "https"
        ref, backend = _find_backend(host, port or _PORTS[parts.scheme], tls, namespace, lookup)
    else:
        ref, backend = target.ref, target.backend
    # Without a hostname the service gets the Host of the request.
    varies = own is not None and (own.aliases or "http_host" in parts.netloc)
    http = ExtAuthHTTP(
        backend_ref=ref,
        path_override=None if template else path,
        path_template=template or None,
        hostname=host if _HOST.fullmatch(host) and not varies else None,
        method=method,
        all_request_headers=True,
        original_request="XOriginal",
        headers=headers,
        headers_to_backend=found.response_headers,
        denied_statuses=(401, 403),
        headers_to_client_on_denied=("WWW-Authenticate",),
        headers_to_client=("Set-Cookie",),
        headers_to_client_on="AllStatuses" if found.always_set_cookie else "SuccessAndRedirect",
        sign_in=ExtAuthSignIn(redirect_to=signin) if signin else None,
    )
    made = ExtAuth(
        http=http, timeout="60s", status_on_error=500, allowed_statuses=tuple(range(200, 300))
    )
    verifies = parts.scheme == "https" and target is None
    return AuthCheck(ext_auth=made, ref=ref, backend=backend, verifies=verifies)


def _find_headers(found: AuthUrl, lookup: Lookup) -> tuple[tuple[ExtAuthHeader, ...], str]:
    """Return the headers that the service gets besides those of the request, or why they are not served."""
    headers = {"x-sent-from": ExtAuthHeader(name="X-Sent-From", value="nginx-ingress-controller")}
    if found.request_redirect:
        if "$" in found.request_redirect:
            return (), "variables of nginx in auth-request-redirect are not served"
        name = "X-Auth-Request-Redirect"
        headers[name.lower()] = ExtAuthHeader(name=name, value=found.request_redirect)
    if found.headers:
        namespace, _, name = found.headers.rpartition("/")
        config = lookup.config_map((namespace, name))
        if config is None:
            return (), f"ConfigMap {namespace}/{name} of auth-proxy-set-headers not found"
        for name, value in sorted(config.data.items()):
            if check_header_name(name) or name.lower() in _FIXED_NEVER or "$" in value:
                return (), f"header {name[:64]} of auth-proxy-set-headers is not served"
            if not value.isascii() or not value.isprintable() or not 0 < len(value) <= 4096:
                return (), f"header {name[:64]} of auth-proxy-set-headers has no valid value"
            headers[name.lower()] = ExtAuthHeader(name=name, value=value)
    if len(headers) > 16:
        return (), "auth-proxy-set-headers has more than 14 headers"
    return tuple(headers.values()), ""


def _translate_path(path: str) -> tuple[str, str]:
    """Return the template of a path with variables and "", or "" and why it is not served."""
    names = [one or other for one, other in _NAMED.findall(path)]
    unknown = next((one for one in names if one not in _PATH_VARIABLES), "")
    if unknown:
        known = ", ".join(f"${one}" for one in _PATH_VARIABLES)
        return "", f"variable ${unknown[:32]} is not served (allowed: {known})"
    if "{" in _NAMED.sub("", path):
        return "", "invalid or unsupported URL"
    made = _NAMED.sub(lambda one: _PATH_VARIABLES[one[1] or one[2]], path)
    # edgefast would take another $ as text.
    served = "$" not in made and len(made) <= CHECK_PATH_LENGTH and _PATH_TEMPLATE.match(made)
    return (made, "") if served else ("", "invalid or unsupported URL")


def _translate_signin(found: AuthUrl) -> str:
    """Return the template of the sign-in address, "" without one and for a form that is not served."""
    if not found.signin:
        return ""
    unknown = [one for one in _VARIABLE.findall(found.signin) if one not in _VARIABLES]
    start = _VARIABLE.sub(lambda one: _VARIABLES.get(one[1], ""), found.signin)
    parameter = found.signin_parameter
    query = urlsplit(found.signin).query
    rest = f"{parameter}={{scheme}}://{{authority}}{{escapedTarget}}"
    if not query:
        start += f"?{rest}"
    elif not re.search(rf"(?:^|&){re.escape(parameter)}=[^&]", query):
        start += f"&{rest}"
    return start if not unknown and "$" not in start and _TEMPLATE.fullmatch(start) else ""


def _find_backend(
    host: str, port: int, tls: bool, namespace: str, lookup: Lookup
) -> tuple[BackendObjectReference, Backend | None]:
    """Return a reference to the Service that a DNS name of a cluster means, else to a Backend that is made."""
    labels = host.split(".")
    if not tls and len(labels) >= 2 and (len(labels) == 2 or labels[2] == "svc"):
        key = (labels[1], labels[0])
        service = lookup.service(key)
        if service is not None and any(one.port == port for one in service.spec.ports):
            ref = BackendObjectReference(name=key[1], namespace=key[0], port=port)
            return ref, None
    if _is_address(host):
        endpoint = BackendEndpoint(ip=IPEndpoint(address=host, port=port))
    else:
        endpoint = BackendEndpoint(fqdn=FQDNEndpoint(hostname=host, port=port))
    scheme = "https" if tls else "http"
    digest = hashlib.blake2s(f"{scheme}://{host}:{port}".encode(), digest_size=6).hexdigest()
    name = f"auth.Ingress-{digest}"
    backend = Backend(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=BackendSpec(
            endpoints=(endpoint,),
            tls=BackendTLS(hostname=host) if tls else None,
        ),
    )
    return BackendObjectReference(group=EDGE_GROUP, kind="Backend", name=name), backend


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
