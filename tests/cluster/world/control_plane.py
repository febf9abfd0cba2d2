"""etcd and the API server as programs: their commands, their readiness, pausing and restarting them.

In: a `Site` (folder, addresses, ports, network namespace). Out: a running `ControlPlane` with an admin `Api`.
RBAC is on and anonymous requests are refused, as in any real cluster. Data lives in the folder, which should be in memory.
Must never: listen anywhere but where the Site says.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from cluster.tools.missing import debian, kubernetes
from cluster.world.api import Api, ApiError, Server
from cluster.world.kubeconfig import write_kubeconfig
from cluster.world.process import Program
from frozen import wait_frozen

ISSUER = "https://kubernetes.default.svc.cluster.local"
SERVICE_RANGE = "10.96.0.0/16"

_READY_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where a control plane lives."""

    folder: Path
    host: str
    port: int
    etcd_port: int
    peer_port: int
    in_netns: str | None = None
    bind: str = "127.0.0.1"
    #: Address in the endpoints of Service "kubernetes"; None leaves that Service without any.
    advertise: str | None = None
    dies_with_us: bool = True

    @property
    def pki(self) -> Path:
        """Folder of the certificates."""
        return self.folder / "pki"


class ControlPlane:
    """etcd and kube-apiserver; `admin` may do everything."""

    def __init__(self, site: Site, options: Sequence[str] = ()) -> None:
        self.site = site
        self.server = Server(site.host, site.port, site.pki / "ca.crt", site.in_netns)
        self.admin = Api(self.server, certificate=site.pki / "admin.crt")
        self.kubeconfig = site.pki / "admin.kubeconfig"
        self.etcd: Program | None = None
        self.apiserver: Program | None = None
        self._options = list(options)

    def start(self) -> None:
        """Start both and wait until the API server says it is ready."""
        self.begin()
        self.wait_ready()

    def begin(self) -> None:
        """Start both; `wait_ready` waits for them."""
        write_kubeconfig(
            self.kubeconfig,
            self.server.url,
            self.server.ca,
            certificate=self.site.pki / "admin.crt",
        )
        self.start_etcd()
        self.apiserver = self._program("kube-apiserver", self._apiserver_command())

    def start_etcd(self) -> None:
        """Start etcd; the API server waits for it by itself."""
        self.etcd = self._program("etcd", self._etcd_command())

    def start_apiserver(self) -> None:
        """Start the API server and wait for /readyz."""
        self.apiserver = self._program("kube-apiserver", self._apiserver_command())
        self.wait_ready()

    def find(self) -> None:
        """Adopt the programs that another process started."""
        self.etcd = Program.find(self.site.folder, "etcd")
        self.apiserver = Program.find(self.site.folder, "kube-apiserver")

    def stop(self) -> None:
        """End both, the API server first."""
        self.admin.close()
        # SIGKILL for both: an API server takes seconds to say goodbye to its watches, and the data is thrown away.
        for program in (self.apiserver, self.etcd):
            if program is not None:
                program.stop(number=signal.SIGKILL)
        self.apiserver = self.etcd = None

    def stop_in_peace(self) -> None:
        """End both so that the data is as it should be for another start."""
        self.admin.close()
        for program in (self.apiserver, self.etcd):
            if program is not None:
                program.stop(30.0)
        self.apiserver = self.etcd = None

    def stop_apiserver(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the API server alone; `start_apiserver` brings it back with everything it knew."""
        self.admin.close()
        if self.apiserver is not None:
            self.apiserver.stop(number=number)
            self.apiserver = None

    def pause(self) -> None:
        """Freeze the API server: connections stay open and nothing answers."""
        if self.apiserver is not None:
            self.apiserver.send(signal.SIGSTOP)
            wait_frozen(self.apiserver.pid)

    def resume(self) -> None:
        """Let a frozen API server go on."""
        if self.apiserver is not None:
            self.apiserver.send(signal.SIGCONT)

    def wait_ready(self, seconds: float = _READY_SECONDS) -> None:
        """Wait for /readyz; RuntimeError with the end of the log when a program ended or time is up."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self.admin.get("/readyz") == "ok":
                    return
            except (OSError, HTTPException, ApiError):
                pass
            for program in (self.etcd, self.apiserver):
                if program is not None and not program.alive():
                    raise RuntimeError(f"{program.name} ended:\n{program.tail()}")
            if time.monotonic() > deadline:
                log = self.apiserver.tail() if self.apiserver else ""
                raise RuntimeError(f"kube-apiserver is not ready after {seconds} s:\n{log}")
            time.sleep(0.03)

    def _program(self, name: str, command: list[str]) -> Program:
        site = self.site
        return Program.start(
            site.folder,
            name,
            command,
            in_netns=site.in_netns,
            # A start allocates much and keeps most of it: collecting less often saves processor time.
            env={"GOGC": "400"},
            dies_with_us=site.dies_with_us,
        )

    def _etcd_command(self) -> list[str]:
        site = self.site
        client = f"http://127.0.0.1:{site.etcd_port}"
        peer = f"http://127.0.0.1:{site.peer_port}"
        return [
            debian("etcd"),
            "--name=world",
            f"--data-dir={site.folder}/etcd",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=world={peer}",
            "--quota-backend-bytes=1073741824",
            "--snapshot-count=10000",
        ]

    def _apiserver_command(self) -> list[str]:
        site, pki = self.site, self.site.pki
        address = (
            site.advertise or "192.0.2.1"
        )  # TEST-NET-1 (RFC 5737): must not be loopback, is never used
        return [
            kubernetes("kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{site.etcd_port}",
            f"--bind-address={site.bind}",
            f"--secure-port={site.port}",
            f"--advertise-address={address}",
            *([] if site.advertise else ["--endpoint-reconciler-type=none"]),
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            f"--tls-cert-file={pki}/apiserver.crt",
            f"--tls-private-key-file={pki}/apiserver.key",
            f"--client-ca-file={pki}/ca.crt",
            "--anonymous-auth=false",
            "--authorization-mode=RBAC",
            f"--service-account-issuer={ISSUER}",
            f"--service-account-key-file={pki}/sa.pub",
            f"--service-account-signing-key-file={pki}/sa.key",
            f"--kubelet-certificate-authority={pki}/ca.crt",
            f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt",
            f"--kubelet-client-key={pki}/apiserver-kubelet-client.key",
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged=true",
            "--profiling=false",
            *self._options,
        ]
