"""The tree: ids, order, search, problems, pages."""

from __future__ import annotations

import time

import pytest

from console.fleets import LISTENER, look_at, make_fleet, make_host, make_rule, spread
from edgefast import ir
from edgefast.console.detail import MOST, describe_node
from edgefast.console.index import Index
from edgefast.console.live_metrics import Counters, Meter, make_row
from edgefast.console.rows import PAGE, list_children
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.explain import read_request_spec
from edgefast.explain.explain import explain
from edgefast.explain.served_fleet import Served

pytestmark = pytest.mark.pure

GROUP = "gateway.networking.k8s.io"


def _listeners() -> tuple[ir.Listener, ...]:
    return (
        ir.Listener(name="default/edge/b", port=81, bind_port=81, protocol="HTTP"),
        ir.Listener(name="default/edge/a", port=80, bind_port=80, protocol="HTTP"),
        ir.Listener(name="other/gw/team/set/a", port=82, bind_port=82, protocol="HTTP"),
    )


def test_order_and_ids() -> None:
    rules = [make_rule(number) for number in range(3)]
    fleet = make_fleet(
        [
            make_host("*", rules[:1], "default/edge/a"),
            make_host("*.b.test", rules[1:2], "default/edge/a"),
            make_host("www.test", rules, "default/edge/a"),
            make_host("*", rules, "other/gw/team/set/a"),
        ],
        *_listeners(),
    )
    index = Index(fleet)
    assert [one.name for one in index.root.children] == ["default/edge", "other/gw"]
    edge, other = index.root.children
    assert [one.name for one in edge.children] == ["a", "b"]
    assert [one.name for one in other.children] == ["team/set/a"]
    assert [one.name for one in edge.children[0].children] == ["www.test", "*.b.test", "*"]
    assert (edge.rules, len(edge.labels), edge.shared) == (5, 3, True)
    host = index.find("h:default/edge/a/www.test")
    assert host is not None and not edge.children[1].children
    rule = index.children(host)[1]
    assert rule.id == "r:default/edge/a/www.test|default/r1|0"
    (backend,) = index.children(rule)
    assert index.find(backend.id) is not None
    assert [one.id[0] for one in backend.path()[1:]] == ["g", "l", "h", "r", "b"]


@pytest.mark.parametrize(
    "id_",
    [
        "x",
        "b:",
        "b:|0",
        "b:r:none|0",
        "r:",
        "h:../..",
        "b:{}|1",
        "b:{}|-1",
        "b:{}|\u00b2",
        "b:{}|9" * 999,
    ],
)
def test_ids_that_are_none(id_: str) -> None:
    index = Index(spread(1))
    assert index.find(id_.replace("{}", f"r:{LISTENER}/h0.example.com|default/r0|0")) is None


def test_rules_are_in_order_of_precedence() -> None:
    rules = (make_rule(0), make_rule(1))
    host = ir.VirtualHost(
        LISTENER,
        "a.test",
        rules,
        (
            ir.Entry(ir.Match("exact", "/long"), 1),
            ir.Entry(ir.Match("prefix", "/l"), 0),
            ir.Entry(ir.Match("prefix", ""), 1),
        ),
    )
    index = Index(make_fleet([host]))
    (node,) = index.root.children[0].children[0].children
    assert [(one.name, len(one.matches)) for one in index.children(node)] == [
        ("/long", 2),
        ("/l", 1),
    ]


def test_search() -> None:
    index = Index(spread(200, 20))
    assert index.search("h7.example.com")[0].id == f"h:{LISTENER}/h7.example.com"
    assert index.search("default/r17")[0].name == "/r17"
    found = index.search("R17")
    assert {one.name for one in found} == {"/r17", *(f"/r17{n}" for n in range(10))}
    assert found[0].name == "/r17", "what is meant exactly comes first"
    assert [one.name for one in index.search("service/default/s42/80")] == ["/r42"]
    assert [one.kind for one in index.search(":80")][:1] == ["listener"]
    assert index.search("r17 h7.example.com") == []
    assert index.search("prefix r199")[0].name == "/r199"
    assert index.search("  ") == []


