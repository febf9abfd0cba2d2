"""Effects: what `--adopt` does with each field of Envoy Gateway's kinds.

In: kind, field path and mapping, as in the tables of field mappings. Out: the effect as text.
Must never: differ from what the readers beside this file do; a test compares them.
"""

from __future__ import annotations

from edgefast.api.migration.adoption.client_fields import CLIENT_FIELDS
from edgefast.api.migration.adoption.envoy_proxy import PROXY_NAMED
from edgefast.api.migration.adoption.references import ADOPTED_KINDS
from edgefast.api.migration.field_mapping import FieldMapping
from edgefast.api.model.unsupported_fields import UNSERVED

__all__ = ["describe_effect"]

#: Fields that edgefast's kinds lack, and that adoption serves.
_PLACED = ("cors", "httpUpgrade", "rateLimit", "retry", "targetRef", "targetSelectors")
_NAMED = ("jwt.providers[].remoteJWKS.failedRefetchDuration", "retry.perRetry.backOff.maxInterval")
_CLOSES = ("fallback", "urlRewrite.hostname")
_WORDS = {"served": "served", "named": "named, not applied", "closes": "closes its targets"}


def describe_effect(kind: str, field: str, mapping: FieldMapping) -> str:
    """Return the effect of a field as text."""
    return _WORDS[_effect_of(kind, field, mapping)]


def _effect_of(kind: str, field: str, mapping: FieldMapping) -> str:
    if kind not in ADOPTED_KINDS or field in _CLOSES:
        return "closes"
    if kind == "ClientTrafficPolicy":
        one = CLIENT_FIELDS.get(field)
        return one.effect if one is not None else "served"
    if kind == "EnvoyProxy":
        return "named" if field in PROXY_NAMED else "served"
    if field in _NAMED:
        return "named"
    if field in _PLACED:
        return "served"
    closes = UNSERVED.get(kind, {}).get(f"spec.{field}")
    if closes is None:
        return "served" if mapping.place == "here" else "closes"
    return "named" if closes == "nothing" else "closes"
