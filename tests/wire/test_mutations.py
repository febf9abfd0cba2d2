"""Random valid messages in random pieces, and random damage to them: the universal oracle on what nobody thought of.

Valid sequences must be forwarded in order, message for message, as h11 reads them. Damaged ones are refused with a close, or
forwarded as exactly what h11 reads. Seeds are fixed; EDGEFAST_WIRE_SEED and EDGEFAST_WIRE_ROUNDS widen the search.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.client import Client, NoResponse
from wire.harness.oracle import settle
from wire.harness.reference import Expected, normal_target, observed, parse, parse_until_fault
from wire.harness.responses import Response
from wire.harness.runner import Probe
from wire.harness.site import Site

SEED = int(os.environ.get("EDGEFAST_WIRE_SEED", "1"))
ROUNDS = int(os.environ.get("EDGEFAST_WIRE_ROUNDS", "1"))
GROUPS = 6
VALID = 40  # sequences a group
DAMAGED = 500  # inputs a group
BATCH = 50
FOLLOWING = b"GET /following HTTP/1.1\r\nHost: a\r\n\r\n"
METHODS = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND"]
PATHS = [
    "/",
    "/a",
    "/a/b.c",
    "/a;b=c",
    "/%7Ea/%C3%A9",
    "//x",
    "/a/../b",
    "/a/./b",
    "/-._~!$&'()*+,;=:@",
]
QUERIES = ["", "?", "?a=b", "?a=b&c=%2F", "?http://x/"]
NAMES = ["Accept", "X-Any", "x-lower", "Cookie", "User-Agent", "Authorization", "X-Any", "If-Match"]
VALUES = [
    "*/*",
    "1",
    "",
    'a, b;c="d"',
    "x" * 300,
    "\xe9\xff",
    "\t tab \t",
    "Mon, 01 Jan",
    "{}[]<>()",
]


def one_message(chooser: random.Random) -> bytes:
    """A valid request with everything that may vary."""
    method = chooser.choice(METHODS)
    lines = [f"{method} {chooser.choice(PATHS)}{chooser.choice(QUERIES)} HTTP/1.1"]
    headers = [
        f"{chooser.choice(NAMES)}: {chooser.choice(VALUES)}" for _ in range(chooser.randrange(6))
    ]
    headers.append(chooser.choice(["Host: a", "host:a", "HOST: \ta"]))
    body = chooser.randbytes(chooser.choice([0, 1, 5, 100, 5000]))
    kind = chooser.choice(["none", "length", "chunked"])
    if kind == "length":
        headers.append(f"Content-Length: {len(body)}")
    elif kind == "chunked":
        headers.append("Transfer-Encoding: chunked")
        body = chunk(body, chooser)
    else:
        body = b""
    chooser.shuffle(headers)
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body


def chunk(body: bytes, chooser: random.Random) -> bytes:
    """A chunked form of a body, with extensions and trailers now and then."""
    made, at = b"", 0
    while at < len(body):
        size = chooser.randrange(1, min(len(body) - at, 700) + 1)
        digits = chooser.choice(["%x", "%X", "0%x"]) % size
        extension = chooser.choice(["", "", ";a=b", ';c="d e"'])
        made += f"{digits}{extension}\r\n".encode() + body[at : at + size] + b"\r\n"
        at += size
    return made + b"0\r\n" + chooser.choice([b"", b"", b"X-Trailer: 1\r\n"]) + b"\r\n"


def cut(data: bytes, chooser: random.Random) -> list[bytes]:
    """Random pieces."""
    points = sorted({chooser.randrange(1, len(data)) for _ in range(chooser.randrange(4))})
    return [data[a:b] for a, b in zip([0, *points], [*points, len(data)], strict=True)]


SPICE = [
    b"\r", b"\n", b"\r\n", b"\0", b" ", b"\t", b":", b"0\r\n\r\n", b"Content-Length: 5\r\n", b"\x7f", b"\xff",
    b"Transfer-Encoding: chunked\r\n", b"Host: b\r\n", b"GET / HTTP/1.1\r\n", b"ffffffffffffffff", b",", b";",
]  # fmt: skip


def damage(data: bytes, chooser: random.Random) -> bytes:
    """One to three small changes: a byte flipped, dropped, doubled, swapped, or something put in."""
    made = bytearray(data)
    for _ in range(chooser.choice([1, 1, 2, 3])):
        at = chooser.randrange(min(len(made), 400))
        kind = chooser.randrange(5)
        if kind == 0:
            made[at] ^= 1 << chooser.randrange(8)
        elif kind == 1:
            del made[at : at + chooser.choice([1, 1, 2, 8])]
        elif kind == 2:
            made[at:at] = made[at : at + chooser.choice([1, 4, 30])]
        elif kind == 3:
            made[at:at] = chooser.choice(SPICE)
        else:
            made[at : at + 1] = chooser.choice(SPICE)
    return bytes(made)


def objects_for(origin: RecordingOrigin) -> list[make.Object]:
    """Everything to one origin."""
    objects = [make.route("all", [make.rule("origin")])]
    return objects + make.service("origin", [("127.0.0.1", origin.port)])


@pytest.fixture(scope="module")
def quick(origin: RecordingOrigin) -> Iterator[Site]:
    """For messages that never end."""
    limits = {"headTimeout": "500ms", "streamIdleTimeout": "500ms", "idleTimeout": "500ms"}
    with Site(objects_for(origin), http=limits) as running:
        yield running


@pytest.fixture(scope="module")
def site(origin: RecordingOrigin) -> Iterator[Site]:
    """For messages that do, whatever time their pieces take."""
    with Site(objects_for(origin), http={"headTimeout": "120s"}) as running:
        yield running


def forwarded(message: Expected) -> Expected:
    """A message as it must reach the backend."""
    return replace(message, target=normal_target(message.target))


@pytest.mark.parametrize("group", range(GROUPS * ROUNDS))
def test_valid_sequences_in_random_pieces(group: int, site: Site, origin: RecordingOrigin) -> None:
    """All messages arrive, in order on their connection, and each answer is the right one."""
    chooser = random.Random(f"{SEED}-valid-{group}")
    probe = Probe(site)
    origin.take()
    for _ in range(VALID):
        data = b"".join(one_message(chooser) for _ in range(chooser.randrange(1, 6)))
        reference = [forwarded(message) for message in parse(data)]
        with site.client() as client:
            client.expect(*["GET"] * len(reference))
            for piece in cut(data, chooser):
                client.send(piece)
                probe.turn(fresh=True)
            for message in reference:
                answer = client.read_response()
                assert answer.status == 200 and answer.body == message.target, f"{data!r}: {answer}"
        received = settle(origin, ("127.0.0.1", site.port))
        assert [observed(message) for message in received.messages] == reference, f"{data!r}"
        assert not received.faults and not received.partials
    probe.close()


def read_all(client: Client) -> list[Response]:
    """Every answer until the end, or until the good request that followed is answered."""
    found: list[Response] = []
    while True:
        try:
            found.append(client.read_response())
        except NoResponse:
            assert client.ended in ("eof", "reset"), f"{client.ended} after {found}"
            return found
        if found[-1].body == b"/following":
            return found


@pytest.mark.parametrize("group", range(GROUPS * ROUNDS))
def test_damaged_messages(group: int, quick: Site, origin: RecordingOrigin) -> None:
    """Whatever is served is exactly what h11 reads; whatever is refused ends the connection."""
    chooser = random.Random(f"{SEED}-damaged-{group}")
    origin.take()
    for _ in range(DAMAGED // BATCH):
        inputs = [damage(one_message(chooser), chooser) + FOLLOWING for _ in range(BATCH)]
        expected: Counter[Expected] = Counter()
        with ExitStack() as stack:
            clients = [stack.enter_context(quick.client()) for _ in inputs]
            for client, data in zip(clients, inputs, strict=True):
                client.expect(*["HEAD" if data.startswith(b"HEAD") else "GET"] * 12)
                client.send(data)
            for client, data in zip(clients, inputs, strict=True):
                expected += judge(data, read_all(client))
        received = settle(origin, ("127.0.0.1", quick.port))
        got = Counter(observed(message) for message in received.messages)
        assert got == expected, f"too much {got - expected}, too little {expected - got}"
        assert not received.faults and not received.open_partials, received


def judge(data: bytes, found: list[Response]) -> Counter[Expected]:
    """Check one client's answers; returns what the backend must have got for them."""
    shown = f"{data!r}: {[(item.status, item.body[:60]) for item in found]}"
    due: Counter[Expected] = Counter()
    reference, _ = parse_until_fault(data)
    for index, answer in enumerate(found):
        last = index == len(found) - 1
        if answer.status == 200:
            assert index < len(reference), f"h11 finds no such message in {shown}"
            message = forwarded(reference[index])
            assert answer.body == message.target, shown
            due[message] += 1
        elif answer.status in (307, 417) and not answer.closes:
            assert index < len(reference), shown
        else:
            assert last and answer.closes, f"a refusal that goes on: {shown}"
            assert answer.status in (307, 400, 405, 408, 413, 414, 417, 426, 431, 501, 504, 505), (
                shown
            )
    return due
