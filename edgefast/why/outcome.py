"""Outcome: what one example request gets, in a form that two tables can be compared by.

In: what is served, a request. Out: `Outcome`: the rule and its answers, from the same checks as explain(), less what only a
reader needs. Must never: depend on where a rule was written, on its number, or on an endpoint's address.
"""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.table.match import Call, find_listener
from edgefast.why import answer as answers
from edgefast.why.ask import Ask
from edgefast.why.changes import Side
from edgefast.why.client import drop_untrusted, find_client
from edgefast.why.counted import judge_limits
from edgefast.why.explanation import Answer
from edgefast.why.head import Refusal, scan_head
from edgefast.why.served import Served


class Outcome(msgspec.Struct, frozen=True):
    """What a request gets."""

    answers: tuple[Answer, ...]
    rule: ir.Rule | None = None
    match: ir.Match | None = None
    listener: str = ""
    limits: tuple[str, ...] = ()  # names of those that it counts in

    @property
    def backends(self) -> bool:
        """Tell whether a backend may get it."""
        return any(one.kind == "backend" for one in self.answers)

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


def find_outcome(served: Served, ask: Ask) -> Outcome:
    """Ask a table."""
    listeners = served.listeners(ask.port)
    if passed := answers.answer_passed(served.all_listeners(ask.port), ask):
        return Outcome((passed,))
    if not listeners:
        return Outcome((answers.answer_closed_port(served, ask.port),))
    tls = listeners[0].protocol == "HTTPS"
    if tls != (ask.scheme == "https"):
        wrong = answers.answer_protocol(ask.scheme, ask.port, listeners[0].protocol)
        return Outcome((wrong,))
    head = scan_head(ask.head(), listeners[0].http, tls=tls)
    if isinstance(head, Refusal):
        return Outcome((answers.answer_refusal(head),))
    listener = find_listener(listeners, ask.port, head.host)
    if listener is None:
        return Outcome((answers.answer_no_listener(head.host, listeners),))
    named = find_listener(listeners, ask.port, ask.sni) if ask.sni else None
    if named is not None and answers.ends_handshake(named):
        return Outcome((answers.answer_handshake(named),), listener=named.name)
    client = find_client(head, ask.source, listener.http.client_address)
    head = drop_untrusted(head, client)
    request = head.request()
    hit = served.matcher.match(listener.name, head.host, request)
    if hit is None:
        return Outcome((answers.answer_no_rule(""),), listener=listener.name)
    limits = judge_limits(hit.rule, Call(request), client, None) if hit.rule.rate_limits else ()
    found = answers.answer_rule(served, listener, head, hit.rule, hit.prefix_len, limits)
    counted = tuple(one.name for one in limits if one.counts)
    return Outcome(found, hit.rule, hit.match, listener.name, counted)


def _text(one: Answer) -> str:
    if one.kind == "backend":
        return one.backend
    if one.kind == "redirect":
        return f"{one.status} to {one.location}"
    return "no answer" if one.kind == "closed" else str(one.status)
