"""Adopted policies of Envoy Gateway on routes and Gateways: several parents, conflicts, listeners, changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefast.api.snapshot import Snapshot
from edgefast.providers.files import FileSource
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings
from edgefast.translate.translation import Translation

pytestmark = pytest.mark.pure

ADOPT = Settings(adopt=True)
GROUP = "gateway.networking.k8s.io"


def make(kind: str, name: str, spec: dict[str, Any], api: str = f"{GROUP}/v1") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def foreign(kind: str, name: str, target: dict[str, Any], **fields: Any) -> dict[str, Any]:
    ref = {"group": GROUP, **target}
    return make(kind, name, {"targetRefs": [ref], **fields}, "gateway.envoyproxy.io/v1alpha1")


def gateway(name: str, *ports: int) -> dict[str, Any]:
    listeners = [{"name": f"p{port}", "port": port, "protocol": "HTTP"} for port in ports]
    allowed = {"namespaces": {"from": "Same"}}
    spec = {"gatewayClassName": "eg", "listeners": listeners, "allowedListeners": allowed}
    return make("Gateway", name, spec)


def route(*parents: str) -> dict[str, Any]:
    refs = [{"name": one} for one in parents]
    backend = {"name": "web", "port": 80}
    return make("HTTPRoute", "web", {"parentRefs": refs, "rules": [{"backendRefs": [backend]}]})


def limits(number: int) -> dict[str, Any]:
    limit = {"requests": number, "unit": "Hour"}
    return {"rateLimit": {"type": "Local", "local": {"rules": [{"limit": limit}]}}}


WEB = make("Service", "web", {"ports": [{"port": 80}]}, "v1")


ROUTE = {"kind": "HTTPRoute", "name": "web"}
DENIED = {"action": "Deny", "principal": {"clientCIDRs": ["10.0.0.0/8"]}}


def read(path: Path, *objects: dict[str, Any]) -> tuple[Snapshot, list[str]]:
    (path / "a.yaml").write_text(yaml.safe_dump_all([WEB, *objects]))
    reading = FileSource([path], adopt=True).read()
    return reading.snapshot, [one.text() for one in reading.problems]


def serve(path: Path, *objects: dict[str, Any]) -> Translation:
    return translate(read(path, *objects)[0], ADOPT)


def numbers(made: Translation) -> set[int]:
    """Return the limits of all rules."""
    rules = (
        rule for fleet in made.ir.fleets for host in fleet.virtual_hosts for rule in host.rules
    )
    return {limit.requests for rule in rules for limit in rule.rate_limits}


def texts(made: Translation) -> str:
    return "\n".join(one.text() for one in made.problems)


def statuses(made: Translation) -> dict[str, set[int]]:
    """Return the statuses of policies that the rules of each listener have."""
    found: dict[str, set[int]] = {}
    for fleet in made.ir.fleets:
        status = {one.name: one.status for one in fleet.policies}
        for host in fleet.virtual_hosts:
            there = found.setdefault(host.listener.rpartition("/")[2], set())
            there.update(status[unit] for rule in host.rules for unit in rule.units())
    return found


def test_a_route_of_two_gateways_has_the_limits_of_both(tmp_path: Path) -> None:
    one, two = ({"kind": "Gateway", "name": name} for name in ("one", "two"))
    made = serve(
        tmp_path,
        gateway("one", 8001),
        gateway("two", 8002),
        route("one", "two"),
        foreign("BackendTrafficPolicy", "a", one, **limits(5)),
        foreign("BackendTrafficPolicy", "b", two, **limits(7)),
    )
    assert numbers(made) == {5, 7}


def test_a_limit_of_one_listener_is_not_lost(tmp_path: Path) -> None:
    target = {"kind": "Gateway", "name": "one", "sectionName": "p8001"}
    objects = gateway("one", 8001, 8002), route("one")
    made = serve(tmp_path, *objects, foreign("BackendTrafficPolicy", "a", target, **limits(5)))
    assert numbers(made) == {5}


def test_a_policy_of_a_route_replaces_the_limits_of_its_gateway(tmp_path: Path) -> None:
    above, below = {"kind": "Gateway", "name": "one"}, {"kind": "HTTPRoute", "name": "web"}
    objects = (
        gateway("one", 8001),
        route("one"),
        foreign("BackendTrafficPolicy", "a", above, **limits(5)),
    )
    quiet = foreign("BackendTrafficPolicy", "b", below, circuitBreaker={"maxConnections": 9})
    assert numbers(serve(tmp_path, *objects)) == {5}
    assert numbers(serve(tmp_path, *objects, quiet)) == set()
    quiet["spec"]["mergeType"] = "StrategicMerge"
    assert numbers(serve(tmp_path, *objects, quiet)) == {5}


def test_a_merging_policy_keeps_the_other_kind_of_limit(tmp_path: Path) -> None:
    whole = {"kind": "Gateway", "name": "one"}
    shared = {"global": {"rules": [{"limit": {"requests": 5, "unit": "Hour"}}]}}
    above = foreign("BackendTrafficPolicy", "a", whole, rateLimit=shared)
    below = foreign("BackendTrafficPolicy", "b", ROUTE, mergeType="StrategicMerge", **limits(7))
    objects = gateway("one", 8001), route("one"), above, below
    assert numbers(serve(tmp_path, *objects)) == {5, 7}
    below["spec"]["rateLimit"]["global"] = {"rules": [{"limit": {"requests": 9, "unit": "Hour"}}]}
    assert numbers(serve(tmp_path, *objects)) == {7, 9}


def test_the_newer_policy_of_a_route_replaces_nothing(tmp_path: Path) -> None:
    above = foreign("BackendTrafficPolicy", "a", {"kind": "Gateway", "name": "one"}, **limits(5))
    quiet = {"circuitBreaker": {"maxConnections": 9}}
    first = foreign("BackendTrafficPolicy", "b", ROUTE, mergeType="StrategicMerge", **quiet)
    second = foreign("BackendTrafficPolicy", "c", ROUTE, **limits(7))
    made = serve(tmp_path, gateway("one", 8001), route("one"), above, first, second)
    assert numbers(made) == {5}
    assert "BackendTrafficPolicy default/c spec.targetRefs: Conflicted not applied" in texts(made)


def test_cors_of_the_newer_policy_is_named(tmp_path: Path) -> None:
    target = {"kind": "Gateway", "name": "one"}
    cors = [{"allowOrigins": [f"https://{one}.example"]} for one in "ab"]
    made = serve(
        tmp_path,
        gateway("one", 8001),
        route("one"),
        foreign("SecurityPolicy", "a", target, basicAuth={"users": {"name": "users"}}),
        foreign("SecurityPolicy", "b", target, cors=cors[1]),
    )
    rules = [rule for host in made.ir.fleets[0].virtual_hosts for rule in host.rules]
    assert all(rule.cors is None for rule in rules)
    assert "SecurityPolicy default/b spec.targetRefs: Conflicted not applied" in texts(made)


@pytest.mark.parametrize(
    ("above", "below", "closed"),
    [
        ({"rules": [DENIED]}, {}, True),
        ({"rules": [DENIED]}, {"rules": [DENIED]}, False),
        ({}, {"rules": [DENIED]}, False),
    ],
)
def test_a_policy_that_merges_inside_a_field_closes_its_route(
    tmp_path: Path, above: dict[str, Any], below: dict[str, Any], closed: bool
) -> None:
    whole = {"kind": "Gateway", "name": "one"}
    rules = [{"defaultAction": "Allow", **one} for one in (above, below)]
    made = serve(
        tmp_path,
        gateway("one", 8001),
        route("one"),
        foreign("SecurityPolicy", "a", whole, authorization=rules[0]),
        foreign("SecurityPolicy", "b", ROUTE, mergeType="StrategicMerge", authorization=rules[1]),
    )
    assert (500 in statuses(made)["p8001"]) is closed
    assert ("not merged with authorization of SecurityPolicy default/a" in texts(made)) is closed


def test_a_merging_policy_closes_its_tcp_route(tmp_path: Path) -> None:
    one = gateway("one", 8001)
    one["spec"]["listeners"][0]["protocol"] = "TCP"
    spec = route("one")["spec"]
    rules = [{"defaultAction": "Allow", "rules": [DENIED]}, {"defaultAction": "Allow"}]
    target = {"kind": "TCPRoute", "name": "db"}
    made = serve(
        tmp_path,
        one,
        make("TCPRoute", "db", spec),
        foreign("SecurityPolicy", "a", {"kind": "Gateway", "name": "one"}, authorization=rules[0]),
        foreign("SecurityPolicy", "b", target, mergeType="JSONMerge", authorization=rules[1]),
    )
    assert closings(made) == [("TCPRoute", "", "authorization")]
    assert "TCPRoute default/db refuses connections" in texts(made)


def test_a_tcp_listener_may_have_other_settings_of_http(tmp_path: Path) -> None:
    one = gateway("one", 8001, 8002)
    one["spec"]["listeners"][0]["protocol"] = "TCP"
    paths = {"path": {"escapedSlashesAction": "KeepUnchanged"}}
    whole = foreign("ClientTrafficPolicy", "a", {"kind": "Gateway", "name": "one"}, **paths)
    part = foreign("ClientTrafficPolicy", "b", PART, timeout={"tcp": {"idleTimeout": "5s"}})
    assert closings(serve(tmp_path, one, whole, part)) == []


def test_cors_that_listeners_do_not_share_is_named(tmp_path: Path) -> None:
    target = {"kind": "Gateway", "name": "one", "sectionName": "p8001"}
    cors = foreign("SecurityPolicy", "a", target, cors={"allowOrigins": ["*"]})
    made = serve(tmp_path, gateway("one", 8001, 8002), route("one"), cors)
    rules = [rule for host in made.ir.fleets[0].virtual_hosts for rule in host.rules]
    assert all(rule.cors is None for rule in rules)
    assert "SecurityPolicy default/a spec.cors: NotSupported not applied to HTTPRoute" in texts(
        made
    )


def test_the_older_policy_of_a_gateway_counts(tmp_path: Path) -> None:
    target = {"kind": "Gateway", "name": "one"}
    timeouts = [{"http": {"idleTimeout": text}} for text in ("5s", "7s")]
    made = serve(
        tmp_path,
        gateway("one", 8001),
        route("one"),
        foreign("ClientTrafficPolicy", "a", target, timeout=timeouts[0]),
        foreign("ClientTrafficPolicy", "b", target, timeout=timeouts[1]),
    )
    assert made.ir.fleets[0].listeners[0].http.idle_timeout == 5_000
    assert "ClientTrafficPolicy default/b" in texts(made) and "is older" in texts(made)


def test_a_listener_with_its_own_client_addresses_is_closed(tmp_path: Path) -> None:
    target = {"kind": "Gateway", "name": "one", "sectionName": "p8001"}
    detection = {"xForwardedFor": {"numTrustedHops": 1}}
    policy = foreign("ClientTrafficPolicy", "a", target, clientIPDetection=detection)
    made = serve(tmp_path, gateway("one", 8001, 8002), route("one"), policy)
    found = statuses(made)
    assert {name: 500 in one for name, one in found.items()} == {"p8001": True, "p8002": False}
    alone = serve(tmp_path, gateway("one", 8001), route("one"), policy)
    assert alone.ir.fleets[0].listeners[0].http.client_address.trusted_hops == 1


CLIENTS = {"tls": {"clientValidation": {"caCertificateRefs": [{"name": "authority"}]}}}
LENIENT = {"tls": {"clientValidation": {**CLIENTS["tls"]["clientValidation"], "optional": True}}}


def secure(name: str, **ports: int) -> dict[str, Any]:
    made = gateway(name)
    certificate = {"certificateRefs": [{"name": "server"}]}
    made["spec"]["listeners"] = [
        {"name": one, "port": port, "protocol": "HTTPS", "tls": certificate}
        for one, port in ports.items()
    ]
    return made


def adopted_gateway(made: Translation) -> Any:
    return made.memo.adoption.snapshot.gateways["default", "one"].spec


def test_client_certificates_of_a_gateway_are_for_all_ports(tmp_path: Path) -> None:
    whole, part = (
        {"kind": "Gateway", "name": "one", **more} for more in ({}, {"sectionName": "b"})
    )
    strict = foreign("ClientTrafficPolicy", "a", whole, **CLIENTS)
    lenient = foreign("ClientTrafficPolicy", "b", part, **LENIENT)
    spec = adopted_gateway(serve(tmp_path, secure("one", a=8443, b=9443), strict, lenient))
    assert spec.tls.frontend.default.validation.ca_certificate_refs[0].name == "authority"
    (port,) = spec.tls.frontend.per_port
    assert (port.port, port.tls.validation) == (9443, None)
    assert spec.listeners[1].tls.options == {
        "gateway.edge.io/client-ca": "default/authority",
        "gateway.edge.io/client-certificate": "Optional",
    }


def test_listeners_of_one_port_with_other_client_certificates_are_closed(tmp_path: Path) -> None:
    target = {"kind": "Gateway", "name": "one", "sectionName": "a"}
    two = secure("one", a=8443, b=8443)
    for listener in two["spec"]["listeners"]:
        listener["hostname"] = f"{listener['name']}.example"
    made = serve(tmp_path, two, foreign("ClientTrafficPolicy", "a", target, **CLIENTS))
    (policy,) = made.memo.adoption.closing
    assert policy.access_policies == ("tls.clientValidation",)
    assert [(one.name, one.section) for one, _ in policy.targets] == [("one", "a")]


def test_a_tls_listener_without_http_is_refused(tmp_path: Path) -> None:
    target = {"kind": "Gateway", "name": "one"}
    one = secure("one", a=8443)
    one["spec"]["listeners"][0]["protocol"] = "TLS"
    one["spec"]["listeners"][0]["tls"]["mode"] = "Terminate"
    made = serve(tmp_path, one, foreign("ClientTrafficPolicy", "a", target, **CLIENTS))
    assert "spec.listeners[0].tls.options[gateway.edge.io/client-ca]" in texts(made)
    assert not made.ir.fleets[0].listeners


def test_a_listener_set_has_no_option_of_its_gateway(tmp_path: Path) -> None:
    target = {"kind": "Gateway", "name": "one"}
    listener = {"name": "a", "port": 9443, "protocol": "HTTPS"}
    listeners = make("ListenerSet", "more", {"parentRef": {"name": "one"}, "listeners": [listener]})
    objects = secure("one", a=8443), listeners
    made = serve(tmp_path, *objects, foreign("ClientTrafficPolicy", "a", target, **LENIENT))
    (policy,) = made.memo.adoption.closing
    assert [(one.kind, one.name) for one, _ in policy.targets] == [("ListenerSet", "more")]


def listener_set(*listeners: dict[str, Any]) -> dict[str, Any]:
    spec = {"parentRef": {"name": "one"}, "listeners": list(listeners)}
    return make("ListenerSet", "set", spec)


def closings(made: Translation) -> list[tuple[str, str, str]]:
    """Return kind, section and fields of all closed listeners."""
    return [
        (target.kind, target.section, policy.access_policies[0])
        for policy in made.memo.adoption.closing
        for target, _ in policy.targets
    ]


def test_a_listener_set_has_the_client_certificates_of_its_gateway(tmp_path: Path) -> None:
    """Listener x has those of the Gateway's policy on the port of a listener without, and on another port."""
    whole = {"kind": "Gateway", "name": "one"}
    tls = {"protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "server"}]}}
    quiet = foreign("ClientTrafficPolicy", "d", {**whole, "sectionName": "a"}, **IDLE)
    strict = foreign("ClientTrafficPolicy", "c", whole, **CLIENTS)
    for port in (8443, 9443):
        more = listener_set({"name": "x", "port": port, "hostname": "x.example", **tls})
        made = serve(tmp_path, secure("one", a=8443), more, strict, quiet)
        frontend = adopted_gateway(made).tls.frontend
        assert frontend.default.validation.ca_certificate_refs[0].name == "authority"
        assert [one.port for one in frontend.per_port] == ([] if port == 8443 else [8443])
        assert closings(made) == []


def test_a_listener_set_has_the_lowest_version_of_its_gateway(tmp_path: Path) -> None:
    tls = {"protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "server"}]}}
    more = listener_set({"name": "x", "port": 9443, **tls})
    target = {"kind": "Gateway", "name": "one"}
    policy = foreign("ClientTrafficPolicy", "c", target, tls={"minVersion": "1.3"})
    made = serve(tmp_path, secure("one", a=8443), more, policy)
    (listener,) = made.memo.adoption.snapshot.listener_sets["default", "set"].spec.listeners
    assert listener.tls is not None
    assert listener.tls.options == {"gateway.edge.io/tls-min-version": "1.3"}


HOPS = {"clientIPDetection": {"xForwardedFor": {"numTrustedHops": 1}}}
IDLE = {"timeout": {"http": {"idleTimeout": "5s"}}}
PART = {"kind": "Gateway", "name": "one", "sectionName": "p8001"}
ADDRESS = "clientIPDetection, proxyProtocol"


@pytest.mark.parametrize(
    ("policies", "closed"),
    [
        ([(PART, HOPS)], [("Gateway", "p8001", ADDRESS)]),
        ([({"kind": "Gateway", "name": "one"}, HOPS)], []),
        (
            [
                ({"kind": "Gateway", "name": "one"}, HOPS),
                ({"kind": "ListenerSet", "name": "set"}, IDLE),
            ],
            [("ListenerSet", "x", ADDRESS)],
        ),
        (
            [
                ({"kind": "Gateway", "name": "one"}, HOPS),
                ({"kind": "ListenerSet", "name": "set"}, HOPS),
            ],
            [],
        ),
        (
            [({"kind": "ListenerSet", "name": "set", "sectionName": "x"}, HOPS)],
            [("ListenerSet", "x", ADDRESS)],
        ),
    ],
)
def test_listener_sets_share_client_addresses_or_are_closed(
    tmp_path: Path,
    policies: list[tuple[dict[str, Any], dict[str, Any]]],
    closed: list[tuple[str, str, str]],
) -> None:
    made = serve(
        tmp_path,
        gateway("one", 8001),
        listener_set({"name": "x", "port": 8002, "protocol": "HTTP"}),
        *(
            foreign("ClientTrafficPolicy", f"c{at}", target, **fields)
            for at, (target, fields) in enumerate(policies)
        ),
    )
    assert closings(made) == closed
    told = [one for one in made.problems if "would be those of the Gateway" in one.message]
    assert len(told) == len(closed) and all(one.severity == "error" and one.hint for one in told)


def test_a_listener_set_that_is_not_allowed_closes_nothing(tmp_path: Path) -> None:
    more = listener_set({"name": "x", "port": 8002, "protocol": "HTTP"})
    more["metadata"]["namespace"] = "other"
    more["spec"]["parentRef"]["namespace"] = "default"
    policy = foreign("ClientTrafficPolicy", "c", PART, **HOPS)
    assert closings(serve(tmp_path, gateway("one", 8001), more, policy)) == []


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        (
            "headers.xForwardedClientCert",
            {"headers": {"xForwardedClientCert": {"mode": "AlwaysForwardOnly"}}},
        ),
        ("headers.withUnderscoresAction", {"headers": {"withUnderscoresAction": "Allow"}}),
        ("path.escapedSlashesAction", {"path": {"escapedSlashesAction": "KeepUnchanged"}}),
    ],
)
def test_a_listener_with_other_requests_is_closed(
    tmp_path: Path, field: str, fields: dict[str, Any]
) -> None:
    whole = foreign("ClientTrafficPolicy", "a", {"kind": "Gateway", "name": "one"}, **fields)
    part = foreign("ClientTrafficPolicy", "b", PART, **IDLE)
    made = serve(tmp_path, gateway("one", 8001, 8002), route("one"), whole, part)
    assert closings(made) == [("Gateway", "p8001", field)]
    assert {name: 500 in one for name, one in statuses(made).items()} == {
        "p8001": True,
        "p8002": False,
    }


