"""`edgefast version`: the version of edgefast, of Python and of the libraries on the request path.

Out: a line, or an object with -o yaml|json.
Must never: import these libraries, except the engine, which alone has the version of its TLS
library.
"""

from __future__ import annotations

import platform

import click

from edgefast import __version__
from edgefast.cli.options import Format, output_option


@click.command()
@output_option("table")
def version(output: Format) -> None:
    """Show the versions of edgefast, Python and the TLS library.

    \b
    Examples:
      # Print one line
      edgefast version
      # Print JSON
      edgefast version -o json
      # Print YAML
      edgefast version -o yaml
    """
    from edgefast.core.engine import tls_library

    if output == "table":
        python = f"Python {platform.python_version()}"
        click.echo(f"edgefast {__version__} ({python}, {tls_library()}, {platform.machine()})")
        return
    from importlib.metadata import version as version_of

    from edgefast.cli.output import write_value

    libraries = {
        name: version_of(name) for name in ("uvloop", "httptools", "msgspec", "google-re2")
    }
    write_value(
        {
            "edgefast": __version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "tls": tls_library(),
            "libraries": libraries,
        },
        output,
    )
