"""The digest that session tickets are bound to: whatever a handshake is held to makes it another one."""

from __future__ import annotations

from itertools import combinations

import pytest

from edgefast.proxy.tls.ticket_rule import ticket_rule

pytestmark = pytest.mark.pure


def test_equal_rules_are_one_rule() -> None:
    assert ticket_rule(443, "1.2", "none", b"") == ticket_rule(443, "1.2", "none", b"")
    assert len(ticket_rule(443, "1.2", "none", b"")) == 32


def test_each_part_makes_another_rule() -> None:
    rules = [
        ticket_rule(443, "1.2", "none", b""),
        ticket_rule(444, "1.2", "none", b""),
        ticket_rule(443, "1.3", "none", b""),
        ticket_rule(443, "1.2", "required", b""),
        ticket_rule(443, "1.2", "required", b"ca of a"),
        ticket_rule(443, "1.2", "required", b"ca of b"),
        ticket_rule(443, "1.2", "insecure", b"ca of a"),
        ticket_rule(443, "1.2", "none", b"", "a.example"),
        ticket_rule(443, "1.2", "none", b"a.example"),
        ticket_rule(44, "31.2", "none", b""),
    ]
    assert all(one != other for one, other in combinations(rules, 2))


def test_it_is_a_promise_to_every_release() -> None:
    """Replicas of two releases serve side by side: a rule is the same for both, or has another label."""
    assert (
        ticket_rule(443, "1.3", "required", b"ca").hex()
        == "1e2157467afdaa094e40766cb4a31533cfea70457005b7a22269533c05993fb0"
    )
