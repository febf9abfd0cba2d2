"""Wire: answers byte by byte, their ends, and connections that are used again. Pure."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from controller.kube.wire import BUFFER, Answer, Broken, Wire

pytestmark = pytest.mark.pure

REQUEST = b"GET / HTTP/1.1\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: u\r\n\r\n"


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.aborted = self.paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class Site:
    def __init__(self) -> None:
        self.idle: list[Wire] = []
        self.lost: list[Wire] = []
        self.transport = Transport()
        self.wire = Wire(self.idle.append, self.lost.append)
        self.wire.connection_made(self.transport)

    async def ask(self, *pieces: bytes, end: bool = False) -> Answer:
        asking = asyncio.create_task(self.wire.ask(REQUEST))
        await asyncio.sleep(0)
        for piece in pieces:
            self.wire.data_received(piece)
        if end:
            self.wire.connection_lost(None)
        return await asking


@pytest.fixture
@contextlib.asynccontextmanager
async def site() -> AsyncIterator[Site]:
    yield Site()


async def body_of(answer: Answer) -> bytes:
    said = b""
    while more := await answer.read():
        said += more
    return said


@pytest.mark.parametrize("answer", [WHOLE, CHUNKED, b"HTTP/1.1 100 Wait\r\n\r\n" + WHOLE])
async def test_an_answer_comes_whole_however_it_is_cut(site: Site, answer: bytes) -> None:
    for size in (1, 3, len(answer)):
        cut = [answer[at : at + size] for at in range(0, len(answer), size)]
        found = await site.ask(*cut)
        assert (found.status, await body_of(found)) == (200, b"hello")
        found.leave()
        found.leave()  # once more does nothing
    assert site.idle == [site.wire] * 3 and not site.lost
    assert site.wire.used and site.transport.written == REQUEST * 3


async def test_what_is_not_read_to_its_end_ends_the_connection(site: Site) -> None:
    found = await site.ask(WHOLE[:-2])
    found.leave()
    assert site.transport.aborted and site.lost == [site.wire] and not site.idle
    assert await found.read() == b""


async def test_a_server_that_closes_after_its_answer_is_not_asked_again(site: Site) -> None:
    found = await site.ask(WHOLE.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n"))
    assert await body_of(found) == b"hello"
    found.leave()
    assert site.lost == [site.wire] and not site.idle


@pytest.mark.parametrize("came", [WHOLE[:-1], CHUNKED[:-2], CHUNKED[:-9]])
async def test_an_end_in_the_middle_is_no_end(site: Site, came: bytes) -> None:
    found = await site.ask(came, end=True)
    with pytest.raises(Broken) as caught:
        await body_of(found)
    assert not caught.value.untouched


async def test_a_body_without_a_length_ends_with_its_connection(site: Site) -> None:
    found = await site.ask(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", end=True)
    assert await body_of(found) == b"hello"


@pytest.mark.parametrize(
    ("came", "untouched"), [((), True), ((b"HTTP/1.1 2",), False), ((b"SSH-2.0\r\n",), False)]
)
async def test_no_answer_is_told(site: Site, came: tuple[bytes, ...], untouched: bool) -> None:
    with pytest.raises(Broken) as caught:
        await site.ask(*came, end=True)
    assert caught.value.untouched == untouched
    with pytest.raises(Broken):
        await site.wire.ask(REQUEST)


@pytest.mark.parametrize("second", [WHOLE.replace(b"200 OK", b"404 No"), b"HTTP/1.1 404", b"xx"])
@pytest.mark.parametrize("cut", [0, 1, len(WHOLE)])
async def test_nothing_is_believed_of_an_answer_that_another_one_follows(
    site: Site, second: bytes, cut: int
) -> None:
    came = WHOLE + second
    with pytest.raises(Broken) as caught:
        await body_of(await site.ask(came[:cut], came[cut:]))
    assert not caught.value.untouched
    assert site.transport.aborted and site.lost == [site.wire] and not site.idle


async def test_a_body_without_a_length_does_not_end_with_what_we_cut(site: Site) -> None:
    found = await site.ask(b"HTTP/1.1 200 OK\r\n\r\nhel")
    assert await found.read() == b"hel"
    site.wire.cut()
    site.wire.connection_lost(None)  # which a transport says of what it aborts
    with pytest.raises(Broken, match="incomplete"):
        await found.read()


async def test_another_protocol_is_no_answer(site: Site) -> None:
    with pytest.raises(Broken, match="not HTTP"):
        await site.ask(b"HTTP/1.1 101 On\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
    assert site.transport.aborted


@pytest.mark.parametrize("came", [WHOLE + WHOLE, b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000])
async def test_what_no_server_says_ends_the_connection(site: Site, came: bytes) -> None:
    try:
        await body_of(await site.ask(came))
    except Broken:
        pass
    assert site.transport.aborted and site.lost == [site.wire]


async def test_words_without_a_question_end_the_connection(site: Site) -> None:
    (await site.ask(WHOLE)).leave()
    site.wire.data_received(WHOLE)
    assert site.transport.aborted and site.lost == [site.wire]


async def test_a_slow_reader_holds_the_server_back(site: Site) -> None:
    found = await site.ask(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    piece = b"%x\r\n" % BUFFER + b"x" * BUFFER + b"\r\n"
    site.wire.data_received(piece)
    assert not site.transport.paused
    site.wire.data_received(piece)
    assert site.transport.paused
    assert len(await found.read()) == 2 * BUFFER
    assert not site.transport.paused
    site.wire.data_received(piece * 2 + b"0\r\n\r\n")
    assert site.transport.paused
    found.leave()  # whole, and not read: the next one is not to wait for ever
    assert not site.transport.paused and site.idle == [site.wire]
