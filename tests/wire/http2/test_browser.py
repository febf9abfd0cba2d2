"""A browser: a page with 200 resources over one connection of HTTP/2 and TLS, a WebSocket as a stream of it, and both while it has to go."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from console.browser import Browser, Page
from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
from wire.harness.certificates import Authority, Pair
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

RESOURCES = 200
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#: Of every kind that a browser has a priority for; each counts itself.
PAGE = (
    "<!doctype html><title>many</title><link rel=icon href=data:,><script>let loaded = 0</script>"
    + "".join(
        f"<script async src=/script/{number} onload=loaded++></script>"
        if number % 2
        else f'<img src="/image/{number}" onload="loaded++">'
        for number in range(RESOURCES)
    )
)
#: The same, TURN at a time: each begins when those before are there.
TURN = 20
IN_TURNS = """<!doctype html><title>in turns</title><link rel=icon href=data:,><script>
let loaded = 0, next = 0;
function turn() {
  for (const end = next + TURN; next < end && next < RESOURCES; next++) {
    const one = document.createElement(next % 2 ? 'script' : 'img');
    one.onload = () => { if (++loaded % TURN == 0) turn(); };
    one.src = (next % 2 ? '/script/' : '/image/') + next;
    document.head.append(one);
  }
}
turn();
</script>""".replace("TURN", str(TURN)).replace("RESOURCES", str(RESOURCES))
IMAGE = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">%b</svg>'
TALK = """new Promise((done, fail) => {
  const heard = [], socket = new WebSocket(`wss://localhost:${location.port}/echo`);
  socket.onopen = () => { for (let i = 0; i < 20; i++) socket.send(`${i} ` + 'x'.repeat(i * 500)); };
  socket.onmessage = told => { heard.push(told.data.length); if (heard.length == 20) socket.close(1000); };
  socket.onclose = told => told.code == 1000 ? done(heard) : fail(new Error(`closed ${told.code}`));
})"""


def serve(peer: Peer) -> None:
    """The page and what is on it; /echo says back what it hears, frame by frame as they come."""
    peer.sock.settimeout(None)  # it is kept between tests; the origin's end closes it
    while message := peer.read_request():
        if message.value(b"upgrade"):
            digest = hashlib.sha1((message.value(b"sec-websocket-key") or b"") + GUID).digest()
            peer.send(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Accept: %b\r\n\r\n" % base64.b64encode(digest)
            )
            echo(peer)
            return
        kind, body = b"text/html", PAGE.encode()
        if message.target == b"/in-turns":
            body = IN_TURNS.encode()
        elif message.target.startswith(b"/script/"):
            kind, body = b"text/javascript", b" " * 3000
        elif message.target.startswith(b"/image/"):
            kind, body = b"image/svg+xml", IMAGE % (b" " * 20_000)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nCache-Control: no-store\r\nContent-Length: %d\r\n\r\n"
        peer.send(head % (kind, len(body)) + body)


def echo(peer: Peer) -> None:
    """Frames of a browser are masked; ours are not."""
    data = b""
    while more := peer.read_some():
        data += more
        while len(data) >= 6:
            size, at = data[1] & 127, 2
            if size == 126:
                size, at = int.from_bytes(data[2:4], "big"), 4
            if len(data) < at + 4 + size:
                break
            mask, masked = data[at : at + 4], data[at + 4 : at + 4 + size]
            said = bytes(one ^ mask[index % 4] for index, one in enumerate(masked))
            peer.send(data[:1] + bytes((data[1] & 127,)) + data[2:at] + said)
            if data[0] & 15 == 8:  # close
                return
            data = data[at + 4 + size :]


def fingerprint(pair: Pair) -> str:
    """What a browser's command line calls a certificate's key."""
    key = x509.load_pem_x509_certificate(pair.certificate).public_key()
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    digest = hashlib.sha256(key.public_bytes(serialization.Encoding.DER, kind)).digest()
    return base64.b64encode(digest).decode()


class Shop(Gateway):
    """One HTTPS port; a connection ends after so many requests."""

    def __init__(self, origin: int, pair: Pair) -> None:
        self.port = free_port()
        self._origin, self._pair = origin, pair
        super().__init__(self.build(10_000))

    def build(self, requests: int) -> list[make.Object]:
        """All objects."""
        return [
            make.edge_proxy("shop", http2={"maxRequestsPerConnection": requests}),
            make.gateway("web", [make.listener(self.port, "tls", "", ["pair"])], "shop"),
            make.tls_secret("pair", self._pair.certificate, self._pair.key),
            make.route("all", [make.rule("origin")]),
            *make.service("origin", [("127.0.0.1", self._origin)]),
        ]

    def connections(self) -> float:
        """Connections of HTTP/2 so far."""
        return self.metric("edgefast_http2_connections_total")


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Authority().issue(["localhost"])


@pytest.fixture(scope="module")
def shop(pair: Pair) -> Iterator[Shop]:
    with ScriptedOrigin(serve) as origin, Shop(origin.port, pair) as running:
        yield running


@pytest.fixture(scope="module")
def browser(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    trust = f"--ignore-certificate-errors-spki-list={fingerprint(pair)}"
    with Browser(tmp_path_factory.mktemp("chromium"), [trust]) as running:
        yield running


def protocols(page: Page) -> set[str]:
    """What the answers came by, which have to be all of them."""
    answers = [one["response"] for one in page.events("Network.responseReceived")]
    answers = [one for one in answers if one["url"].startswith("https")]
    assert len(answers) == RESOURCES + 1 and {one["status"] for one in answers} == {200}
    return {one["protocol"] for one in answers}


def test_a_page_with_many_resources(browser: Browser, shop: Shop) -> None:
    before = shop.connections()
    with browser.page(f"https://localhost:{shop.port}/") as page:
        page.until(f"loaded == {RESOURCES}")
        assert protocols(page) == {"h2"}
        assert page.complaints() == []
        assert shop.connections() == before + 1


def test_a_websocket_is_a_stream(browser: Browser, shop: Shop) -> None:
    before = shop.connections()
    accepted = shop.metric("edgefast_connections_total")
    with browser.page(f"https://localhost:{shop.port}/") as page:
        page.until(f"loaded == {RESOURCES}")
        wanted = [len(f"{number} ") + number * 500 for number in range(20)]
        assert page.run(TALK) == wanted
        assert page.complaints() == []
        assert shop.connections() == before + 1
        assert shop.metric("edgefast_connections_total") == accepted + 1  # none of HTTP/1.1
    shop.wait_until(lambda: shop.metric("edgefast_tunnels_active") == 0, "its end")


def test_connections_that_have_to_go(browser: Browser, shop: Shop) -> None:
    """... each after the page and six turns: the rest comes by another one. (What it has given to a connection and not yet sent when that
    has to go, Chromium reports as failed now and then, whoever serves it: its SpdySession has no stream for it any more.)"""
    shop.apply(shop.build(1 + 6 * TURN))
    before = shop.connections()
    try:
        with browser.page(f"https://localhost:{shop.port}/in-turns") as page:
            page.until(f"loaded == {RESOURCES}")
            assert protocols(page) == {"h2"}
            assert page.complaints() == []
            assert shop.connections() == before + 2
    finally:
        shop.apply(shop.build(10_000))
