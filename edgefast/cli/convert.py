"""`edgefast convert`: Ingresses of ingress-nginx as objects of the Gateway API and of edgefast that serve the same.

With `--adopt` it converts objects of Envoy Gateway. In: files, or a cluster with `--live`. Out: YAML on standard output, or files in a new or existing folder, and a report of each
annotation and field. The report is on standard output with `-o`, else on standard error. Exit status 0 (everything is converted,
perhaps with differences), 1 (a part is refused, or no Ingress is converted), 2 (wrong usage, an unreachable cluster, a file that
exists or cannot be written).
Must never: overwrite a file, write to a cluster, or print a Secret.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from edgefast.api.core.secret import Secret
from edgefast.api.kinds import Object, ref_of
from edgefast.api.snapshot import Snapshot
from edgefast.cli.ingressoptions import KeyType, ingress_options
from edgefast.cli.inputs import read_inputs
from edgefast.cli.live import Where, check_live, live_options, open_cluster
from edgefast.cli.omitted_objects import refuse_unparsed, report_omitted
from edgefast.cli.options import adopt_option, config_option, join_files, path_options
from edgefast.cli.output import (
    escape_control,
    render_table,
    terminal_width,
    wrap_rows,
    write_value,
)
from edgefast.convert.adopted import AdoptedConversion, convert_adopted
from edgefast.convert.conversion import Conversion, Converted, Line
from edgefast.convert.convert import convert_ingresses
from edgefast.convert.render import render_objects
from edgefast.convert.report import count_results
from edgefast.translate.ingress.expand import find_config_map
from edgefast.translate.settings import IngressSettings, Settings

ReportFormat = Literal["table", "json", "markdown"]

#: `spec.controller` of the classes that are converted without --ingress-class, besides edgefast's own.
_INGRESS_NGINX = "k8s.io/ingress-nginx"
#: File of the objects that are copied.
_OTHERS = "others.yaml"
_HEADER = ("INGRESS", "SETTING", "RESULT", "HOW")
_DEFAULTS = "no ConfigMap of ingress-nginx found: its defaults apply; name it with --ingress-config"
_NOTHING = "no Ingress converted; select their class with --ingress-class NAME, or correct the refused settings"


@click.command()
@path_options
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write files into this folder: gateway.yaml, one for each Ingress, one for each namespace. By default: standard output, "
    "without Secrets.",
)
@click.option(
    "--gateway",
    type=KeyType(),
    default="edge-gateway-system/ingress",
    show_default=True,
    metavar="NAMESPACE/NAME",
    help="Gateway of the routes. Its class has the same name.",
)
@click.option(
    "--standard",
    is_flag=True,
    help="Use fields of the Gateway API where possible; the report lists what is lost.",
)
@click.option(
    "--self-contained",
    is_flag=True,
    help="With -o: also write the other objects of the files, with their Secrets, for edgefast diff and run.",
)
@click.option(
    "--report",
    "report_format",
    type=click.Choice(["table", "json", "markdown"]),
    default="table",
    show_default=True,
    help="Format of the report.",
)
@adopt_option
@live_options
@config_option
@ingress_options
@click.pass_context
def convert(
    ctx: click.Context,
    paths: tuple[Path, ...],
    files: tuple[Path, ...],
    folder: Path | None,
    gateway: str,
    standard: bool,
    self_contained: bool,
    report_format: ReportFormat,
    adopt: bool,
    live: bool,
    kubeconfig: Path | None,
    context: str | None,
    controller: str,
    config: Path | None,
    ingress: IngressSettings,
) -> None:
    """Convert Ingresses of ingress-nginx to a Gateway, HTTPRoutes and policies that serve the same.

    With --adopt it converts the policies, filters, Backends and EnvoyProxies of Envoy Gateway, and the routes and Gateways that they
    change.

    The report shows for each annotation whether requests get the same answers. Without --ingress-class, Ingresses of classes with
    the controllers of ingress-nginx and of edgefast are converted.

    Exit status: 0 if everything is converted, 1 if a part is refused or no Ingress is converted, 2 for wrong usage and for files
    that cannot be written.

    \b
    Examples:
      # Print the objects on standard output and the report on standard error
      edgefast convert -f examples/ingress.yaml
      # Use fields of the Gateway API where possible, and show what is lost
      edgefast convert -f examples/ingress.yaml --standard --report markdown
      # Write the Ingresses of a cluster as files
      edgefast convert --live --ingress-config ingress-nginx/ingress-nginx-controller -o converted
    """
    check_live(live, kubeconfig=kubeconfig, context=context, controller=controller)
    if live and (files or paths):
        raise click.UsageError("--live cannot be used with files")
    if self_contained and (folder is None or live):
        raise click.UsageError("--self-contained requires -f and -o")
    if adopt:
        if live or standard or self_contained:
            raise click.UsageError("--adopt: not with --live, --standard or --self-contained")
        ctx.exit(_convert_envoy_gateway(join_files(files, paths), config, folder))
    if not ingress.classes:
        controllers = (*ingress.controllers, _INGRESS_NGINX)
        ingress = msgspec.structs.replace(ingress, controllers=controllers)
    if live:
        where = Where(
            kubeconfig=kubeconfig,
            context=context,
            controller=controller,
            config=config,
            ingresses=True,
        )
        snapshot, settings = _read_live(where, ingress)
    else:
        inputs = read_inputs(join_files(files, paths), config, ingress=ingress)
        refuse_unparsed(inputs.unparsed)
        report_omitted("the files", inputs.problems)
        snapshot, settings = inputs.reading.snapshot, inputs.settings
    _check_config_map(snapshot, settings)
    namespace, _, name = gateway.partition("/")
    found = convert_ingresses(snapshot, settings, (namespace, name), standard=standard)
    if folder is None:
        _print(found)
    else:
        others = _list_others(snapshot, found) if self_contained else ()
        _write_files(folder, [*found.objects, *others])
    _report(found, report_format, err=folder is None)
    click.echo(_summarise(found, folder), err=True)
    if not found.ingresses:
        click.echo(_NOTHING if snapshot.ingresses else "no Ingress found", err=True)
    refused = any(one.result == "refused" for one in found.report)
    ctx.exit(1 if refused or not found.ingresses else 0)


def _convert_envoy_gateway(
    paths: tuple[Path, ...], config: Path | None, folder: Path | None
) -> int:
    """Write the objects of edgefast that `--adopt` serves; return 1 if a part of them is closed, or without an object."""
    plain = read_inputs(paths, config)
    inputs = read_inputs(paths, config, adopt=True)
    refuse_unparsed(inputs.unparsed)
    known = set(plain.problems)
    problems = [one for one in inputs.problems if one not in known]
    found = convert_adopted(
        plain.reading.snapshot, inputs.reading.snapshot, inputs.settings, problems
    )
    if folder is None:
        click.echo(render_objects(found.objects), nl=False)
    else:
        _write_files(folder, list(found.objects))
    _report_adopted(found, folder)
    refused = any(one.severity == "error" for one in found.problems)
    return 1 if refused or not found.objects else 0


def _report_adopted(found: AdoptedConversion, folder: Path | None) -> None:
    for one in found.problems:
        click.echo(escape_control(one.line()), err=True)
    objects = "1 object" if len(found.objects) == 1 else f"{len(found.objects)} objects"
    where = f" in {folder}" if folder is not None else ""
    click.echo(f"{objects}{where}", err=True)
    if not found.objects:
        click.echo("no object of Envoy Gateway found that edgefast serves", err=True)


def _read_live(where: Where, ingress: IngressSettings) -> tuple[Snapshot, Settings]:
    """Read a cluster with the Secrets and ConfigMaps of its Ingresses."""
    opened = open_cluster(where)
    try:
        objects = opened.read_objects()
        served = objects.settings.ingress
        wanted = msgspec.structs.replace(
            ingress,
            enabled=True,
            config_map=ingress.config_map or served.config_map,
            certificate=ingress.certificate or served.certificate,
            additional_certificate=ingress.additional_certificate
            if ingress.certificate
            else served.additional_certificate,
        )
        settings = msgspec.structs.replace(objects.settings, ingress=wanted)
        whole = opened.complete(
            msgspec.structs.replace(objects, settings=settings), objects.snapshot
        )
    finally:
        opened.close()
    report_omitted("the cluster", whole.problems)
    for message in whole.unread:
        click.echo(escape_control(message), err=True)
    return whole.snapshot, settings


def _check_config_map(snapshot: Snapshot, settings: Settings) -> None:
    """Refuse a ConfigMap that is not there, which would close all locations; report that the defaults apply."""
    standalone = msgspec.structs.replace(settings, standalone=True)
    if find_config_map(snapshot, standalone) is not None:
        return
    if settings.ingress.config_map:
        raise click.UsageError(
            f"--ingress-config: ConfigMap {settings.ingress.config_map} not found"
        )
    if snapshot.ingresses:
        click.echo(_DEFAULTS, err=True)


# --- objects ---


def _print(found: Conversion) -> None:
    """Print the objects without Secrets."""
    shown = [one for one in found.objects if not isinstance(one.obj, Secret)]
    click.echo(render_objects(shown), nl=False)
    for one in found.objects:
        if isinstance(one.obj, Secret):
            message = f"{ref_of(one.obj)}: not printed; write it to a file with -o DIR"
            click.echo(escape_control(message), err=True)


def _list_others(snapshot: Snapshot, found: Conversion) -> list[Converted]:
    """Return the objects of the files that the output does not replace."""
    kept: list[Object] = [
        one.obj for one in snapshot.loaded.values() if one.ref not in found.replaced
    ]
    return [Converted(obj=one, file=_OTHERS) for one in kept]


def _write_files(folder: Path, objects: list[Converted]) -> None:
    """Write the objects by file; a file with a Secret is readable for its owner alone."""
    files: dict[str, list[Converted]] = {}
    for one in objects:
        files.setdefault(one.file, []).append(one)
    existing = [name for name in files if os.path.lexists(folder / name)]
    if existing:
        shown = ", ".join(sorted(existing)[:3]) + (" and more" if len(existing) > 3 else "")
        raise click.UsageError(
            f"{folder} already has {shown}; edgefast convert overwrites no file: pass another folder, or remove these files"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in sorted(files.items()):
            secret = any(isinstance(one.obj, Secret) for one in content)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            target = os.open(folder / name, flags, 0o600 if secret else 0o666)
            with os.fdopen(target, "w", encoding="utf-8") as file:
                file.write(render_objects(content))
    except OSError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from None


# --- the report ---


def _report(found: Conversion, form: ReportFormat, *, err: bool) -> None:
    if form == "json":
        value: dict[str, Any] = {
            "ingresses": found.ingresses,
            "objects": len(found.objects),
            "results": count_results(found.report),
            "lines": msgspec.to_builtins(found.report),
        }
        write_value(value, "json", err=err)
        return
    rows = [_row(one) for one in found.report]
    if form == "markdown":
        for line in _render_markdown(rows):
            click.echo(line, err=err)
    elif rows:
        width = terminal_width()
        for line in render_table(_HEADER, wrap_rows(_HEADER, rows, width)):
            click.echo(line, err=err)


def _row(line: Line) -> tuple[str, str, str, str]:
    how = f"{line.how}; {line.fix}" if line.fix else line.how
    return (line.object.removeprefix("Ingress "), line.setting, line.result, how)


def _render_markdown(rows: list[tuple[str, str, str, str]]) -> list[str]:
    lines = ["| Ingress | setting | result | how |", "|---|---|---|---|"]
    for row in rows:
        cells = [escape_control(one).replace("\\", "\\\\").replace("|", "\\|") for one in row]
        lines.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return lines


def _summarise(found: Conversion, folder: Path | None) -> str:
    counts = count_results(found.report)
    ingresses = "1 Ingress" if found.ingresses == 1 else f"{found.ingresses} Ingresses"
    objects = "1 object" if len(found.objects) == 1 else f"{len(found.objects)} objects"
    where = f" in {folder}" if folder is not None else ""
    return (
        f"{ingresses} converted to {objects}{where}: {counts['same']} settings the same, "
        f"{counts['differs']} different, {counts['refused']} refused"
    )
