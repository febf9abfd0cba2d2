"""JSON that is nested deeper than a decoder goes: one such object keeps no other one from being read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from aiohttp import web

from controller.kube.apis import APIS
from controller.kube.depth import DEPTH, MARK, cut_deep, decode_json
from controller.kube.errors import error_from
from controller.kube.reflector import Item, Reflector, Target
from tests.controller.waiting import running, until

from .script import obj, scripted, stream

#: What an API server takes: ten thousand levels.
DEEP = b"[" * 9_000 + b"]" * 9_000


def nested(levels: int) -> Any:
    value: Any = "leaf"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.pure
def test_what_is_below_the_levels_becomes_one_word() -> None:
    data = b'{"a":{"b":' + DEEP + b',"c":1},"d":"[[{\\"]"}'
    assert json.loads(cut_deep(data))["a"]["c"] == 1
    assert json.loads(cut_deep(data))["d"] == '[[{"]'
    assert cut_deep(data).count(MARK) == 1
    two = (
        b'{"a":'
        + DEEP
        + b',"b":'
        + DEEP.replace(b"[", b'{"x":').replace(b"]", b"}").replace(b'{"x":}', b"{}")
        + b"}"
    )
    assert decode_json(two).keys() == {"a", "b"}
    assert cut_deep(two).count(MARK) == 2


@pytest.mark.pure
def test_what_is_not_too_deep_stays_as_it_is() -> None:
    data = json.dumps({"a": nested(DEPTH - 1), "b": '"\\"[', "c": {}}).encode()
    assert cut_deep(data) == data
    assert MARK in cut_deep(json.dumps(nested(DEPTH + 1)).encode())


@pytest.mark.pure
@pytest.mark.parametrize("data", [b"[" * 9_000, b'{"a":' * 9_000, DEEP + b"]", DEEP[:-1]])
def test_what_is_malformed_stays_so(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_json(data)
    assert error_from(500, data).status == 500


def deep_object(name: str) -> bytes:
    text = json.dumps(obj(name, 3, spec={"patch": "DEEP"})).encode()
    return text.replace(b'"DEEP"', DEEP)


async def test_others_are_listed_and_watched_beside_such_an_object() -> None:
    """The object itself is told of, with the mark by which it is refused."""
    listed = b'{"metadata":{"resourceVersion":"5"},"items":[%s,%s]}'
    rows = listed % (json.dumps(obj("a", 1)).encode(), deep_object("b"))
    event = b'{"type":"ADDED","object":%s}\n'
    events = (event % deep_object("c"), event % json.dumps(obj("d", 7)).encode())

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await stream(request, *events)
        return web.Response(body=rows, content_type="application/json")

    found: dict[str, bool] = {}

    def put(item: Item) -> None:
        found[item.name] = MARK in bytes(item.raw)

    async with scripted(serve) as kube:
        target = Target(APIS["v1", "ConfigMap"], "ns")
        reflector = Reflector(kube, target, put, lambda *_: None)
        async with running(reflector.run()):
            await until(lambda: "d" in found, "the last event")
    assert found == {"a": False, "b": True, "c": True, "d": False}
