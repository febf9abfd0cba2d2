"""Operator servers: the views of operators, kubelet and Prometheus on a running App.

In: an App.
Out: the servers of admin.py with their `View`, and the readings of the components in its metrics.
All run in the event loop, on request.
Must never: change anything, or show key material.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from controller.admin import Servers, View
from controller.app import App
from controller.console_source import ConsoleSource
from controller.metric_readers import (
    read_config,
    read_infra,
    read_kube,
    read_lease,
    read_pipeline,
    read_push,
    read_writer,
)
from controller.proxy_problems import find_troubles, list_troubles
from edgefast import ir
from edgefast.console import LazyConsole
from edgefast.diagnostics.problem import Problem
from edgefast.httpd.address import Address

__all__ = ["open_servers"]

log = logging.getLogger(__name__)


def open_servers(app: App) -> Servers:
    """Bind the servers of operators, kubelet and Prometheus. Raises OSError."""
    _enter_readings(app)
    servers = Servers(_make_view(app))
    options, admin = app.options, app.file.config.admin.address
    bound = {"admin": servers.open_admin(options.admin or Address(admin.host, admin.port))}
    if options.probes is not None:
        bound["probes"] = servers.open_probes(options.probes)
    if options.metrics is not None:
        bound["metrics"] = servers.open_metrics(options.metrics)
    log.info("serving %s", " ".join(f"{name}={where}" for name, where in bound.items()))
    return servers


def _make_view(app: App) -> View:
    """Return what the servers may ask of an App."""
    return View(
        dump=lambda: _dump(app),
        table=lambda fleet: _table(app, fleet),
        fleets=lambda: _list_fleets(app),
        metrics=app.metrics.render,
        denials=lambda: [_describe(one) for one in app.denials.problems()],
        healthy=lambda: "",
        ready=lambda: _why_not_ready(app),
        console=LazyConsole(ConsoleSource(app, lambda: _why_not_ready(app)))
        if app.file.config.admin.console
        else None,
    )


def _enter_readings(app: App) -> None:
    """Register the metrics of all components; they are read at each scrape."""
    read_kube(app.metrics, app.cache)
    read_lease(app.metrics, app.lease)
    read_config(app.metrics, app.file)
    read_pipeline(app.metrics, app.pipeline)
    read_writer(app.metrics, app.writer)
    read_infra(app.metrics, app.applier)
    read_push(app.metrics, app.server, app.fleets, app.board.explain)


def _why_not_ready(app: App) -> str:
    if app.stopping:
        return "stopping"
    if not app.cache.synced:
        problems = "; ".join(f"{what}: {why}" for what, why in app.cache.problems.items())
        waiting = ", ".join(app.cache.waiting) or "the kinds of the API server"
        return f"not read yet: {waiting}" + (f" ({problems})" if problems else "")
    if not app.inventory.synced:
        return "the objects of fleets have not been read yet"
    if not app.handover.first.is_set():
        return "no table has been published yet"
    return "" if app.serving else "the config stream is not served yet"


def _table(app: App, key: str) -> ir.Fleet | None:
    outcome = app.pipeline.outcome
    name = key.rpartition("/")[2]
    fleets = outcome.translation.ir.fleets if outcome is not None else ()
    return next((one for one in fleets if one.name == name), None)


def _dump(app: App) -> dict[str, Any]:
    outcome = app.pipeline.outcome
    return {
        "identity": app.options.identity,
        "controllerName": app.board.controller,
        "leader": app.lease.holder,
        "leading": app.lease.leading,
        "synced": app.cache.synced,
        "objects": dict(app.cache.counts),
        "undecodable": [
            {"object": f"{kind} {namespace}/{name}", "problem": text}
            for (kind, namespace, name), text in app.cache.refused.items()
        ],
        "watchProblems": dict(app.cache.problems),
        "configProblems": [one.line() for one in app.file.problems],
        "revision": outcome.revision if outcome is not None else 0,
        "work": msgspec.to_builtins(app.pipeline.work),
        "problems": [one.text() for one in _list_problems(app)],
        "fleets": _list_fleets(app),
    }


def _list_problems(app: App) -> list[Problem]:
    outcome = app.pipeline.outcome
    found = outcome.problems() if outcome is not None else ()
    return [*app.denials.problems(), *found, *find_troubles(app.fleets)]


def _list_fleets(app: App) -> list[dict[str, Any]]:
    found = []
    for row in app.board.explain():
        key = row["fleet"]
        proxies = [
            {
                "name": node,
                "version": ack.version,
                "connected": ack.connected,
                "via": ack.via,
                "refused": [f"{one.type} {one.name}: {one.reason}" for one in ack.refused],
                "troubles": [_describe(one.problem()) for one in list_troubles(ack)],
            }
            for node, ack in sorted(app.fleets.acks(key).items())
        ]
        found.append(
            {
                **row,
                "version": app.fleets.version(key),
                "failure": app.applier.failure(key),
                "nodes": proxies,
            }
        )
    return found


def _describe(problem: Problem) -> dict[str, str]:
    """Return a problem as `edgefast status` has it in a row."""
    message = f"{problem.path}: {problem.message}" if problem.path else problem.message
    return {
        "object": str(problem.object),
        "reason": problem.reason,
        "message": message,
        "severity": problem.severity,
    }
