"""Signed tokens: SecurityPolicy spec.jwt -> ir.Jwt and the clusters that keys are fetched from.

In: the fields, a Reader for ConfigMaps and backends. Out: providers with their keys in one spelling (edgefast/keyset.py), or where they
are published; every mistake told. Keys that cannot be read, and a backend that is not there, break the whole unit.
Source: SecurityPolicy, with the fields of Envoy Gateway; RFC 7517 for key sets.
Must never: tell of a key set more than keyset.py does, or fetch anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from edgefast import ir
from edgefast.inetaddr import read_address
from edgefast.problem import did_you_mean, supported_text
from edgefast.reasons.word import Word
from edgefast.resources.edge.jwt import (
    JWT,
    ClaimToHeader,
    JWTExtractor,
    JWTProvider,
    LocalJWKS,
    RemoteJWKS,
)
from edgefast.resources.model.duration import parse_duration
from edgefast.resources.rules.jwt import (
    LEAST_CACHE,
    MOST_CACHE,
    check_asked,
    check_keys,
    check_leniency,
    check_local,
    check_names,
    check_scheme,
)
from edgefast.translate.backend.backend import resolve_backend
from edgefast.translate.backend.reserved import HINT, check_endpoint_address
from edgefast.translate.facts.clusterref import ClusterRef
from edgefast.translate.facts.facts import Reader
from edgefast.translate.facts.reference import wrong_kind_text
from edgefast.translate.match.headername import check_header_name
from edgefast.translate.policy.credentials import check_cookie, check_forward_header, check_param
from edgefast.translate.policy.principal import check_claim
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
        said = f"{len(given.providers)} providers (expected 1 to {MAX_PROVIDERS})"
        _refuse(report, f"{path}.providers", "Invalid", said)
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
            said = f"{len(text)} characters (expected 1 to {_MAX_TEXT}, printable)"
            _refuse(report, f"{path}.{name}", "Invalid", said)
    if len(given.audiences) > _MAX_AUDIENCES:
        said = f"{len(given.audiences)} audiences, at most {_MAX_AUDIENCES}"
        _refuse(report, f"{path}.audiences", "TooMany", said)
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
        said, hint = supported_text(given.type, _TYPES), did_you_mean(given.type, _TYPES)
        report.refuse(f"{path}.type", "NotSupported", said, hint, condition="Invalid")
        return b""
    if refuse_violations(check_local(given), report, path, "Invalid"):
        return b""
    if given.value_ref is None:
        return _parse((given.inline or "").encode(), "", report, f"{path}.inline")
    ref, where = given.value_ref, f"{path}.valueRef"
    if (ref.group, ref.kind) != ("", "ConfigMap"):
        said = wrong_kind_text(ref.group, ref.kind, "ConfigMap")
        report.unresolve(f"{where}.kind", "InvalidKind", said)
        return b""
    found, named = reader.config_map(namespace, ref.name), f"ConfigMap {namespace}/{ref.name}"
    if found is None:
        report.unresolve(where, "InvalidCredentialRef", f"{named} not found")
        return b""
    texts = {**{key: text.encode() for key, text in found.data.items()}, **found.binary_data}
    key = _KEY if _KEY in texts or len(texts) != 1 else next(iter(texts))
    if key not in texts:
        has = ", ".join(sorted(texts)) or "none"
        said = f"{named} needs key {_KEY}, or exactly one key (it has {has})"
        report.unresolve(where, "InvalidCredentialRef", said)
        return b""
    return _parse(texts[key], f"{named} key {key}: ", report, where)


def _parse(text: bytes, whose: str, report: Report, path: str) -> bytes:
    from edgefast import keyset  # `cryptography` is loaded where there are keys, not at every start

    try:
        parsed = keyset.parse_key_set(text)
    except keyset.KeySetError as error:
        if whose:
            report.unresolve(path, "InvalidCredentialRef", f"{whose}{error}")
        else:
            _refuse(report, path, "Invalid", str(error))
        return b""
    for said in parsed.skipped:
        report.warn(path, "Ignored", f"{whose}{said}", "requests with tokens of this key get 401")
    return keyset.write(parsed.keys)


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
        said = "expected a URL such as https://login.example.com/keys, without a user"
        _refuse(report, f"{path}.uri", "Invalid", said)
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
        said = f'"{given.cache_duration}" (expected 10s to 24h)'
        _refuse(report, f"{path}.cacheDuration", "Invalid", said)
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
                said = f"{cluster.kind.capitalize()} {cluster.namespace}/{cluster.name} has no endpoints"
                report.miss(where, "EndpointsNotFound", said, mistake=state.mismatch)
            clusters.append(cluster)
            name = state.name
    return ir.RemoteKeys(uri=given.uri, cluster=name, every=every, allowed=allowed)


# --- places and claims ----------------------------------------------------------------------------------------------


def _translate_places(given: JWTExtractor, report: Report, path: str) -> ir.CredentialPlaces:
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
        if said := check_header_name(one.name):
            _refuse(report, f"{where}.name", "Invalid", said)
        if (
            len(prefix) > _MAX_PREFIX
            or not prefix.isascii()
            or (prefix and not prefix.isprintable())
        ):
            said = f"{len(prefix)} characters (expected at most {_MAX_PREFIX}, printable ASCII)"
            _refuse(report, f"{where}.valuePrefix", "Invalid", said)
        headers.append((one.name.lower(), prefix))
    for at, name in enumerate(given.cookies):
        check_cookie(name, report, f"{path}.cookies[{at}]")
    for at, name in enumerate(given.params):
        check_param(name, report, f"{path}.params[{at}]")
    return ir.CredentialPlaces(
        headers=tuple(dict.fromkeys(headers)),
        cookies=tuple(dict.fromkeys(given.cookies)),
        params=tuple(dict.fromkeys(given.params)),
    )


def _translate_claims(
    given: tuple[ClaimToHeader, ...], places: ir.CredentialPlaces, report: Report, path: str
) -> Iterable[tuple[str, str]]:
    if len(given) > _MAX_CLAIMS:
        _refuse(report, path, "TooMany", f"{len(given)} claims, at most {_MAX_CLAIMS}")
    seen: set[str] = set()
    for at, one in enumerate(given):
        where = f"{path}[{at}]"
        name = check_forward_header(one.header, report, f"{where}.header")
        if name in {header for header, _ in places.headers}:
            said = f'"{name}" is a header that contains tokens'
            _refuse(report, f"{where}.header", "Forbidden", said)
        if name in seen:
            _refuse(report, f"{where}.header", "Duplicate", f'"{one.header}"')
        seen.add(name)
        if said := check_claim(one.claim):
            _refuse(report, f"{where}.claim", "Invalid", said)
        yield name, one.claim


def _refuse(report: Report, path: str, reason: Word, said: str) -> None:
    report.refuse(path, reason, said, condition="Invalid")
