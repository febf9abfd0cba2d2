"""Redacted: the IR in a form that can be shown: values compared or set as credentials are replaced by their length (redact.py).

In: structs of the IR. Out: the same with texts in place of such values; an object without them is
returned as is. Names, paths and numbers stay. Must never: be compiled or served; no request matches
a replaced value.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from edgefast import ir
from edgefast.diagnostics.redact import hide_bytes, show, show_query, show_token
from edgefast.table.blob import Blob, decode_blob

T = TypeVar("T", bound=msgspec.Struct)


def hide_rule(rule: ir.Rule) -> ir.Rule:
    """Return a rule: the headers that it and its backends set, the values that its limits are for."""
    return _replace(
        rule,
        backends=tuple(map(_hide_backend, rule.backends)),
        request_headers=hide_ops(rule.request_headers),
        response_headers=hide_ops(rule.response_headers),
        rate_limits=tuple(map(hide_limit, rule.rate_limits)),
        ext_auth=_hide_question(rule.ext_auth),
    )


def hide_policy(unit: ir.PolicyUnit) -> ir.PolicyUnit:
    """Return a unit of a policy: values of headers that its rules compare, keys, passwords, the query of what a service or an endpoint is
    asked, what is said to an endpoint and what has to come of it.
    """
    access = unit.authorization
    if access is not None:
        access = _replace(access, rules=tuple(map(_hide_access, access.rules)))
    return _replace(
        unit,
        authorization=access,
        api_key=_hide_keys(unit.api_key),
        basic=_hide_users(unit.basic),
        oidc=_hide_client(unit.oidc),
        ext_auth=_hide_question(unit.ext_auth),
        traffic=_hide_check(unit.traffic),
    )


def _hide_check(traffic: ir.Traffic | None) -> ir.Traffic | None:
    """Passwords of protocols that begin with one are in what a check says."""
    if traffic is None or traffic.check is None:
        return traffic
    check = _replace(
        traffic.check,
        path=show_query(traffic.check.path),
        sends=hide_bytes(traffic.check.sends),
        expects=hide_bytes(traffic.check.expects),
    )
    return _replace(traffic, check=check)


def _hide_keys(keys: ir.ApiKeyAuth | None) -> ir.ApiKeyAuth | None:
    """A digest of a short key can be guessed."""
    if keys is None:
        return None
    return _replace(keys, clients=tuple((b"", client) for _, client in keys.clients))


def _hide_users(users: ir.BasicAuth | None) -> ir.BasicAuth | None:
    if users is None:
        return None
    return _replace(users, users=tuple((name, "") for name, _ in users.users))


def _hide_client(client: ir.Oidc | None) -> ir.Oidc | None:
    """A client secret, and the queries of endpoints."""
    if client is None:
        return None
    return _replace(
        client,
        client_secret=hide_bytes(client.client_secret),
        authorization_endpoint=show_query(client.authorization_endpoint),
        token_endpoint=show_query(client.token_endpoint),
        end_session_endpoint=show_query(client.end_session_endpoint),
    )


def _hide_access(rule: ir.AccessRule) -> ir.AccessRule:
    headers = tuple(
        (name, tuple(show(name, value) for value in values)) for name, values in rule.headers
    )
    return _replace(rule, headers=headers)


def _hide_question(requested: ir.ExtAuth | None) -> ir.ExtAuth | None:
    if requested is None:
        return None
    return _replace(
        requested,
        path_override=show_query(requested.path_override),
        path_template=show_query(requested.path_template),
    )


def hide_ops(ops: ir.HeaderOps | None) -> ir.HeaderOps | None:
    """Return header operations."""
    if ops is None:
        return None
    return _replace(ops, set=_hide_pairs(ops.set), add=_hide_pairs(ops.add))


def hide_limit(limit: ir.RateLimit) -> ir.RateLimit:
    """Return a rate limit."""
    return _replace(limit, headers=tuple(map(hide_value, limit.headers)))


def hide_match(match: ir.Match) -> ir.Match:
    """Return a match."""
    return _replace(
        match,
        headers=tuple(map(hide_value, match.headers)),
        query=tuple(map(hide_value, match.query)),
    )


def hide_value(one: ir.ValueMatch) -> ir.ValueMatch:
    """Return a predicate."""
    return _replace(one, value=show(one.name, one.value))


def hide_entry(entry: ir.Entry) -> ir.Entry:
    """Return one match of a rule."""
    return _replace(entry, match=hide_match(entry.match))


def hide_host(host: ir.VirtualHost) -> ir.VirtualHost:
    """Return a virtual host."""
    return _replace(
        host,
        rules=tuple(map(hide_rule, host.rules)),
        entries=tuple(map(hide_entry, host.entries)),
    )


def describe_blob(data: bytes) -> dict[str, Any]:
    """Return a blob as plain values for a dump: fragments, rules, entries. Raises BlobError."""
    blob = decode_blob(data)
    shown: dict[str, Any] = msgspec.to_builtins(
        Blob(
            key=blob.key,
            fragments=blob.fragments,
            fragment=blob.fragment,
            rules=tuple(map(hide_rule, blob.rules)),
            entries=tuple(map(hide_entry, blob.entries)),
        )
    )
    del shown["key"]
    return shown


def hide_listener(listener: ir.Listener) -> ir.Listener:
    """Return a listener: attributes of spans and literals of log lines are texts that somebody wrote."""
    tracing, log = listener.tracing, listener.access_log
    return _replace(
        listener,
        tracing=None
        if tracing is None
        else _replace(tracing, attributes=_hide_pairs(tracing.attributes)),
        access_log=_replace(
            log,
            members=tuple(
                _replace(one, pieces=tuple(_hide_piece(one.name, piece) for piece in one.pieces))
                for one in log.members
            ),
            text=tuple(_hide_piece("", piece) for piece in log.text),
        ),
    )


def hide_fleet(fleet: ir.Fleet) -> ir.Fleet:
    """Return a fleet; key material and the store's credentials are whoever's who has them: they are left as they are."""
    return msgspec.structs.replace(
        fleet,
        listeners=tuple(map(hide_listener, fleet.listeners)),
        virtual_hosts=tuple(map(hide_host, fleet.virtual_hosts)),
        policies=tuple(map(hide_policy, fleet.policies)),
    )


def _hide_backend(share: ir.BackendRef) -> ir.BackendRef:
    return _replace(
        share,
        request_headers=hide_ops(share.request_headers),
        response_headers=hide_ops(share.response_headers),
    )


def _hide_piece(name: str, piece: ir.LogPiece) -> ir.LogPiece:
    if piece.operator:
        return piece
    return _replace(piece, text=show(name, piece.text) if name else show_token(piece.text))


def _hide_pairs(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, show(name, value)) for name, value in pairs)


def _replace(one: T, **parts: object) -> T:
    """Return the object itself where nothing is hidden: most have nothing."""
    if all(getattr(one, name) == value for name, value in parts.items()):
        return one
    return msgspec.structs.replace(one, **parts)
