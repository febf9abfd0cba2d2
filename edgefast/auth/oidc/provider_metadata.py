"""Provider metadata: the discovery document of an identity provider, and its form between agent and workers.

In: the text of `/.well-known/openid-configuration`, the issuer that a policy names.
Out: `ProviderMetadata`, or MetadataError with a reason that may be logged. `write_provider` puts it
in front of the provider's keys (edgefast/auth/jwt/key_set.py), `read_provider` separates them.
Source: OpenID Connect Discovery 1.0 sections 3 and 4.3, RFC 8414 section 2, RFC 9207 section 3.
Must never: accept a document of another issuer, or an endpoint without https that a policy did not
permit.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import msgspec

__all__ = [
    "WELL_KNOWN",
    "MetadataError",
    "ProviderMetadata",
    "check_endpoint",
    "parse_metadata",
    "read_provider",
    "write_provider",
]

#: Path of the document below the issuer.
WELL_KNOWN = "/.well-known/openid-configuration"
#: Characters of an endpoint's URL.
ENDPOINT_LIMIT = 2048
#: Parameters of requests to the provider that no endpoint may set: only one of two would count.
_RESERVED = frozenset(
    (
        "client_id",
        "code",
        "code_challenge",
        "code_challenge_method",
        "code_verifier",
        "grant_type",
        "id_token_hint",
        "nonce",
        "post_logout_redirect_uri",
        "redirect_uri",
        "request",
        "request_uri",
        "response_mode",
        "response_type",
        "scope",
        "state",
    )
)
_MAGIC = b"oidc 1\n"


class MetadataError(ValueError):
    """The document cannot be used, with the reason."""


class ProviderMetadata(msgspec.Struct, frozen=True, array_like=True):
    """The endpoints and abilities of an identity provider."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str = ""
    secret_in_body: bool = False  # client_secret_post; else client_secret_basic
    names_issuer: bool = False  # `iss` is in each callback (RFC 9207)
    revocation_endpoint: str = ""  # RFC 7009


class _Document(msgspec.Struct, frozen=True):
    """The members that are read; others are ignored."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None = None
    revocation_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    authorization_response_iss_parameter_supported: bool | None = None


_DOCUMENT: msgspec.json.Decoder[_Document] = msgspec.json.Decoder(_Document)
_PROVIDER: msgspec.msgpack.Decoder[tuple[ProviderMetadata, bytes]] = msgspec.msgpack.Decoder(
    tuple[ProviderMetadata, bytes]
)


def check_endpoint(url: str, *, plain: bool) -> str:
    """Return why a URL is not an endpoint, "" if it is; `plain`: http is permitted."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "not a URL"
    if len(url) > ENDPOINT_LIMIT or not url.isascii() or not url.isprintable() or " " in url:
        return "not a URL"
    if any(one in url for one in '"<>\\^`{|}'):
        return "not a URL"
    if parts.scheme != "https" and not (plain and parts.scheme == "http"):
        return "expected https"
    if not host or port == 0 or "@" in parts.netloc:
        return "expected a host, without a user"
    if parts.fragment or "#" in url:
        return "it has a fragment"
    names = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    reserved = sorted(names & _RESERVED)
    return f"it sets the parameter {reserved[0]}" if reserved else ""


def parse_metadata(text: bytes, issuer: str, *, plain: bool) -> ProviderMetadata:
    """Parse the document of `issuer`; `plain`: the proxy may ask it with http. Raises MetadataError."""
    try:
        found = _DOCUMENT.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MetadataError(f"the discovery document is not valid: {error}") from None
    if found.issuer != issuer:
        raise MetadataError("the discovery document is of another issuer")
    end = found.end_session_endpoint or ""
    shown = plain and issuer.startswith("http://")  # browsers use it over any network
    for name, url, may_be_plain in (
        ("authorization_endpoint", found.authorization_endpoint, shown),
        ("token_endpoint", found.token_endpoint, plain),
        ("jwks_uri", found.jwks_uri, plain),
        ("end_session_endpoint", end, shown),
    ):
        needed = url or name != "end_session_endpoint"
        if needed and (why := check_endpoint(url, plain=may_be_plain)):
            raise MetadataError(f"{name} of the discovery document is not valid: {why}")
    revocation = found.revocation_endpoint or ""
    if revocation and check_endpoint(revocation, plain=plain):
        revocation = ""  # logins do not need it
    methods = found.token_endpoint_auth_methods_supported
    return ProviderMetadata(
        issuer=found.issuer,
        authorization_endpoint=found.authorization_endpoint,
        token_endpoint=found.token_endpoint,
        jwks_uri=found.jwks_uri,
        end_session_endpoint=end,
        secret_in_body=methods is not None
        and "client_secret_basic" not in methods
        and "client_secret_post" in methods,
        names_issuer=found.authorization_response_iss_parameter_supported is True,
        revocation_endpoint=revocation,
    )


def write_provider(metadata: ProviderMetadata, keys: bytes) -> bytes:
    """Return the metadata and the keys of a provider in one piece."""
    return _MAGIC + msgspec.msgpack.encode((metadata, keys))


def read_provider(data: bytes) -> tuple[ProviderMetadata | None, bytes]:
    """Return metadata and keys; of a plain key set no metadata. Raises ValueError."""
    if not data.startswith(_MAGIC):
        return None, data
    return _PROVIDER.decode(data[len(_MAGIC) :])
