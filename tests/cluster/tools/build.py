"""Building the Go programs that tests run: `python -m cluster.tools [NAME...]`.

In: names of PROGRAMS; none means those every cluster test needs. Out: programs in the cache folder, built once per version from the
go.mod files beside this one, whose go.sum files pin every module. Needs Go 1.26 or newer, and minutes the first time.
Must never: build what is there, or leave half a program: it is moved into place when it is whole.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from cluster.tools.missing import MissingTool
from cluster.tools.versions import (
    CACHE,
    ENVOY_GATEWAY,
    GATEWAY_API_HOME,
    GRPC_HOME,
    H2SPEC_HOME,
    HELM_HOME,
    HYDRA_HOME,
    KUBERNETES,
    KUBERNETES_HOME,
    NEWEST_GATEWAY_API,
    PEBBLE_HOME,
    gateway_api_home,
)

MODULES = Path(__file__).parent / "gomod"
GO_VERSION = (1, 26)

#: A compiler beside a sanitizer's runtime has nothing to gain.
_ALONE = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Program:
    """One program: where it comes from, where it goes."""

    module: str  # folder of MODULES
    package: str
    target: Path
    test: bool = False  # `go test -c` instead of `go build`
    flags: str = "-s -w"  # of the linker
    tags: str = ""  # build tags, separated by commas
    cgo: bool = False  # needs a C compiler
    toolchain: str = (
        "local"  # GOTOOLCHAIN: a module that needs a newer Go names it, and Go downloads it
    )


def _kubernetes(name: str) -> Program:
    # Without the version a server calls itself v0.0.0-master.
    version = f"-X k8s.io/component-base/version.gitVersion={KUBERNETES}"
    return Program(
        module="kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        target=KUBERNETES_HOME / name,
        flags=f"-s -w {version}",
    )


def _ours(module: str, name: str) -> Program:
    """A program whose source is here: another text is another program."""
    text = b"".join(
        one.read_bytes()
        for one in (MODULES / module / "go.mod", MODULES / module / name / "main.go")
    )
    home = CACHE / f"{module}-{hashlib.sha256(text).hexdigest()[:12]}"
    return Program(module=module, package=f"./{name}", target=home / name)


#: Every program; the order lets later ones use what earlier ones have compiled.
PROGRAMS: dict[str, Program] = {
    **{
        name: _kubernetes(name)
        for name in ("kube-apiserver", "kube-controller-manager", "kube-proxy")
    },
    "echo-basic": Program(
        module="conformance",
        package="sigs.k8s.io/gateway-api/conformance/echo-basic",
        target=GATEWAY_API_HOME / "echo-basic",
    ),
    "helm": Program(module="helm", package="helm.sh/helm/v4/cmd/helm", target=HELM_HOME / "helm"),
    "h2spec": Program(
        module="h2spec",
        package="github.com/summerwind/h2spec/cmd/h2spec",
        target=H2SPEC_HOME / "h2spec",
    ),
    "asks": _ours("http2", "asks"),
    "serves": _ours("http2", "serves"),
    "grpc-serves": _ours("grpc", "serves"),
    **{
        f"interop-{name}": Program(
            module="grpc",
            package=f"google.golang.org/grpc/interop/{name}",
            target=GRPC_HOME / f"interop-{name}",
        )
        for name in ("client", "server")
    },
    "grpcurl": Program(
        module="grpc",
        package="github.com/fullstorydev/grpcurl/cmd/grpcurl",
        target=GRPC_HOME / "grpcurl",
    ),
    "ghz": Program(
        module="grpc", package="github.com/bojand/ghz/cmd/ghz", target=GRPC_HOME / "ghz"
    ),
    **{
        name: Program(
            module="pebble",
            package=f"github.com/letsencrypt/pebble/v2/cmd/{name}",
            target=PEBBLE_HOME / name,
        )
        for name in ("pebble", "pebble-challtestsrv")
    },
    "hydra": Program(
        module="hydra",
        package="github.com/ory/hydra/v2",
        target=HYDRA_HOME / "hydra",
        tags="sqlite,sqlite_omit_load_extension",
        cgo=True,
    ),
    "cert-manager": _ours("certmanager", "controller"),
    "envoy-gateway": Program(
        module="envoygateway",
        package="github.com/envoyproxy/gateway/cmd/envoy-gateway",
        target=CACHE / f"envoy-gateway-{ENVOY_GATEWAY}" / "envoy-gateway",
        toolchain="go1.27.3",
    ),
    "conformance": Program(
        module="conformance", package=".", target=GATEWAY_API_HOME / "conformance.test", test=True
    ),
    "conformance-newest": Program(
        module="conformance_newest",
        package=".",
        target=gateway_api_home(NEWEST_GATEWAY_API) / "conformance.test",
        test=True,
        toolchain="go1.27.3",
    ),
}


def build(names: Iterable[str], say: Say) -> None:
    """Build what is not there yet; MissingTool without Go, RuntimeError with its output when a build fails."""
    for name in names:
        program = PROGRAMS[name]
        if program.target.exists():
            continue
        go = find_go(f"build {name}")
        say(f"{name}: building {program.target} (minutes, once per version)")
        began = time.monotonic()
        _build(go, program)
        say(f"{name}: built in {time.monotonic() - began:.0f} s")


def find_go(purpose: str) -> str:
    """Return the path of a Go that is new enough."""
    wanted = ".".join(map(str, GO_VERSION))
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        raise MissingTool(f"go ({wanted} or newer, https://go.dev/dl)", purpose)
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True).stdout
    found = re.match(r"go(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < GO_VERSION:
        raise MissingTool(f"go {wanted} or newer (here is {said.strip()})", purpose)
    return go


def _build(go: str, program: Program) -> None:
    program.target.parent.mkdir(parents=True, exist_ok=True)
    part = program.target.with_suffix(f".{os.getpid()}")
    verb = ["test", "-c"] if program.test else ["build"]
    options = ["-trimpath", "-tags", program.tags, "-ldflags", program.flags, "-o", str(part)]
    command = [go, *verb, *options, program.package]
    done = subprocess.run(
        ["nice", "-n", "10", *command],
        cwd=MODULES / program.module,
        env={
            **_ALONE,
            "CGO_ENABLED": "1" if program.cgo else "0",
            "GOTOOLCHAIN": program.toolchain,
            "GOFLAGS": "-mod=readonly",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        part.unlink(missing_ok=True)
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout}")
    part.replace(program.target)
