"""Translations as plain values and as table rows: the output of `edgefast translate`.

In: a Translation.
Out: `*_value` (dicts and lists, for YAML and JSON) and `*_table` (header, rows). Of a Secret only
the names of its parts are shown, of a credential that a route sets only its length.
Must never: contain key material or a credential.
"""

from __future__ import annotations

from typing import Any

import msgspec

from edgefast import ir
from edgefast.api.kinds import KINDS
from edgefast.diagnostics.redact import show
from edgefast.table.redacted import hide_fleet, hide_match
from edgefast.translate.translation import Translation

Table = tuple[list[str], list[list[object]]]
REDACTED = "<redacted>"
_OF_STORE = ("user", "password", "ca", "certificate", "private_key")


def ir_value(translation: Translation) -> Any:
    """The IR with redacted Secrets; defaults are left out, as in the encoding."""
    fleets = []
    for fleet in translation.ir.fleets:
        open_ = msgspec.structs.replace(hide_fleet(fleet), secrets=(), limit_store=None)
        value = msgspec.to_builtins(open_, enc_hook=tuple)
        if fleet.secrets:
            value["secrets"] = [_redact(secret) for secret in fleet.secrets]
        if fleet.limit_store:
            value["limit_store"] = _redact_store(fleet.limit_store)
        fleets.append(value)
    return {"fleets": fleets}


def _redact(secret: ir.Secret) -> dict[str, str]:
    names = ("certificate", "private_key", "ca", "staple")
    parts = {name: getattr(secret, name) for name in names}
    return {"name": secret.name, **{name: REDACTED for name, data in parts.items() if data}}


def _redact_store(store: ir.RateLimitStore) -> Any:
    """The store of counters, without what opens it."""
    hidden = {name: getattr(store, name) for name in _OF_STORE}
    value = msgspec.to_builtins(store)
    return {**value, **{name: REDACTED for name, data in hidden.items() if data}}


def ir_table(translation: Translation) -> Table:
    """One row for each match, in the order of precedence within its virtual host."""
    rows: list[list[object]] = []
    for fleet in translation.ir.fleets:
        for host in fleet.virtual_hosts:
            for entry in host.entries:
                rule = host.rules[entry.rule]
                place = f"{rule.route}[{rule.index}]"
                rows.append(
                    [
                        host.listener,
                        host.hostname,
                        _match(hide_match(entry.match)),
                        place,
                        _outcome(rule),
                    ]
                )
        for route in fleet.stream_routes:
            shares = [f"{one.weight} {one.cluster or 'refused'}" for one in route.backends]
            outcome = ", ".join(shares) or f"refused ({route.reason})"
            place = f"{route.route}[{route.index}]"
            rows.append([route.listener, route.hostname, "", place, outcome])
    return ["LISTENER", "HOSTNAME", "MATCH", "RULE", "OUTCOME"], rows


def _match(match: ir.Match) -> str:
    path = match.path or "/"
    words = [match.method, {"exact": f"={path}", "prefix": path, "regex": f"~{path}"}[match.kind]]
    words += [f"{one.name}:{'~' if one.regex else ''}{one.value}" for one in match.headers]
    words += [f"?{one.name}={'~' if one.regex else ''}{one.value}" for one in match.query]
    return " ".join(word for word in words if word)


def _outcome(rule: ir.Rule) -> str:
    if rule.status:
        return f"{rule.status} ({rule.reason})" if rule.reason else str(rule.status)
    if rule.redirect:
        return f"redirect {rule.redirect.status}"
    if rule.direct:
        return f"answer {rule.direct.status}"
    shares = [f"{one.weight} {one.cluster or one.status}" for one in rule.backends]
    return shares[0].partition(" ")[2] if len(shares) == 1 else ", ".join(shares)


def status_value(translation: Translation) -> Any:
    """A List of objects that have nothing but their names and their status."""
    items = []
    for ref, status in translation.statuses.items():
        version = KINDS[(ref.group, ref.kind)].versions[0]
        metadata = {"namespace": ref.namespace} if ref.namespace else {}
        items.append(
            {
                "apiVersion": f"{ref.group}/{version}",
                "kind": ref.kind,
                "metadata": {**metadata, "name": ref.name},
                "status": msgspec.to_builtins(status),
            }
        )
    return {"apiVersion": "v1", "kind": "List", "items": items}


def status_table(translation: Translation) -> Table:
    """One row for each condition; listeners and parents stand in a column of their own."""
    rows: list[list[object]] = []
    for ref, status in translation.statuses.items():
        value = msgspec.to_builtins(status)
        parts = [("", value)]
        parts += [(part["name"], part) for part in value.get("listeners", ())]
        parts += [(_parent(part["parentRef"]), part) for part in value.get("parents", ())]
        parts += [(_parent(part["ancestorRef"]), part) for part in value.get("ancestors", ())]
        for place, part in parts:
            for one in part.get("conditions", ()):
                rows.append([ref, place, one["type"], one["status"], one["reason"], one["message"]])
    return ["OBJECT", "AT", "CONDITION", "STATUS", "REASON", "MESSAGE"], rows


def _parent(reference: dict[str, Any]) -> str:
    section = reference.get("sectionName")
    return f"{reference['name']}/{section}" if section else str(reference["name"])


def infra_value(translation: Translation) -> Any:
    """The fleets a controller would create."""
    return {"fleets": msgspec.to_builtins(tuple(map(_hide_env, translation.infra)))}


def _hide_env(infra: ir.Infra) -> ir.Infra:
    """Variables of pods as they may be shown; what comes from a Secret is a reference, and has no value."""
    env = tuple(
        {**one, "value": show(str(one.get("name", "")), str(one["value"]))}
        if "value" in one
        else one
        for one in infra.pod.env
    )
    return msgspec.structs.replace(infra, pod=msgspec.structs.replace(infra.pod, env=env))


def infra_table(translation: Translation) -> Table:
    """One row for each port of each fleet."""
    rows: list[list[object]] = []
    for fleet in translation.infra:
        name = f"{fleet.namespace}/{fleet.name}" if fleet.namespace else fleet.name
        for port in fleet.ports:
            rows.append([name, ", ".join(fleet.gateways), port.name, port.port, port.target])
    return ["FLEET", "GATEWAYS", "PORT", "LISTENER PORT", "BOUND PORT"], rows
