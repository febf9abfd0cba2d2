"""Fail closed: Gateways and ListenerSets with a mistake, which only reserve their hostnames.

In: an object with `closed`, its listeners after merging, its report. Out: one warning about what
happens to requests meanwhile. The decoder reported the mistake. reserved_hostnames.py keeps broader
listeners from its hostnames.
Must never: promise a reservation that is unknown or does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgefast.api.gateway.gateway import Gateway, GatewaySpec
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.translate.gateway.listener import ListenerDraft
from edgefast.translate.report.report import Report

__all__ = ["warn_closed"]

_TOLD = 4  # hostnames that a message names


def warn_closed(
    obj: Gateway | ListenerSet,
    report: Report,
    listeners: Iterable[ListenerDraft] = (),
    *,
    allowed: bool = True,
) -> None:
    """Warn of an object that is `closed`; `allowed`: it is no ListenerSet that its Gateway leaves out."""
    assert obj.closed is not None
    kind, spec = type(obj).__name__, obj.spec
    nobody = not (
        spec.gateway_class_name if isinstance(spec, GatewaySpec) else spec.parent_ref.name
    )
    parts = [f"{obj.closed.since.format(kind)}, its listeners are not served"]
    if not allowed:
        parts.append(
            "its Gateway does not allow it, so its hostnames are not reserved and other "
            "listeners can get the requests"
        )
    else:
        parts += _report_listeners(listeners)
    if obj.closed.lost and allowed:
        what = "class or parent" if nobody else "readable port and hostname of each listener"
        parts.append(
            f"without a {what} its hostnames are unknown, and other listeners can get its requests"
        )
    report.warn(obj.closed.path, "Invalid", "; ".join(parts))


def _report_listeners(listeners: Iterable[ListenerDraft]) -> Iterator[str]:
    """Say of each hostname, of TCP and UDP each port, what it answers: whose it is after merging."""
    reported: dict[str, dict[str, None]] = {"kept": {}, "taken": {}, "dark": {}}
    for one in listeners:
        if one.fate:
            at = f"{one.spec.protocol} port " if one.alone else f"{one.hostname}:"
            reported[one.fate][f"{at}{one.port}"] = None
    if kept := reported["kept"]:
        yield f"{_list(kept)} answers 404 or ends the TLS handshake"
    if taken := reported["taken"]:
        yield f"another listener has {_list(taken)}"
    if dark := reported["dark"]:
        yield f"no listener serves {_list(dark)}"


def _list(names: dict[str, None]) -> str:
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    return ", ".join([*names][:_TOLD]) + more
