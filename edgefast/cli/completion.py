"""`edgefast completion`: prints a script that lets a shell complete commands, options, choices and files.

In: the name of a shell.
Out: the script on standard output.
Must never: change a file of the user.
"""

from __future__ import annotations

import click

from edgefast.cli.shells.bash import render_bash
from edgefast.cli.shells.fish import render_fish
from edgefast.cli.shells.tree import make_tree
from edgefast.cli.shells.zsh import render_zsh

__all__ = ["completion"]

_RENDER = {"bash": render_bash, "zsh": render_zsh, "fish": render_fish}
_PROGRAM = "edgefast"


@click.command()
@click.argument("shell", type=click.Choice(list(_RENDER)), metavar="bash|zsh|fish")
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script for the Tab key: it completes commands, options, choices and file names.

    \b
    Bash, in ~/.bashrc:
      source <(edgefast completion bash)
    Zsh, in ~/.zshrc after compinit:
      source <(edgefast completion zsh)
    Fish, once and after an upgrade:
      edgefast completion fish > ~/.config/fish/completions/edgefast.fish

    \b
    Examples:
      # Print the script for bash
      edgefast completion bash
      # Print the script for zsh
      edgefast completion zsh
      # Print the script for fish
      edgefast completion fish
    """
    tree = make_tree(ctx.find_root().command)
    click.echo(_RENDER[shell](_PROGRAM, tree), nl=False)
