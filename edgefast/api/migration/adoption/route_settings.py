"""Route settings: fields of Envoy Gateway's policies that are filters or fields of a route's rules in edgefast.

In: `cors` of a SecurityPolicy; `rateLimit` and `retry` of a BackendTrafficPolicy. Out: plain data of the filter CORS, a
RateLimitFilter and `retry` of an HTTPRoute, with notes.
Must never: drop a condition of a rate limit: the rest would count other requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgefast.api.loaded import Path
from edgefast.api.migration.adoption.adopted_document import Note
from edgefast.api.migration.adoption.fields import Fields
from edgefast.api.model.units import parse_duration

__all__ = ["RATE_LIMIT_REFUSED", "RETRY_PLACES", "read_cors", "read_rate_limit", "read_retry"]

_CORS: Path = ("spec", "cors")
_LIMIT: Path = ("spec", "rateLimit")
_RETRY: Path = ("spec", "retry")
_RETRY_OBJECTS = (("retryOn",), ("perRetry",), ("perRetry", "backOff"))
#: Where a field of the made `retry` is in a BackendTrafficPolicy.
RETRY_PLACES: tuple[tuple[Path, Path], ...] = (
    ((*_RETRY, "attempts"), (*_RETRY, "numRetries")),
    ((*_RETRY, "codes"), (*_RETRY, "retryOn", "httpStatusCodes")),
    ((*_RETRY, "backoff"), (*_RETRY, "perRetry", "backOff", "baseInterval")),
)
_SERVER_ERRORS = (500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511)
_GATEWAY_ERRORS = (502, 503, 504)
#: Triggers that need no setting: edgefast always tries another endpoint then, or never sent the request.
_ALWAYS = ("connect-failure", "refused-stream", "reset", "reset-before-request")
#: Fields of one limit that are the same here.
_SAME = ("clientSelectors", "limit")
_PARTS = {"headers", "sourceCIDR"}
_LIMIT_PARTS = ("global", "local")
#: Parts of a limit that close the targets of the policy, and what to do.
RATE_LIMIT_REFUSED = {
    "cost": "each request counts as one",
    "shared": "routes do not share a global limit; remove it, or use one rule for all paths",
    "limit.fromMetadata": "write the number",
    "clientSelectors[].methods": "write a rule of the route for it, with a policy of its own",
    "clientSelectors[].path": "write a rule of the route for it, with a policy of its own",
    "clientSelectors[].queryParams": "write a rule of the route for it, with a policy of its own",
    "clientSelectors[].headers[].invert": "use Distinct, or a rule of the route",
    "clientSelectors[].sourceCIDR.invert": "RateLimitFilter spec.global has `except` for ranges",
}


def read_cors(value: object) -> tuple[dict[str, Any] | None, list[Note]]:
    """Return the filter CORS of `cors`."""
    if not isinstance(value, dict):
        return None, [Note(_CORS, "not an object", effect="closes")]
    found = {name: one for name, one in value.items() if one is not None}
    age = found.pop("maxAge", None)
    if age is not None:
        try:
            if not isinstance(age, str):
                raise ValueError
            found["maxAge"] = max(1, parse_duration(age) // 1000)
        except ValueError:
            return None, [Note((*_CORS, "maxAge"), "not a duration", effect="closes")]
    return found, []


def read_retry(value: object) -> tuple[dict[str, Any] | None, str, list[Note]]:
    """Return `retry` of a rule, its `timeouts.backendRequest`, and notes."""
    fields, notes = Fields(value), []
    attempts = fields.take("numRetries")
    codes, triggers = fields.take("retryOn.httpStatusCodes"), fields.take("retryOn.triggers")
    found: dict[str, Any] = {"attempts": 2 if attempts is None else attempts}
    words = triggers if isinstance(triggers, list) else []
    statuses: set[int] = set() if triggers or codes else {503}
    if "5xx" in words:
        statuses.update(_SERVER_ERRORS)
    if "gateway-error" in words:
        statuses.update(_GATEWAY_ERRORS)
    if "retriable-4xx" in words:
        statuses.add(409)
    if "retriable-status-codes" in words and isinstance(codes, list):
        statuses.update(one for one in codes if isinstance(one, int))
    known = ("5xx", "gateway-error", "retriable-4xx", "retriable-status-codes", *_ALWAYS)
    for word in words:
        if word not in known:
            message = f'trigger "{str(word)[:40]}" is not applied'
            notes.append(
                Note((*_RETRY, "retryOn", "triggers"), message, "use EdgeProxy spec.grpc.retry")
            )
    if statuses:
        found["codes"] = sorted(statuses)
    pause = fields.take("perRetry.backOff.baseInterval")
    if pause is not None:
        found["backoff"] = pause
    timeout = fields.take("perRetry.timeout")
    for path in fields.left():
        if fields.is_empty(path) and path in _RETRY_OBJECTS:
            continue
        notes.append(
            Note((*_RETRY, *map(str, path)), "not applied", "the backoff ends at 10 times its base")
        )
    return found, timeout if isinstance(timeout, str) else "", notes


def read_rate_limit(value: object) -> tuple[dict[str, dict[str, Any]], list[Note]]:
    """Return the specs of RateLimitFilters, by "global" and "local"; a note with the effect closes if a limit cannot be kept."""
    if not isinstance(value, dict):
        return {}, [Note(_LIMIT, "not an object", effect="closes")]
    notes: list[Note] = [
        Note((*_LIMIT, str(name)), "the field is not known", effect="closes")
        for name in value
        if name not in ("type", *_LIMIT_PARTS)
    ]
    kind = value.get("type")
    if kind is not None and not any(
        kind == one.capitalize() and value.get(one) for one in _LIMIT_PARTS
    ):
        message = "no limits of this type (expected Global with global, Local with local)"
        notes.append(Note((*_LIMIT, "type"), message, "write the limits", "closes"))
    found: dict[str, dict[str, Any]] = {}
    for name in _LIMIT_PARTS:
        given = _read_rules(value.get(name), (*_LIMIT, name), notes)
        if not given:
            continue
        path: Path = (*_LIMIT, name, "rules")
        rules = [
            _read_rule(one, (*path, at), name == "local", notes) for at, one in enumerate(given)
        ]
        found[name] = {"type": name.capitalize(), name: {"rules": rules}}
        if name == "local" and _has_default(rules):
            message = "a rule without clientSelectors counts all requests, also those that another rule counts"
            notes.append(Note(path, message, "its limit is the highest of all clients together"))
    return found, notes


def _read_rules(part: object, path: Path, notes: list[Note]) -> list[Any]:
    """Return the rules of the part `global` or `local`."""
    if part is None:
        return []
    if not isinstance(part, dict):
        notes.append(Note(path, "not an object", effect="closes"))
        return []
    notes += (
        Note((*path, str(name)), "the field is not known", "write rules", "closes")
        for name in part
        if name != "rules"
    )
    given = part.get("rules")
    if given is not None and not isinstance(given, list):
        notes.append(Note((*path, "rules"), "not a list", effect="closes"))
        return []
    return given or []


def _has_default(rules: list[dict[str, Any]]) -> bool:
    bare = [not one.get("clientSelectors") for one in rules]
    return any(bare) and not all(bare)


def _read_rule(one: object, path: Path, local: bool, notes: list[Note]) -> dict[str, Any]:
    if not isinstance(one, dict):
        notes.append(Note(path, "not an object", effect="closes"))
        return {}
    found = {name: one[name] for name in _SAME if one.get(name) is not None}
    for name, value in one.items():
        where = (*path, str(name))
        if name in _SAME or value is None or value is False:
            continue
        if name == "shadowMode":
            found["shadow"] = value
        elif name == "shared" and local:
            found["shared"] = value
        elif name == "shared":
            notes.append(_refuse(where, name))
        elif name == "xRateLimitHeaders":
            notes.append(Note(where, "not applied", "use EdgeProxy spec.rateLimit.headers"))
        else:
            notes.append(_refuse(where, name))
    limit = found.get("limit")
    if isinstance(limit, dict) and limit.get("fromMetadata") is not None:
        where = (*path, "limit", "fromMetadata")
        notes.append(_refuse(where, "limit.fromMetadata"))
    if isinstance(limit, dict):
        found["limit"] = {key: limit[key] for key in limit if key != "fromMetadata"}
    selectors = found.get("clientSelectors")
    if isinstance(selectors, list):
        found["clientSelectors"] = [
            _read_selector(part, (*path, "clientSelectors", at), notes)
            for at, part in enumerate(selectors)
        ]
    return found


def _refuse(path: Path, name: str) -> Note:
    """Return a note for a part of a limit that cannot be kept."""
    why = RATE_LIMIT_REFUSED.get(name, "the field is not known")
    return Note(path, "no equivalent", why, "closes")


def _read_selector(one: object, path: Path, notes: list[Note]) -> object:
    if not isinstance(one, dict):
        return one
    found: dict[str, Any] = {}
    for name, value in one.items():
        if value is None:
            continue
        if name not in _PARTS:
            notes.append(_refuse((*path, str(name)), f"clientSelectors[].{name}"))
            continue
        found[name] = value
    headers, source = found.get("headers"), found.get("sourceCIDR")
    for at, header in enumerate(headers if isinstance(headers, list) else ()):
        notes += _find_inverted(header, (*path, "headers", at), "headers[]")
    if source is not None:
        notes += _find_inverted(source, (*path, "sourceCIDR"), "sourceCIDR")
    if isinstance(headers, list):
        found["headers"] = [_without_invert(header) for header in headers]
    if isinstance(source, dict):
        found["sourceCIDR"] = _without_invert(source)
    return found


def _find_inverted(one: object, path: Path, name: str) -> Iterator[Note]:
    if isinstance(one, dict) and one.get("invert"):
        yield _refuse((*path, "invert"), f"clientSelectors[].{name}.invert")


def _without_invert(one: object) -> object:
    if not isinstance(one, dict):
        return one
    return {name: value for name, value in one.items() if name != "invert"}
