"""The parts of the infra room on their own: what rolls pods, what is ours, what is drift, which addresses there are."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from controller.fleets.addresses import service_addresses
from controller.fleets.drift import project
from controller.fleets.managed_objects import explain_foreign, is_ours, owns_replicas
from controller.fleets.metadata import adopt
from controller.fleets.object_ref import APPLIED, ObjectRef, ref_of_manifest
from controller.fleets.placement import Manifest, Placement
from controller.fleets.pod import render_pod
from controller.fleets.render import render_fleet
from controller.fleets.render_cache import RenderCache
from controller.fleets.workload_status import find_trouble, is_up, wanted_pods
from edgefast import ir
from tests.controller.fleets.golden import CASES, read_case

pytestmark = pytest.mark.pure

PLACE = Placement(image="edgefast/proxy:1", ca="PEM\n")
INFRA = ir.Infra(
    name="edge-default-eg-e41e7b31",
    namespace="edge-gateway-system",
    selector=(("gateway.edge.io/owning-gateway-name", "eg"),),
    labels=(("gateway.edge.io/owning-gateway-name", "eg"),),
    ports=(ir.InfraPort("http-80", 80, 10080),),
)

QUIET: list[dict[str, Any]] = [
    {"ports": (ir.InfraPort("http-80", 80, 10080), ir.InfraPort("https-443", 443, 10443))},
    {"ports": ()},
    {"gateways": ("default/eg", "default/other")},
    {"replicas": 9},
    {"service": ir.InfraService(type="NodePort", labels={"a": "b"}, annotations={"a": "b"})},
    {"hpa": ir.InfraHPA(max_replicas=3)},
    {"pdb": ("minAvailable", 1)},
    {"owner": ("Gateway", "eg", "1-2-3")},
]
LOUD: list[dict[str, Any]] = [
    {"workers": 2},
    {"drain_timeout": 61_000},
    {"min_drain": 11_000},
    {"labels": (("gateway.edge.io/owning-gateway-name", "eg"), ("team", "blue"))},
    {"annotations": (("note", "x"),)},
    {"pod": ir.InfraPod(image="other")},
    {"pod": ir.InfraPod(env=({"name": "A", "value": "1"},))},
    {"pod": ir.InfraPod(resources={"limits": {"memory": "1Gi"}})},
]


@pytest.mark.parametrize("change", QUIET, ids=lambda change: next(iter(change)))
def test_what_is_not_the_pods_does_not_roll_them(change: dict[str, Any]) -> None:
    assert render_pod(msgspec.structs.replace(INFRA, **change), PLACE) == render_pod(INFRA, PLACE)


def test_a_renewed_authority_does_not_roll_pods() -> None:
    renewed = msgspec.structs.replace(PLACE, ca="PEM\nPEM\n")
    assert render_pod(INFRA, renewed) == render_pod(INFRA, PLACE)


@pytest.mark.parametrize("change", LOUD, ids=lambda change: next(iter(change)))
def test_what_is_the_pods_rolls_them(change: dict[str, Any]) -> None:
    assert render_pod(msgspec.structs.replace(INFRA, **change), PLACE) != render_pod(INFRA, PLACE)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.removesuffix(".in.yaml"))
def test_every_manifest_keeps_the_rules(path: Any) -> None:
    """No fleet selects another's pods, and every pod is restricted, in every case that is rendered."""
    translation, place = read_case(path)
    before = copy.deepcopy(translation.infra)
    pods: list[dict[str, str]] = []
    selectors: list[dict[str, str]] = []
    for infra in translation.infra:
        for manifest in render_fleet(infra, place):
            _check_metadata(manifest, infra)
            if manifest["kind"] in ("Deployment", "DaemonSet"):
                _check_pod(manifest["spec"]["template"]["spec"])
                pods.append(manifest["spec"]["template"]["metadata"]["labels"])
                selectors.append(manifest["spec"]["selector"]["matchLabels"])
            if manifest["kind"] == "Service":
                assert manifest["spec"]["selector"] == dict(infra.selector)
                assert len(manifest["metadata"]["name"]) <= 63
                assert "." not in manifest["metadata"]["name"]
    for at, selector in enumerate(selectors):
        matched = [i for i, pod in enumerate(pods) if selector.items() <= pod.items()]
        assert matched == [at]
    assert translation.infra == before


