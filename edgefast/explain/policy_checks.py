"""Policy checks: the result of policies for a request between its match and its limits.

In: the rule, the request as the matcher sees it, its client. Out: `PolicyChecks`: each unit with its result, in the order of the checks. It
also has the answer of the unit that refuses, and the authorization services that are called. The twin of core/policy/policy_chain.pyx.
Must never: call a service, or report that one will let a request pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from edgefast import ir
from edgefast.diagnostics.reasons.mentions import name_reasons
from edgefast.explain.access import describe_access, evaluate_access
from edgefast.explain.authentication import (
    authenticate,
    describe_proof,
    find_skipped,
    is_proof,
    leave_for_next,
    pass_on,
    sets_of,
)
from edgefast.explain.client import fold_name
from edgefast.explain.explanation import Answer, Place, UnitPart, Verdict
from edgefast.explain.ext_auth_request import NEVER_SET, describe_question
from edgefast.explain.head import Head
from edgefast.explain.served_fleet import Served
from edgefast.explain.sign_in import redirect_sign_in
from edgefast.explain.source_location import Origin
from edgefast.explain.tokens import AuthenticationResult, TokenView
from edgefast.table import Request
from edgefast.translate.deps.policy_summary import (
    KIND_OF,
    Family,
    is_foreign_unit,
    ref_of_owner,
)
from edgefast.translate.policy.oidc import PROVIDER
from edgefast.translate.policy.outcome import OwnPolicy

#: What the rule's own filter is called among units.
OWN_FILTER = "ExternalAuth"

_RULES = 8  # of an authorization that are told


class PolicyChecks(msgspec.Struct, frozen=True):
    """The decision of each access policy of a rule for one request."""

    parts: tuple[UnitPart, ...] = ()
    answer: Answer | None = None  # None: nobody refuses, as far as can be known without asking
    asks: tuple[str, ...] = ()  # clusters of services, in order


class Said(msgspec.Struct, frozen=True):
    """What one unit says."""

    verdict: Verdict
    why: str = ""
    about: tuple[str, ...] = ()
    answer: Answer | None = None
    asks: tuple[str, ...] = ()


def evaluate_policies(
    served: Served,
    rule: ir.Rule,
    head: Head,
    client: str,
    *,
    sni: str = "",
    https: bool = False,
    now: float = 0.0,
    blind: bool = False,
) -> PolicyChecks:
    """Ask the units of a rule as a worker does: local ones first, then proofs, then services, the rule's own filter, rules about tokens.

    `now`: Unix seconds; 0: tokens are judged as of a time when they are valid. `blind`: proofs are asked as services are: what somebody who has one would get.
    """
    parts: list[UnitPart] = []
    answer: Answer | None = None
    asks: tuple[str, ...] = ()
    services = list_services(served, rule)
    request = drop_set(served, rule, head).request()
    came = head  # less what proofs take out for one another
    units = served.units(rule.policies)
    met = _met_by_rules(units, request, client, sni)
    hidden = drop_names(head, _set_by_proofs(served, rule))
    behind = _pass_proofs(served, rule, head, hidden, now, met)
    shown = TokenView(
        {
            one.name: [each.name for each in one.jwt.providers] if one.jwt else [PROVIDER]
            for one in units
            if one.jwt or one.oidc
        }
    )
    groups = AnyGroups(units)
    replaced = find_skipped(units, head)
    for name, unit, requested in _in_order(rule, units):
        place = place_of(served.origin, name) if unit is not None else served.origin.rule(rule)
        if unit is None or requested is not None:
            assert requested is not None  # a filter of the rule's own asks
            message = ask_service(served, requested, behind, services)
        elif name in replaced:
            message = Said("not_asked", replaced[name], (describe_proof(unit),))
        elif is_proof(unit):
            proof = None if blind else authenticate(unit, came, now)
            message = _prove(unit, proof)
            if not unit.any or groups.asks(unit, proof):
                came = leave_for_next(unit, came)
            if unit.jwt is not None or unit.oidc is not None:
                shown = TokenView(shown.providers, unit.name, proof, proof is not None)
        else:
            message = _evaluate(unit, request, client, shown, sni)
        if unit is not None and unit.reason and not unit.status:  # of the version before
            message = msgspec.structs.replace(message, about=(unit.reason, *message.about))
        message = groups.settle(unit, message) if unit is not None else message
        if answer is not None:
            message = Said("not_asked", "an earlier check has answered", message.about)
        parts.append(
            UnitPart(
                name=name,
                verdict=message.verdict,
                why=message.why,
                about=message.about,
                place=place,
            )
        )
        asks += message.asks
        if answer is None and message.answer is not None:
            answer = msgspec.structs.replace(message.answer, asks=asks)
            answer = redirect_sign_in(answer, services, head, client, https=https)
    for name, whom in rule.lost:
        place = place_of(served.origin, name)
        parts.append(UnitPart(name=name, verdict="lost", why=f"overridden by {whom}", place=place))
    return PolicyChecks(tuple(parts), answer, asks)


class AnyGroups:
    """Policies of which one unit suffices (core/policy/anygroup.pyx)."""

    def __init__(self, units: Sequence[ir.PolicyUnit]) -> None:
        self._left: dict[str, int] = {}
        self._met: set[str] = set()
        self._refused: dict[str, Answer] = {}
        for one in units:
            if one.any and (is_proof(one) or one.ext_auth is not None):
                group = _policy_of(one)
                self._left[group] = self._left.get(group, 0) + 1

    def asks(self, unit: ir.PolicyUnit, found: AuthenticationResult | None) -> bool:
        """Tell whether a proof is asked, and takes its credential out of the request."""
        return _policy_of(unit) not in self._met and (found is None or found.passes)

    def settle(self, unit: ir.PolicyUnit, message: Said) -> Said:
        """Return the result of a unit when others of its policy may let the request pass."""
        group = _policy_of(unit)
        if not unit.any or unit.status or group not in self._left:
            return message
        if group in self._met:
            return Said("not_asked", "another check of the policy lets it pass", message.about)
        if is_proof(unit) or unit.ext_auth is not None:
            self._left[group] -= 1
        if message.verdict == "passes":
            self._met.add(group)
        if message.answer is None or message.answer.check == "auth_service":
            return message
        if message.answer.status == 401:
            self._refused.setdefault(group, message.answer)
        if self._left[group]:
            return msgspec.structs.replace(message, answer=None)
        return msgspec.structs.replace(message, answer=self._refused.get(group, message.answer))


def _policy_of(unit: ir.PolicyUnit) -> str:
    return unit.name.partition("#")[0]


_Turn = tuple[str, ir.PolicyUnit | None, ir.ExtAuth | None]


def _in_order(rule: ir.Rule, units: tuple[ir.PolicyUnit, ...]) -> Iterator[_Turn]:
    for unit in units:
        if unit.status or not (unit.ext_auth is not None or is_proof(unit) or _asks_token(unit)):
            yield unit.name, unit, None
    for unit in units:
        if is_proof(unit):
            yield unit.name, unit, None
    for unit in units:
        if not unit.status and unit.ext_auth is not None:
            yield unit.name, unit, unit.ext_auth
    if rule.ext_auth is not None:
        yield OWN_FILTER, None, rule.ext_auth
    for unit in units:
        if not unit.status and _asks_token(unit):
            yield unit.name, unit, None


def _asks_token(unit: ir.PolicyUnit) -> bool:
    """Tell whether it speaks last."""
    rules = unit.authorization.rules if unit.authorization is not None else ()
    return any(one.token is not None for one in rules)


def _evaluate(
    unit: ir.PolicyUnit, request: Request, client: str, shown: TokenView, sni: str
) -> Said:
    if unit.status or unit.authorization is None:
        return Said("broken", unit.reason, answer=answer_broken(unit))
    decision = evaluate_access(unit.authorization, request, client, shown, sni)
    about = tuple(
        f"{name}{describe_access(one)}"
        for number, one in enumerate(unit.authorization.rules[:_RULES])
        for name in [f"rules[{number}] "]
    )
    more = len(unit.authorization.rules) - _RULES
    about += (f"and {more} more",) if more > 0 else ()
    if not shown.known and _asks_token(unit):
        message = "depends on token claims, which only a proxy with the keys can verify"
        return Said("asks", message, about, asks=(unit.name,))
    if decision.allow:
        return Said("passes", decision.why, about)
    refused = Answer(
        kind="status",
        check="authorization",
        status=403,
        why=f"{unit.name}: {decision.why}",
        fix=decision.failed[-1] if decision.rule is None and decision.failed else "",
    )
    return Said("refuses", decision.why, about, refused)


def _prove(unit: ir.PolicyUnit, found: AuthenticationResult | None) -> Said:
    about = (describe_proof(unit),)
    if found is None:
        message = "depends on credentials that are not available here"
        return Said("asks", message, about, asks=(unit.name,))
    if found.passes:
        return Said("passes", found.why, about)
    refused = Answer(
        kind="status",
        check="credentials",
        status=found.status,
        why=f"{unit.name}: {found.why}",
        fix="send a valid credential",
    )
    return Said("refuses", found.why, about, refused)


def ask_service(
    served: Served, requested: ir.ExtAuth, head: Head, services: Sequence[ir.ExtAuth]
) -> Said:
    """Return what can be said of a question before it was asked; `services`: all who are shown the request's body with this one."""
    about = describe_question(requested, head)
    names = tuple(dict.fromkeys(one.cluster for one in requested.backends if one.weight))
    about += tuple(_describe_health(served, names))
    most = min((one.body for one in services if one.body), default=0)
    if most and not head.web_text and head.content_length > most:  # none of them is asked
        message = (
            f"{head.content_length} bytes of body, but an authorization service gets at most {most}"
        )
        fix = "send a smaller body, or raise the limit (bodyToExtAuth, forwardBody)"
        refused = Answer(kind="status", check="body_size", status=413, why=message, fix=fix)
        return Said("refuses", message, about, refused)
    gone = [one for one in names if not served.endpoints(one)[0]]
    if names and len(gone) < len(names):
        return Said("asks", f"asks {' or '.join(names)}", about, asks=names)
    why = f"{' and '.join(gone) or 'the service'} has no endpoints"
    if requested.fail_open:
        return Said("passes", f"{why}, and failOpen is set", about)
    refused = Answer(
        kind="status",
        check="auth_service",
        status=requested.status_on_error,
        why=why,
        fix="add ready endpoints to the service",
        reasons=("EndpointsNotFound",),
    )
    return Said("refuses", why, about, refused)


