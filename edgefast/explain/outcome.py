"""Outcome: the result of one example request, in a form that can be compared between two tables.

In: the served table, a request. Out: `Outcome`: the rule and its answers, from the same checks as
explain(), without what only a reader needs.
Must never: depend on where a rule was written, on its number, or on an endpoint's address.
"""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.explain import deciding_check as answers
from edgefast.explain.ambiguous_path import find_ambiguity
from edgefast.explain.backend import settle_backend
from edgefast.explain.backend_policy import settle_rule, settle_shares, units_at_backends
from edgefast.explain.bandwidth import find_bandwidth
from edgefast.explain.changes import Side
from edgefast.explain.client import drop_untrusted, find_client
from edgefast.explain.encoding import find_compression
from edgefast.explain.explanation import Answer
from edgefast.explain.fault import find_fault
from edgefast.explain.head import Refusal, scan_head
from edgefast.explain.listener_filters import evaluate_listener_filters, list_filter_units
from edgefast.explain.override import find_overrides
from edgefast.explain.policy_checks import PolicyChecks, count_asked, evaluate_policies, see_behind
from edgefast.explain.rate_limits import evaluate_limits
from edgefast.explain.request_spec import RequestSpec
from edgefast.explain.served_fleet import Served
from edgefast.explain.session_persistence import find_own_session, find_session
from edgefast.table.match import Call, find_listener

#: Checks whose answers a request gets before, or without, what policies say of it.
_BEFORE_POLICIES = frozenset(
    ("rule_invalid", "policy_invalid", "body_size", "cors", "auth_service")
)
#: Checks between the match and the limits that are nobody's refusal.
_NO_REFUSAL = frozenset(("body_size", "auth_service"))


class Outcome(msgspec.Struct, frozen=True):
    """What a request gets."""

    answers: tuple[Answer, ...]
    rule: ir.Rule | None = None
    match: ir.Match | None = None
    listener: str = ""
    limits: tuple[str, ...] = ()  # names of those that it counts in
    policies: tuple[ir.PolicyUnit, ...] = ()  # units that are asked, without their names
    settings: tuple[tuple[str, object], ...] = ()  # of policies of traffic, that are in force
    refused: bool = (
        False  # by a policy: not by what is wrong with a request, or not there behind it
    )
    services: int = 0  # that have to let it pass, and proofs; services without endpoints too

    @property
    def backends(self) -> bool:
        """Tell whether a backend may get it."""
        return any(one.kind == "backend" for one in self.answers)

    @property
    def enters(self) -> bool:
        """Tell whether no policy keeps it out, and no mistake before they are asked."""
        held = self.rule is None or self.rule.status or self.refused
        return not held and not any(one.check in _BEFORE_POLICIES for one in self.answers)

    def owner(self) -> str:
        """Return the rule in words, "" when there is none."""
        return f"{self.rule.route} rule {self.rule.name or self.rule.index}" if self.rule else ""

    def text(self) -> str:
        """Return the answers in words."""
        alone = len(self.answers) == 1
        return ", ".join(
            _text(one) if alone else f"{one.share:g} % {_text(one)}" for one in self.answers
        )

    def side(self, served: Served) -> Side:
        """Return it for people."""
        source = ""
        if self.rule is not None and self.match is not None:
            source = served.origin.match(self.rule, self.match).source
        return Side(rule=self.owner(), answer=self.text(), source=source)


