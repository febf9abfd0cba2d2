"""Traced requests in few words, for tests of the engine.

In: settings of a listener, a world whose workers hand spans over. Out: listeners that trace, the spans so far. Must never: look at
what a span says.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from core.fleets import make_listener
from core.world import World
from edgefast import ir
from edgefast.proxy.traces.span_record import decode_spans

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = f"00-{TRACE}-{PARENT}-01"
LINE = re.compile(rb"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


def traced(sampling: float = 1.0, **more: Any) -> ir.Listener:
    """A listener that traces; `more` are settings of make_listener."""
    tracing = ir.Tracing(endpoint="http://127.0.0.1:4318", sampling=sampling)
    return msgspec.structs.replace(make_listener(**more), tracing=tracing)


def spans_since(world: World, before: int) -> list[Any]:
    """The spans of all batches but the first `before`; the caller knows of what."""
    world.engine.log_flush()
    return [one for batch in world.spans[before:] for one in decode_spans(batch)]
