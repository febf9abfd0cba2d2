"""OIDC: SecurityPolicy spec.oidc -> ir.Oidc and the clusters that the provider is asked through.

In: the fields, a Reader for Secrets and backends.
Out: the client with its secret, and the location of the provider's discovery document; a problem for
every mistake. A missing Secret or backend breaks the whole unit.
Source: SecurityPolicy, with the fields of Envoy Gateway; OpenID Connect Core 1.0.
Must never: put a secret into a message, or fetch anything.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from edgefast import ir
from edgefast.api.edge.jwt import JWT
from edgefast.api.edge.oidc import OIDC, OIDCProvider
from edgefast.api.model.reference import SecretObjectReference
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.oidc import (
    LEAST_LOGIN,
    LEAST_SESSION,
    MOST_LOGIN,
    MOST_SESSION,
    check_backend,
    check_client,
    check_forwarding,
    check_issuer,
)
from edgefast.auth.oidc.provider_metadata import WELL_KNOWN, check_endpoint
from edgefast.diagnostics.reasons.word import Word
from edgefast.netaddr import read_address
from edgefast.translate.backend.backend import resolve_backend
from edgefast.translate.backend.reserved import HINT, check_endpoint_address
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.match.header_name import check_header_name
from edgefast.translate.policy.credentials import check_forward_header, read_secret
from edgefast.translate.policy.jwt_principal import check_claim
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["PROVIDER", "translate_oidc"]

#: Name of the provider in `principal.jwt.provider` of rules, and in logs.
PROVIDER = "oidc"
_ID_KEY, _SECRET_KEY = "client-id", "client-secret"
_CALLBACK = "/oauth2/callback"
_MAX_ID, _MAX_SECRET = 1024, 4096
_MAX_CLAIMS, _MAX_DENIED, _MAX_SCOPES, _MAX_RESOURCES = 32, 16, 32, 16
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PATH = re.compile(r"/[-A-Za-z0-9/._~!$&'()*+,;=:@]*")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,253}")  # RFC 6749 3.3
#: The origin of the request, in the words of Envoy Gateway.
_OWN_ORIGIN = "%REQ(x-forwarded-proto)%://%REQ(:authority)%"
_DEFAULT_PORTS = {"https": ":443", "http": ":80"}
_RETRY = 1_000


def translate_oidc(
    given: OIDC, jwt: JWT | None, namespace: str, reader: Reader, report: Report, path: str
) -> tuple[ir.Oidc, tuple[ClusterRef, ...]]:
    """Translate the login of a SecurityPolicy in `namespace`; of what a report refuses nothing is to be used."""
    refuse_violations((*check_client(given), *check_forwarding(given)), report, path, "Invalid")
    _check_jwt(given, jwt, report, path)
    clusters: list[ClusterRef] = []
    remote = _translate_provider(
        given.provider, namespace, reader, report, f"{path}.provider", clusters
    )
    client_id = given.client_id or ""
    if given.client_id_ref is not None:
        where = f"{path}.clientIDRef"
        text = _read_key(given.client_id_ref, _ID_KEY, _MAX_ID, namespace, reader, report, where)
        client_id = text.decode("ascii", "replace")
    elif len(client_id) > _MAX_ID or not client_id.isascii() or not client_id.isprintable():
        message = f"{len(client_id)} characters (expected 1 to {_MAX_ID}, printable ASCII)"
        _refuse(report, f"{path}.clientID", "Invalid", message)
    where = f"{path}.clientSecret"
    secret = _read_key(
        given.client_secret, _SECRET_KEY, _MAX_SECRET, namespace, reader, report, where
    )
    origin, callback = _translate_callback(given.redirect_url, report, f"{path}.redirectURL")
    if not _PATH.fullmatch(given.logout_path):
        message = f'"{given.logout_path}" (expected a path such as /logout)'
        _refuse(report, f"{path}.logoutPath", "Invalid", message)
    if given.logout_path == callback:
        _refuse(report, f"{path}.logoutPath", "Duplicate", f'"{callback}" is the callback path')
    provider = given.provider
    made = ir.Oidc(
        remote=remote,
        client_id=client_id,
        client_secret=secret,
        authorization_endpoint=provider.authorization_endpoint or "",
        token_endpoint=provider.token_endpoint or "",
        end_session_endpoint=provider.end_session_endpoint or "",
        scopes=_translate_scopes(given, report, path),
        resources=_translate_resources(given, report, path),
        callback_origin=origin,
        callback_path=callback,
        logout_path=given.logout_path,
        cookie_domain=_translate_domain(given, report, path),
        same_site=given.cookie_config.same_site if given.cookie_config is not None else "Lax",
        refresh=given.refresh_token,
        login_lifetime=_read_time(
            given.csrf_token_ttl, LEAST_LOGIN, MOST_LOGIN, report, f"{path}.csrfTokenTTL"
        ),
        token_lifetime=_read_time(
            given.default_token_ttl, 0, MOST_SESSION, report, f"{path}.defaultTokenTTL"
        ),
        session_lifetime=_read_time(
            given.default_refresh_token_ttl,
            LEAST_SESSION,
            MOST_SESSION,
            report,
            f"{path}.defaultRefreshTokenTTL",
        ),
        pass_through=given.pass_through_auth_header,
        forward_access_token=given.forward_access_token,
        id_token_header=check_forward_header(
            given.forward_id_token.header if given.forward_id_token is not None else None,
            report,
            f"{path}.forwardIDToken.header",
        ),
        claim_headers=_translate_claims(given, report, f"{path}.claimToHeaders"),
        denied_redirects=_translate_denied(given, report, f"{path}.denyRedirect.headers"),
    )
    return made, tuple(dict.fromkeys(clusters))


def _check_jwt(given: OIDC, jwt: JWT | None, report: Report, path: str) -> None:
    """A browser has no token for `jwt`, so both together need a rule about which of them decides."""
    where = f"{path}.passThroughAuthHeader"
    if jwt is None:
        if given.pass_through_auth_header:
            _refuse(report, where, "Invalid", "jwt is not set, and decides about such requests")
        return
    if not given.pass_through_auth_header:
        message = "jwt is set: true is required, so that a request needs a token or a session"
        _refuse(report, where, "Required", message)
    for name, given_one in (("optional", jwt.optional), ("failOpen", jwt.fail_open)):
        if given_one:
            message = "a request with any token would skip the login; remove it, or oidc"
            _refuse(report, f"spec.jwt.{name}", "Forbidden", message)
    if any(one.name == PROVIDER for one in jwt.providers):
        message = f'"{PROVIDER}" is also the name of a provider of jwt; rename that one'
        _refuse(report, path, "Duplicate", message)


# --- the provider ---------------------------------------------------------------------------------------------------


def _translate_provider(
    given: OIDCProvider,
    namespace: str,
    reader: Reader,
    report: Report,
    path: str,
    clusters: list[ClusterRef],
) -> ir.RemoteKeys:
    plain = list(check_issuer(given))
    refuse_violations((*check_backend(given), *plain), report, path, "Invalid")
    named = given.backend_ref is not None or bool(given.backend_refs)
    for name, url in (
        ("issuer", given.issuer),
        ("authorizationEndpoint", given.authorization_endpoint),
        ("tokenEndpoint", given.token_endpoint),
        ("endSessionEndpoint", given.end_session_endpoint),
    ):
        if url is None or (plain and name == "issuer"):
            continue
        why = check_endpoint(url, plain=named)
        if not why and name == "issuer" and "?" in url:
            why = "it has a query"
        if why:
            _refuse(report, f"{path}.{name}", "Invalid", why)
        elif not named and name in ("issuer", "tokenEndpoint"):
            _check_host(url, reader, report, f"{path}.{name}")
    if len(given.backend_refs) > 1:
        _refuse(report, f"{path}.backendRefs", "TooMany", "only one backend is allowed")
    ref, where, cluster_name = given.backend_ref, f"{path}.backendRef", ""
    if ref is None and given.backend_refs:
        ref, where = given.backend_refs[0], f"{path}.backendRefs[0]"
    if ref is not None:
        cluster = resolve_backend(ref, namespace, "", reader, report, where, kind="SecurityPolicy")
        if cluster is not None:
            state = reader.cluster(cluster)
            if not state.available:
                kind = cluster.kind.capitalize()
                message = f"{kind} {cluster.namespace}/{cluster.name} has no endpoints"
                report.miss(where, "EndpointsNotFound", message, mistake=state.mismatch)
            clusters.append(cluster)
            cluster_name = state.name
    return ir.RemoteKeys(
        uri=given.issuer.rstrip("/") + WELL_KNOWN,
        cluster=cluster_name,
        retry=_RETRY,
        allowed=() if named else reader.settings.backend_cidrs,
        issuer=given.issuer,
    )


def _check_host(url: str, reader: Reader, report: Report, path: str) -> None:
    """Refuse an address of the cluster's own network, which the proxy would ask for the policy's owner."""
    host = read_address(urlsplit(url).hostname or "")
    if host is not None and (wrong := check_endpoint_address(str(host), reader.settings)):
        _refuse(report, path, "Forbidden", f"{wrong}, {HINT}")


# --- the client -----------------------------------------------------------------------------------------------------


def _read_key(
    ref: SecretObjectReference,
    key: str,
    most: int,
    namespace: str,
    reader: Reader,
    report: Report,
    path: str,
) -> bytes:
    secret = read_secret(ref, namespace, reader, report, path)
    if secret is None:
        return b""
    name = f"Secret {secret.metadata.namespace}/{secret.metadata.name}"
    value = secret.value(key)
    if value is None:
        report.unresolve(path, "InvalidCredentialRef", f"{name} lacks {key}")
        return b""
    if not 1 <= len(value) <= most or any(not 0x20 <= byte <= 0x7E for byte in value):
        message = f"{name} has an invalid {key} (allowed: 1 to {most} printable ASCII characters, no line break)"
        report.unresolve(path, "InvalidCredentialRef", message)
        return b""
    return value


def _translate_callback(given: str | None, report: Report, path: str) -> tuple[str, str]:
    """Return origin and path of the callback; the origin "": that of the request."""
    if given is None:
        return "", _CALLBACK
    origin = ""
    rest = given.removeprefix(_OWN_ORIGIN)
    if rest == given:
        scheme, _, after = given.partition("://")
        host, slash, tail = after.partition("/")
        host = host.lower().removesuffix(
            _DEFAULT_PORTS.get(scheme.lower(), "")
        )  # as browsers send it
        origin, rest = f"{scheme.lower()}://{host}", slash + tail
        if check_endpoint(origin, plain=True):
            rest = ""
    if not _PATH.fullmatch(rest):
        message = (
            f'"{given}" (expected a URL such as https://shop.example.com{_CALLBACK}, without query'
        )
        _refuse(report, path, "Invalid", f"{message}; or {_OWN_ORIGIN} and a path)")
        return "", _CALLBACK
    return origin, rest


def _translate_scopes(given: OIDC, report: Report, path: str) -> tuple[str, ...]:
    if len(given.scopes) > _MAX_SCOPES:
        message = f"{len(given.scopes)} scopes, at most {_MAX_SCOPES}"
        _refuse(report, f"{path}.scopes", "TooMany", message)
    for at, scope in enumerate(given.scopes):
        if not _SCOPE.fullmatch(scope):
            message = f'"{scope}" (expected one scope, without spaces)'
            _refuse(report, f"{path}.scopes[{at}]", "Invalid", message)
    return tuple(dict.fromkeys(("openid", *given.scopes)))


def _translate_resources(given: OIDC, report: Report, path: str) -> tuple[str, ...]:
    if len(given.resources) > _MAX_RESOURCES:
        message = f"{len(given.resources)} resources, at most {_MAX_RESOURCES}"
        _refuse(report, f"{path}.resources", "TooMany", message)
    for at, one in enumerate(given.resources):
        if not 1 <= len(one) <= 2048 or not one.isascii() or not one.isprintable():
            message = f"{len(one)} characters (expected 1 to 2048, printable ASCII)"
            _refuse(report, f"{path}.resources[{at}]", "Invalid", message)
    return tuple(dict.fromkeys(given.resources))


def _translate_domain(given: OIDC, report: Report, path: str) -> str:
    domain = given.cookie_domain or ""
    if domain and (len(domain) > 253 or "." not in domain or not _DOMAIN.fullmatch(domain)):
        message = f'"{domain}" (expected a domain such as example.com)'
        _refuse(report, f"{path}.cookieDomain", "Invalid", message)
    return domain


def _translate_claims(given: OIDC, report: Report, path: str) -> tuple[tuple[str, str], ...]:
    if len(given.claim_to_headers) > _MAX_CLAIMS:
        message = f"{len(given.claim_to_headers)} claims, at most {_MAX_CLAIMS}"
        _refuse(report, path, "TooMany", message)
    taken = {"authorization"} if given.forward_access_token else set()
    if given.forward_id_token is not None:
        taken.add(given.forward_id_token.header.lower())
    made = []
    for at, one in enumerate(given.claim_to_headers):
        where = f"{path}[{at}]"
        name = check_forward_header(one.header, report, f"{where}.header")
        if name in taken:
            _refuse(report, f"{where}.header", "Duplicate", f'"{one.header}"')
        taken.add(name)
        if message := check_claim(one.claim):
            _refuse(report, f"{where}.claim", "Invalid", message)
        made.append((name, one.claim))
    return tuple(made)


def _translate_denied(given: OIDC, report: Report, path: str) -> tuple[ir.DeniedRedirect, ...]:
    headers = given.deny_redirect.headers if given.deny_redirect is not None else ()
    if len(headers) > _MAX_DENIED:
        _refuse(report, path, "TooMany", f"{len(headers)} headers, at most {_MAX_DENIED}")
    made = []
    for at, one in enumerate(headers):
        if message := check_header_name(one.name):
            _refuse(report, f"{path}[{at}].name", "Invalid", message)
        match: ir.TextMatch = "exact"
        if one.type != "Exact":
            match = "prefix" if one.type == "Prefix" else "suffix"
        made.append(ir.DeniedRedirect(header=one.name.lower(), match=match, value=one.value))
    return tuple(made)


def _read_time(given: str, least: int, most: int, report: Report, path: str) -> int:
    try:
        time = parse_duration(given)
    except ValueError:
        time = -1
    if not least <= time <= most:
        message = f'"{given}" (expected {least // 1000}s to {most // 1000}s)'
        _refuse(report, path, "Invalid", message)
    return time


def _refuse(report: Report, path: str, reason: Word, message: str) -> None:
    report.refuse(path, reason, message, condition="Invalid")
