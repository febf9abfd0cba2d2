"""explain tcp://, tls:// and udp://: where connections and datagrams go that are passed on unread."""

from __future__ import annotations

import pytest

from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.explain import (
    Explanation,
    RequestSpecError,
    diff_translations,
    read_request_spec,
    serve_translation,
)
from edgefast.explain.explain import explain
from edgefast.explain.render import render_explanation
from edgefast.translate import Settings, Translation, translate
from tests.translate.gateway_text import gateway

pytestmark = pytest.mark.pure

WORLD = (
    gateway(
        'name: tls, port: 443, protocol: TLS, hostname: "*.test", tls: {mode: Passthrough}',
        "name: tcp, port: 90, protocol: TCP",
        "name: udp, port: 90, protocol: UDP",
        "name: bare, port: 91, protocol: TCP",
        "name: web, port: 80, protocol: HTTP",
    )
    + """\
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: names}
spec:
  parentRefs: [{name: gw, sectionName: tls}]
  hostnames: [a.test, "*.b.test"]
  rules:
  - name: all
    backendRefs:
    - {group: gateway.edge.io, kind: Backend, name: db, weight: 3}
    - {group: gateway.edge.io, kind: Backend, name: gone}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: db}
spec:
  parentRefs: [{name: gw, port: 90}]
  rules: [{backendRefs: [{group: gateway.edge.io, kind: Backend, name: db}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {name: dns}
spec:
  parentRefs: [{name: gw, port: 90}]
  rules: [{backendRefs: [{name: dns, port: 53, weight: 0}]}]
---
apiVersion: v1
kind: Service
metadata: {name: dns}
spec: {ports: [{port: 53, protocol: UDP}]}
---
apiVersion: gateway.edge.io/v1alpha1
kind: Backend
metadata: {name: db}
spec: {endpoints: [{ip: {address: 10.0.0.9, port: 5432}}], proxyProtocol: v2}
"""
)


def ask(url: str) -> Explanation:
    decoded = decode_documents(WORLD.encode(), "a.yaml")
    translation = translate(Snapshot.of(decoded.objects), Settings())
    return explain(serve_translation(translation), read_request_spec("GET", url))


def text(url: str) -> str:
    return "\n".join(render_explanation(ask(url)))


def test_a_server_name_goes_by_weight_and_what_is_invalid_is_refused() -> None:
    found = ask("tls://A.test")
    assert [(one.kind, one.check, one.share) for one in found.answers] == [
        ("backend", "forwarded", 75.0),
        ("closed", "backend_invalid", 25.0),
    ]
    assert found.rule is not None
    assert (found.rule.route, found.rule.name) == ("tlsroute/default/names", "all")
    assert found.rule.place.source == "a.yaml:26"
    assert [one.place.path for one in found.backends] == [
        "spec.rules[0].backendRefs[0]",
        "spec.rules[0].backendRefs[1]",
    ]
    assert "PROXY protocol header (v2)" in " ".join(found.notes)
    assert text("tls://A.test").startswith("tls://A.test\n\n75 %: goes to backend/default/db\n")


@pytest.mark.parametrize(
    ("url", "check", "said"),
    [
        ("tls://c.test", "rule", "no route of listener default/gw/tls has the server name c.test"),
        ("tls://a.example", "listener", "no listener of port 443 has the server name a.example"),
        ("tls://a.test:444", "port", "no listener on port 444"),
        ("tls://a.test:80", "protocol", "port 80 serves HTTP, not TLS"),
        ("tcp://h:80", "protocol", "port 80 serves HTTP, not TCP"),
        ("tcp://h:91", "rule", "no route has listener default/gw/bare: the connection is reset"),
        ("udp://h:91", "port", "no listener on UDP port 91"),
        ("udp://h:90", "rule_invalid", "weights of all backendRefs are 0: datagrams are dropped"),
        ("http://h:90/", "protocol", "listener default/gw/tcp forwards all connections"),
        ("https://a.test/", "protocol", "listener default/gw/tls forwards all connections"),
    ],
)
def test_what_is_refused_says_why(url: str, check: str, said: str) -> None:
    (answer,) = ask(url).answers
    assert (answer.kind, answer.check) == ("closed", check)
    assert said in answer.why


def test_a_connection_goes_to_its_one_route() -> None:
    (answer,) = ask("tcp://10.1.1.1:90").answers
    assert (answer.kind, answer.backend) == ("backend", "backend/default/db")
    assert "connect 2 s, idle 1 h" in text("tcp://h:90")