def find_outcome(served: Served, request: RequestSpec) -> Outcome:
    """Ask a table."""
    listeners = served.listeners(request.port, request.address)
    if passed := answers.answer_passed(
        served.all_listeners(request.port, address=request.address), request
    ):
        return Outcome((passed,))
    if not listeners:
        return Outcome((answers.answer_closed_port(served, request.port, address=request.address),))
    tls = listeners[0].protocol == "HTTPS"
    if tls != (request.scheme == "https"):
        wrong = answers.answer_protocol(request.scheme, request.port, listeners[0].protocol)
        return Outcome((wrong,))
    head = scan_head(request.head(), listeners[0].http, tls=tls, source=request.source)
    if isinstance(head, Refusal):
        return Outcome((answers.answer_refusal(head),))
    listener = find_listener(listeners, request.port, head.host)
    if listener is None:
        return Outcome((answers.answer_no_listener(head.host, listeners),))
    named = find_listener(listeners, request.port, request.sni) if request.sni else None
    if named is not None and answers.ends_handshake(named):
        return Outcome((answers.answer_handshake(named),), listener=named.name)
    client = find_client(
        head, request.source, listener.http.client_address, tls=tls, rule=listener.tls
    )
    head = drop_untrusted(head, client, listener.http.forwarded)
    before = evaluate_listener_filters(served, listener, head)
    filters = tuple(map(_nameless, list_filter_units(served, listener)))
    if before.answer is not None:
        return Outcome(
            (before.answer,),
            listener=listener.name,
            policies=filters,
            refused=before.answer.check not in _NO_REFUSAL,
            services=len(filters),
        )
    # What the request has in the names of the filters stands for what they would say.
    hit = served.matcher.match(listener.name, head.host, head.request())
    if hit is None:
        none = before.settle((answers.answer_no_rule(""),))
        return Outcome(none, listener=listener.name, policies=filters, services=len(filters))
    if (ambiguous := find_ambiguity(served, listener, head, hit)) is not None:
        message = before.settle((ambiguous,))
        return Outcome(message, listener=listener.name, policies=filters, services=len(filters))
    rule = hit.rule
    seen = see_behind(served, rule, head, client=client.address, sni=request.sni)  # by limits
    limits = evaluate_limits(rule, Call(seen.request()), client, None) if rule.rate_limits else ()
    checks = PolicyChecks()
    if (rule.policies or rule.ext_auth is not None) and not rule.status:
        checks = evaluate_policies(
            served,
            rule,
            head,
            client.address,
            sni=request.sni,
            https=client.https,
            blind=True,
        )
    found = answers.answer_rule(
        served, listener, head, rule, hit.prefix_len, limits, checks, seen, https=client.https
    )
    return Outcome(
        before.settle(found),
        rule,
        hit.match,
        listener.name,
        limits=tuple(one.name for one in limits if one.counts),
        policies=(*filters, *map(_nameless, served.units(rule.policies))),
        settings=_settle(served, rule, listener.http),
        refused=_is_refused(checks, found),
        services=len(filters) + count_asked(served, rule),
    )


def _is_refused(checks: PolicyChecks, found: tuple[Answer, ...]) -> bool:
    """Tell whether it is a policy's answer that is given: others may come before it."""
    message = checks.answer
    if message is None or message.check in _NO_REFUSAL:
        return False
    return any((one.check, one.why) == (message.check, message.why) for one in found)


def _nameless(unit: ir.PolicyUnit) -> ir.PolicyUnit:
    """Return what a unit does: whose it is, and the words for what is wrong with it, are no client's business."""
    return msgspec.structs.replace(unit, name="", reason="")


def _settle(served: Served, rule: ir.Rule, http: ir.HttpSettings) -> tuple[tuple[str, object], ...]:
    units = served.units(rule.traffic)
    kept = find_session(rule, units)
    session: tuple[tuple[str, object], ...] = (("session", kept[0]),) if kept is not None else ()
    for share in rule.backends:
        own = find_own_session(share, rule, units)
        session += ((f"{share.cluster} session", own),) if own is not None else ()
    if not rule.traffic:
        return (*session, *settle_shares(served, rule))
    found = settle_rule(rule, units, http)
    fault = find_fault(units)
    more: tuple[tuple[str, object], ...] = (("fault", fault.fault),) if fault is not None else ()
    overrides = find_overrides(units)[0]
    more += (("override", overrides),) if overrides else ()
    encoded = find_compression(units)
    more += (("compression", encoded[0]),) if encoded is not None else ()
    limited = find_bandwidth(units)
    more += (("bandwidth", limited[0]),) if limited is not None else ()
    more += tuple(settle_backend(units_at_backends(rule, units)))
    more += (*session, *settle_shares(served, rule))
    return (*((one.field, one.value) for one in found.values()), *more)


def _text(one: Answer) -> str:
    requested = f", if {' and '.join(one.asks)} lets it pass" if one.asks else ""
    if one.kind == "backend":
        return f"{one.backend}{requested}"
    if one.kind == "redirect":
        return f"{one.status} to {one.location}{requested}"
    return "no answer" if one.kind == "closed" else f"{one.status}{requested}"
