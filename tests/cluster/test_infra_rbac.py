"""The infra room under exactly the rights that the chart gives the controller, in every mode."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cluster.infra_bench import infra_bench
from cluster.world.apiserver import ApiServer
from controller.fleets.metadata import adopt
from controller.fleets.placement import Placement, client_secret_name
from controller.fleets.render import render_fleet
from controller.manifests.load import load_install
from controller.manifests.naming import Release
from controller.manifests.roles import render_roles
from edgefast import ir
from tests.controller.waiting import until

NAME = "edge-default-eg-e41e7b31"
MODES = {
    "controller-namespace": (False, False),
    "controller-namespace-listed": (False, True),
    "gateway-namespace": (True, False),
    "gateway-namespace-listed": (True, True),
}


@pytest.mark.parametrize(("tokens", "listed"), MODES.values(), ids=MODES)
async def test_rights_suffice_and_no_more_is_asked(
    apiserver: ApiServer, tokens: bool, listed: bool
) -> None:
    own, beside = apiserver.namespace("own"), apiserver.namespace("tenant")
    provider: dict[str, Any] = {}
    if tokens:
        provider["deploy"] = {"type": "GatewayNamespace"}
    if listed:
        provider["watch"] = {"type": "Namespaces", "namespaces": [beside]}
    values = {"config": {"edgeGateway": {"provider": {"kubernetes": provider}}}}
    install, problems = load_install(
        Release("edge-gateway", own), [("values.yaml", yaml.safe_dump(values).encode())]
    )
    assert install is not None, problems
    apiserver.admin.apply(*render_roles(install))
    place = Placement(
        image="edgefast/proxy:1", ca="PEM\n", namespace=own, gateway_namespace_mode=tokens
    )
    selector = (
        ("app.kubernetes.io/managed-by", "edge-gateway"),
        ("gateway.edge.io/owning-gateway-name", "eg"),
    )
    infra = ir.Infra(
        name=NAME,
        namespace=beside if tokens else own,
        selector=selector,
        labels=selector,
        ports=(ir.InfraPort("http-80", 80, 10080),),
        service=ir.InfraService(type="NodePort", external_traffic_policy="Cluster"),
        hpa=ir.InfraHPA(max_replicas=2),
        pdb=("maxUnavailable", 1),
        # GC's admission asks for rights on the owner's finalizers only where deletion is to be blocked.
        owner=("GatewayClass", "edge", "1-2-3"),
    )
    manifests = list(render_fleet(infra, place))
    if not tokens:
        meta = {"name": client_secret_name(NAME)}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"tls.crt": ""}}
        manifests.append(adopt(secret, infra, place))
    where = None if tokens and not listed else ((beside, own) if tokens else (own,))
    async with infra_bench(
        apiserver, place, where, kubeconfig=apiserver.kubeconfig_for(f"{own}/edge-gateway")
    ) as bench:
        bench.applier.want({f"{infra.namespace}/{NAME}": manifests})
        await until(lambda: bench.applier.settled)
        refused = bench.applier.refused  # bindings take a moment
        for one in manifests:
            path = bench.path(one["kind"], infra.namespace, one["metadata"]["name"])
            note = {"metadata": {"labels": {"gateway.edge.io/owning-gateway-name": "stolen"}}}
            apiserver.admin.patch(path, note, "merge")
        labels = dict(selector)
        for one in manifests:
            path = bench.path(one["kind"], infra.namespace, one["metadata"]["name"])
            await until(
                lambda path=path: (
                    labels.items()  # type: ignore[misc]
                    <= apiserver.admin.get(path)["metadata"]["labels"].items()
                ),
                one["kind"],
            )
        bench.applier.want({})
        await until(
            lambda: (
                not any(
                    bench.live(one["kind"], infra.namespace, one["metadata"]["name"])
                    for one in manifests
                )
            )
        )
        await until(lambda: bench.applier.settled)
        assert bench.applier.deleted == len(manifests)
        assert bench.applier.refused == refused
        await until(lambda: all(not one.problem for one in bench.inventory.reflectors))
        await until(lambda: bench.inventory.node_reflector.synced)