@pytest.mark.parametrize(
    "url", ["tcp://h", "udp://h", "tls://a/path", "tcp://h:0", "tcp://h:70000"]
)
def test_what_is_no_place_is_told(url: str) -> None:
    with pytest.raises(RequestSpecError):
        read_request_spec("GET", url)


def test_a_difference_names_what_is_lost_and_what_goes_elsewhere() -> None:
    old, new = (
        translate(Snapshot.of(decode_documents(text.encode(), "a.yaml").objects), Settings())
        for text in (
            WORLD,
            WORLD.replace("hostnames: [a.test,", "hostnames: [c.test,").replace(
                "weight: 3", "weight: 1"
            ),
        )
    )
    assert not diff_translations(old, old).changes
    found = {
        (one.kind, one.breaks, one.text, one.example.url if one.example else "")
        for one in diff_translations(old, new).changes
    }
    assert found == {
        ("lost", True, "TLS port 443 for a.test: goes to no backend any more", "tls://a.test"),
        ("gained", False, "TLS port 443 for c.test: goes to a backend", "tls://c.test"),
        (
            "answer",
            False,
            "TLS port 443 for *.b.test: goes to other backends, or with other weights",
            "tls://any.b.test",
        ),
    }


WHO = """\
---
apiVersion: gateway.edge.io/v1alpha1
kind: SecurityPolicy
metadata: {name: who}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw, sectionName: tcp}]
  authorization: {rules: [{action: Allow, principal: {headers: [{name: x-role, values: [admin]}]}}]}
"""


def test_a_policy_that_goes_opens_what_it_kept_out() -> None:
    guarded, plain = (
        translate(Snapshot.of(decode_documents(text.encode(), "a.yaml").objects), Settings())
        for text in (WORLD + WHO, WORLD)
    )
    found, back = diff_translations(guarded, plain), diff_translations(plain, guarded)
    first = found.changes[0]
    assert (first.kind, first.opens, first.breaks) == ("opened", True, False)
    assert (
        first.text
        == "TCP port 90: access granted: it goes to a backend, and a policy denied it before"
    )
    assert found.opens and not found.breaks and back.breaks and not back.opens
    assert back.changes[0].kind == "refused"
    (answer,) = explain(serve_translation(guarded), read_request_spec("GET", "tcp://h:90")).answers
    assert answer.check == "policy_invalid" and "SecurityPolicy default/who" in answer.why


POLICY = """\
---
apiVersion: gateway.edge.io/v1alpha1
kind: SecurityPolicy
metadata: {name: inside}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: TCPRoute, name: db}]
  authorization:
    rules:
    - {name: office, action: Allow, principal: {clientCIDRs: [RANGE]}}
"""


def guard(source: str, cidr: str = "10.0.0.0/8") -> Explanation:
    decoded = decode_documents((WORLD + POLICY.replace("RANGE", cidr)).encode(), "a.yaml")
    translation = translate(Snapshot.of(decoded.objects), Settings())
    request = read_request_spec("GET", "tcp://db.test:90", source=source)
    return explain(serve_translation(translation), request)


def test_an_authorization_decides_by_the_client() -> None:
    passes, refused = guard("10.1.2.3"), guard("192.0.2.1")
    assert [one.kind for one in passes.answers] == ["backend"]
    assert [(one.verdict, one.why) for one in passes.policies] == [
        ("passes", "rules[0] (office) allows")
    ]
    (answer,) = refused.answers
    assert (answer.kind, answer.check) == ("closed", "authorization")
    assert answer.why == (
        "security/default/inside#authorization: no rule matches, defaultAction is Deny: "
        "the connection is reset"
    )
    assert answer.fix == "rules[0] (office): client 192.0.2.1 is not in 10.0.0.0/8"
    text = "\n".join(render_explanation(refused))
    assert "security/default/inside#authorization" in text


def test_diff_names_a_client_whose_access_changes() -> None:
    def made(cidr: str) -> Translation:
        decoded = decode_documents((WORLD + POLICY.replace("RANGE", cidr)).encode(), "a.yaml")
        return translate(Snapshot.of(decoded.objects), Settings())

    found = diff_translations(made("10.0.0.0/8"), made("10.0.0.0/7"))
    (change,) = found.changes
    assert change.opens and change.kind == "opened"
    assert change.text.startswith("TCP port 90 from 11.0.0.0: access granted")
    assert (change.example.source, change.before.answer) == ("11.0.0.0", "refused")
    (change,) = diff_translations(made("10.0.0.0/7"), made("10.0.0.0/8")).changes
    assert change.breaks and change.kind == "refused"
