"""The `edgefast` command: finds the subcommand and loads only that one.

In: the command line.
Out: the output of the subcommand. Built-in subcommands are in BUILT_IN. Others join through the
entry-point group `edgefast.commands` (for example the controller's). The group is read only for
help, or when a name is not built in.
Must never: import large modules, because `edgefast version` must answer at once.
"""

from __future__ import annotations

from importlib import import_module

import click

from edgefast import __version__
from edgefast.daemon.process import look_seldom
from edgefast.diagnostics.problem import did_you_mean

#: Name -> (module, attribute, help line). The help line stands here so that help loads no subcommand.
BUILT_IN: dict[str, tuple[str, str, str]] = {
    "run": ("edgefast.cli.run", "run", "Run a proxy that gets its configuration from files."),
    "demo": (
        "edgefast.cli.demo",
        "demo",
        "Run a gateway with two backends to try, without files.",
    ),
    "init": (
        "edgefast.cli.init",
        "init",
        "Write a folder with a first configuration.",
    ),
    "proxy": (
        "edgefast.cli.proxy",
        "proxy",
        "Run a proxy that gets its configuration from a controller.",
    ),
    "check": (
        "edgefast.cli.check",
        "check",
        "Validate files and list their problems.",
    ),
    "problem": (
        "edgefast.cli.problem",
        "problem",
        "Explain a reason of a problem or status condition.",
    ),
    "docs": ("edgefast.cli.docs", "docs", "Print a page of the documentation."),
    "translate": (
        "edgefast.cli.translate",
        "translate",
        "Show the configuration or statuses that files translate to.",
    ),
    "explain": (
        "edgefast.cli.explain",
        "explain_command",
        "Show which route and policies decide a request.",
    ),
    "diff": ("edgefast.cli.diff", "diff_command", "Compare two configurations request by request."),
    "convert": (
        "edgefast.cli.convert",
        "convert",
        "Convert Ingresses to a Gateway, routes and policies.",
    ),
    "status": (
        "edgefast.cli.status",
        "status",
        "Show Gateways, routes, proxies and problems.",
    ),
    "dump": (
        "edgefast.cli.dump",
        "dump",
        "Show the configuration that a running proxy has applied.",
    ),
    "limits": (
        "edgefast.cli.limits",
        "limits",
        "Show rate-limit counters and their remaining quota.",
    ),
    "log-level": (
        "edgefast.cli.log_level",
        "log_level",
        "Change the log level of a running proxy or controller.",
    ),
    "shutdown": (
        "edgefast.cli.shutdown",
        "shutdown",
        "Drain a proxy and wait until its connections are closed.",
    ),
    "shutdown-manager": (
        "edgefast.cli.shutdown",
        "shutdown_manager",
        "Delay the end of a container until its proxy is drained.",
    ),
    "completion": (
        "edgefast.cli.completion",
        "completion",
        "Print a script that completes commands in bash, zsh or fish.",
    ),
    "version": (
        "edgefast.cli.version",
        "version",
        "Show the versions of edgefast, Python and the TLS library.",
    ),
}

GROUP = "edgefast.commands"
_HELP_WIDTH = 80  # characters of a help line; longer ones are cut


class LazyGroup(click.Group):
    """A group whose subcommands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*BUILT_IN, *sorted(_plugins())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in BUILT_IN:
            module, attribute, _ = BUILT_IN[cmd_name]
            found: click.Command = getattr(import_module(module), attribute)
            return found
        return _plugins().get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            hint = did_you_mean(args[0], self.list_commands(ctx))
            if not hint:
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}, {hint}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, line) for name, (_, _, line) in BUILT_IN.items()]
        rows += [
            (name, command.get_short_help_str(_HELP_WIDTH))
            for name, command in sorted(_plugins().items())
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _plugins() -> dict[str, click.Command]:
    from importlib.metadata import entry_points  # slow to import, seldom needed

    return {point.name: point.load() for point in entry_points(group=GROUP)}


@click.version_option(__version__, message="edgefast %(version)s")
@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def main() -> None:
    """Run and inspect edgefast, a Kubernetes Gateway API gateway.

    \b
    Examples:
      # Try a gateway without files
      edgefast demo
      # Serve a backend without files
      edgefast run --to http://127.0.0.1:3000
      # Write a first configuration, validate it and serve it
      edgefast init gateway
      edgefast check -f gateway
      edgefast run -f gateway
      # Show why a request gets its answer
      edgefast explain -f gateway http://localhost:8080/admin
    """
    look_seldom()  # whatever the command, it may be asked of a hundred thousand routes


if __name__ == "__main__":
    main()