def _check_metadata(manifest: Manifest, infra: ir.Infra) -> None:
    meta = manifest["metadata"]
    assert (meta["name"], meta["namespace"]) == (infra.name, infra.namespace)
    assert dict(infra.selector).items() <= meta["labels"].items()
    assert all(len(value) <= 63 for value in meta["labels"].values())
    for owner in meta["ownerReferences"]:
        # A Gateway may own only what is beside it.
        assert owner["kind"] == "GatewayClass" or infra.gateways == (
            f"{infra.namespace}/{owner['name']}",
        )


def _check_pod(spec: Manifest) -> None:
    assert spec["automountServiceAccountToken"] is False
    security = spec["securityContext"]
    assert security["runAsNonRoot"] and security["runAsUser"] == 65532
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert [one["name"] for one in spec["containers"]] == ["edge", "shutdown-manager"]
    volumes = {one["name"] for one in spec["volumes"]}
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        assert {one["name"] for one in container["volumeMounts"]} <= volumes
        names = [one["name"] for one in container.get("env", ())]
        assert len(names) == len(set(names))


def test_the_grace_period_outlives_every_hook() -> None:
    infra = msgspec.structs.replace(INFRA, drain_timeout=5_000, min_drain=20_500)
    spec = render_pod(infra, PLACE)["spec"]
    shutdown = spec["containers"][1]
    command = shutdown["lifecycle"]["preStop"]["exec"]["command"]
    drain = float(command[command.index("--drain-timeout") + 1])
    ready = float(shutdown["args"][shutdown["args"].index("--ready-timeout") + 1])
    assert drain == 20.5
    assert drain < ready < spec["terminationGracePeriodSeconds"] == 51


def test_identities_are_labels() -> None:
    assert PLACE.identity == "edge-gateway-system.edge-gateway"
    long = Placement(image="i", ca="", namespace="n" * 63, name="release-edge-gateway")
    other = Placement(image="i", ca="", namespace="n" * 63, name="other-edge-gateway")
    assert len(long.identity) == 63 and long.identity != other.identity


# --- renderer -------------------------------------------------------------------------------------


def test_the_renderer_renders_what_changed() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{INFRA.name}-xds"}}
    renderer = RenderCache(lambda namespace, name: {**secret, "data": {}})
    other = msgspec.structs.replace(INFRA, name="edge-other")
    first = renderer.render((INFRA, other), PLACE)
    again = renderer.render(
        (msgspec.structs.replace(INFRA), msgspec.structs.replace(other, replicas=2)), PLACE
    )
    key, other_key = (f"{INFRA.namespace}/{one.name}" for one in (INFRA, other))
    assert again[key] is first[key]
    assert again[other_key] is not first[other_key]
    assert [one["kind"] for one in again[key]][:2] == ["Secret", "ServiceAccount"]
    meta = again[key][0]["metadata"]
    assert meta["namespace"] == INFRA.namespace
    assert meta["labels"]["gateway.edge.io/controller"] == PLACE.identity
    renewed = msgspec.structs.replace(PLACE, ca="new")
    assert renderer.render((INFRA,), renewed)[key] is not first[key]
    assert renderer.render((), PLACE) == {}


def test_adopting_keeps_what_an_object_is() -> None:
    given = {
        "kind": "Secret",
        "metadata": {"name": "x", "labels": {"mine": "1"}},
        "data": {"a": "b"},
    }
    before = copy.deepcopy(given)
    made = adopt(given, INFRA, PLACE)
    assert made["metadata"]["name"] == "x" and made["data"] == {"a": "b"}
    assert made["metadata"]["labels"]["mine"] == "1"
    assert given == before


# --- references, ownership, drift -----------------------------------------------------------------