def _describe_health(served: Served, names: Sequence[str]) -> Iterator[str]:
    """Say what is known to be wrong with whom is asked; what is well is not told."""
    for name in names:
        endpoints, fallback = served.endpoints(name)
        if not endpoints:
            if len(names) > 1:
                yield f"{name} has no endpoints, so its share of the calls fails"
            continue
        if fallback:
            yield f"{name} has only terminating endpoints"
        for one in endpoints:
            if one.healthy is False:
                yield f"{name} endpoint {one.address} ejected: {one.workers}"
            elif one.ill:
                yield f"{name} endpoint {one.address} fails a health check"
            elif one.failing:
                yield f"{name} endpoint {one.address}: its last request failed"


def list_services(served: Served, rule: ir.Rule) -> list[ir.ExtAuth]:
    """Return whom a rule asks, in order."""
    requested = [one.ext_auth for one in served.units(rule.policies) if not one.status]
    return [one for one in (*requested, rule.ext_auth) if one is not None]


def count_asked(served: Served, rule: ir.Rule) -> int:
    """Return how many proofs and services have to let a request pass."""
    return len(list_services(served, rule)) + sum(map(is_proof, served.units(rule.policies)))


def drop_set(served: Served, rule: ir.Rule, head: Head) -> Head:
    """Return the head without what proofs and services may set (core/head/headernames.pyx): from a client nobody hears it but they."""
    gone = names_set_by(list_services(served, rule))
    return drop_names(head, gone | _set_by_proofs(served, rule))


