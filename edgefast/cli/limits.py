"""`edgefast limits`: the live rate-limit counters, exhausted ones first.

In: the admin address.
Out: the counters as a table, YAML or JSON on standard output; notes (an incomplete listing,
counters of other proxies) on standard error beside the table; exit status 1 with one line on
standard error when the proxy or its store is not reachable.
Must never: interpret the answer; the proxy's answer is shown unchanged.
"""

from __future__ import annotations

import time
from typing import Any

import click

from edgefast.cli.admin_client import ask_admin
from edgefast.cli.options import Format, admin_option, output_option
from edgefast.cli.output import write_table, write_value

_UNITS = {
    1: "Second",
    60: "Minute",
    3600: "Hour",
    86_400: "Day",
    604_800: "Week",
    2_592_000: "Month",
    31_536_000: "Year",
}
_HEADER = ["STATE", "ROUTE", "RULE", "LIMIT", "VALUES", "REQUESTS", "USED", "LEFT", "RESET", "WINDOW"]  # fmt: skip


@click.command()
@admin_option
@click.option("--limited", is_flag=True, help="Show only counters without remaining quota.")
@output_option("table")
def limits(admin: str, limited: bool, output: Format) -> None:
    """Show rate-limit counters and their remaining quota.

    \b
    Examples:
      # Show all counters of the proxy on this machine
      edgefast limits
      # Show only counters without remaining quota
      edgefast limits --limited
      # Print the counters of a proxy with another admin address as JSON
      edgefast limits --admin 127.0.0.1:19100 -o json
    """
    value = ask_admin(admin, "/limits?limited=1" if limited else "/limits")
    if output != "table":
        write_value(value, output)
        return
    write_table(_HEADER, [_row(one) for one in value["counters"]])
    for note in _notes(value):
        click.echo(note, err=True)


def _row(one: Any) -> list[object]:
    state = ("shadow" if one["shadow"] else "limited") if one["limited"] else ""
    values = [f"{name}={value}" for name, value in one["values"].items()]
    return [
        state,
        one["route"],
        one["rule"],
        one["limit"],
        ", ".join(values) + ("..." if one["cut"] else ""),
        f"{one['requests']} per {_UNITS.get(one['unit'], one['unit'])}",
        one["used"],
        one["remaining"],
        f"{one['reset']}s",
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one["window"])),
    ]


def _notes(value: Any) -> list[str]:
    notes = []
    if not value["limits"]:
        notes.append("no rule of the applied table has rate limits")
    if not value["complete"]:
        notes.append("more counters exist than are shown")
    notes += [
        f"{one['limit']} of {one['route']} has no room for more values: {one['values']} of "
        f"{one['room']} in this window, "
        f"which ends in {one['reset']}s; new values are not counted until then"
        for one in value.get("crowded", ())
    ]
    notes += [
        f"limits of {name} are unknown: {why}" for name, why in value.get("unread", {}).items()
    ]
    if value["others"]:
        notes.append(f"{value['others']} counters belong to no limit of this table")
    return notes
