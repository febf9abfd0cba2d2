"""Policies and annotations of other projects that decide access: their targets answer 500, or are served open on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefast.api.migration.access_policies import PRODUCTS, find_access_policies
from edgefast.api.snapshot import Snapshot
from edgefast.explain import read_request_spec, serve_translation
from edgefast.explain.explain import explain
from edgefast.providers.files import FileSource
from edgefast.translate import Settings, Translation, translate
from tests.translate.test_incremental import _same

pytestmark = pytest.mark.pure

GROUP = "gateway.networking.k8s.io"
OPEN = Settings(ignore_foreign_policies=True)
EG = "gateway.envoyproxy.io/v1alpha1"


def make(api: str, kind: str, name: str, spec: Any = None, **meta: Any) -> dict[str, Any]:
    made = {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "ns", **meta}}
    return made if spec is None else {**made, "spec": spec}


def route(name: str, kind: str = "HTTPRoute", **meta: Any) -> dict[str, Any]:
    backend = name if name in ("other", "db") else "web"
    refs = [{"name": backend, "port": 80}]
    hosts = {"hostnames": [f"{name}.test"]} if kind == "HTTPRoute" else {}
    ref = {"name": "edge", "sectionName": "http" if hosts else "tcp"}
    version = "v1" if hosts else "v1alpha2"
    spec = {"parentRefs": [ref], **hosts, "rules": [{"backendRefs": refs}]}
    return make(f"{GROUP}/{version}", kind, name, spec, **meta)


def service(name: str, **meta: Any) -> list[dict[str, Any]]:
    labels = {"kubernetes.io/service-name": name}
    slices = make("discovery.k8s.io/v1", "EndpointSlice", f"{name}-1", labels=labels)
    slices |= {"addressType": "IPv4", "ports": [{"port": 80}]}
    slices |= {"endpoints": [{"addresses": ["192.0.2.1"]}]}
    return [make("v1", "Service", name, {"ports": [{"port": 80}]}, **meta), slices]


def gateway(**meta: Any) -> dict[str, Any]:
    listeners = [
        {"name": "http", "protocol": "HTTP", "port": 80},
        {"name": "tcp", "protocol": "TCP", "port": 81},
    ]
    spec = {"gatewayClassName": "theirs", "listeners": listeners}
    return make(f"{GROUP}/v1", "Gateway", "edge", spec, **meta)


CLASS = make(f"{GROUP}/v1", "GatewayClass", "theirs", {"controllerName": "their.test/controller"})
WEB = [*service("web"), *service("other"), *service("db")]


def target(kind: str = "HTTPRoute", name: str = "web", **more: Any) -> dict[str, Any]:
    group = "" if kind == "Service" else GROUP
    return {"group": group, "kind": kind, "name": name, **more}


def read(path: Path, *objects: dict[str, Any]) -> Snapshot:
    (path / "a.yaml").write_text(yaml.safe_dump_all(objects))
    return FileSource([path]).read().snapshot


def serve(path: Path, *objects: dict[str, Any], settings: Settings | None = None) -> Translation:
    """Translate with two routes, another one of layer 4 and their Gateway, unless they are given."""
    given = {(one["kind"], one["metadata"]["name"]) for one in objects}
    usual = [CLASS, gateway(), route("web"), route("other"), route("db", "TCPRoute"), *WEB]
    usual = [one for one in usual if (one["kind"], one["metadata"]["name"]) not in given]
    settings = settings or Settings()
    made = Settings(adopt=True, ignore_foreign_policies=settings.ignore_foreign_policies)
    return translate(read(path, *usual, *objects), made)


def closed(made: Translation) -> set[str]:
    """Return the routes that are closed."""
    fleet = made.ir.fleets[0]
    broken = {one.name for one in fleet.policies if one.status == 500}
    found = {
        rule.route.split("/")[-1]
        for host in fleet.virtual_hosts
        for rule in host.rules
        if broken & set(rule.units())
    }
    found |= {one.route.split("/")[-1] for one in fleet.stream_routes if not one.backends}
    return found


def numbered(count: int) -> list[str]:
    return [f"r{at}" for at in range(count)]


def test_each_policy_of_the_list_closes_what_it_names(tmp_path: Path) -> None:
    rows = [
        (row.groups[0], guard)
        for row in PRODUCTS
        for guard in row.access_policies
        if guard.kind not in ("TLSOption", "KongPlugin", "KongClusterPlugin")  # name no targets
    ]
    names = numbered(len(rows))
    policies = []
    for name, (group, guard) in zip(names, rows, strict=True):
        spec: dict[str, Any] = {"targetRefs": [target(name=name)]}
        for path in guard.only[:1] or (("spec.anything",) if guard.but else ()):
            at = spec
            *parents, last = path.split(".")[1:]
            for one in parents:
                at = at.setdefault(one, {})
            at[last] = {}
        policies.append(make(f"{group}/v1", guard.kind, name, spec))
    objects = [*(route(name) for name in names), *policies]
    made = serve(tmp_path, *objects)
    assert closed(made) == set(names)
    told = [one for one in made.problems if one.reason == "PolicyIgnored"]
    assert len(told) == len(rows)
    for name, (group, guard) in zip(names, rows, strict=True):
        said = f"HTTPRoute ns/{name} answers 500: {guard.kind} ns/{name} of {group} decides access"
        (one,) = [one for one in told if one.message.startswith(said)]
        assert one.severity == "error" and "--ignore-foreign-policies" in one.hint
    opened = serve(tmp_path, *objects, settings=OPEN)
    assert closed(opened) == set()
    assert sum("is served WITHOUT" in one.message for one in opened.problems) == len(rows)


def test_a_kind_that_no_row_has_is_judged_by_its_name() -> None:
    """In every listed group as well."""
    groups = [group for row in PRODUCTS for group in row.groups]
    spec: dict[str, Any] = {"spec": {"targetRef": target()}}
    for group in groups:
        assert find_access_policies(group, "XAuthPolicy", spec, aimed=True) == ("XAuthPolicy",), (
            group
        )
        assert find_access_policies(group, "XRetryPolicy", spec, aimed=True) == (), group
        assert find_access_policies(group, "XAuthPolicy", spec, aimed=False) == (), group


def test_each_annotation_of_the_list_closes_its_object(tmp_path: Path) -> None:
    listed = [one for row in PRODUCTS for one in row.annotations if " " not in one]
    names = numbered(len(listed))
    notes = [{"annotations": {one: "hunter2", "kubectl.kubernetes.io/x": "1"}} for one in listed]
    objects = [route(name, **note) for name, note in zip(names, notes, strict=True)]
    made = serve(tmp_path, *objects)
    assert closed(made) == set(names)
    told = [one for one in made.problems if one.reason == "PolicyIgnored"]
    assert {one.path for one in told} == {f"metadata.annotations[{one}]" for one in listed}
    assert not any("hunter2" in one.text() for one in told)
    assert closed(serve(tmp_path, *objects, settings=OPEN)) == set()


ALL = {"web", "other", "db"}
JWT = {"jwt": {"providers": []}}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (make(EG, "SecurityPolicy", "p", {"targetRef": target(), **JWT}), {"web"}),
        (make(EG, "SecurityPolicy", "p", {"targetRefs": [target("Gateway", "edge")], **JWT}), ALL),
        (make(EG, "SecurityPolicy", "p", {"targetRefs": [target("TCPRoute", "db")], **JWT}), {"db"}),
        (make(EG, "SecurityPolicy", "p", {"targetRefs": [target("Service", "web")], **JWT}), {"web"}),
        # A selector, one of all namespaces, and a target that cannot be read.
        (make(EG, "SecurityPolicy", "p", {"targetSelectors": [{"kind": "HTTPRoute", "matchLabels": {"a": "b"}}], **JWT}), {"other"}),
        (make(EG, "SecurityPolicy", "p", {"targetSelectors": [{"kind": "HTTPRoute", "namespaces": {"from": "All"}}], **JWT}, namespace="far"), {"web", "other"}),
        (make(EG, "SecurityPolicy", "p", {"targetRefs": [{"kind": "HTTPRoute", "name": 7}], **JWT}), {"web", "other"}),
        (make(EG, "SecurityPolicy", "p", {"targetRefs": ["web"], **JWT}), ALL),
        # Fields that do not decide access.
        (make(EG, "SecurityPolicy", "p", {"targetRefs": [target()], "cors": {}}), set()),
        (make(EG, "ClientTrafficPolicy", "p", {"targetRefs": [target("Gateway", "edge")], "tls": {}}), set()),
        (make(EG, "BackendTrafficPolicy", "p", {"targetRefs": [target()], "retry": {}}), set()),
        # A misspelt group or kind, another namespace, a missing route.
        (make("consul.hashicorp.com/v1alpha1", "GatewayPolicy", "p", {"targetRef": {**target("Gateway", "edge"), "group": "gateway.networking.kuberenetes.io"}}), ALL),
        (make(EG, "SecurityPolicy", "p", {"targetRefs": [target("HttpRoute")], **JWT}), {"web"}),
        (make(EG, "SecurityPolicy", "p", {"targetRefs": [target()], **JWT}, namespace="far"), set()),
        (make(EG, "SecurityPolicy", "p", {"targetRefs": [target(name="gone")], **JWT}), set()),
        # Policies that name nothing.
        (make("security.istio.io/v1", "AuthorizationPolicy", "p", {}), ALL),
        (make("security.istio.io/v1", "AuthorizationPolicy", "p", {"targetRefs": [target("GatewayClass", "theirs")]}), ALL),
        (make("traefik.io/v1alpha1", "TLSOption", "default", {"clientAuth": {}}), ALL),
        (make("traefik.io/v1alpha1", "TLSOption", "other", {"clientAuth": {}}), set()),
        (make("configuration.konghq.com/v1", "KongClusterPlugin", "p", labels={"global": "true"}), ALL),
        (make("configuration.konghq.com/v1", "KongClusterPlugin", "p"), set()),
        # Products that are in no row.
        (make("new.test/v1", "WebAccessPolicy", "p", {"targetRefs": [target()]}), {"web"}),
        # A slip in the group of ours, and in its kind.
        (make("gateways.edge.io/v1alpha1", "SecurityPolcy", "p", {"targetRefs": [target()]}), {"web"}),
        (make("v1", "SecurityPolcy", "p", {"targetRefs": [target()]}), {"web"}),
        (make("new.test/v1", "RetryPolicy", "p", {"targetRefs": [target()]}), set()),
        (make("enterprisekgateway.solo.io/v1alpha1", "EnterpriseKgatewayTrafficPolicy", "p", {"targetRefs": [target()], "entJWT": {}}), {"web"}),
        (make("enterprisekgateway.solo.io/v1alpha1", "EnterpriseKgatewayTrafficPolicy", "p", {"targetRefs": [target()], "entRateLimit": {}}), set()),
    ],
)  # fmt: skip
def test_what_is_closed(tmp_path: Path, policy: dict[str, Any], expected: set[str]) -> None:
    made = serve(tmp_path, route("other", labels={"a": "b"}), policy)
    assert closed(made) == expected
    assert closed(serve(tmp_path, policy, settings=OPEN)) == set()


def test_annotations_of_gateways_and_services_close_what_is_below(tmp_path: Path) -> None:
    plugins = {"annotations": {"konghq.com/plugins": "key-auth"}}
    assert closed(serve(tmp_path, gateway(**plugins))) == ALL
    assert closed(serve(tmp_path, *service("web", **plugins))) == {"web"}
    nginx = {"annotations": {"nginx.ingress.kubernetes.io/auth-url": "x"}}
    assert closed(serve(tmp_path, route("web", **nginx))) == {"web"}
    plain = {"annotations": {"nginx.ingress.kubernetes.io/app-root": "x"}}
    assert closed(serve(tmp_path, route("web", **plain))) == set()


def test_a_policy_of_ours_of_the_same_name_does_not_open_it(tmp_path: Path) -> None:
    """Also not a policy that replaces those of higher levels; and it keeps its own status."""
    ours = make(
        "gateway.edge.io/v1alpha1",
        "SecurityPolicy",
        "p",
        {
            "targetRefs": [target()],
            "mergeType": "Replace",
            "authorization": {"defaultAction": "Allow"},
        },
    )
    theirs = make(EG, "SecurityPolicy", "p", {"targetRefs": [target("Gateway", "edge")], **JWT})
    made = serve(tmp_path, ours, theirs)
    assert closed(made) == ALL
    assert ("ns", "p") in made.statuses.security_policies
    answer = explain(serve_translation(made), read_request_spec("GET", "http://web.test/")).answers[
        0
    ]
    assert answer.status == 500 and answer.check == "policy_invalid"
    assert "SecurityPolicy ns/p of gateway.envoyproxy.io decides access (jwt)" in answer.why
    assert "--ignore-foreign-policies" in answer.fix


def test_a_change_opens_and_closes_it(tmp_path: Path) -> None:
    """A translation after another one equals a fresh translation."""
    settings = Settings(adopt=True)
    usual = [CLASS, gateway(), route("web"), route("other"), route("db", "TCPRoute"), *WEB]
    policy = make(EG, "SecurityPolicy", "p", {"targetRefs": [target()], **JWT})
    noted = route("web", annotations={"konghq.com/plugins": "a"})
    source = FileSource([tmp_path])
    made = None
    for objects, expected in (
        (usual, set()),
        ([*usual, policy], {"web"}),
        ([*usual[:2], noted, *usual[3:]], {"web"}),
        (usual, set()),
    ):
        (tmp_path / "a.yaml").write_text(yaml.safe_dump_all(objects))
        snapshot = source.read().snapshot
        made = translate(snapshot, settings, made)
        assert closed(made) == expected
        _same(made, translate(snapshot, settings))


def test_a_cluster_is_not_closed(tmp_path: Path) -> None:
    """A controller sees no policies of other projects: files for it are translated as it would."""
    policy = make(EG, "SecurityPolicy", "p", {"targetRefs": [target()], **JWT})
    usual = [CLASS, gateway(), route("web"), *WEB, policy]
    name = "their.test/controller"
    made = translate(read(tmp_path, *usual), Settings(standalone=False, controller_name=name))
    assert closed(made) == set()
