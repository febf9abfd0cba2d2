"""JWT principal: SecurityPolicy authorization principal.jwt -> ir.AccessToken.

In: the token conditions of a rule, and the providers of its own policy. Out: the same; a problem
for every mistake.
Source: SecurityPolicy, with the fields of Envoy Gateway.
Must never: accept a token of one issuer for another one's; if the policy has a `jwt` itself, only
that one's tokens count.
"""

from __future__ import annotations

from typing import NamedTuple

from edgefast import ir
from edgefast.api.edge.jwt import JWTClaim, JWTPrincipal
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.report.report import Report

__all__ = ["PolicyTokens", "check_claim", "translate_principal"]

_TYPES = ("String", "StringArray")
_MAX_CLAIMS = 16
_MAX_SCOPES = 16
_MAX_VALUES = 128
_MAX_VALUE = 4096
_MAX_NAME = 253


class PolicyTokens(NamedTuple):
    """What the policy of a rule says of tokens."""

    units: dict[str, str]  # ir.PolicyUnit.name, by provider


def translate_principal(
    given: JWTPrincipal, tokens: PolicyTokens | None, report: Report, path: str
) -> ir.AccessToken:
    """Translate one; what a report refuses of is not to be used."""
    if tokens is not None and given.provider not in tokens.units:
        message = supported_text(given.provider, tuple(tokens.units))
        hint = did_you_mean(given.provider, tuple(tokens.units))
        report.refuse(f"{path}.provider", "NotSupported", message, hint, condition="Invalid")
    elif not given.provider:
        _refuse(report, f"{path}.provider", "Required", "the name of a provider")
    for count, what, most in (
        (len(given.scopes), "scopes", _MAX_SCOPES),
        (len(given.claims), "claims", _MAX_CLAIMS),
    ):
        if count > most:
            _refuse(report, f"{path}.{what}", "TooMany", f"{count} {what}, at most {most}")
    for at, scope in enumerate(given.scopes):
        if not scope or " " in scope:
            message = f'"{scope}" (expected one scope, without spaces)'
            _refuse(report, f"{path}.scopes[{at}]", "Invalid", message)
    return ir.AccessToken(
        provider=given.provider,
        unit=tokens.units.get(given.provider, "") if tokens is not None else "",
        scopes=tuple(dict.fromkeys(given.scopes)),
        claims=tuple(
            _translate_claim(one, report, f"{path}.claims[{at}]")
            for at, one in enumerate(given.claims)
        ),
    )


def _translate_claim(given: JWTClaim, report: Report, path: str) -> ir.AccessClaim:
    if message := check_claim(given.name):
        _refuse(report, f"{path}.name", "Invalid", message)
    if given.value_type not in _TYPES:
        message, hint = (
            supported_text(given.value_type, _TYPES),
            did_you_mean(given.value_type, _TYPES),
        )
        report.refuse(f"{path}.valueType", "NotSupported", message, hint, condition="Invalid")
    if not 1 <= len(given.values) <= _MAX_VALUES:
        message = f"{len(given.values)} values (expected 1 to {_MAX_VALUES})"
        _refuse(report, f"{path}.values", "Invalid", message)
    for at, value in enumerate(given.values):
        if len(value) > _MAX_VALUE:
            message = f"{len(value)} characters (at most {_MAX_VALUE})"
            _refuse(report, f"{path}.values[{at}]", "TooLong", message)
    return ir.AccessClaim(
        name=given.name,
        values=tuple(sorted(set(given.values))),
        array=given.value_type == "StringArray",
    )


def check_claim(path: str) -> str:
    """Return why a path is none, "" when it is one."""
    if not 1 <= len(path) <= _MAX_NAME or not path.isprintable():
        return f"{len(path)} characters (expected 1 to {_MAX_NAME}, printable)"
    return ""


def _refuse(report: Report, path: str, reason: Word, message: str) -> None:
    report.refuse(path, reason, message, condition="Invalid")
