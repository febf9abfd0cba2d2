"""In a cluster: which Ingresses are served, by which fleet, what is written, and what stays hidden."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from edgefast import ir
from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.api.decode.decode import decode_documents
from edgefast.api.edge.edgeproxy import EdgeProxy, EdgeProxySpec
from edgefast.api.edge.edgeproxy_headers import ProxyHeaders
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate import Settings, translate
from edgefast.translate.ingress.client_tls import ClientTls
from edgefast.translate.ingress.configmap import Globals
from edgefast.translate.ingress.emit import emit_gateways
from edgefast.translate.ingress.names import TlsListener
from edgefast.translate.ingress.sections import Sections
from edgefast.translate.settings import FleetState, settings_from
from edgefast.translate.translation import Translation

pytestmark = pytest.mark.pure

ENDPOINTS = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web-1, namespace: app, labels: {kubernetes.io/service-name: web}}\naddressType: IPv4\nports: [{name: '', port: 80}]\nendpoints: [{addresses: [10.0.0.1]}]\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: app}\nspec: {ports: [{port: 80}]}\n"
SPACE = "edge-gateway-system"
FLEET = "edge-ingress-d830ddbf"


def settings(**ingress: object) -> Settings:
    config = msgspec.convert({"ingress": {"enabled": True, **ingress}}, EdgeGateway)
    made = settings_from(config, standalone=False, namespace=SPACE)
    seen = FleetState(name=FLEET, namespace=SPACE, addresses=("192.0.2.1", "lb.example"))
    return msgspec.structs.replace(made, fleets=(seen,))


def ingress(
    name: str, class_name: str = "ours", *, old: str = "", path: str = "/", **notes: str
) -> str:
    annotations = {
        f"nginx.ingress.kubernetes.io/{key.replace('_', '-')}": v for key, v in notes.items()
    }
    if old:
        annotations["kubernetes.io/ingress.class"] = old
    lines = "".join(f"    {key}: '{value}'\n" for key, value in annotations.items())
    named = f"  ingressClassName: {class_name}\n" if class_name else ""
    return f"""apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {name}
  namespace: app
  annotations:
    unrelated: note
{lines}spec:
{named}  rules:
  - host: {name}.test
    http: {{paths: [{{path: {path}, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}
"""


def ingress_class(
    name: str, controller: str = "gateway.edge.io/ingress-controller", **notes: str
) -> str:
    annotations = "".join(
        f"    ingressclass.kubernetes.io/{key.replace('_', '-')}: '{v}'\n"
        for key, v in notes.items()
    )
    meta = f"  annotations:\n{annotations}" if annotations else ""
    return f"apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata:\n  name: {name}\n{meta}spec: {{controller: {controller}}}\n"


def objects(*texts: str) -> Snapshot:
    return Snapshot.of(
        decode_documents("---\n".join((SERVICE, ENDPOINTS, *texts)).encode(), "a.yaml").objects
    )


def run(*texts: str, **fields: object) -> Translation:
    return translate(objects(*texts), settings(**fields))


def served(found: Translation) -> list[str]:
    return [name for _, name in found.statuses.ingresses]


def test_a_disabled_controller_serves_nothing() -> None:
    snapshot = objects(ingress_class("ours"), ingress("a"))
    found = translate(snapshot, Settings(standalone=False))
    assert found.memo.expansion.snapshot is snapshot
    assert not found.infra and not found.problems


def test_classes_of_our_controller_and_adopted_ones() -> None:
    nginx = ingress_class("nginx", "k8s.io/ingress-nginx")
    texts = (
        ingress_class("ours"),
        nginx,
        ingress("a"),
        ingress("b", "nginx"),
        ingress("c", "", old="nginx"),
        ingress("d", "", old="plain"),
        ingress("e", ""),
    )
    assert served(run(*texts)) == ["a"]
    assert served(run(*texts, adoptClasses=["k8s.io/ingress-nginx"])) == ["a", "b", "c"]
    assert served(run(*texts, adoptClasses=["plain"])) == ["a", "d"]
    # spec.ingressClassName has priority over the annotation.
    assert served(run(ingress_class("ours"), ingress("a", "other", old="ours"))) == []
    # Ingresses of others are not problems: two controllers run side by side.
    assert not run(*texts).problems


def test_the_default_class() -> None:
    ours = ingress_class("ours", is_default_class="true")
    theirs = ingress_class("theirs", "k8s.io/ingress-nginx", is_default_class="true")
    assert served(run(ours, ingress("e", ""))) == ["e"]
    assert served(run(ingress_class("ours"), theirs, ingress("e", ""))) == []


def test_one_fleet_serves_all_and_keeps_its_address_without_any() -> None:
    (infra,) = run(ingress_class("ours"), ingress("a")).infra
    assert (infra.namespace, infra.name) == (SPACE, FLEET)
    assert [one.port for one in infra.ports] == [80]
    (empty,) = run(ports={"http": 8080}).infra
    assert empty.name == FLEET and [one.port for one in empty.ports] == [8080]


def test_the_fleet_has_the_settings_of_an_edge_proxy() -> None:
    proxy = f"apiVersion: gateway.edge.io/v1alpha1\nkind: EdgeProxy\nmetadata: {{name: p, namespace: {SPACE}}}\nspec: {{deployment: {{replicas: 3}}}}\n"
    (infra,) = run(proxy, edgeProxy="p").infra
    assert infra.replicas == 3
    found = run(edgeProxy="p")
    assert [one.line() for one in found.problems] == [
        f'ingress.edgeProxy: NotFound "p": no EdgeProxy in namespace {SPACE}; defaults apply'
    ]


def test_http10_is_served_unless_an_edge_proxy_has_a_word_for_it() -> None:
    """A request without Host gets the rules without a host, as in nginx."""
    for spec, wanted in (
        ("idleTimeout: 5s", (True, "_")),
        ("http10: {enabled: false}", (False, "_")),
        ("http10: {defaultHost: a.test}", (True, "a.test")),
    ):
        proxy = f"apiVersion: gateway.edge.io/v1alpha1\nkind: EdgeProxy\nmetadata: {{name: p, namespace: {SPACE}}}\nspec: {{http: {{{spec}}}}}\n"
        found = run(proxy, ingress_class("ours"), ingress("a"), edgeProxy="p")
        served = {(one.http.http10, one.http.http10_host) for one in found.ir.fleets[0].listeners}
        assert served == {wanted}


def test_headers_about_certificates_are_written_beside_those_of_an_edge_proxy() -> None:
    """Backends of a host with client certificates get no such header of a client."""
    secret, owner = ("app", "tls"), ObjectRef("Ingress", "app", "a")
    asking = ClientTls(secret=("app", "ca"), rule=ir.ClientRule(ca="clients/app/ca"))
    proxy = EdgeProxySpec(headers=ProxyHeaders(forwarded=("X-Real-IP", "SSL-Client-Verify")))
    names = {}
    for client in (None, asking):
        one = TlsListener(name="a.test", secret=secret, owner=owner, field="spec", client=client)
        made = emit_gateways({"a.test": one}, Sections(["a.test"]), settings(), Globals(), proxy)
        (found,) = (one for one in made.objects.values() if isinstance(one, EdgeProxy))
        assert found.spec.headers is not None
        names[client is not None] = found.spec.headers.forwarded
    assert names[False] == ("X-Real-IP", "SSL-Client-Verify")
    assert names[True] == (
        "X-Real-IP",
        "SSL-Client-Verify",
        "SSL-Client-Subject-DN",
        "SSL-Client-Issuer-DN",
        "SSL-Client-Cert",
    )


def test_statuses_have_the_addresses_of_the_service() -> None:
    found = run(ingress_class("ours"), ingress("a"), ingress("b", auth_type="kerberos"))
    status = found.statuses.ingresses
    assert list(status) == [("app", "a")]  # ingress-nginx does not serve the other one either
    assert msgspec.json.decode(msgspec.json.encode(status["app", "a"])) == {
        "loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "lb.example"}]}
    }
    assert not run(ingress_class("ours"), ingress("a"), publishStatus=False).statuses.ingresses


def test_made_objects_have_no_status() -> None:
    notes = {
        "allowlist_source_range": "10.0.0.0/8",
        "auth_url": "http://auth.test",
        "backend_protocol": "HTTPS",
    }
    snapshot = objects(ingress_class("ours"), ingress("a", **notes))
    for one in (settings(), Settings()):
        statuses = translate(snapshot, one).statuses
        refs = [str(ref) for ref, _ in statuses.items()]
        assert not [one for one in refs if "Ingress" in one.replace("Ingress app/a", "")]
        assert bool(statuses.made_gateways) is one.standalone


def test_problems_name_the_ingress_and_its_annotation() -> None:
    found = run(ingress_class("ours"), ingress("a", auth_url="http://$host/auth"))
    assert [(str(one.object), one.path) for one in found.problems] == [
        ("Ingress app/a", "metadata.annotations[nginx.ingress.kubernetes.io/auth-url]")
    ]


def test_objects_of_users_do_not_reach_the_gateway_of_ingresses() -> None:
    route = f"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: r, namespace: app}}\nspec: {{parentRefs: [{{name: Ingress, namespace: {SPACE}}}], hostnames: [a.test], rules: [{{backendRefs: [{{name: web, port: 80}}]}}]}}\n"
    gateway = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: g, namespace: app}\nspec: {gatewayClassName: Ingress, listeners: [{name: h, port: 81, protocol: HTTP}]}\n"
    plain = run(ingress_class("ours"), ingress("a"))
    found = run(ingress_class("ours"), ingress("a"), route, gateway)
    assert found.ir == plain.ir
    assert not found.statuses.http_routes and not found.statuses.gateways


@pytest.mark.parametrize(
    ("kind", "namespace", "name"),
    [("HTTPRoute", "app", "a.Ingress-http-a.test-lists"), ("Gateway", SPACE, "Ingress")],
)
def test_policies_of_users_do_not_reach_made_objects(kind: str, namespace: str, name: str) -> None:
    policy = f"""apiVersion: gateway.edge.io/v1alpha1
kind: SecurityPolicy
metadata: {{name: p, namespace: {namespace}, creationTimestamp: "2020-01-01T00:00:00Z"}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: {kind}, name: {name}}}]
  authorization: {{defaultAction: Allow}}
"""
    own = (ingress_class("ours"), ingress("a", allowlist_source_range="10.0.0.0/8"))
    plain, found = run(*own), run(*own, policy)
    assert found.ir == plain.ir
    assert not found.statuses.security_policies


def test_routes_of_users_do_not_reach_backends_of_ingresses() -> None:
    far = "apiVersion: v1\nkind: Service\nmetadata: {name: far, namespace: app}\nspec: {type: ExternalName, externalName: far.example.com, ports: [{port: 80}]}\n"
    front = "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: edge}\nspec: {controllerName: gateway.edge.io/gatewayclass-controller}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: g, namespace: app}\nspec: {gatewayClassName: edge, listeners: [{name: h, port: 80, protocol: HTTP}]}\n"
    route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r, namespace: app}\nspec: {parentRefs: [{name: g}], rules: [{backendRefs: [{group: gateway.edge.io, kind: Backend, name: far.Ingress-80}]}]}\n"
    shop = ingress("shop").replace("{name: web,", "{name: far,")
    found = run(ingress_class("ours"), far, shop, front, route)
    clusters = {one.name: [c.name for c in one.clusters] for one in found.ir.fleets}
    assert clusters.pop(FLEET) == ["backend/app/far.Ingress-80"]
    assert list(clusters.values()) == [[]]
    assert any("Backend is not enabled" in one.line() for one in found.problems)


def test_the_config_map_is_only_the_named_one() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ingress-nginx-controller, namespace: app}\ndata: {block-user-agents: curl}\n"
    own = (ingress_class("ours"), ingress("a"), text)
    assert not run(*own).problems
    named = {"namespace": "app", "name": "ingress-nginx-controller"}
    assert run(*own, configMap=named).problems
    missing = run(ingress_class("ours"), ingress("a"), configMap=named)
    assert [one.line() for one in missing.problems if one.path == "ingress.configMap"] == [
        'ingress.configMap: NotFound "app/ingress-nginx-controller" not found; all locations answer 503'
    ]


def test_a_rate_of_the_config_map_above_the_bound_is_the_bound() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: globals, namespace: app}\ndata: {limit-rate: '99999999999', limit-rate-after: '99999999999'}\n"
    named = {"namespace": "app", "name": "globals"}
    assert not run(ingress_class("ours"), ingress("a"), text, configMap=named).problems


def test_namespaces_that_are_not_watched_are_not_served() -> None:
    snapshot = objects(ingress_class("ours"), ingress("a"))
    listed = msgspec.structs.replace(settings(), watch_namespaces=("other",))
    assert not translate(snapshot, listed).statuses.ingresses
    own = msgspec.structs.replace(settings(), watch_namespaces=("app",))
    found = translate(snapshot, own)
    assert found.statuses.ingresses and found.ir.fleets[0].virtual_hosts


def test_a_solver_of_cert_manager_is_served_beside_the_ingress() -> None:
    solver = ingress("solver", "", old="ours", path="/.well-known/acme-challenge/token").replace(
        "host: solver.test", "host: a.test"
    )
    first = run(ingress_class("ours"), ingress("a", force_ssl_redirect="true"))
    both = first.memo.expansion.base.replace(decode_documents(solver.encode(), "b.yaml").objects)
    found = translate(both, settings(), first)
    assert served(found) == ["a", "solver"]
    assert found.work.virtual_hosts == 1
    (host,) = found.ir.fleets[0].virtual_hosts
    assert len(host.rules) > len(first.ir.fleets[0].virtual_hosts[0].rules)


def test_hosts_without_a_certificate_have_one_of_each_type_of_key() -> None:
    keys = (Path(__file__).parents[1] / "bases" / "certificates.yaml").read_text()
    hosts = "---\n".join((ingress_class("ours"), keys, ingress("a")))
    names = {
        "certificate": {"namespace": "default", "name": "ecdsa"},
        "additionalCertificate": {"namespace": "default", "name": "rsa"},
    }
    found = run(hosts, **names)
    (fleet,) = found.ir.fleets
    (tls,) = [one.tls for one in fleet.listeners if one.tls is not None]
    assert tls.certificates == ("secret/default/ecdsa", "secret/default/rsa")
    assert not [one for one in found.problems if one.obj.kind == "Gateway"]
