"""Access: the authorization decision for a request, and the rule that decides.

In: ir.Authorization, the request as the matcher sees it, its client's address. Out: `Decision`. The
twin of core/policy/access.pyx, which works on bytes; a test compares it with an engine. Ambiguous
values never match an Allow rule and match every Deny rule that they may satisfy. Ambiguous are a
header that came more than once, an invalid address, and a name that a backend may take for the
header's. A path that a backend may read as the rule's (path_variants.py) is ambiguous as well.
Must never: show a value that a rule compares with where it is a credential.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from edgefast import ir
from edgefast.api.model.regex import compile_bytes_regex
from edgefast.diagnostics.redact import show
from edgefast.explain.client import fold_name
from edgefast.explain.match_failure import cut
from edgefast.explain.path_variants import read_path, unescape_path
from edgefast.explain.tokens import TokenView, describe_token, why_not_token
from edgefast.netaddr import Address, is_in, parse_network, read_address
from edgefast.table import Request

_EMPTY = '""'
_NO_REQUEST = Request()
_SHOWN = 3  # values of a list that are told


class Decision(msgspec.Struct, frozen=True):
    """What was decided, and by what."""

    allow: bool
    rule: int | None = None  # of the rules, from 0; None: none of them holds
    name: str = ""  # of that rule
    why: str = (
        ""  # in words: "rules[1] (internal) allows", "no rule matches, defaultAction is Deny"
    )
    failed: tuple[str, ...] = ()  # of each rule before it: "rules[0]: method GET is not POST"


def evaluate_access(
    of: ir.Authorization,
    request: Request,
    client: str,
    shown: TokenView | None = None,
    sni: str = "",
) -> Decision:
    """Go through the rules; the first that holds decides. `shown`: what they may ask about a token; None: there is none.

    `sni`: the server name of TLS, "" without one. The client has no certificate.
    """
    address = read_address(client)
    failed: list[str] = []
    for number, rule in enumerate(of.rules):
        named = name_rule(number, rule)
        wrong = why_not(rule, request, address, shown, sni)
        if not wrong:
            message = f"{named} {'allows' if rule.allow else 'denies'}"
            return Decision(rule.allow, number, rule.name, message, tuple(failed))
        failed.append(f"{named}: {wrong}")
    message = f"no rule matches, defaultAction is {'Allow' if of.allow else 'Deny'}"
    return Decision(of.allow, why=message, failed=tuple(failed))


def needs_request(rule: ir.AccessRule) -> bool:
    """Tell whether a rule has a condition that no connection has."""
    return bool(rule.methods or rule.paths or rule.headers or rule.token is not None)


def decide_connection(of: ir.Authorization, client: str, sni: str) -> Decision:
    """Return the decision about a connection or UDP session; rules have no conditions about requests."""
    return evaluate_access(of, _NO_REQUEST, client, sni=sni)


def why_not(
    rule: ir.AccessRule,
    request: Request,
    address: Address | None,
    shown: TokenView | None = None,
    sni: str = "",
) -> str:
    """Return the first condition that does not hold, "" when all do."""
    if rule.methods and request.method not in rule.methods:
        return f"method {request.method} is not {_list(rule.methods)}"
    if rule.paths and not _has_path(rule, request.path):
        wanted = _list([f"{kind} {cut(path) or '/'}" for kind, path in rule.paths])
        return f"path {cut(request.path)} is not {wanted}"
    if rule.sources and not _is_from(rule, address):
        return f"client {address or 'without an address'} is not in {_list(rule.sources)}"
    if rule.server_names and not _has_server_name(rule, sni):
        return f"server name {sni or 'missing'} is not {_list(rule.server_names)}"
    if rule.certificate and rule.allow:
        return f"no client certificate with {_list([name for _, name in rule.certificate])}"
    for name, values in rule.headers:
        wrong = _why_not_header(rule.allow, name, values, request)
        if wrong:
            return wrong
    return why_not_token(rule, shown or TokenView()) if rule.token is not None else ""


def _is_from(rule: ir.AccessRule, address: Address | None) -> bool:
    if address is None:
        return not rule.allow
    return any(is_in(address, parse_network(one)) for one in rule.sources)


def _has_server_name(rule: ir.AccessRule, sni: str) -> bool:
    if not sni:
        return not rule.allow
    name = sni.lower() if rule.allow else sni.lower().rstrip(".")
    return any(
        name.endswith(one[1:]) and len(name) >= len(one) if one.startswith("*.") else name == one
        for one in rule.server_names
    )


def _why_not_header(allow: bool, name: str, values: Sequence[str], request: Request) -> str:
    read = [one for one in request.headers if fold_name(one[0]) == fold_name(name)]
    came = [value for _, value in read]
    spelled = [each for each, _ in read if each.lower() != name]
    if not came or (allow and len(came) == len(spelled) == 1):
        return f"header {name} is missing"
    if allow and spelled:
        return f"header {name} is spelled {cut(spelled[0])}, which no Allow rule matches"
    if allow and len(came) > 1:
        return f"header {name} occurs {len(came)} times, which no Allow rule matches"
    if any(one in values for one in (came if allow else _readings(came))):
        return ""
    shown = cut(came[0]) or _EMPTY
    return f"header {name}: {shown} is not {_list([show(name, one) or _EMPTY for one in values])}"


def _readings(came: Sequence[str]) -> Iterator[str]:
    """Give all that a header may be taken for: its lines, the elements of their lists, all lines as one (RFC 9110 5.6.1)."""
    yield from came
    for one in came:
        yield from (each.strip(" \t") for each in one.split(","))
    yield ",".join(came)


def _has_path(rule: ir.AccessRule, text: str) -> bool:
    path = text.encode("utf-8", "surrogateescape")
    if any(_is_path(kind, wanted, wanted.encode(), path) for kind, wanted in rule.paths):
        return True
    if rule.allow:
        return False
    readings = read_path(path)
    return readings is None or any(
        _is_path(kind, wanted, unescape_path(wanted), one)
        for kind, wanted in rule.paths
        for one in readings
    )


def _is_path(kind: ir.PathKind, pattern: str, wanted: bytes, path: bytes) -> bool:
    if kind == "exact":
        return path == wanted
    if kind == "prefix":
        under = wanted.rstrip(b"/")
        return path == under or path.startswith(under + b"/")
    return compile_bytes_regex(pattern).fullmatch(path) is not None


def name_rule(number: int, rule: ir.AccessRule) -> str:
    """Return what a rule is called: its place, and its name where it has one."""
    return f"rules[{number}] ({rule.name})" if rule.name else f"rules[{number}]"


def describe_access(rule: ir.AccessRule) -> str:
    """Return a rule in words: "allows GET or HEAD, prefix /api, from 10.0.0.0/8, header x-plan: gold or silver"."""
    words = ["allows" if rule.allow else "denies"]
    words[0] += f" {_list(rule.methods)}" if rule.methods else " requests"
    if rule.paths:
        words.append(_list([f"{kind} {path or '/'}" for kind, path in rule.paths]))
    if rule.sources:
        words.append(f"from {_list(rule.sources)}")
    if rule.server_names:
        words.append(f"server name {_list(rule.server_names)}")
    if rule.certificate:
        names = [name for _, name in rule.certificate]
        words.append(f"client certificate with {_list(names)}")
    for name, values in rule.headers:
        words.append(f"header {name}: {_list([show(name, one) or _EMPTY for one in values])}")
    if rule.token is not None:
        words.append(f"token of {rule.token.provider} with {describe_token(rule.token)}")
    return ", ".join(words)


def _list(values: Sequence[str]) -> str:
    more = f" or {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return f"{' or '.join(values[:_SHOWN])}{more}"
