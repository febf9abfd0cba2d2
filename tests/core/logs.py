"""Access logs in few words, for tests of the engine: templates as the configuration has them.

In: templates, other settings. Out: ir.AccessLog. Must never: hide a mistake in a template.
"""

from __future__ import annotations

from typing import Any

from core.backend import Backend, say
from core.client import Client
from core.fleets import make_cluster, make_fleet, make_listener
from core.world import World
from edgefast import ir
from edgefast.translate.edgeproxy.log_format_parser import parse_template


def text_log(template: str, **more: Any) -> ir.AccessLog:
    """A line of text."""
    pieces, mistakes = parse_template(template)
    assert not mistakes
    return ir.AccessLog(text=pieces, **more)


def json_log(**templates: str) -> ir.AccessLog:
    """A JSON line of these members."""
    members = []
    for name, text in templates.items():
        pieces, mistakes = parse_template(text)
        assert not mistakes
        members.append(ir.LogMember(name=name, pieces=pieces))
    return ir.AccessLog(members=tuple(members))


async def serve(world: World, log: ir.AccessLog, **http: Any) -> tuple[Backend, Client]:
    """A backend that says "hello", and a client of a proxy that logs so."""
    backend = await world.backend(say("hello"))
    listener = make_listener(log=log, **http)
    port = await world.serve(make_fleet(listener, make_cluster(backend.port)))
    return backend, await world.client(port)
