"""edgefast of this environment: `edgefast run` on a folder of Gateway API objects, one worker.

In: a `Setup`. Out: `objects/` with base.json and routes.json, and a command line.
Must never use a flag or a field that a user would not have.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.objects import Object, make_base, make_route, make_routes
from bench.peers.peer import Peer, PeerUnavailable, Running, Setup, read_first_line
from bench.policy_objects import POLICY, make_policies
from bench.scenario import Scenario


class Edgefast(Peer):
    """The product."""

    name = "edgefast"
    policies = True

    def find_program(self) -> Path | None:
        """The command beside the running interpreter."""
        path = Path(sys.executable).parent / "edgefast"
        return path if path.exists() else None

    def read_version(self) -> str:
        """As `edgefast version` says."""
        return read_first_line([str(self.find_program()), "version"])

    def read_facts(self) -> dict[str, float]:
        """aws_lc: 1 when the engine is linked with it, 0 with the system's OpenSSL."""
        from edgefast.core import engine

        return {"aws_lc": float(engine.tls_library().startswith("AWS-LC"))}

    def render(self, setup: Setup) -> list[str]:
        """Write the objects as JSON lists."""
        scenario, folder = setup.scenario, setup.folder / "objects"
        folder.mkdir()
        base = make_base(scenario, setup.port, setup.origin_port, setup.certificate)
        _write_list(folder / "base.json", base)
        _write_list(folder / "routes.json", list(make_routes(scenario)))
        if scenario.policy:
            _write_list(folder / "policies.json", make_policies(scenario))
            self._check(folder)
        program = str(self.find_program())
        argv = [program, "run", "-f", str(folder), "--workers", "1", "--bind", "127.0.0.1"]
        for name in ("--admin", "--ready", "--metrics"):
            argv += [name, "127.0.0.1:0"]
        return argv

    def _check(self, folder: Path) -> None:
        """A file with a mistake is not served at all, and some fields are passed over: without its policy a proxy would win for the wrong reason."""
        argv = [str(self.find_program()), "check", "-f", str(folder)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        said = (done.stdout + done.stderr).strip().splitlines() or ["edgefast check failed"]
        of_policy = [line for line in said if POLICY in line]
        if done.returncode or of_policy:
            raise PeerUnavailable(
                (of_policy or said)[0].partition(POLICY)[2][:200] or said[0][:200]
            )

    def prepare_reload(self, running: Running, scenario: Scenario) -> Callable[[], None]:
        """The routes that the new scenario has more, as one new file moved beside the others."""
        old = running.setup.scenario.routes
        added = [
            make_route(f"route-{i}", scenario.make_route(i)) for i in range(old, scenario.routes)
        ]
        ready = running.setup.folder / "added.json"
        _write_list(ready, added)
        return lambda: os.replace(ready, running.setup.folder / "objects" / "added.json")


def _write_list(path: Path, objects: list[Object]) -> None:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
