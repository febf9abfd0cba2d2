"""Versions of everything the cluster tests build, and where each build is kept.

In: nothing but EDGEFAST_CLUSTER_CACHE, a folder to use instead of ~/.cache/edgefast-cluster.
Out: one folder per version, so that a new version never meets an old build.
Must never: name a version in two places; the go.mod files beside this one are checked against it.
"""

from __future__ import annotations

import os
from pathlib import Path

KUBERNETES = "v1.36.3"
GATEWAY_API = "v1.6.3"
#: The other release that the conformance suite is run of.
NEWEST_GATEWAY_API = "v1.7.0"
#: CRDs that are older than the product knows: without ListenerSet, ReferenceGrant in v1beta1 alone.
OLDER_GATEWAY_API = "v1.3.0"
HELM = "v4.3.1"
H2SPEC = "v2.2.1+incompatible"
GRPC = "v1.85.0"
GRPCURL = "v1.9.4"
GHZ = "v0.121.0"
CERT_MANAGER = "v1.21.2"
ENVOY_GATEWAY = "v1.9.1"
PEBBLE = "v2.10.3"
HYDRA = "v2.3.0"
#: Modules whose Ingresses are read. ingress-nginx has no tags that Go knows.
INGRESS_FILES = {
    "k8s.io/ingress-nginx": "v0.0.0-20240708192948-52c50467d67d",
    "github.com/traefik/traefik/v3": "v3.7.13",
    "github.com/argoproj/argo-rollouts": "v1.10.2",
    "github.com/argoproj/argo-cd/v3": "v3.6.1",
}

CACHE = Path(
    os.environ.get("EDGEFAST_CLUSTER_CACHE") or Path.home() / ".cache" / "edgefast-cluster"
)


def gateway_api_home(release: str) -> Path:
    """Return the folder of what comes from one release of the Gateway API."""
    return CACHE / f"gateway-api-{release}"


GATEWAY_API_HOME = gateway_api_home(GATEWAY_API)
KUBERNETES_HOME = CACHE / f"kubernetes-{KUBERNETES}"
HELM_HOME = CACHE / f"helm-{HELM}"
H2SPEC_HOME = CACHE / "h2spec-v2.2.1"
GRPC_HOME = CACHE / f"grpc-{GRPC}-{GRPCURL}-{GHZ}"
PEBBLE_HOME = CACHE / f"pebble-{PEBBLE}"
HYDRA_HOME = CACHE / f"hydra-{HYDRA}"
CERT_MANAGER_HOME = CACHE / f"cert-manager-{CERT_MANAGER}"