def names_set_by(services: Sequence[ir.ExtAuth]) -> set[str]:
    """Return the names of headers that services may set, as a backend may read them."""
    return {
        fold_name(name)
        for one in services
        for name in one.to_backend
        if fold_name(name) not in NEVER_SET and not name.startswith("x-edge-")
    }


def see_behind(
    served: Served,
    rule: ir.Rule,
    head: Head,
    now: float = 0.0,
    client: str = "",
    sni: str = "",
) -> Head:
    """Return the head as limits and backends see it, without the headers of services."""
    hidden = drop_set(served, rule, head)
    met = _met_by_rules(served.units(rule.policies), hidden.request(), client, sni)
    return _pass_proofs(served, rule, head, hidden, now, met)


def knows_behind(served: Served, rule: ir.Rule, head: Head, now: float = 0.0) -> bool:
    """Tell whether `see_behind` has all that a backend sees: no service adds to it, and whose the request is can be told."""
    proofs = [one for one in served.units(rule.policies) if is_proof(one)]
    return not list_services(served, rule) and all(
        authenticate(one, head, now) is not None for one in proofs
    )


def _set_by_proofs(served: Served, rule: ir.Rule) -> set[str]:
    units = served.units(rule.policies)
    return {fold_name(name) for one in units if is_proof(one) for name in sets_of(one)}