def test_objects_belong_to_their_fleet() -> None:
    assert ObjectRef("Service", "ns", "edge-a").fleet == "ns/edge-a"
    assert ObjectRef("Secret", "ns", "edge-a-xds").fleet == "ns/edge-a"
    assert ObjectRef("Service", "ns", "edge-a-xds").fleet == "ns/edge-a-xds"
    kinds = [ref_of_manifest(one).kind for one in render_fleet(INFRA, PLACE)]
    assert kinds == sorted(kinds, key=[kind for _, kind in APPLIED].index)
    with pytest.raises(KeyError):
        ref_of_manifest({"kind": "Pod", "metadata": {"namespace": "a", "name": "b"}})


def _live(label: str | None, *managers: tuple[str, str], spec: bool = False) -> dict[str, Any]:
    fields = {"f:spec": {"f:replicas": {}}} if spec else {"f:data": {}}
    return {
        "metadata": {
            "labels": {} if label is None else {"gateway.edge.io/controller": label},
            "managedFields": [
                {"manager": manager, "operation": operation, "fieldsV1": fields}
                for manager, operation in managers
            ],
        }
    }


def test_ours_is_what_has_label_and_manager() -> None:
    ours = ("edge-gateway", "Apply")
    assert is_ours(_live("me", ours, ("kubectl", "Update")), "me")
    assert not is_ours(_live("me", ("kubectl", "Apply"), ("edge-gateway", "Update")), "me")
    assert not is_ours(_live("you", ours), "me")
    assert not is_ours(_live(None, ours), "me")
    assert not is_ours({"metadata": {}}, "me")
    assert explain_foreign(_live(None, ours), "me") == ""
    assert "belongs to the controller you" in explain_foreign(_live("you", ours), "me")
    assert "was not created" in explain_foreign(_live(None, ("kubectl", "Apply")), "me")
    assert owns_replicas(_live("me", ours, spec=True))
    assert not owns_replicas(_live("me", ("kubectl", "Apply"), spec=True))
    assert not owns_replicas(_live("me", ours))


@pytest.mark.parametrize(
    ("live", "wanted", "seen"),
    [
        ({"a": 1, "b": 2}, {"a": 5}, {"a": 1}),
        ({}, {"a": {"b": 1}}, {"a": None}),
        ({"a": "gone"}, {"a": {"b": 1}}, {"a": "gone"}),
        # Lists by name: what others add is not looked at, order does not matter.
        (
            [{"name": "theirs"}, {"name": "b", "x": 1, "y": 2}, {"name": "a"}],
            [{"name": "a"}, {"name": "b", "x": 9}],
            [{"name": "a"}, {"name": "b", "x": 1}],
        ),
        ([{"name": "a"}], [{"name": "a"}, {"name": "b"}], [{"name": "a"}, None]),
        # Other lists are one value.
        ([1, 2], [1], [1, 2]),
        ([{"k": 1, "d": 0}], [{"k": 1}], [{"k": 1}]),
        ([{"k": 1}, {"k": 2}], [{"k": 1}], [{"k": 1}, {"k": 2}]),
        (None, [{"name": "a"}], None),
        # Twice the same name is no map.
        (
            [{"name": "s", "at": "/a"}, {"name": "s", "at": "/b"}],
            [{"name": "s", "at": "/b"}, {"name": "s", "at": "/a"}],
            [{"name": "s", "at": "/a"}, {"name": "s", "at": "/b"}],
        ),
    ],
)
def test_projection(live: Any, wanted: Any, seen: Any) -> None:
    assert project(live, wanted) == seen


# --- what is observed -----------------------------------------------------------------------------

NODES = {
    "a": {
        "addresses": [
            {"type": "Hostname", "address": "a"},
            {"type": "InternalIP", "address": "10.0.0.1"},
        ]
    },
    "b": {
        "addresses": [
            {"type": "InternalIP", "address": "10.0.0.2"},
            {"type": "ExternalIP", "address": "192.0.2.2"},
            {"type": "ExternalIP", "address": "2001:db8::2"},
        ]
    },
    "c": {"addresses": None},
}


