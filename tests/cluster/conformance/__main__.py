"""`python -m cluster.conformance [MODE...]`: the official suite against this working tree (as root), `make test-conformance`.

In: modes, all but the merged one unless named; --run-test for one test. Out: a verdict and times; exit status 1 when a run is not
good. The suite's own output and the logs of a world that failed are in build/conformance; with --report, whole good runs are
written to docs/conformance.
Must never: leave a world behind, write a report of a run that was not whole and good.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from cluster.conformance.install import install
from cluster.conformance.modes import MODES, Mode
from cluster.conformance.suite import Report, run_suite
from cluster.tools.build import build
from cluster.tools.missing import MissingTool
from cluster.world.folder import PROJECT
from cluster.world.world import World
from edgefast import __version__

_LOGS = PROJECT / "build" / "conformance"
_REPORTS = PROJECT / "docs" / "conformance"
_USUAL = ("controller-namespace", "gateway-namespace")


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--mode", "modes", multiple=True, type=click.Choice([*MODES]), default=_USUAL)
@click.option("--report", is_flag=True, help="Write docs/conformance/MODE.yaml.")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def main(modes: tuple[str, ...], report: bool, flags: tuple[str, ...]) -> None:
    """Run the suite in each mode; FLAGS (after --) go to the suite."""
    if report and flags:
        raise click.UsageError("a report is of a whole run: --report takes no flags of the suite")
    try:
        build(["conformance", "echo-basic"], click.echo)
        good = [_run(MODES[name], flags, report=report) for name in modes]
    except (MissingTool, PermissionError, RuntimeError) as error:
        raise click.ClickException(str(error)) from error
    sys.exit(0 if all(good) else 1)


def _run(mode: Mode, flags: tuple[str, ...], *, report: bool) -> bool:
    began = time.monotonic()
    log = _LOGS / f"{mode.name}.log"
    written = _LOGS / f"{mode.name}.yaml"
    world = World.make()
    good = False
    try:
        world.start()
        install(world, mode)
        click.echo(f"{mode.title}: installed in {time.monotonic() - began:.0f} s; output in {log}")
        asked = Report(path=written, version=__version__) if not flags else None
        verdict = run_suite(world, mode, log, flags, asked)
        good = verdict.good
    finally:
        kept = world.stop(keep_logs=not good)
        if kept is not None:
            click.echo(f"{mode.title}: logs of the world: {kept}")
    for line in verdict.lines():
        click.echo(line)
    click.echo(f"{mode.title}: {'good' if good else 'FAILED'}, {time.monotonic() - began:.0f} s")
    if good and report:
        _keep(written, _REPORTS / f"{mode.name}.yaml")
    return good


def _keep(written: Path, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(written.read_text())


if __name__ == "__main__":
    main()
