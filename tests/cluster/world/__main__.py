"""A world for people: `python -m cluster.world up | status | down | node CMD... | client CMD...` (as root).

`up` leaves a world running until `down`, with all CRDs, and says how to reach it. `node` and `client` run a command in the
network namespace of the node or of the client outside it. With several worlds, --world names the folder.
Must never: end a world that a test run owns.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import click

from cluster.tools.missing import MissingTool
from cluster.world import folder as folders
from cluster.world import netns
from cluster.world.components import NAMES
from cluster.world.network import Network
from cluster.world.process import Program
from cluster.world.world import World

_PROGRAMS = ("etcd", "kube-apiserver", *NAMES)


@click.group()
def main() -> None:
    """Kubernetes clusters on this machine."""


@main.command()
def up() -> None:
    """Start a world and leave it running."""
    began = time.monotonic()
    try:
        world = World.make(dies_with_us=False)
        folders.disown_folder(world.folder)
        world.start()
    except (MissingTool, PermissionError, RuntimeError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"world up in {time.monotonic() - began:.1f} s: {world.folder}")
    click.echo(f"  export KUBECONFIG={world.kubeconfig}")
    click.echo(f"  node:   nsenter --net=/run/netns/{world.network.node}")
    click.echo(
        f"  client: nsenter --net=/run/netns/{world.network.client} (curl an address of a Service)"
    )


@main.command()
def status() -> None:
    """Say which worlds there are and what runs in them."""
    for folder in _worlds():
        owner = (folder / "owner").read_text().split()[0]
        click.echo(f"{folder} ({'left by up' if owner == '0' else f'of process {owner}'})")
        for name in _PROGRAMS:
            program = Program.find(folder, name)
            if program is None:
                click.echo(f"  {name:26} not running")
            else:
                click.echo(f"  {name:26} pid {program.pid:7}  {_megabytes(program.pid):6.0f} MiB")


@main.command()
@click.option("--world", "name", default="", help="Folder of the world.")
@click.option("--logs", type=click.Path(path_type=Path), help="Copy the logs to this folder.")
def down(name: str, logs: Path | None) -> None:
    """End the worlds that `up` has left running."""
    for folder in [Path(name)] if name else _left():
        if logs is not None:
            shutil.copytree(folder / "log", logs, dirs_exist_ok=True)
        World.find(folder).stop()
        click.echo(f"ended: {folder}")


@main.command(context_settings={"ignore_unknown_options": True})
@click.option("--world", "name", default="", help="Folder of the world.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def node(name: str, command: tuple[str, ...]) -> None:
    """Run a command on the node."""
    _run(_network(name).node, command)


@main.command(context_settings={"ignore_unknown_options": True})
@click.option("--world", "name", default="", help="Folder of the world.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def client(name: str, command: tuple[str, ...]) -> None:
    """Run a command outside the node."""
    _run(_network(name).client, command)


def _worlds() -> list[Path]:
    return sorted(slot.parent for slot in folders.BASE.glob("world-*/slot"))


def _left() -> list[Path]:
    return [one for one in _worlds() if (one / "owner").read_text().split()[0] == "0"]


def _network(name: str) -> Network:
    folder = Path(name) if name else next(iter(_left()), None)
    if folder is None:
        raise click.ClickException("no world is up")
    return Network(int((folder / "slot").read_text()))


def _run(name: str, command: tuple[str, ...]) -> None:
    arguments = [*netns.prefix(name), *command]
    sys.stdout.flush()
    os.execvp(arguments[0], arguments)


def _megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


if __name__ == "__main__":
    main()