@pytest.mark.parametrize("fault", [{"concurrency": "x"}, [1]])
def test_a_gateway_whose_proxy_has_an_error_is_not_served(tmp_path: Path, fault: Any) -> None:
    one = gateway("one", 8001)
    ref = {"group": "gateway.envoyproxy.io", "kind": "EnvoyProxy", "name": "p"}
    one["spec"]["infrastructure"] = {"parametersRef": ref}
    proxy = make("EnvoyProxy", "p", fault, "gateway.envoyproxy.io/v1alpha1")
    objects = [one, route("one"), proxy]
    source = FileSource([tmp_path], adopt=True)

    def write() -> Snapshot:
        (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([WEB, *objects]))
        return source.read().snapshot

    made = translate(write(), ADOPT)
    assert not statuses(made) and "parametersRef" in texts(made)
    objects[2] = {**proxy, "spec": {}}
    made = translate(write(), ADOPT, made)
    assert statuses(made) == {"p8001": set()}


def test_one_name_in_both_groups_closes_the_second(tmp_path: Path) -> None:
    rules = {"authorization": {"defaultAction": "Allow"}}
    theirs = foreign("SecurityPolicy", "a", {"kind": "HTTPRoute", "name": "web"}, **rules)
    ours = foreign("SecurityPolicy", "a", {"kind": "Gateway", "name": "other"}, **rules)
    ours["apiVersion"] = "gateway.edge.io/v1alpha1"
    snapshot, said = read(tmp_path, gateway("one", 8001), route("one"), ours, theirs)
    assert any("Duplicate" in one for one in said)
    assert 500 in statuses(translate(snapshot, ADOPT))["p8001"]


