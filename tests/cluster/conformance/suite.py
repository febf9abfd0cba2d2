"""One run of the suite: the program, started outside the node, where clients are.

In: a world with the product installed, a release of the suite, flags. Out: its whole output in a file, and the verdict.
Must never: end the suite's children by name, or leave it running.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.conformance.modes import CLASS, Mode
from cluster.conformance.verdicts import Verdict, judge
from cluster.tools.build import PROGRAMS
from cluster.tools.missing import built
from cluster.tools.versions import GATEWAY_API, NEWEST_GATEWAY_API
from cluster.world import addresses as at
from cluster.world import netns
from cluster.world.world import World

PROFILES = ("GATEWAY-HTTP", "GATEWAY-GRPC", "GATEWAY-TLS", "GATEWAY-TCP", "GATEWAY-UDP")
_MINUTES = 60
#: Seconds for single calls of the API server, 10 by default; the suite sets them no limit, and a machine may stall.
_PATIENCE = "GetTimeout:60;DeleteTimeout:60"
#: The load balancer's last address, and one that is nobody's (RFC 5737).
_USABLE, _UNUSABLE = at.LB_POOL[-1], "192.0.2.1"


#: Programs of cluster.tools, by release of the suite.
SUITES = {NEWEST_GATEWAY_API: "conformance-newest", GATEWAY_API: "conformance"}


@dataclass(frozen=True, kw_only=True)
class Report:
    """What the suite writes about itself when all of it was run."""

    path: Path
    version: str

    def flags(self, mode: Mode) -> list[str]:
        """Return the flags for it; the suite wants all of them or none."""
        return [
            f"--report-output={self.path}",
            "--organization=edgefast",
            "--project=edgefast",
            "--url=https://gateway.edge.io",
            f"--version=v{self.version}",
            "--contact=https://gateway.edge.io",
            f"--mode={mode.report}",
        ]


def run_suite(
    world: World,
    release: str,
    mode: Mode,
    log: Path,
    flags: Sequence[str] = (),
    report: Report | None = None,
) -> Verdict:
    """Run the suite to its end; what it says is in `log`."""
    command = [
        *netns.prefix(world.network.client),
        built(PROGRAMS[SUITES[release]].target),
        "-test.v",
        f"-test.timeout={_MINUTES}m",
        f"--gateway-class={CLASS}",
        f"--conformance-profiles={','.join(PROFILES)}",
        f"--usable-address={_USABLE}",
        f"--unusable-address={_UNUSABLE}",
        f"--timeout-config-overrides={_PATIENCE}",
        *(report.flags(mode) if report is not None else ()),
        *([f"--exempt-features={','.join(mode.exempt)}"] if mode.exempt else ()),
        *flags,
    ]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as out:
        status = subprocess.run(
            command,
            env={**os.environ, "KUBECONFIG": str(world.kubeconfig)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=_MINUTES * 60 + 60,
        ).returncode
    with log.open(errors="replace") as text:
        return judge(text, status)
