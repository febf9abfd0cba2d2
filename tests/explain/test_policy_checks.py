"""What policies do to a request, as explain and diff say it: over tables that are made here, without files."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edgefast import ir
from edgefast.explain import Explanation, Live, Served, read_request_spec
from edgefast.explain.changes import Change, Difference, rank_change
from edgefast.explain.compare import compare_requests
from edgefast.explain.explain import explain
from edgefast.explain.explanation import EndpointPart
from edgefast.explain.fleet_pair import Pair
from edgefast.explain.outcome import find_outcome
from edgefast.explain.render import render_explanation
from edgefast.explain.render_diff import render_difference

pytestmark = pytest.mark.pure

ENDPOINT = (ir.Endpoint(address="127.0.0.1", port=3000),)
AUTH = "service/ns/auth/80"
CLUSTERS = (
    ir.Cluster(name="service/ns/web/80", endpoints=ENDPOINT),
    ir.Cluster(name=AUTH, endpoints=ENDPOINT),
    ir.Cluster(name="service/ns/gone/80"),
)
INSIDE = ir.PolicyUnit(
    name="security/ns/who#authorization",
    authorization=ir.Authorization(
        (
            ir.AccessRule(allow=False, name="guests", headers=(("x-user", ("guest",)),)),
            ir.AccessRule(allow=True, name="inside", sources=("10.0.0.0/8",)),
        )
    ),
)
ASKED = ir.PolicyUnit(
    name="security/ns/who#extAuth",
    ext_auth=ir.ExtAuth(backends=(ir.AuthBackend(AUTH),), path="/check", headers=("cookie",)),
)
SIZE = ir.PolicyUnit(name="traffic/ns/size", traffic=ir.Traffic(body_size=10, request_timeout=2000))


def serve(
    *units: ir.PolicyUnit,
    clusters: Any = CLUSTERS,
    http: ir.HttpSettings | None = None,
    **rule: Any,
) -> Served:
    match = ir.Match(kind="prefix", path="")
    backends = (ir.BackendRef(cluster="service/ns/web/80"),)
    one = ir.Rule(route="ns/web", index=0, **{"backends": backends, **rule})
    host = ir.VirtualHost("ns/edge/http", "*", (one,), (ir.Entry(match, 0),))
    listener = ir.Listener("ns/edge/http", 80, 80, "HTTP", http=http or ir.HttpSettings())
    fleet = ir.Fleet("standalone", (listener,), (host,), clusters=clusters, policies=tuple(units))
    return Served(fleet)


def guard(*units: ir.PolicyUnit, **rule: Any) -> Served:
    return serve(*units, policies=tuple(one.name for one in units), **rule)


def ask(
    served: Served, *headers: str, method: str = "GET", source: str = "10.1.1.1"
) -> Explanation:
    return explain(served, read_request_spec(method, "http://a.example/x?y=1", headers, source))


def told(found: Explanation) -> list[tuple[str, int]]:
    return [(one.check, one.status) for one in found.answers]


def test_an_authorization_lets_in_or_answers_403() -> None:
    served = guard(INSIDE)
    inside = ask(served)
    assert told(inside) == [("forwarded", 0)]
    assert [(one.verdict, one.why) for one in inside.policies] == [
        ("passes", "rules[1] (inside) allows")
    ]
    outside = ask(served, source="192.0.2.1")
    assert told(outside) == [("authorization", 403)]
    assert outside.policies[0].verdict == "refuses"
    assert "defaultAction is Deny" in outside.answers[0].why
    assert told(ask(served, "x-user: guest")) == [("authorization", 403)]


def test_a_unit_that_is_broken_or_not_there_is_closed() -> None:
    broken = msgspec.structs.replace(INSIDE, status=500, authorization=None, reason="no such grant")
    found = ask(guard(broken, ASKED))
    assert told(found) == [("policy_invalid", 500)]
    assert "no such grant" in found.answers[0].why
    assert [one.verdict for one in found.policies] == ["broken", "not_asked"]
    assert told(ask(serve(policies=("security/ns/none#extAuth",)))) == [("policy_invalid", 500)]


def test_a_service_is_said_and_never_asked() -> None:
    found = ask(guard(INSIDE, ASKED), "cookie: a=b")
    assert told(found) == [("forwarded", 0)]
    assert found.answers[0].asks == (AUTH,)
    assert [one.verdict for one in found.policies] == ["passes", "asks"]
    text = "\n".join(render_explanation(found))
    assert f"goes to service/ns/web/80, if {AUTH} lets it pass" in text
    assert "gets GET /check/x?y=1, host: a.example" in text and "with cookie" in text
    assert "a=b" not in text.partition("policies ")[2]


def test_what_a_service_of_grpc_is_shown() -> None:
    called = msgspec.structs.replace(ASKED.ext_auth, grpc=True, headers=())
    found = ask(guard(msgspec.structs.replace(ASKED, ext_auth=called)), "cookie: a=b", "x-a: 1")
    text = "\n".join(render_explanation(found))
    assert "is called: envoy.service.auth.v3.Authorization/Check of GET /x?y=1" in text
    assert "with cookie, x-a" in text and "gets GET" not in text
    assert "lets the request pass with status OK" in text and "may set and remove headers" in text
    named = msgspec.structs.replace(called, headers=("x-a",))
    found = ask(guard(msgspec.structs.replace(ASKED, ext_auth=named)), "cookie: a=b", "x-a: 1")
    assert "with x-a\n" in "\n".join(render_explanation(found))


def test_answers_to_requests_with_a_body_are_not_believed() -> None:
    cached = msgspec.structs.replace(ASKED.ext_auth, body=100, cache=ir.AuthCache(ttl=1000))
    found = ask(guard(msgspec.structs.replace(ASKED, ext_auth=cached)))
    about = found.policies[0].about
    assert "except answers to requests with a body" in about
    cached = msgspec.structs.replace(cached, body=0)
    found = ask(guard(msgspec.structs.replace(ASKED, ext_auth=cached)))
    assert not any("with a body" in one for one in found.policies[0].about)


def test_what_is_known_to_be_wrong_with_a_service_is_said() -> None:
    gone = ir.AuthBackend("service/ns/gone/80")
    asked = msgspec.structs.replace(ASKED.ext_auth, backends=(ir.AuthBackend(AUTH), gone))
    served = guard(msgspec.structs.replace(ASKED, ext_auth=asked))
    assert "service/ns/gone/80 has no endpoints, so its share of the calls fails" in (
        ask(served).policies[0].about
    )
    parts = (
        EndpointPart(address="10.0.0.1:80", healthy=False, workers="2 of 2 workers ejected it"),
        EndpointPart(address="10.0.0.2:80", healthy=True, failing=True, failures=1),
        EndpointPart(address="10.0.0.3:80", healthy=True),
    )
    served.live = Live({AUTH: parts})
    about = "\n".join(ask(served).policies[0].about)
    assert f"{AUTH} endpoint 10.0.0.1:80 ejected: 2 of 2 workers ejected it" in about
    assert f"{AUTH} endpoint 10.0.0.2:80: its last request failed" in about
    assert "10.0.0.3" not in about


def test_local_units_come_before_services_and_the_filter_last() -> None:
    filter_ = ir.ExtAuth(backends=(ir.AuthBackend("service/ns/web/80"),))
    found = ask(guard(ASKED, INSIDE, ext_auth=filter_))
    assert [one.name for one in found.policies] == [INSIDE.name, ASKED.name, "ExternalAuth"]
    assert found.answers[0].asks == (AUTH, "service/ns/web/80")


@pytest.mark.parametrize(
    ("fail_open", "wanted"), [(False, ("auth_service", 418)), (True, ("forwarded", 0))]
)
def test_a_service_without_endpoints(fail_open: bool, wanted: tuple[str, int]) -> None:
    asked = ir.ExtAuth(
        backends=(ir.AuthBackend("service/ns/gone/80"),), status_on_error=418, fail_open=fail_open
    )
    unit = ir.PolicyUnit(name="security/ns/gone#extAuth", ext_auth=asked)
    assert told(ask(guard(unit))) == [wanted]


def test_a_body_that_is_too_large_for_the_service() -> None:
    asked = ir.ExtAuth(backends=(ir.AuthBackend(AUTH),), body=5)
    served = guard(ir.PolicyUnit(name="security/ns/a#extAuth", ext_auth=asked))
    assert told(ask(served, "content-length: 6", method="POST")) == [("body_size", 413)]
    assert told(ask(served, "content-length: 5", method="POST")) == [("forwarded", 0)]


def test_what_a_service_sets_is_not_taken_from_a_client() -> None:
    """Neither by the backend, nor by rules and limits; however a server may spell it."""
    sets = ir.ExtAuth(backends=(ir.AuthBackend(AUTH),), headers=("x-user",), to_backend=("x-user",))
    unit = ir.PolicyUnit(name="security/ns/a#extAuth", ext_auth=sets)
    found = ask(guard(INSIDE, unit), "x-user: guest", "X.User: guest", "x-other: 1")
    assert [one.verdict for one in found.policies] == ["passes", "asks"]
    assert "with x-user" in found.policies[1].about
    (backend,) = found.backends
    assert "x-other: 1" in backend.head
    assert not [line for line in backend.head if "guest" in line]


def test_settings_in_force_and_whose_they_are() -> None:
    found = ask(serve(SIZE, traffic=(SIZE.name,)), "content-length: 11", method="POST")
    assert told(found) == [("body_size", 413)]
    assert "requestBuffer.limit of traffic/ns/size" in found.answers[0].fix
    assert found.timeouts is not None and found.timeouts.request == 2000
    assert {one.name: one.unit for one in found.traffic} == {
        "body_size": SIZE.name,
        "request_timeout": SIZE.name,
    }
    lines = render_explanation(found)
    assert any(line.startswith("traffic") and "request body 10 bytes" in line for line in lines)
    assert any("x-edge-expected-rq-timeout-ms: 2000" in line for line in lines)
    broken = ir.PolicyUnit(name="traffic/ns/size", status=500, reason="bad")
    assert told(ask(serve(broken, traffic=(broken.name,)))) == [("policy_invalid", 500)]


def test_what_lost_is_told() -> None:
    found = ask(guard(INSIDE, lost=(("security/ns/old#authorization", "SecurityPolicy ns/who"),)))
    assert found.policies[-1].verdict == "lost"
    assert found.policies[-1].why == "overridden by SecurityPolicy ns/who"
    assert "security/ns/old#authorization has no effect: overridden by" in "\n".join(
        render_explanation(found)
    )


def test_an_answer_of_its_own_comes_after_who_may_enter() -> None:
    direct = ir.DirectResponse(status=418, body=b"no")
    served = guard(INSIDE, direct=direct, backends=())
    assert told(ask(served)) == [("direct", 418)]
    assert told(ask(served, source="192.0.2.1")) == [("authorization", 403)]


def test_a_preflight_is_answered_before() -> None:
    served = guard(INSIDE, cors=ir.Cors(allow_origins=("*",)))
    preflight = ("origin: http://o", "access-control-request-method: PUT")
    found = ask(served, *preflight, method="OPTIONS", source="192.0.2.1")
    assert told(found) == [("cors", 204)]


def test_a_call_of_grpc_is_told_so() -> None:
    served = guard(INSIDE)
    (answer,) = explain(
        served, read_request_spec("GET", "grpc://a.example/s/m", (), "192.0.2.1")
    ).answers
    assert answer.grpc_status == "PERMISSION_DENIED"


def changes(old: Served, new: Served) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in compare_requests(Pair(old, new))]


def test_a_policy_that_comes_is_seen_in_requests() -> None:
    found = changes(serve(), guard(INSIDE))
    assert any(kind == "refused" and "403" in text for kind, text in found)
    found = changes(serve(), guard(ASKED))
    assert any(f"if {AUTH} lets it pass instead of" in text for _, text in found), found
    found = changes(guard(INSIDE), serve())
    assert any(kind == "opened" and "instead of 403" in text for kind, text in found)


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        (ir.AccessRule(allow=True, sources=("10.0.0.0/9",)), "--source 10.255.255.255"),
        (ir.AccessRule(allow=True, sources=("192.0.2.0/24",)), "--source 192.0.2.0"),
        (ir.AccessRule(allow=True, headers=(("x-plan", ("gold",)),)), "-H 'x-plan: gold'"),
        (ir.AccessRule(allow=True, methods=("DELETE",)), "DELETE http"),
        (ir.AccessRule(allow=True, paths=(("prefix", "/public"),)), "/public"),
        (ir.AccessRule(allow=True, paths=(("regex", "/v[0-9]"),)), "/v0"),
    ],
)
def test_what_a_policy_says_otherwise_is_seen_in_requests(rule: ir.AccessRule, wanted: str) -> None:
    """Whose address, headers, method or path are on either side of what changed."""

    old = msgspec.structs.replace(
        INSIDE,
        authorization=ir.Authorization((ir.AccessRule(allow=True, sources=("10.0.0.0/8",)),)),
    )
    new = msgspec.structs.replace(INSIDE, authorization=ir.Authorization((rule,)))
    found = tuple(compare_requests(Pair(guard(old), guard(new))))
    lines = render_difference(Difference(changes=found, breaks=False, examples=0))
    assert any(wanted in line for line in lines), lines


BROKEN = ir.PolicyUnit(name="security/ns/inside#authorization", status=500, reason="bad")
REDIRECT = ir.Redirect(status=301, scheme="https")
GONE = (CLUSTERS[0], ir.Cluster(name=AUTH))


@pytest.mark.parametrize(
    ("shut", "open_"),
    [
        (guard(INSIDE), serve()),
        (guard(BROKEN), serve()),
        (guard(BROKEN), guard(ASKED)),
        (guard(INSIDE), guard(ASKED)),
        (guard(INSIDE, redirect=REDIRECT), serve(redirect=REDIRECT)),
        (guard(INSIDE, direct=ir.DirectResponse()), serve(direct=ir.DirectResponse())),
    ],
)
def test_an_opening_comes_before_all_else(shut: Served, open_: Served) -> None:
    """Somebody gets in who did not: whatever else changes, and whatever answers behind the door."""
    lost = Change(kind="lost", breaks=True, text="")
    found = sorted([lost, *compare_requests(Pair(shut, open_))], key=rank_change)
    assert (found[0].kind, found[0].opens, found[0].breaks) == ("opened", True, False)
    assert all(one.kind != "gained" for one in found)
    back = sorted([lost, *compare_requests(Pair(open_, shut))], key=rank_change)
    back = [one for one in back if one.kind != "opened"]  # whom no service is asked about any more
    assert (back[0].kind, back[0].opens) == ("refused", False)
    asked = read_request_spec("GET", "http://a.example/", (), "192.0.2.1")
    assert back[0].breaks == find_outcome(open_, asked).backends


def test_a_service_that_is_asked_no_more_is_an_opening() -> None:
    assert [kind for kind, _ in changes(guard(ASKED), serve())] == ["opened"]
    assert [kind for kind, _ in changes(serve(), guard(ASKED))] == ["answer"]
    (text,) = [text for _, text in changes(guard(ASKED), serve())]
    assert "authorization service no longer called" in text
    gone = serve(ASKED, clusters=GONE, policies=(ASKED.name,))  # 403, for want of endpoints
    assert [kind for kind, _ in changes(gone, serve())] == ["opened"]
    assert [kind for kind, _ in changes(gone, guard(ASKED))] == ["gained"]


def test_what_is_repaired_behind_a_door_is_no_opening() -> None:
    """A mistake of the rule, no endpoints, no rule: nobody was kept out by a policy."""
    empty = (ir.Cluster(name="service/ns/web/80"), CLUSTERS[1])
    for old in (serve(status=500), serve(clusters=empty), serve(backends=())):
        found = {kind for kind, _ in changes(old, serve())}
        assert "gained" in found and not found & {"opened", "refused"}, found


def test_policies_that_say_the_same_are_no_change() -> None:
    renamed = msgspec.structs.replace(INSIDE, name="security/ns/other#authorization", reason="x")
    assert changes(guard(INSIDE), guard(renamed)) == []
    assert changes(guard(INSIDE, ASKED), guard(INSIDE, ASKED)) == []


def test_other_settings_are_a_change_of_the_rule() -> None:
    other = ir.PolicyUnit(
        name="traffic/ns/size", traffic=ir.Traffic(body_size=11, request_timeout=2000)
    )
    found = changes(serve(SIZE, traffic=(SIZE.name,)), serve(other, traffic=(SIZE.name,)))
    assert found == [("rule", "any host: ns/web rule 0 has other settings of policies")]


def test_a_service_that_loses_its_endpoints_breaks_requests() -> None:
    gone = (CLUSTERS[0], ir.Cluster(name=AUTH))
    found = changes(guard(ASKED), serve(ASKED, clusters=gone, policies=(ASKED.name,)))
    assert any(kind == "lost" and "403" in text for kind, text in found)


def test_no_policy_passes_the_bound_of_the_listener() -> None:
    served = serve(SIZE, traffic=(SIZE.name,), http=ir.HttpSettings(body_size=5))
    found = ask(served, "content-length: 6", method="POST")
    assert told(found) == [("body_size", 413)]
    assert "6 bytes of body, at most 5" in found.answers[0].why
    assert found.answers[0].fix == "send a smaller body, or raise bodySize of EdgeProxy spec.http"
    assert [(one.value, one.cut_by) for one in found.traffic if one.name == "body_size"] == [
        (5, "EdgeProxy spec.http.bodySize")
    ]
