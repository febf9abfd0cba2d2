"""Telemetry: the IR of a listener's access log and spans. A part of fleet.py, which has all its names.

In: built by translate. Out: read by the engine (core/telemetry/logprogram.pyx,
core/telemetry/span.pyx) and by the agent (edgefast/proxy/traces/span_record.py).
Must never: hold anything a request needs to be served.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Struct(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Settings that all structs of the IR share; defaults are left out of the encoding."""


class LogPiece(Struct, frozen=True, gc=False):
    """A literal, or one operator of a template (docs/guides/access-log.md)."""

    operator: str = ""  # "RESPONSE_CODE"; "" is a literal
    text: str = ""  # the literal; a header's name, lower case; a form of time
    other: str = ""  # the header to take when the first one is not there
    limit: int = 0  # bytes at most; 0: as every value of a line


class LogMember(Struct, frozen=True, gc=False):
    """One member of a JSON line. A single operator that is a number stays one, and is null when there is nothing to say."""

    name: str
    pieces: tuple[LogPiece, ...]


class AccessLog(Struct, frozen=True, gc=False):
    """EdgeProxy spec.accessLog. Of `text`, `members` and `fields` the first that is given makes the line; without any of them
    it is a JSON object of all fields."""

    off: bool = False
    sampling: float = 1.0  # share of the requests that pass the filter
    # A request passes by either bound; 0 is none. Without both, all pass.
    min_status: int = 0
    min_duration: int = 0  # milliseconds
    fields: tuple[str, ...] = ()
    members: tuple[LogMember, ...] = ()
    text: tuple[LogPiece, ...] = ()


class Tracing(Struct, frozen=True, gc=False):
    """EdgeProxy spec.tracing."""

    endpoint: str  # "http://host:port" or "https://host:port", without a path
    protocol: Literal["grpc", "http"] = "http"
    sampling: float = 1.0  # share of the requests that bring no decision, and of connections
    attributes: tuple[tuple[str, str], ...] = ()  # sorted
    exemplars: bool = False  # the duration histogram names traces (proxy/traces/exemplars.py)
    connections: bool = False  # one span for each connection of layer 4
    allowed: tuple[str, ...] = ()  # reserved ranges that the endpoint may be in (inetaddr.RESERVED)