def test_problems_are_counted_once_on_the_way_up() -> None:
    shared = make_rule(1)
    fleet = make_fleet(
        [
            make_host("a.test", [shared, make_rule(2, status=500, reason="no such Service")]),
            make_host("b.test", [shared]),
        ]
    )
    route = ObjectRef("HTTPRoute", "default", "r1", GROUP)
    problems = [
        Problem(route, "spec.rules[0].matches[0]", "Shadowed", "by r0", severity="warning"),
        Problem(route, "spec.rules[5]", "Invalid", "of a rule that is not served"),
        Problem(ObjectRef("Gateway", "default", "edge", GROUP), "spec", "Invalid", "x"),
        Problem(None, "", "Invalid", "of nothing here"),
    ]
    state = look_at(fleet, problems)
    marks = state.marks
    assert (marks.warnings[""], marks.errors[""]) == (1, 2)
    assert marks.warnings["g:default/edge"] == 1, "on two hosts, and one problem"
    assert marks.errors[f"h:{LISTENER}/a.test"] == 1
    assert f"h:{LISTENER}/b.test" not in marks.errors
    texts = [one.text for one in marks.all]
    assert (
        len(texts) == 5
        and "HTTPRoute default/r2 spec.rules[0]: answers 500: no such Service" in texts
    )
    node = state.index.find(f"r:{LISTENER}/b.test|default/r1|0")
    assert node is not None and [one.severity for one in marks.of(node)] == ["warning"]
    host = state.index.find(f"h:{LISTENER}/a.test")
    assert host is not None and marks.of(host) == ()
    below = marks.below(host)
    assert [one.severity for one in below] == ["error", "warning"]
    assert all(one.node.startswith(f"r:{LISTENER}/a.test|") for one in below)
    listener = state.index.find(f"l:{LISTENER}")
    assert listener is not None
    page, _ = list_children(state, listener, 0, 10, "problems", True)
    assert [one.name for one in page.rows] == ["a.test", "b.test"]


def test_pages_and_orders() -> None:
    meter = Meter((1.0, 10.0))
    bounds = (0, 0, 0)
    labels = {number: f"default/r{number}\t0".encode() for number in range(1000)}
    meter.take(0.0, Counters({one: make_row((0,) * 5, 0, 0, bounds) for one in labels.values()}))
    meter.take(
        1.0,
        Counters(
            {
                one: make_row(
                    (0, number, 0, 0, number % 7 if number < 50 else 0), 0, 0, (number, 0, 0)
                )
                for number, one in labels.items()
            }
        ),
    )
    state = look_at(spread(1000), meter=meter)
    host = state.index.find(f"h:{LISTENER}/h0.example.com")
    assert host is not None
    page, places = list_children(state, host, 990, 10_000, "name", False, ["gone"])
    assert (page.total, len(page.rows), places) == (1000, 10, {"gone": -1})
    page, _ = list_children(state, host, 0, 10_000, "name", False)
    assert len(page.rows) == PAGE
    wanted = f"r:{LISTENER}/h0.example.com|default/r3|0"
    page, places = list_children(state, host, 0, 2, "requests", False, [wanted])
    assert [one.name for one in page.rows] == ["/r999", "/r998"]
    assert places == {wanted: 996}
    page, _ = list_children(state, host, 0, 1, "errors", False)
    assert page.rows[0].name in {"/r48", "/r41", "/r34", "/r27", "/r20", "/r13", "/r6"}
    page, _ = list_children(state, host, 5000, 10, "name", False)
    assert (page.offset, len(page.rows)) == (1000, 0)


def test_details_are_bounded_and_trials_meet_their_rule() -> None:
    many = tuple(ir.Match("prefix", f"/p{number:04}") for number in range(400))
    rule = make_rule(
        0,
        rate_limits=(ir.RateLimit("default/f#0", "c", 5, 3600, distinct_headers=("x-user",)),),
        timeouts=ir.Timeouts(request=1500),
    )
    host = ir.VirtualHost(LISTENER, "*", (rule,), tuple(ir.Entry(one, 0) for one in many))
    fleet = make_fleet([host])
    state = look_at(fleet)
    node = state.index.find(f"r:{LISTENER}/*|default/r0|0")
    assert node is not None
    detail = describe_node(state, node)
    takes = next(one for one in detail.sections if one.title == "Takes")
    assert (len(takes.lines), takes.more) == (MOST, 400 - MOST)
    said = {label: text for one in detail.sections for label, text in one.lines}
    assert said["default/f#0"] == "5 in 1 h for each x-user"
    assert said["request"] == "1500 ms"
    assert detail.trial is not None
    told = explain(Served(fleet), read_request_spec(detail.trial.method, detail.trial.url))
    assert told.rule is not None and told.rule.route == "default/r0"


def test_ten_thousand_routes() -> None:
    """Work is bounded by what is shown; the ceilings are far above what it takes."""
    fleet = spread(10_000, 2_000)
    began = time.process_time()
    state = look_at(fleet)
    listener = state.index.find(f"l:{LISTENER}")
    assert listener is not None
    page, _ = list_children(state, listener, 1500, PAGE, "requests", False)
    assert (page.total, len(page.rows)) == (2000, PAGE)
    assert len(state.index.search("example")) == 2000
    assert time.process_time() - began < 20
