"""Small scenes that several test files play: one Service behind everything, a port that swallows connects, usual scripts."""

from __future__ import annotations

from typing import Any

from wire.harness import objects as make

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def objects_for(*ports: int, **rule: Any) -> list[make.Object]:
    """Everything to one Service with these endpoints."""
    rules = [make.rule("origin", **rule)]
    endpoints = [("127.0.0.1", port) for port in ports]
    return [make.route("all", rules), *make.service("origin", endpoints)]