def _met_by_rules(
    units: Sequence[ir.PolicyUnit], request: Request, client: str, sni: str
) -> set[str]:
    """Return the policies of which one unit suffices and whose authorization allows the request."""
    return {
        _policy_of(one)
        for one in units
        if one.any and not one.status and one.authorization is not None and not _asks_token(one)
        if evaluate_access(one.authorization, request, client, TokenView({}), sni).allow
    }


def _pass_proofs(
    served: Served, rule: ir.Rule, came: Head, head: Head, now: float, met: set[str]
) -> Head:
    """Return the head behind proofs; `met`: policies whose proofs are not asked."""
    for unit in served.units(rule.policies):
        if not is_proof(unit):
            continue
        if unit.any:
            found = authenticate(unit, came, now)
            if _policy_of(unit) in met or (found is not None and not found.passes):
                continue
            met = {*met, _policy_of(unit)}
        head = pass_on(unit, came, head, now)
        came = leave_for_next(unit, came)
    return head


def drop_names(head: Head, gone: set[str]) -> Head:
    """Return the head without lines of names that fold to these."""
    if not gone:
        return head
    lines = tuple(one for one in head.lines if fold_name(one.name.decode("latin-1")) not in gone)
    return msgspec.structs.replace(head, lines=lines)


def answer_broken(unit: ir.PolicyUnit) -> Answer:
    """Return the answer to requests that meet a unit with a mistake, or one that is not there."""
    why = unit.reason or "it has no settings for this request"
    if is_foreign_unit(unit.name):
        return Answer(
            kind="status",
            check="policy_invalid",
            status=unit.status or 500,
            why=why,
            fix="write a SecurityPolicy, or serve it without the policy "
            "(--ignore-foreign-policies)",
            reasons=("PolicyIgnored",),
        )
    what = "filter" if unit.name.startswith("listener/") else "policy"
    return Answer(
        kind="status",
        check="policy_invalid",
        status=unit.status or 500,
        why=f"{unit.name} is not valid: {why}",
        fix=f"correct the {what}; its targets stay closed until then",
        reasons=name_reasons(why),
    )


def place_of(origin: Origin, unit: str) -> Place:
    """Return where a unit is written, by its name."""
    kind, _, rest = unit.partition("/")
    owner, _, feature = rest.partition("#")
    if kind == "listener":
        return origin.listener(owner)
    family: Family | None = next((one for one in KIND_OF if one == kind), None)
    if family is None or "/" not in owner:
        return Place()
    ref = ref_of_owner(family, owner)
    found = origin.snapshot.get(ref)
    if feature == "closed" and found is None:
        return origin.mistake(ref)
    if feature == "closed" and isinstance(found, OwnPolicy) and found.closed is not None:
        return origin.place(ref, found.closed.path or "spec")
    return origin.place(ref, f"spec.{feature}" if feature not in ("", "closed") else "spec")
