"""Tokens: the result of a JWT unit for a request's token, with inline keys.

In: ir.Jwt, the credentials of the request, the time. Out: an `AuthenticationResult`. None where
only a running proxy knows, because keys are fetched. For a rule that requires a token, why it does
not match. The twin of core/policy/tokens.pyx. Must never: show a token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from edgefast import ir
from edgefast.auth.jwt.claim_access import has_access
from edgefast.auth.jwt.outcome import Outcome

if TYPE_CHECKING:
    from edgefast.auth.jwt.token_check import Provider

__all__ = [
    "AuthenticationResult",
    "TokenView",
    "describe_places",
    "describe_token",
    "describe_tokens",
    "verify_token",
    "why_not_token",
]

_SHOWN = 3  # values of a list that are told
_WORDS = {
    "malformed": "its token is not a valid token",
    "algorithm": "its token has an algorithm that its key does not support",
    "issuer": "its token has an issuer that is not trusted",
    "expired": "its token has expired",
    "no_expiration": "its token has no exp, which its provider requires",
    "early": "its token is not valid yet",
    "kid": "its token names a key that its issuer does not have",
    "signature": "its token has an invalid signature",
    "audience": "its token is for another audience (aud)",
    "keys": "no keys are available to verify its token",
}


class AuthenticationResult(msgspec.Struct, frozen=True):
    """What a unit says of who a request is of."""

    passes: bool = False
    user: str = ""  # "": nobody is known
    why: str = ""
    status: int = 401  # of the answer, if it does not pass
    provider: str = ""  # of a token
    claims: dict[str, Any] | None = None  # of a good one
    lines: bytes = b""  # for the backend


class TokenView(msgspec.Struct, frozen=True):
    """What rules may ask about the token of a request."""

    providers: Mapping[str, Sequence[str]] = {}  # by the units that hold
    unit: str = ""  # by which it is good; "": there is no good one
    proof: AuthenticationResult | None = None
    known: bool = True  # False: only a running proxy can say


def verify_token(
    spec: ir.Jwt,
    find: Callable[[ir.CredentialExtractors], list[bytes]],
    now: float,
) -> AuthenticationResult | None:
    """Judge a request as a worker does; `find` gives the tokens of places, `now` are Unix seconds, 0: of a time when it is valid."""
    refusal: Outcome | None = None
    unsure = False
    groups = dict.fromkeys(one.places for one in spec.providers)
    for places in groups:
        tokens = find(places)
        if not tokens:
            continue
        those = [one for one in spec.providers if one.places == places]
        outcome = Outcome("malformed") if len(set(tokens)) > 1 else _evaluate(tokens[0], those, now)
        if outcome is None:
            unsure = True
            continue
        if outcome.good:
            if unsure:  # an earlier one may be good, too
                return None
            assert outcome.claims is not None
            return AuthenticationResult(
                passes=True,
                user=str(outcome.claims.get("sub") or ""),
                why=f"its token is valid, of {outcome.provider}",
                provider=outcome.provider,
                claims=outcome.claims,
                lines=outcome.lines,
            )
        if refusal is None or outcome.status == 403:
            refusal = outcome
    if unsure:
        return None
    if refusal is None:
        wanted = " or ".join(describe_places(one) for one in groups)
        if spec.optional or spec.fail_open:
            return AuthenticationResult(passes=True, why="it has no token, which is optional")
        return AuthenticationResult(why=f"it has no token: {wanted}")
    message = _WORDS.get(refusal.word, refusal.word)
    if spec.fail_open:
        return AuthenticationResult(passes=True, why=f"{message}, and failOpen is set")
    return AuthenticationResult(why=message, status=refusal.status)


def _evaluate(data: bytes, specs: list[ir.JwtProvider], now: float) -> Outcome | None:
    # Imported with the first token: requests without a token do not need `cryptography`.
    from edgefast.auth.jwt.compact import Malformed, read_token
    from edgefast.auth.jwt.token_check import look_over

    try:
        token = read_token(data)
    except Malformed:
        return Outcome("malformed")
    if not now:
        now = max(token.begins or 0, token.issued or 0)
    fetched = {
        provider: spec.remote is not None for spec in specs for provider in [_provider(spec)]
    }
    plan = look_over(token, list(fetched), now)
    if isinstance(plan, Outcome):
        return plan
    outcome = plan.try_keys()
    if not outcome.good and any(fetched[one] for one in plan.unknown):
        return None
    return outcome


def _provider(spec: ir.JwtProvider) -> Provider:
    from edgefast.auth.jwt import key_set
    from edgefast.auth.jwt.token_check import Provider, TrustedKeys

    keys = key_set.read(spec.keys) if spec.remote is None else None
    return Provider(spec, TrustedKeys(keys))


# --- rules ----------------------------------------------------------------------------------------------------------


def why_not_token(rule: ir.AccessRule, shown: TokenView) -> str:
    """Return why a rule does not hold for the token of a request, "" when it does."""
    requested, proof = rule.token, shown.proof
    assert requested is not None
    if proof is not None and proof.claims is not None and requested.unit in ("", shown.unit):
        if proof.provider == requested.provider:
            if has_access(requested, proof.provider, proof.claims):
                return ""
            return f"the token does not have {describe_token(requested)}"
    if rule.allow:
        return f"no token of {requested.provider}"
    looked = (names for unit, names in shown.providers.items() if requested.unit in ("", unit))
    if any(requested.provider in names for names in looked):
        return f"no token of {requested.provider}"
    return ""  # nobody has looked for one


def describe_token(requested: ir.AccessToken) -> str:
    """Return what a rule asks of a token."""
    words = [f"scope {one}" for one in requested.scopes]
    for claim in requested.claims:
        what = "has one of" if claim.array else "is"
        words.append(f"{claim.name} {what} {_list(claim.values)}")
    return " and ".join(words) or "anything"


def describe_tokens(spec: ir.Jwt) -> str:
    """Return what a unit asks for."""
    found = []
    for one in spec.providers:
        of = f" of {one.issuer}" if one.issuer else ""
        to = f" for {_list(one.audiences)}" if one.audiences else ""
        keys = (
            f"keys from {one.remote.uri.partition('?')[0]}"
            if one.remote is not None
            else "keys in the policy"
        )
        found.append(f"{one.name}{of}{to} ({keys}; {describe_places(one.places)})")
    more = ", optional" if spec.optional else ", optional" if spec.fail_open else ""
    return f"requires a token: {', or '.join(found)}{more}"


def describe_places(places: ir.CredentialExtractors) -> str:
    """Return where a credential is looked for."""
    found = [
        *(
            f"header {name}{f' ({prefix.strip()})' if prefix.strip() else ''}"
            for name, prefix in places.headers
        ),
        *(f"cookie {name}" for name in places.cookies),
        *(f"parameter {name}" for name in places.params),
    ]
    return " or ".join(found)


def _list(values: Sequence[str]) -> str:
    more = f" or {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return f"{' or '.join(values[:_SHOWN])}{more}"