def test_a_change_translates_what_it_concerns(tmp_path: Path) -> None:
    target = {"kind": "HTTPRoute", "name": "web"}
    policy = foreign("BackendTrafficPolicy", "a", target, **limits(5))
    other = make("HTTPRoute", "other", route("one")["spec"])
    objects = [gateway("one", 8001), route("one"), other, policy]
    source = FileSource([tmp_path], adopt=True)

    def write() -> Snapshot:
        (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([WEB, *objects]))
        return source.read().snapshot

    made = translate(write(), ADOPT)
    objects[2] = make("HTTPRoute", "other", {**other["spec"], "hostnames": ["a.example"]})
    changed = translate(write(), ADOPT, made)
    assert changed.work.routes == 1 and numbers(changed) == {5}
    objects[3] = foreign("BackendTrafficPolicy", "a", target, **limits(6))
    changed = translate(write(), ADOPT, changed)
    assert numbers(changed) == {6}
    assert changed.ir == translate(write(), ADOPT).ir
    objects.pop()
    changed = translate(write(), ADOPT, changed)
    assert numbers(changed) == set() and changed.ir == translate(write(), ADOPT).ir


def test_without_the_flag_the_message_names_it(tmp_path: Path) -> None:
    target = {"kind": "HTTPRoute", "name": "web"}
    policy = foreign("SecurityPolicy", "a", target, basicAuth={"users": {"name": "users"}})
    documents = [WEB, gateway("one", 8001), route("one"), policy]
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all(documents))
    made = translate(FileSource([tmp_path]).read().snapshot, ADOPT)
    assert "serve it as it is" not in texts(made)
    klass = {"apiVersion": f"{GROUP}/v1", "kind": "GatewayClass", "metadata": {"name": "eg"}}
    klass["spec"] = {"controllerName": Settings().controller_name}
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(klass))
    made = translate(FileSource([tmp_path]).read().snapshot, Settings())
    assert "serve it as it is with --adopt, see edgefast docs migrating" in texts(made)
