"""A controller and proxies as real processes beside the real API server, each test with a controller of its own.

In: an `ApiServer`. Out: `Bench`: a namespace with certificates and a running `edgefast-controller run` that watches it alone,
under the chart's own roles; proxies (`edgefast proxy`) that take the part of pods; what the missing controllers of the cluster
would write (load balancer address, EndpointSlices). Everything on 127.0.0.1, all processes ended by their own pid.
Must never: stand in for anything of edgefast.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cluster.controller_parts import GATEWAY_API, Origin, Process, own_address, wait_for
from cluster.world.apiserver import ApiServer
from controller.manifests.load import load_install
from controller.manifests.naming import Release
from controller.manifests.roles import render_roles
from edgefast.api.kinds import KINDS
from wire.harness.ports import free_port

__all__ = ["GATEWAY_API", "Bench", "Process", "wait_for"]


class Bench:
    """Runs a controller and proxies against a real API server; a context manager."""

    def __init__(self, apiserver: ApiServer, **config: Any) -> None:
        self.api = apiserver.admin
        self._apiserver = apiserver
        self.namespace = apiserver.namespace("ctl")
        self.controller_name = f"gateway.edge.io/{self.namespace}"
        self.gateway_class = self.namespace
        self.folder = Path(tempfile.mkdtemp(prefix="edgefast-controller-"))
        self._config = config
        self._stack = contextlib.ExitStack()
        self.processes: list[Process] = []
        self.controller: Process
        self.port = 0  # of a first Gateway, for tests that share a bench
        self.ports: dict[str, int] = {}  # of its listeners
        self.fleet_name = ""

    # --- life -----------------------------------------------------------------------------------

    def __enter__(self) -> Bench:
        try:
            self._prepare()
            self.controller = self.start_controller()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for one in reversed(self.processes):
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait(10)
        self._stack.close()
        self.api.delete(f"/apis/{GATEWAY_API}/gatewayclasses/{self.gateway_class}")
        if kind is None:
            shutil.rmtree(self.folder)
        else:
            print(f"logs are kept in {self.folder}", file=sys.stderr)  # noqa: T201

    def _prepare(self) -> None:
        """Certificates, roles, configuration: what an installation has made."""
        release = Release("edge-gateway", self.namespace)
        names = f"{{{self.namespace}}}"
        watch = "config.edgeGateway.provider.kubernetes.watch"
        settings = [f"{watch}.type=Namespaces", f"{watch}.namespaces={names}"]
        if "extensionApis" in self._config:  # more roles than without
            settings.append("config.edgeGateway.extensionApis.enableXBackend=true")
        install, problems = load_install(release, settings=settings)
        assert install is not None, problems
        self.api.apply(*render_roles(install))
        self.kubeconfig = self._apiserver.kubeconfig_for(f"{self.namespace}/edge-gateway")
        admin = self._apiserver.kubeconfig
        where = ("--namespace", self.namespace, "--kubeconfig", str(admin))
        certgen = self.start("certgen", "controller.main", "certgen", *where)
        assert certgen.process.wait(30) == 0, certgen.text()
        certs = self.folder / "certs"
        certs.mkdir()
        self.save_secret("edge-gateway", certs)
        self.write_config()

    def write_config(self, **config: Any) -> None:
        """Write the configuration file; keyword arguments are its top-level fields."""
        document = {
            "apiVersion": "config.gateway.edge.io/v1alpha1",
            "kind": "EdgeGateway",
            "gateway": {"controllerName": self.controller_name},
            "provider": {
                "type": "Kubernetes",
                "kubernetes": {"watch": {"type": "Namespaces", "namespaces": [self.namespace]}},
            },
            **self._config,
            **config,
        }
        self.config = self.folder / "edge-gateway.yaml"
        fresh = self.folder / "edge-gateway.yaml.new"
        fresh.write_text(json.dumps(document))
        fresh.rename(self.config)

    def save_secret(self, name: str, folder: Path) -> None:
        """Write a Secret's values as files, as a mounted volume would have them."""
        secret = self.api.get(f"/api/v1/namespaces/{self.namespace}/secrets/{name}")
        for key, value in secret["data"].items():
            (folder / key).write_bytes(base64.b64decode(value))

    def start(self, name: str, *command: str) -> Process:
        """Start a Python module as a process."""
        started = Process(name, self.folder, *command)
        self.processes.append(started)
        return started

    def start_controller(
        self, name: str = "controller-0", pod_ip: str = "127.0.0.1", wrapper: str = "", **at: str
    ) -> Process:
        """Start a replica and wait until it is ready; `wrapper`: the module that runs it."""
        places = dict.fromkeys(("xds-token", "probes", "metrics", "admin"), "127.0.0.1:0")
        # Of a port that may be served again after a new start of all rooms.
        places |= {"xds": f"127.0.0.1:{free_port()}", "relay": "off", **at}
        started = self.start(
            name,
            *filter(None, (wrapper,)),
            "controller.main",
            "run",
            f"--namespace={self.namespace}",
            f"--kubeconfig={self.kubeconfig}",
            f"--config={self.config}",
            f"--certs={self.folder / 'certs'}",
            f"--pod-name={name}",
            f"--pod-ip={pod_ip}",
            *(f"--{what}={where}" for what, where in places.items()),
        )
        started.find(r"serving xds=(\S+)")
        wait_for(f"{name} is ready", lambda: self.ask(started, "probes", "/readyz")[0] == 200)
        return started

    def ask(self, controller: Process, server: str, path: str, method: str = "GET") -> Any:
        """Ask one of a controller's servers; returns status and body (decoded if it is JSON)."""
        host, port = controller.find(rf"serving .*\b{server}=(\S+)").rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=10)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read().decode()
        except OSError as error:
            return 0, str(error)
        finally:
            connection.close()
        is_json = answer.getheader("content-type") == "application/json"
        return answer.status, json.loads(body) if is_json else body

    def metric(self, name: str, labels: str = "", controller: Process | None = None) -> float:
        """Read one number of a controller's metrics; 0 when it is not there."""
        _, page = self.ask(controller or self.controller, "metrics", "/metrics")
        found = re.search(rf"^edgefast_controller_{name}{re.escape(labels)} (\S+)$", page, re.M)
        return float(found.group(1)) if found else 0.0

    # --- objects --------------------------------------------------------------------------------

    def apply(
        self, kind: str, name: str, spec: Any, version: str = GATEWAY_API, **more: Any
    ) -> Any:
        """Apply an object in the namespace (GatewayClasses in none); returns it."""
        metadata: dict[str, Any] = {"name": name}
        if kind != "GatewayClass":
            metadata["namespace"] = self.namespace
        manifest = {"apiVersion": version, "kind": kind, "metadata": metadata, **more}
        if spec is not None:
            manifest["spec"] = spec
        return self.api.apply(manifest)[0]

    def path(self, kind: str, name: str) -> str:
        """Return the path of an object of the Gateway API or of a core kind."""
        if kind == "GatewayClass":
            return f"/apis/{GATEWAY_API}/gatewayclasses/{name}"
        info = KINDS.get((GATEWAY_API.partition("/")[0], kind))
        if info is not None:
            return f"/apis/{GATEWAY_API}/namespaces/{self.namespace}/{info.plural}/{name}"
        return f"/api/v1/namespaces/{self.namespace}/{kind.lower()}s/{name}"

    def get(self, kind: str, name: str) -> Any:
        """Return an object."""
        return self.api.get(self.path(kind, name))

    def delete(self, kind: str, name: str) -> None:
        """Delete an object."""
        self.api.delete(self.path(kind, name))

    def add_class(self) -> None:
        """Add our GatewayClass."""
        self.apply("GatewayClass", self.gateway_class, {"controllerName": self.controller_name})

    def add_gateway(self, name: str = "gw", port: int = 0, **listener: Any) -> int:
        """Add a Gateway with one HTTP listener; returns its port."""
        port = port or free_port()
        one = {"name": "http", "protocol": "HTTP", "port": port, **listener}
        self.apply("Gateway", name, {"gatewayClassName": self.gateway_class, "listeners": [one]})
        return port

    def add_backend(self, name: str, *ports: int) -> None:
        """Add a Service of origins at these ports, one EndpointSlice for each."""
        self.apply("Service", name, {"ports": [{"port": 80}]}, "v1")
        for index, port in enumerate(ports):
            self.apply(
                "EndpointSlice",
                f"{name}-{index}",
                None,
                "discovery.k8s.io/v1",
                addressType="IPv4",
                endpoints=[{"addresses": [own_address()], "conditions": {"ready": True}}],
                ports=[{"port": port, "protocol": "TCP", "name": ""}],
            )
            path = f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices"
            label = {"kubernetes.io/service-name": name}
            self.api.patch(f"{path}/{name}-{index}", {"metadata": {"labels": label}})

    def add_route(
        self,
        name: str = "r",
        host: str = "",
        backend: str = "web",
        gateway: str = "gw",
        **rule: Any,
    ) -> Any:
        """Add a route with one rule."""
        one = {"backendRefs": [{"name": backend, "port": 80}], **rule}
        spec: dict[str, Any] = {"parentRefs": [{"name": gateway}], "rules": [one]}
        if host:
            spec["hostnames"] = [host]
        return self.apply("HTTPRoute", name, spec)

    # --- what is not there without a cluster ------------------------------------------------------

    def fleet(self, gateway: str = "gw") -> str:
        """Wait for a Gateway's fleet and return its name."""
        label = f"gateway.edge.io/owning-gateway-name={gateway}"
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"

        def look() -> str:
            found = self.api.items(path, labelSelector=label)
            return found[0]["metadata"]["name"] if found else ""

        name: str = wait_for(f"the fleet of {gateway}", look)
        return name

    def give_address(self, fleet: str, address: str = "127.0.0.1") -> None:
        """Be the load balancer: give a fleet's Service an address."""
        path = f"/api/v1/namespaces/{self.namespace}/services/{fleet}"
        self.api.wait(path, lambda found: found is not None)
        ingress = {"loadBalancer": {"ingress": [{"ip": address}]}}
        self.api.patch(f"{path}/status", {"status": ingress})

    def set_pods(self, fleet: str, *pods: str, unready: str = "") -> None:
        """Be the EndpointSlice controller: these pods of a fleet are there and, but for one, ready."""
        service = self.api.get(f"/api/v1/namespaces/{self.namespace}/services/{fleet}")
        labels = {**service["metadata"]["labels"], "kubernetes.io/service-name": fleet}
        self.api.apply(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "name": f"{fleet}-slice",
                    "namespace": self.namespace,
                    "labels": labels,
                },
                "addressType": "IPv4",
                "endpoints": [
                    {
                        "addresses": [f"10.1.0.{index + 2}"],
                        "conditions": {"ready": pod != unready},
                        "targetRef": {"kind": "Pod", "name": pod, "namespace": self.namespace},
                    }
                    for index, pod in enumerate(pods)
                ],
                "ports": [],
            }
        )

    def start_proxy(
        self, fleet: str, pod: str = "0", bind: str = "127.0.0.1", server: str = ""
    ) -> Process:
        """Be a pod of a fleet: `edgefast proxy` with the fleet's certificate."""
        server = server or self.controller.find(r"serving xds=(\S+)")
        folder = self.folder / f"{fleet}-{pod}"
        if not folder.exists():
            (folder / "state").mkdir(parents=True)
            path = f"/api/v1/namespaces/{self.namespace}/secrets/{fleet}-xds"
            self.api.wait(path, lambda found: found is not None)
            self.save_secret(f"{fleet}-xds", folder)
        return self.start(
            f"{fleet}-{pod}",
            "edgefast.cli.main",
            "proxy",
            f"--xds={server}",
            "--server-name=edge-gateway",
            f"--ca={folder / 'ca.crt'}",
            f"--cert={folder / 'tls.crt'}",
            f"--key={folder / 'tls.key'}",
            f"--node={fleet}-{pod}",
            f"--bind={bind}",
            f"--state-dir={folder / 'state'}",
            "--workers=1",
            "--admin=127.0.0.1:0",
            "--ready=127.0.0.1:0",
            "--metrics=127.0.0.1:0",
            "--min-drain=0",
        )

    @contextlib.contextmanager
    def origin(self, name: str) -> Iterator[Origin]:
        """Serve an origin while the context lasts."""
        made = Origin(name)
        try:
            yield made
        finally:
            made.close()

    def add_origin(self, name: str) -> Origin:
        """Serve an origin to the end of the bench."""
        return self._stack.enter_context(self.origin(name))

    def bring_up(self, name: str = "gw", **listener: Any) -> tuple[int, str]:
        """A Gateway with a load balancer's address and one ready proxy; returns its port and fleet."""
        port = self.add_gateway(name, **listener)
        fleet = self.fleet(name)
        self.give_address(fleet)
        self.start_proxy(fleet)
        self.set_pods(fleet, f"{fleet}-0")
        return port, fleet

    # --- what is to be seen ---------------------------------------------------------------------

    def request(
        self, port: int, path: str = "/", host: str = "a", address: str = "127.0.0.1"
    ) -> Any:
        """Send a request; returns status and body, (0, why) when nobody answers."""
        connection = http.client.HTTPConnection(address, port, timeout=10)
        try:
            connection.request("GET", path, headers={"Host": host})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError as error:
            return 0, str(error)
        finally:
            connection.close()

    def expect(self, port: int, want: Any, path: str = "/", host: str = "a") -> None:
        """Wait until requests get this answer (status, or status and body)."""

        def look() -> bool:
            got = self.request(port, path, host)
            return bool(got == want if isinstance(want, tuple) else got[0] == want)

        wait_for(f"{host}{path} at {port} answers {want}", look)

    def conditions(self, kind: str, name: str, gateway: str = "") -> dict[str, Any]:
        """Return the conditions of an object by type; of a route those at one parent."""
        status = self.get(kind, name).get("status") or {}
        if kind.endswith("Route") or kind == "BackendTLSPolicy":
            entries = [
                one
                for one in status.get("parents") or status.get("ancestors") or ()
                if one["controllerName"] == self.controller_name
                and (not gateway or one["parentRef"]["name"] == gateway)
            ]
            status = entries[0] if entries else {}
        return {one["type"]: one for one in status.get("conditions") or ()}

    def expect_condition(
        self, kind: str, name: str, type_: str, status: str, reason: str = "", generation: int = 0
    ) -> Any:
        """Wait for a condition and return it."""

        def look() -> Any:
            one = self.conditions(kind, name).get(type_)
            fits = one is not None and one["status"] == status
            fits = fits and (not reason or one["reason"] == reason)
            return one if fits and one.get("observedGeneration", 0) >= generation else None

        try:
            return wait_for(f"{kind} {name}: {type_}={status} {reason}", look)
        except AssertionError:
            raise AssertionError(
                f"{kind} {name}: no {type_}={status}/{reason}, but {self.get(kind, name).get('status')}"
            ) from None
