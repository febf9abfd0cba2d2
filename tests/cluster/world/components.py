"""The other programs of a world: kube-controller-manager, kube-proxy, the node agent.

In: the control plane's Site. Out: running programs; each can be ended and started again alone.
Must never: be signalled through anything but their own pids.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
from pathlib import Path

from cluster.tools.missing import debian, kubernetes
from cluster.world import addresses as at
from cluster.world import netns
from cluster.world.control_plane import Site
from cluster.world.kubeconfig import write_kubeconfig
from cluster.world.process import Program

_TESTS = Path(__file__).resolve().parents[2]
_PROXY_HEALTH = 10256

NAMES = ("node-agent", "kube-proxy", "kube-controller-manager")


class ComponentPrograms:
    """The programs by name; NAMES is the order they end in."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._running: dict[str, Program] = {}

    def __getitem__(self, name: str) -> Program:
        """Return a running program."""
        return self._running[name]

    def start_one(self, name: str) -> None:
        """Start one of NAMES."""
        debian("nft")
        commands = {
            "node-agent": self._agent,
            "kube-proxy": self._proxy,
            "kube-controller-manager": self._controller_manager,
        }
        self._running[name] = Program.start(
            self._site.folder,
            name,
            commands[name](),
            in_netns=self._site.in_netns,
            env={"PYTHONPATH": os.pathsep.join([str(_TESTS), str(_TESTS.parent)])},
            dies_with_us=self._site.dies_with_us,
        )

    def stop_one(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End one of NAMES; the pods' containers end with the agent and come back with it."""
        program = self._running.pop(name, None)
        if program is not None:
            program.stop(number=number)

    def stop(self) -> None:
        """End all of them."""
        for name in NAMES:
            self.stop_one(name, signal.SIGTERM if name == "node-agent" else signal.SIGKILL)

    def find(self) -> None:
        """Adopt what another process has started."""
        for name in NAMES:
            program = Program.find(self._site.folder, name)
            if program is not None:
                self._running[name] = program

    def proxy_healthy(self) -> bool:
        """Whether kube-proxy has written its rules."""
        try:
            sock = netns.connect(self._site.in_netns, "127.0.0.1", _PROXY_HEALTH, 1.0)
        except OSError:
            return False
        connection = http.client.HTTPConnection("127.0.0.1")
        connection.sock = sock
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def proxy_log(self) -> str:
        """Return the end of kube-proxy's log."""
        return self._running["kube-proxy"].tail()

    def _kubeconfig(self, name: str) -> Path:
        pki = self._site.pki
        path = pki / f"{name}.kubeconfig"
        server = f"https://{at.NODE_ADDRESS}:6443"
        return write_kubeconfig(path, server, pki / "ca.crt", certificate=pki / f"{name}.crt")

    def _agent(self) -> list[str]:
        settings = self._site.folder / "agent.json"
        return [sys.executable, "-m", "cluster.world.node.agent", str(settings)]

    def _controller_manager(self) -> list[str]:
        pki = self._site.pki
        return [
            kubernetes("kube-controller-manager"),
            f"--kubeconfig={self._kubeconfig('controller-manager')}",
            "--authentication-skip-lookup=true",
            "--bind-address=127.0.0.1",
            f"--service-account-private-key-file={pki}/sa.key",
            f"--root-ca-file={pki}/ca.crt",
            f"--cluster-signing-cert-file={pki}/ca.crt",
            f"--cluster-signing-key-file={pki}/ca.key",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--controllers=*",
            # A real one loses its Lease while the API server is away, ends, and is started again with fresh clocks.
            # This one stays alone and keeps its clocks: after a test's outage of a minute it would take the node for
            # dead and every pod for unready before it had seen one heartbeat.
            "--node-monitor-grace-period=10m",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            "--profiling=false",
        ]

    def _proxy(self) -> list[str]:
        config = self._site.folder / "kube-proxy.json"
        # 0 leaves the kernel's conntrack settings, which are the machine's, alone.
        untouched = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s"}
        document = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(self._kubeconfig("proxy"))},
            "mode": "nftables",
            "clusterCIDR": at.POD_RANGE,
            "hostnameOverride": at.NODE,
            "oomScoreAdj": 0,
            "healthzBindAddress": f"127.0.0.1:{_PROXY_HEALTH}",
            "metricsBindAddress": "127.0.0.1:10249",
            "nodePortAddresses": ["primary"],
            "conntrack": {**untouched, "tcpCloseWaitTimeout": "0s"},
            "nftables": {"minSyncPeriod": "50ms", "syncPeriod": "30s"},
        }
        config.write_text(json.dumps(document, indent=1))
        return [kubernetes("kube-proxy"), f"--config={config}", "--v=2"]
