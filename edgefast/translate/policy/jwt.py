"""JWT: SecurityPolicy spec.jwt -> ir.Jwt and the clusters that keys are fetched from.

In: the fields, a Reader for ConfigMaps and backends.
Out: providers with their keys in one form (edgefast/auth/jwt/key_set.py) or their URL; a problem for
every mistake. Unreadable keys and a missing backend break the whole unit.
Source: SecurityPolicy, with the fields of Envoy Gateway; RFC 7517 for key sets.
Must never: reveal more of a key set than key_set.py does, or fetch anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from edgefast import ir
from edgefast.api.edge.jwt import (
    JWT,
    ClaimToHeader,
    JWTExtractor,
    JWTProvider,
    LocalJWKS,
    RemoteJWKS,
)
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.jwt import (
    LEAST_CACHE,
    MOST_CACHE,
    check_asked,
    check_keys,
    check_leniency,
    check_local,
    check_names,
    check_scheme,
)
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.diagnostics.reasons.word import Word
from edgefast.netaddr import read_address
from edgefast.translate.backend.backend import resolve_backend
from edgefast.translate.backend.reserved import HINT, check_endpoint_address
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.deps.referencegrant import wrong_kind_text
from edgefast.translate.match.header_name import check_header_name
from edgefast.translate.policy.credentials import check_cookie, check_forward_header, check_param
from edgefast.translate.policy.jwt_principal import check_claim
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["MAX_PROVIDERS", "translate_jwt"]

_KEY = "jwks"
_TYPES = ("Inline", "ValueRef")
MAX_PROVIDERS = 4
_MAX_AUDIENCES = 16
_MAX_CLAIMS = 32
_MAX_PLACES = 16
_MAX_TEXT = 2048
_MAX_PREFIX = 64


def translate_jwt(
    given: JWT, namespace: str, reader: Reader, report: Report, path: str
) -> tuple[ir.Jwt, tuple[ClusterRef, ...]]:
    """Translate the tokens of a SecurityPolicy in `namespace`; of what a report refuses nothing is to be used."""
    if not 1 <= len(given.providers) <= MAX_PROVIDERS:
        message = f"{len(given.providers)} providers (expected 1 to {MAX_PROVIDERS})"
        _refuse(report, f"{path}.providers", "Invalid", message)
    refuse_violations((*check_leniency(given), *check_names(given)), report, path, "Invalid")
    clusters: list[ClusterRef] = []
    providers = tuple(
        _translate_provider(one, namespace, reader, report, f"{path}.providers[{at}]", clusters)
        for at, one in enumerate(given.providers)
    )
    made = ir.Jwt(providers=providers, optional=given.optional, fail_open=given.fail_open)
    return made, tuple(dict.fromkeys(clusters))


def _translate_provider(
    given: JWTProvider,
    namespace: str,
    reader: Reader,
    report: Report,
    path: str,
    clusters: list[ClusterRef],
) -> ir.JwtProvider:
    refuse_violations(check_keys(given), report, path, "Invalid")
    for name, text in (("name", given.name), ("issuer", given.issuer or "x")):
        if not 1 <= len(text) <= _MAX_TEXT or not text.isprintable():
            message = f"{len(text)} characters (expected 1 to {_MAX_TEXT}, printable)"
            _refuse(report, f"{path}.{name}", "Invalid", message)
    if len(given.audiences) > _MAX_AUDIENCES:
        message = f"{len(given.audiences)} audiences, at most {_MAX_AUDIENCES}"
        _refuse(report, f"{path}.audiences", "TooMany", message)
    keys, remote = b"", None
    if given.local_jwks is not None:
        keys = _read_local(given.local_jwks, namespace, reader, report, f"{path}.localJWKS")
    if given.remote_jwks is not None:
        where = f"{path}.remoteJWKS"
        remote = _translate_remote(given.remote_jwks, namespace, reader, report, where, clusters)
    places = ir.JwtProvider(name="").places
    if given.extract_from is not None:
        places = _translate_places(given.extract_from, report, f"{path}.extractFrom")
    return ir.JwtProvider(
        name=given.name,
        issuer=given.issuer or "",
        audiences=tuple(sorted(set(given.audiences))),
        keys=keys,
        remote=remote,
        places=places,
        require_expiration=given.require_expiration,
        claim_headers=tuple(
            _translate_claims(given.claim_to_headers, places, report, f"{path}.claimToHeaders")
        ),
    )


# --- keys -----------------------------------------------------------------------------------------------------------


def _read_local(
    given: LocalJWKS, namespace: str, reader: Reader, report: Report, path: str
) -> bytes:
    if given.type not in _TYPES:
        message, hint = supported_text(given.type, _TYPES), did_you_mean(given.type, _TYPES)
        report.refuse(f"{path}.type", "NotSupported", message, hint, condition="Invalid")
        return b""
    if refuse_violations(check_local(given), report, path, "Invalid"):
        return b""
    if given.value_ref is None:
        return _parse((given.inline or "").encode(), "", report, f"{path}.inline")
    ref, where = given.value_ref, f"{path}.valueRef"
    if (ref.group, ref.kind) != ("", "ConfigMap"):
        message = wrong_kind_text(ref.group, ref.kind, "ConfigMap")
        report.unresolve(f"{where}.kind", "InvalidKind", message)
        return b""
    found, named = reader.config_map(namespace, ref.name), f"ConfigMap {namespace}/{ref.name}"
    if found is None:
        report.unresolve(where, "InvalidCredentialRef", f"{named} not found")
        return b""
    texts = {**{key: text.encode() for key, text in found.data.items()}, **found.binary_data}
    key = _KEY if _KEY in texts or len(texts) != 1 else next(iter(texts))
    if key not in texts:
        has = ", ".join(sorted(texts)) or "none"
        message = f"{named} needs key {_KEY}, or exactly one key (it has {has})"
        report.unresolve(where, "InvalidCredentialRef", message)
        return b""
    return _parse(texts[key], f"{named} key {key}: ", report, where)


def _parse(text: bytes, owner: str, report: Report, path: str) -> bytes:
    from edgefast.auth.jwt import (
        key_set,  # `cryptography` is loaded where there are keys, not at every start
    )

    try:
        parsed = key_set.parse_key_set(text)
    except key_set.KeySetError as error:
        if owner:
            report.unresolve(path, "InvalidCredentialRef", f"{owner}{error}")
        else:
            _refuse(report, path, "Invalid", str(error))
        return b""
    for message in parsed.skipped:
        report.warn(
            path, "Ignored", f"{owner}{message}", "requests with tokens of this key get 401"
        )
    return key_set.write(parsed.keys)


def _translate_remote(
    given: RemoteJWKS,
    namespace: str,
    reader: Reader,
    report: Report,
    path: str,
    clusters: list[ClusterRef],
) -> ir.RemoteKeys:
    refuse_violations((*check_asked(given), *check_scheme(given)), report, path, "Invalid")
    try:
        parts = urlsplit(given.uri)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        sound = sound and "@" not in parts.netloc and given.uri.isascii()
        sound = sound and given.uri.isprintable() and " " not in given.uri
    except ValueError:
        sound = False
    allowed: tuple[str, ...] = ()
    if not sound or len(given.uri) > _MAX_TEXT:
        message = "expected a URL such as https://login.example.com/keys, without a user"
        _refuse(report, f"{path}.uri", "Invalid", message)
    elif given.backend_ref is None and not given.backend_refs:  # the uri's own host is asked
        allowed = reader.settings.backend_cidrs
        host = read_address(parts.hostname or "")
        if host is not None and (wrong := check_endpoint_address(str(host), reader.settings)):
            _refuse(report, f"{path}.uri", "Forbidden", f"{wrong}, {HINT}")
    try:
        every = parse_duration(given.cache_duration)
    except ValueError:
        every = 0
    if not LEAST_CACHE <= every <= MOST_CACHE:
        message = f'"{given.cache_duration}" (expected 10s to 24h)'
        _refuse(report, f"{path}.cacheDuration", "Invalid", message)
    if len(given.backend_refs) > 1:
        _refuse(report, f"{path}.backendRefs", "TooMany", "only one backend is allowed")
    ref, where = given.backend_ref, f"{path}.backendRef"
    if ref is None and given.backend_refs:
        ref, where = given.backend_refs[0], f"{path}.backendRefs[0]"
    name = ""
    if ref is not None:
        cluster = resolve_backend(ref, namespace, "", reader, report, where, kind="SecurityPolicy")
        if cluster is not None:
            state = reader.cluster(cluster)
            if not state.available:
                message = f"{cluster.kind.capitalize()} {cluster.namespace}/{cluster.name} has no endpoints"
                report.miss(where, "EndpointsNotFound", message, mistake=state.mismatch)
            clusters.append(cluster)
            name = state.name
    return ir.RemoteKeys(uri=given.uri, cluster=name, every=every, allowed=allowed)


# --- places and claims ----------------------------------------------------------------------------------------------


def _translate_places(given: JWTExtractor, report: Report, path: str) -> ir.CredentialExtractors:
    if not (given.headers or given.cookies or given.params):
        _refuse(report, path, "Required", "headers, cookies or params")
    for names, what in (
        (given.headers, "headers"),
        (given.cookies, "cookies"),
        (given.params, "params"),
    ):
        if len(names) > _MAX_PLACES:
            _refuse(
                report, f"{path}.{what}", "TooMany", f"{len(names)} {what}, at most {_MAX_PLACES}"
            )
    headers = []
    for at, one in enumerate(given.headers):
        where, prefix = f"{path}.headers[{at}]", one.value_prefix or ""
        if message := check_header_name(one.name):
            _refuse(report, f"{where}.name", "Invalid", message)
        if (
            len(prefix) > _MAX_PREFIX
            or not prefix.isascii()
            or (prefix and not prefix.isprintable())
        ):
            message = f"{len(prefix)} characters (expected at most {_MAX_PREFIX}, printable ASCII)"
            _refuse(report, f"{where}.valuePrefix", "Invalid", message)
        headers.append((one.name.lower(), prefix))
    for at, name in enumerate(given.cookies):
        check_cookie(name, report, f"{path}.cookies[{at}]")
    for at, name in enumerate(given.params):
        check_param(name, report, f"{path}.params[{at}]")
    return ir.CredentialExtractors(
        headers=tuple(dict.fromkeys(headers)),
        cookies=tuple(dict.fromkeys(given.cookies)),
        params=tuple(dict.fromkeys(given.params)),
    )


def _translate_claims(
    given: tuple[ClaimToHeader, ...], places: ir.CredentialExtractors, report: Report, path: str
) -> Iterable[tuple[str, str]]:
    if len(given) > _MAX_CLAIMS:
        _refuse(report, path, "TooMany", f"{len(given)} claims, at most {_MAX_CLAIMS}")
    seen: set[str] = set()
    for at, one in enumerate(given):
        where = f"{path}[{at}]"
        name = check_forward_header(one.header, report, f"{where}.header")
        if name in {header for header, _ in places.headers}:
            message = f'"{name}" is a header that contains tokens'
            _refuse(report, f"{where}.header", "Forbidden", message)
        if name in seen:
            _refuse(report, f"{where}.header", "Duplicate", f'"{one.header}"')
        seen.add(name)
        if message := check_claim(one.claim):
            _refuse(report, f"{where}.claim", "Invalid", message)
        yield name, one.claim


def _refuse(report: Report, path: str, reason: Word, message: str) -> None:
    report.refuse(path, reason, message, condition="Invalid")
