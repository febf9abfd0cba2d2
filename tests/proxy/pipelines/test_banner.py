"""The lines of listeners at a start: what is said of one that only keeps its place is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast.proxy.agent.agent import Published
from edgefast.proxy.pipelines.banner import Banner
from edgefast.proxy.pipelines.standalone import Outcome
from translate.test_held import WIDE, Object, _gateway, _listener, _read, _serve, _set

pytestmark = pytest.mark.pure


def say(folder: Path, objects: list[Object]) -> list[str]:
    served, table = _serve(_read(folder, objects))
    lines: list[str] = []
    outcome = Outcome(
        fleet=table.fleet,
        shards=None,
        problems=(),
        published=Published("", changed=True, acknowledged=True, problems=()),
        files=1,
        objects=1,
        took=1.0,
        closed=served.statuses.closed_listeners(),
    )
    banner = Banner(1, {}, lambda line, _: lines.append(line), str)
    banner.show(outcome, [("127.0.0.1", 80), ("127.0.0.1", 443)])
    return [line.strip() for line in lines if " on http" in line]


def test_listeners_that_only_keep_their_place_say_so(tmp_path: Path) -> None:
    broken = _set("more", _listener("plain", "a.test", 80), _listener("tls", "a.test"))
    broken["spec"]["listner"] = 1
    dark = _gateway("dark", _listener("plain", "b.test", 80), gatewayClassName="edge")
    lines = say(tmp_path, [WIDE, broken, dark])
    at = {line.split(" on ")[0]: line.partition(": ")[2] for line in lines}
    assert at == {
        "default/dark/plain": "no route",
        "default/edge/default/more/plain": "CLOSED, a.test answers 404",
        "default/edge/default/more/tls": "CLOSED, a.test ends the TLS handshake",
        "default/edge/plain": "any host",
        "default/edge/tls": "any host",
    }
