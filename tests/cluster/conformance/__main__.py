"""`python -m cluster.conformance`: the official suite against this working tree (as root), `make test-conformance`.

In: modes and releases of the suite; without both, each mode with one release and each release in one mode. FLAGS for one test.
Out: a verdict and times; exit status 1 when a run is not good. The suite's own output and the logs of a world that failed are in
build/conformance; with --report, whole good runs are written to docs/conformance/reports.
Must never: leave a world behind, write a report of a run that was not whole and good.
"""

from __future__ import annotations

import sys
import time
from itertools import product

import click

from cluster.conformance.install import install
from cluster.conformance.modes import MODES, Mode
from cluster.conformance.reports import report_path
from cluster.conformance.suite import SUITES, Report, run_suite
from cluster.tools.build import build
from cluster.tools.crds import gateway_api_crds
from cluster.tools.missing import MissingTool
from cluster.tools.versions import GATEWAY_API, NEWEST_GATEWAY_API
from cluster.world.crds import install as install_crds
from cluster.world.crds import own_crds
from cluster.world.folder import PROJECT
from cluster.world.world import World
from edgefast import __version__

_LOGS = PROJECT / "build" / "conformance"
_MODES = ("controller-namespace", "gateway-namespace")
#: Where a release differs, the difference is in what a fleet serves, not in where it is: half of all runs shows it.
USUAL = (("controller-namespace", NEWEST_GATEWAY_API), ("gateway-namespace", GATEWAY_API))


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--mode", "modes", multiple=True, type=click.Choice([*MODES]))
@click.option("--release", "releases", multiple=True, type=click.Choice([*SUITES]))
@click.option("--report", is_flag=True, help="Write the suite's reports to docs/conformance.")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def main(
    modes: tuple[str, ...], releases: tuple[str, ...], report: bool, flags: tuple[str, ...]
) -> None:
    """Run the suite in each mode of each release; FLAGS (after --) go to the suite."""
    if report and flags:
        raise click.UsageError("a report is of a whole run: --report takes no flags of the suite")
    pairs = tuple(product(modes or _MODES, releases or SUITES)) if modes or releases else USUAL
    try:
        build(["echo-basic", *{SUITES[one] for _, one in pairs}], click.echo)
        good = [_run(MODES[mode], release, flags, report=report) for mode, release in pairs]
    except (MissingTool, PermissionError, RuntimeError) as error:
        raise click.ClickException(str(error)) from error
    sys.exit(0 if all(good) else 1)


def _run(mode: Mode, release: str, flags: tuple[str, ...], *, report: bool) -> bool:
    began = time.monotonic()
    title = f"{release}, {mode.title}"
    log = _LOGS / f"{release}-{mode.name}.log"
    written = log.with_suffix(".yaml")
    world = World.make()
    good = False
    try:
        world.start(crds=False)
        install_crds(world.admin, [*gateway_api_crds("experimental", release), *own_crds()])
        install(world, mode)
        click.echo(f"{title}: installed in {time.monotonic() - began:.0f} s; output in {log}")
        asked = Report(path=written, version=__version__) if not flags else None
        verdict = run_suite(world, release, mode, log, flags, asked)
        good = verdict.good
    finally:
        kept = world.stop(keep_logs=not good)
        if kept is not None:
            click.echo(f"{title}: logs of the world: {kept}")
    for line in verdict.lines():
        click.echo(line)
    click.echo(f"{title}: {'good' if good else 'FAILED'}, {time.monotonic() - began:.0f} s")
    if good and report:
        kept = report_path(release, mode)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(written.read_text())
    return good


if __name__ == "__main__":
    main()
