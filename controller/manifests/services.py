"""The controller's Services, its configuration and its ServiceAccount.

In: `Install`. Out: objects. Source of names and ports: spec section 2 (generated data plane resources, control plane).
Must never: publish the admin, the relay or the health port.
"""

from __future__ import annotations

import yaml

from controller.manifests.naming import CONFIG_KEY
from controller.manifests.objects import Install, Manifest, metadata, selector
from controller.manifests.workload import PORTS
from edgefast.api.config.edgegateway import CONFIG_API_VERSION


def render_services(install: Install) -> list[Manifest]:
    """`edge-gateway` for proxies, `edge-gateway-metrics-service` for Prometheus."""
    release, values = install.release, install.values
    return [
        _service(install, release.base, values.service.annotations, ("xds", "xds-token")),
        _service(install, release.metrics, values.metrics_service.annotations, ("metrics",)),
    ]


def _service(
    install: Install, name: str, annotations: dict[str, str], ports: tuple[str, ...]
) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(install.release, name, annotations),
        "spec": {
            "type": "ClusterIP",
            "selector": selector(install.release),
            "ports": [
                {"name": one, "port": PORTS[one], "protocol": "TCP", "targetPort": one}
                for one in ports
            ],
        },
    }


def render_config(install: Install) -> Manifest:
    """ConfigMap `edge-gateway-config`; its text is the configuration as it was given."""
    document = {
        "apiVersion": CONFIG_API_VERSION,
        "kind": "EdgeGateway",
        **install.config,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(install.release, install.release.config),
        "data": {CONFIG_KEY: yaml.safe_dump(document, sort_keys=True, allow_unicode=True)},
    }


def render_account(install: Install) -> Manifest:
    """ServiceAccount of the controller."""
    release = install.release
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(release, release.base, install.values.service_account.annotations),
    }
