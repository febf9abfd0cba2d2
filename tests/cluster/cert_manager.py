"""cert-manager and a small ACME server beside a world: Pebble, its name server, and the controllers of cert-manager.

In: a world, the address that every name resolves to. Out: an ACME server inside the node's network namespace, whose HTTP-01
validation asks that address at port 80, and an Issuer for a namespace. cert-manager's solver runs in pods, as in any cluster.
Must never: outlive the block.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.installed import Manifest
from cluster.tools.build import PROGRAMS
from cluster.tools.cert_manager_crds import cert_manager_crds
from cluster.tools.missing import built
from cluster.world.client import Client
from cluster.world.crds import install
from cluster.world.node.settings import Image
from cluster.world.process import Program
from cluster.world.waiting import wait_until
from cluster.world.world import World
from tests.support.manifest import manifest
from wire.harness.certificates import Authority

GROUP = "cert-manager.io/v1"
SOLVER = "cert-manager-solver"
_SOLVER_USER = 65532
# Ports in the network namespace of the node, which belongs to this world.
_ACME, _DNS, _MANAGEMENT = 14000, 8053, 15000


class CertManager:
    """What a test needs to know: the certificate of the ACME server's own TLS."""

    def __init__(self, authority: Authority) -> None:
        self._bundle = b64encode(authority.pem).decode()

    def issuer(self, namespace: str, class_name: str) -> Manifest:
        """Return an Issuer whose solver makes Ingresses of a class."""
        acme = {
            "server": f"https://127.0.0.1:{_ACME}/dir",
            "caBundle": self._bundle,
            "email": "ops@example.com",
            "privateKeySecretRef": {"name": "account"},
            "solvers": [{"http01": {"ingress": {"ingressClassName": class_name}}}],
        }
        return manifest(f"Issuer {namespace}/acme", {"acme": acme}, api=GROUP)


@contextmanager
def cert_manager(world: World, address: str) -> Iterator[CertManager]:
    """Run all of it; the names of certificates resolve to `address`."""
    install(world.admin, cert_manager_crds())
    world.image(SOLVER, Image((_program("cert-manager"), "solver"), user=_SOLVER_USER))
    authority = Authority()
    folder = world.folder / "acme"
    folder.mkdir(exist_ok=True)
    commands = {
        "acme-names": _names(address),
        "acme-server": _acme(folder, authority),
        "cert-manager": [
            _program("cert-manager"),
            "run",
            str(world.kubeconfig),
            f"127.0.0.1:{_DNS}",
            f"{SOLVER}:v1",
        ],
    }
    started: list[Program] = []
    try:
        for name, command in commands.items():
            started.append(
                Program.start(
                    world.folder, name, command, in_netns=world.network.node, env=_ENVIRONMENT
                )
            )
            if name == "acme-server":
                _wait_directory(world, started[-1])
        yield CertManager(authority)
        assert all(one.alive() for one in started), [one.tail() for one in started]
    finally:
        for one in reversed(started):
            one.stop()


#: Without random pauses and refused nonces, which Pebble has to train clients.
_ENVIRONMENT = {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"}


def _program(name: str) -> str:
    return built(PROGRAMS[name].target)


def _names(address: str) -> list[str]:
    """Return the command of a name server that has one address for all names."""
    off = [f"-{one}=" for one in ("http01", "https01", "tlsalpn01", "doh", "management")]
    return [
        _program("pebble-challtestsrv"),
        f"-dnsserver=127.0.0.1:{_DNS}",
        f"-defaultIPv4={address}",
        "-defaultIPv6=",
        *off,
    ]


def _acme(folder: Path, authority: Authority) -> list[str]:
    pair = authority.issue(["127.0.0.1"])
    (folder / "cert.pem").write_bytes(pair.certificate)
    (folder / "key.pem").write_bytes(pair.key)
    settings = {
        "pebble": {
            "listenAddress": f"127.0.0.1:{_ACME}",
            "managementListenAddress": f"127.0.0.1:{_MANAGEMENT}",
            "certificate": str(folder / "cert.pem"),
            "privateKey": str(folder / "key.pem"),
            "httpPort": 80,
            "tlsPort": 443,
            "retryAfter": {"authz": 1, "order": 1},
            "profiles": {"default": {"description": "all", "validityPeriod": 7776000}},
        }
    }
    (folder / "pebble.json").write_text(json.dumps(settings))
    return [
        _program("pebble"),
        "-config",
        str(folder / "pebble.json"),
        "-dnsserver",
        f"127.0.0.1:{_DNS}",
    ]


def _wait_directory(world: World, server: Program) -> None:
    client = Client(world.network.node)

    def answers() -> bool:
        assert server.alive(), server.tail()
        try:
            named = {"User-Agent": "test"}  # which Pebble asks for
            return client.request(f"https://127.0.0.1:{_ACME}/dir", headers=named).status == 200
        except OSError:
            return False

    wait_until(answers)