@pytest.mark.parametrize(
    ("spec", "ingress", "addresses"),
    [
        ({"type": "LoadBalancer", "clusterIPs": ["10.1.1.1"]}, [], ()),
        (
            {"type": "LoadBalancer", "loadBalancerIP": "192.0.2.9"},
            [{"hostname": "lb.example.com"}, {"ip": "192.0.2.1"}, {"ip": "192.0.2.1"}],
            ("lb.example.com", "192.0.2.1"),
        ),
        ({"type": "ClusterIP", "clusterIPs": ["10.1.1.1", "fd00::1"]}, [], ("10.1.1.1", "fd00::1")),
        ({"type": "ClusterIP", "clusterIPs": ["None"]}, [], ()),
        ({"type": "ClusterIP", "externalIPs": ["192.0.2.7"]}, [], ("192.0.2.7",)),
        (
            {"type": "ClusterIP", "clusterIPs": ["10.1.1.1"], "externalIPs": ["192.0.2.7"]},
            [],
            ("192.0.2.7", "10.1.1.1"),
        ),
        (
            {"type": "NodePort", "externalTrafficPolicy": "Cluster", "clusterIPs": ["10.1.1.1"]},
            [],
            ("10.0.0.1", "192.0.2.2", "2001:db8::2"),
        ),
        ({"type": "NodePort", "externalTrafficPolicy": "Local"}, [], ("10.0.0.1",)),
    ],
)
def test_addresses(spec: Any, ingress: Any, addresses: Any) -> None:
    service = {"spec": spec, "status": {"loadBalancer": {"ingress": ingress}}}
    assert service_addresses(service, NODES, {"a", "c", ""}) == addresses


def test_workloads() -> None:
    deployment: dict[str, Any] = {
        "kind": "Deployment",
        "metadata": {"generation": 2},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 1, "readyReplicas": 2},
    }
    assert wanted_pods(deployment) == 2
    assert not is_up(deployment)
    deployment["status"]["observedGeneration"] = 2
    assert is_up(deployment)
    deployment["status"]["readyReplicas"] = 1
    assert not is_up(deployment)
    daemons: dict[str, Any] = {"kind": "DaemonSet", "metadata": {"generation": 1}, "spec": {}}
    assert wanted_pods(daemons) == 0 and not is_up(daemons)
    daemons["status"] = {"observedGeneration": 1, "desiredNumberScheduled": 3, "numberReady": 3}
    assert wanted_pods(daemons) == 3 and is_up(daemons)


def condition(type_: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def test_why_pods_do_not_come_up() -> None:
    """Quotas and webhooks are in ReplicaFailure, images that cannot be pulled end in Progressing=False."""
    fine = [condition("Progressing", "True", "NewReplicaSetAvailable", "it has progressed")]
    status = {"observedGeneration": 2, "conditions": fine}
    deployment: dict[str, Any] = {
        "kind": "Deployment",
        "metadata": {"name": "edge-a", "generation": 2},
        "spec": {},
        "status": status,
    }
    assert find_trouble(deployment) == ""
    quota = condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota: small")
    late = condition("Progressing", "False", "ProgressDeadlineExceeded", "it has timed out")
    status["conditions"] = [late, quota]
    said = "FailedCreate: exceeded quota: small; ProgressDeadlineExceeded: it has timed out"
    assert find_trouble(deployment) == f"Deployment edge-a: {said}"
    deployment["metadata"]["generation"] = 3  # of another spec, perhaps
    assert find_trouble(deployment) == ""
    daemons: dict[str, Any] = {
        "kind": "DaemonSet",
        "metadata": {"name": "edge-a", "generation": 1},
        "status": {"observedGeneration": 1, "desiredNumberScheduled": 0},
    }
    assert "DaemonSet edge-a: no node can run its pods" in find_trouble(daemons)
    daemons["status"]["desiredNumberScheduled"] = 1
    assert find_trouble(daemons) == ""
