"""Echo: what the built-in origin answers, and its bounds."""

from __future__ import annotations

import asyncio

import pytest

from edgefast.httpd.echo import Echo, describe

HEAD = b"POST /a?b=c HTTP/1.1\r\nHost: shop.test\r\nAuthorization: Bearer x\r\nCOOKIE: y"


@pytest.mark.pure
def test_a_page_names_the_request_and_hides_credentials() -> None:
    head, _, body = describe("shop/web", HEAD).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert body.decode().splitlines() == [
        "service: shop/web",
        "method: POST",
        "path: /a?b=c",
        "headers:",
        "  Host: shop.test",
        "  Authorization: (hidden)",
        "  COOKIE: (hidden)",
    ]


@pytest.mark.pure
def test_a_response_to_head_has_no_body() -> None:
    assert describe("x", b"HEAD / HTTP/1.1").endswith(b"\r\n\r\n")


@pytest.mark.parametrize("head", [b"PRI * HTTP/2.0", b"GET /", b"\x16\x03\x01"])
@pytest.mark.pure
def test_other_protocols_are_refused(head: bytes) -> None:
    assert describe("x", head).startswith(b"HTTP/1.1 400 ")


def test_each_origin_has_a_port_up_to_the_limit() -> None:
    async def ask(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        # The response comes before the body, which is read to its end all the same.
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n")
        page = await reader.readuntil(b"headers:\n")
        writer.write(b"x" * 200_000)
        await writer.drain()
        writer.write_eof()
        page += await reader.read()
        writer.close()
        return page

    async def use() -> None:
        echo = Echo(limit=2)
        first = echo.get_port("a")  # before it runs
        running = asyncio.create_task(echo.run())
        second = await asyncio.to_thread(echo.get_port, "b")
        assert first
        assert second
        assert (echo.get_port("a"), echo.get_port("c")) == (first, None)
        assert b"service: a\n" in await ask(first)
        assert b"service: b\n" in await ask(second)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", second)

    asyncio.run(asyncio.wait_for(use(), 20))
