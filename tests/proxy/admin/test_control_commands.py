"""An order socket that is not bound is a problem of the agent, as `edgefast status` shows it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from edgefast.httpd.address import Address
from edgefast.proxy.admin.servers import make_orders

pytestmark = pytest.mark.pure


def test_a_missing_order_socket_is_a_problem_until_it_is_bound() -> None:
    agent: Any = SimpleNamespace(order_problems=tuple, problems=("all",), told=[])
    agent.on_problems = agent.told.append
    server: Any = SimpleNamespace(address=Address("127.0.0.1", 19000))
    orders = make_orders(agent, {"admin": server})
    assert orders is not None and agent.order_problems() == ()
    orders._report("order socket @x cannot be bound: in use by another process")
    (problem,) = agent.order_problems()
    assert (problem.reason, problem.severity) == ("OrdersNotServed", "error")
    orders._report("")
    assert agent.order_problems() == () and agent.told == [("all",)] * 2
