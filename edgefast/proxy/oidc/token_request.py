"""Token request: one request to the token endpoint or the revocation endpoint of an identity provider.

In: the client, a code or refresh token, the provider's metadata. Out: MessagePack of a TokenResponse,
or TokenError. The client proves its identity with `client_secret_basic`, or with
`client_secret_post` if the provider supports only that.
Source: OpenID Connect Core 1.0 sections 9 and 3.1.3.1, RFC 7009.
Must never: retry, or send a secret to another address than the policy or the discovery document
names.
"""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.auth.oidc.provider_metadata import ProviderMetadata
from edgefast.auth.oidc.token_response import (
    RESPONSE_LIMIT,
    TokenError,
    TokenResponse,
    basic_credentials,
    code_form,
    encode_form,
    fit_tokens,
    parse_token_response,
    refresh_form,
    revocation_form,
)
from edgefast.proxy.control.messages import TokensWanted
from edgefast.proxy.jwks.http_fetch import FetchError, Form, send_form
from edgefast.proxy.jwks.key_source import SourceContext
from edgefast.proxy.jwks.target import TargetError

__all__ = ["request_tokens"]


async def request_tokens(
    spec: ir.Oidc, wanted: TokensWanted, metadata: ProviderMetadata | None, means: SourceContext
) -> bytes:
    """Request tokens, or revoke one. Raises TokenError."""
    given = "" if wanted.revokes else spec.token_endpoint
    url = given
    if not given and metadata is not None:
        url = metadata.revocation_endpoint if wanted.revokes else metadata.token_endpoint
    if not url:
        raise TokenError("the discovery document of the provider is not known")
    if wanted.revokes:
        fields = revocation_form(wanted.refresh_token)
    elif wanted.refresh_token:
        fields = refresh_form(wanted.refresh_token)
    else:
        fields = code_form(wanted.code, wanted.redirect_uri, wanted.verifier)
    authorization = ""
    if metadata is not None and metadata.secret_in_body:
        secret = spec.client_secret.decode("ascii")
        fields = (*fields, ("client_id", spec.client_id), ("client_secret", secret))
    else:
        authorization = basic_credentials(spec.client_id, spec.client_secret)
    remote = msgspec.structs.replace(spec.remote, uri=url)
    form = Form(encode_form(fields), authorization, RESPONSE_LIMIT)
    try:
        target = await means.target(remote, discovered=not given)
        status, body = await send_form(target, form, means.names, own_ports=means.own_ports())
    except (FetchError, TargetError, OSError) as error:
        raise TokenError(str(error)) from None
    if wanted.revokes:
        if status != 200:
            raise TokenError(f"the revocation endpoint answered with status {status}")
        return msgspec.msgpack.encode(TokenResponse())
    response = parse_token_response(status, body)
    return msgspec.msgpack.encode(fit_tokens(response, access=spec.forward_access_token))
