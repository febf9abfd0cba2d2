"""Hypothesis strategies for heads: lines from pools of what clients and attackers send, then damage to single bytes.

Most of what comes out is right or nearly right: that is where two parsers disagree. Every pool is a good one and an odd one,
and an odd choice is rare enough that a third of the heads has none.
"""

from __future__ import annotations

from hypothesis import strategies as st

from csrc.reference import Limits


def mostly(good: list[bytes], odd: list[bytes], share: int = 30) -> st.SearchStrategy[bytes]:
    """One of `good`, once in `share` times one of `odd`."""
    repeat = (share * len(odd)) // len(good) + 1
    return st.sampled_from(good * repeat + odd)


def listed(items: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """A comma list, well formed or with empty elements."""
    comma = st.sampled_from([b",", b", ", b" ,\t", b",,"])
    return st.builds(lambda xs, c: c.join(xs), st.lists(items, min_size=1, max_size=4), comma)


METHODS = mostly(
    b"GET POST HEAD OPTIONS DELETE M-SEARCH PROPFIND".split(),
    b"CONNECT TRACE FOO get PRI G@T".split() + [b""],
)
TARGETS = mostly(
    b"/ /a/b /a?b=c&d /a%2Fb?c/d?e //b/../c http://a http://a/ HTTP://A/b?c https://a?d".split(),
    b"* http://a:8080/ http://u@a/ http://@ http:///a http:// ftp://a/ http://a#b admin a:80".split()
    + b'/a#b /a\\b /{} /\xc3\xa4 ?a *a /a;b/c;d?; /a|b?| /?{}^\\"` /?< /|;'.split()
    + [b"", b"/a b", b"/\t"],
)
VERSIONS = mostly(
    [*[b"HTTP/1.1"] * 4, b"HTTP/1.0"],
    b"HTTP/2.0 HTTP/1.2 HTTP/0.9 HTTP/1.11 http/1.1 HTTP/1,1 HTTP/1.x".split()
    + [b"", b"HTTP/1.1 "],
)
HOSTS = mostly(
    b"a a A a:8080 a. a.example.:80 a.example:80 127.0.0.1 [::1]:443 [1:2:3:4:5:6:7:8] [::1.2.3.4] [::] a_b~c".split()
    + [b"x" * 255],
    b"[::1 [1:2::] [1:::2] a,b a@b a/b a: a:99999 a:0x1 :80 a%20b *.a [::1%25a] [v1.a] a:+1".split()
    + b". .a a.. a..b a..:80 [1::2::3] [12345::] [::256.1.1.1] [1:2:3:4:5:6:7:8:9] [1:2:3:4:5:6:7::] a:000080".split()
    + [b"", b"a b", b"\xc3\xa4", b"x" * 256],
    share=8,
)
LENGTHS = mostly(
    [b"0", b"5", b"12", b"9223372036854775807"],
    b"+5 -5 0x10 1_0 5.0 5, 05 00 9223372036854775808 18446744073709551616".split()
    + [b"", b"5, 5", b"5 5", b"\xb2"],
    share=6,
)
CODINGS = mostly(
    [b"chunked", b"Chunked"],
    b'xchunked gzip identity ,chunked chunked, chunked;a=b "chunked" \xa0chunked'.split()
    + [b"", b"gzip, chunked", b"chunked, gzip", b"chunked, chunked", b"gzip,\tdeflate , Chunked"],
    share=6,
)
OPTIONS = st.sampled_from(
    b"close keep-alive Keep-Alive upgrade X-A x-a host content-length te cookie x-edge-".split()
    + b"x-forwarded-for X-Forwarded-Host x-request-id X-Edge-Internal http2-settings a_b forwarded X-Real-IP".split()
    + [b""]
)
PROTOCOLS = st.sampled_from(
    b"websocket websocket h2c H2C h2 h2c-14 HTTP/2.0 TLS/1.0 httpx x/http".split() + [b""]
)
EXPECTATIONS = mostly([b"100-continue", b"100-Continue"], [b"foo", b"", b"x 100-continue"], 4)
ENCODINGS = st.sampled_from([b"trailers", b"Trailers", b"gzip", b"trailers;q=1", b""])
NAMES = mostly(
    b"X-A x-a Accept Cookie Authorization Via Date Server Origin Keep-Alive Trailer x-edge-".split()
    + b"X-Request-Id X-Forwarded-For X-Forwarded-Host X-Edge-Internal HTTP2-Settings".split()
    + b"Proxy-Authenticate Access-Control-Request-Method Forwarded X-Real-IP X-Rewrite-URL".split(),
    b"a_b Content_Length x_edge_a X_Real_IP x_forwarded_port x_forwarded_ Host_ _ a(b a/b \xc3\xa4 a\x00".split()
    + [b"", b"a ", b" a"],
)
VALUES = mostly(
    [b"", b"b", b"b c", b"b\tc", b" b", b"b \t", b"\x80\xff", b"a: b, c", b'"b"'],
    [b"b\rc", b"b\nc", b"b\x00", b"\x7f", b"\x0bb", b"b\r\n c", b"b\r\n\tc"],
)
COLONS = mostly([b": ", b":", b":\t "], [b" : ", b""], 40)
LINE_ENDS = mostly([b"\r\n"], [b"\n", b"\r", b"\r\r\n"], 100)


def header(names: str, values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """A line with one of the names given."""
    return st.builds(
        lambda n, c, v: n + c + v, st.sampled_from(names.encode().split()), COLONS, values
    )


PLAIN = st.builds(lambda n, c, v: n + c + v, NAMES, COLONS, VALUES)
HOST = header("Host Host host", HOSTS)
CONNECTION = header("Connection connection Proxy-Connection", listed(OPTIONS))
UPGRADE = header("Upgrade", listed(PROTOCOLS))
LENGTH = header("Content-Length content-length", LENGTHS)
CODING = header("Transfer-Encoding transfer-encoding", CODINGS)
OTHER = st.one_of(
    PLAIN,
    PLAIN,
    CONNECTION,
    UPGRADE,
    header("TE", listed(ENCODINGS)),
    header("Expect", EXPECTATIONS),
)
FRAMING = st.sampled_from(
    [[LENGTH]] * 4
    + [[CODING]] * 4
    + [[]] * 8
    + [[LENGTH, LENGTH], [CODING] * 2]
    + [[LENGTH, CODING]]
)


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """The same bytes, or with a few replaced, inserted or cut."""
    buf = bytearray(data)
    for _ in range(draw(st.sampled_from([0] * 6 + [1, 1, 2]))):
        at = draw(st.integers(0, len(buf)))
        byte = draw(st.sampled_from(b'\r\n\t :;,=%/.#@\x00\x7f\x80aA0_-[]"') | st.integers(0, 255))
        match draw(st.sampled_from(["replace", "insert", "delete", "end"])):
            case "replace":
                buf[at : at + 1] = bytes([byte])
            case "insert":
                buf[at:at] = bytes([byte])
            case "delete":
                del buf[at : at + draw(st.integers(1, 4))]
            case _:
                del buf[at:]
    return bytes(buf)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Mostly a request head."""
    line = b" ".join([draw(METHODS), draw(TARGETS), draw(VERSIONS)])
    hosts = draw(st.sampled_from([1] * 30 + [0, 2]))
    lines = [draw(HOST) for _ in range(hosts)] + [draw(part) for part in draw(FRAMING)]
    lines += draw(st.lists(OTHER, max_size=5))
    before = draw(mostly([b""], [b"\r\n", b"\r\n", b"\r\n\r\n", b"\n"]))
    return draw(_message(before, line, draw(st.permutations(lines))))


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """Mostly a response head."""
    version = draw(
        mostly(
            [b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0"], b"HTTP/2 HTTP/2.0 http/1.1 HTTP/1.2".split()
        )
    )
    space = draw(mostly([b" "], [b"  ", b"\t", b""]))
    statuses = b"200 200 200 204 304 100 103 101 404 999".split()
    status = draw(mostly(statuses, b"2000 20 099 2x0".split() + [b""]))
    reason = draw(mostly([b" OK", b" ", b"", b" \x80\t x"], [b"\tOK", b" \x01", b"OK"]))
    lines = [draw(part) for part in draw(FRAMING)] + draw(st.lists(OTHER, max_size=5))
    before = draw(mostly([b""], [b"\r\n"], 60))
    return draw(_message(before, version + space + status + reason, draw(st.permutations(lines))))


@st.composite
def _message(draw: st.DrawFn, before: bytes, line: bytes, lines: list[bytes]) -> bytes:
    parts = [before]
    for part in [line, *lines]:
        parts += [part, draw(LINE_ENDS)]
    tail = draw(st.sampled_from([b"", b"", b"", b"GET / HTTP/1.1\r\n", b"\r\n", b"\x00"]))
    return draw(damaged(b"".join([*parts, draw(LINE_ENDS), tail])))


LIMITS = st.one_of(
    st.just(Limits()),
    st.builds(
        Limits,
        underscore=st.sampled_from(["allow", "drop"]),
        raw=st.booleans(),
        http10=st.sampled_from(["reject", "with_host", "allow"]),
    ),
    st.builds(
        Limits,
        head=st.integers(0, 160),
        line=st.integers(0, 60),
        count=st.integers(0, 5),
        underscore=st.sampled_from(["reject", "allow", "drop"]),
        raw=st.booleans(),
        http10=st.sampled_from(["reject", "with_host", "allow"]),
    ),
)


@st.composite
def cuts(draw: st.DrawFn, data: bytes) -> list[int]:
    """Where the bytes are cut into pieces: at a few places, or everywhere."""
    if draw(st.integers(0, 4)) == 0:
        return list(range(len(data)))
    return sorted(draw(st.lists(st.integers(0, len(data)), max_size=4)))
