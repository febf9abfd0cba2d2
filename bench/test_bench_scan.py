"""Benchmark of the scans: nanoseconds per head by size and shape, per chunked body and per path, in csrc alone.

In: csrc compiled here as the product is, with a C loop around it, so that Python is not what is measured. Heads of one shape
differ a little and take turns: branch prediction must not learn one by heart. Out: `ns_each` and `ns_per_header` in the extra info.
Run: pytest bench/test_bench_scan.py --benchmark-enable. Must never assert a time.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

ROOT = Path(__file__).resolve().parents[1]
TURNS = 20_000
VARIANTS = 4

LOOP = r"""
#include "chunk.h"
#include "head.h"
#include "path.h"

static const ef_head_limits limits = {262144, 262144, 100, EF_UNDERSCORE_REJECT};

/* Heads lie at buf[off[i] .. off[i + 1]); cut > 0: they come in two pieces, the first of them len / cut bytes. */
uint64_t scan(const uint8_t *buf, const uint32_t *off, uint32_t heads, uint32_t turns, int response, uint32_t cut);
uint64_t scan(const uint8_t *buf, const uint32_t *off, uint32_t heads, uint32_t turns, int response, uint32_t cut) {
    static ef_head head;
    uint64_t done = 0;
    for (uint32_t i = 0; i < turns; i++) {
        const uint32_t at = (i * 7 + i / 3) % heads;
        const uint8_t *data = buf + off[at];
        const size_t len = off[at + 1] - off[at];
        ef_head_reset(&head);
        for (int piece = cut > 0 ? 0 : 1; piece < 2; piece++) {
            const size_t n = piece == 0 ? len / cut : len;
            const int got = response ? ef_head_scan_response(&head, &limits, data, n, EF_M_GET)
                                     : ef_head_scan_request(&head, &limits, data, n);
            done += got > 0;
        }
    }
    return done;
}

uint64_t chunks(const uint8_t *body, size_t len, uint32_t turns);
uint64_t chunks(const uint8_t *body, size_t len, uint32_t turns) {
    uint64_t done = 0;
    for (uint32_t i = 0; i < turns; i++) {
        ef_chunk state;
        ef_chunk_reset(&state);
        size_t at = 0;
        while (at < len) {
            size_t used, n;
            const uint8_t *data;
            const int result = ef_chunk_feed(&state, body + at, len - at, &used, &data, &n);
            at += used;
            if (result == EF_CHUNK_DATA) continue;
            done += result == EF_CHUNK_DONE;
            break;
        }
    }
    return done;
}

uint64_t paths(const uint8_t *path, size_t len, uint32_t turns);
uint64_t paths(const uint8_t *path, size_t len, uint32_t turns) {
    static uint8_t out[8192];
    uint64_t done = 0;
    for (uint32_t i = 0; i < turns; i++) {
        size_t n;
        int escaped;
        done += ef_path_normalize(path, len, out, sizeof out, &n, &escaped) >= 0;
    }
    return done;
}
"""


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """csrc and the loops."""
    folder = tmp_path_factory.mktemp("scan")
    (folder / "loop.c").write_text(LOOP)
    sources = [str(path) for path in sorted((ROOT / "csrc").glob("*.c"))]
    library = folder / "loop.so"
    options = ["-std=c11", "-O3", "-shared", "-fPIC", "-idirafter", str(ROOT / "csrc")]
    command = ["gcc", *options, str(folder / "loop.c"), *sources, "-o", str(library)]
    subprocess.run(command, check=True, timeout=120)
    found = ctypes.CDLL(str(library))
    for function in (found.scan, found.chunks, found.paths):
        function.restype = ctypes.c_uint64
    return found


def make_head(first: str, headers: int, variant: int) -> bytes:
    """A head of usual lines, `headers` of them."""
    usual = [
        f"Host: shop-{variant}.example.com",
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101" + "x" * variant,
        "Accept: text/html,application/xhtml+xml,*/*;q=0.8",
        "Accept-Encoding: gzip, deflate, br",
        "Accept-Language: en-GB,en;q=0.7",
        f"Cookie: session=0123456789abcdef{variant}; theme=dark",
        "Referer: https://shop.example.com/checkout/payment" + "/a" * variant,
        "X-Trace: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ]
    more = [f"X-Custom-Header-{i}: some value of {variant} {i}" for i in range(headers)]
    return "\r\n".join([first, *(usual + more)[:headers], "", ""]).encode()


def run(
    benchmark: BenchmarkFixture, call: object, arguments: tuple[object, ...], count: int
) -> None:
    """Measure; `count` is the number of header lines (0: not a head)."""
    pedantic: Any = benchmark.pedantic  # it has no annotations
    done = pedantic(call, arguments, rounds=25, iterations=1, warmup_rounds=2)
    assert done == TURNS
    if benchmark.stats is not None:  # None when benchmarks are disabled
        for name in ("min", "median"):
            each = benchmark.stats.stats.as_dict()[name] / TURNS * 1e9
            benchmark.extra_info[f"ns_each_{name}"] = round(each, 1)
            if count:
                benchmark.extra_info[f"ns_per_header_{name}"] = round(each / count, 1)
        print(f"\n{benchmark.name}: {benchmark.extra_info}")


def scan_heads(
    benchmark: BenchmarkFixture,
    native: ctypes.CDLL,
    heads: list[bytes],
    count: int,
    *,
    response: bool = False,
    cut: int = 0,
) -> None:
    """Measure heads of one shape."""
    offsets = [0]
    for head in heads:
        offsets.append(offsets[-1] + len(head))
    benchmark.extra_info["bytes"] = len(heads[0])
    places = (ctypes.c_uint32 * len(offsets))(*offsets)
    run(
        benchmark,
        native.scan,
        (b"".join(heads), places, len(heads), TURNS, int(response), cut),
        count,
    )


@pytest.mark.parametrize("headers", [1, 6, 8, 16, 40, 90])
def test_request_head(benchmark: BenchmarkFixture, native: ctypes.CDLL, headers: int) -> None:
    heads = [
        make_head(f"GET /api/v1/items/{i}711?expand=owner HTTP/1.1", headers, i)
        for i in range(VARIANTS)
    ]
    scan_heads(benchmark, native, heads, headers)


@pytest.mark.parametrize("cut", [2, 10])
def test_request_head_in_two_pieces(
    benchmark: BenchmarkFixture, native: ctypes.CDLL, cut: int
) -> None:
    heads = [make_head(f"GET /api/v1/{i} HTTP/1.1", 8, i) for i in range(VARIANTS)]
    scan_heads(benchmark, native, heads, 8, cut=cut)


@pytest.mark.parametrize("size", [100, 1_000, 7_000])
def test_request_head_with_a_large_cookie(
    benchmark: BenchmarkFixture, native: ctypes.CDLL, size: int
) -> None:
    heads = [
        make_head("GET / HTTP/1.1", 8, i)[:-2] + b"Cookie: " + b"c" * (size + i) + b"\r\n\r\n"
        for i in range(VARIANTS)
    ]
    scan_heads(benchmark, native, heads, 9)


@pytest.mark.parametrize("headers", [3, 12])
def test_response_head(benchmark: BenchmarkFixture, native: ctypes.CDLL, headers: int) -> None:
    lines = ["Content-Type: application/json", "Date: Sat, 01 Jan 2022 00:00:00 GMT"]
    lines += [f"X-Header-{i}: a value that says {i}" for i in range(headers - 3)]
    heads = [
        "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: 12{i}", *lines, "", ""]).encode()
        for i in range(VARIANTS)
    ]
    scan_heads(benchmark, native, heads, headers, response=True)


@pytest.mark.parametrize(("size", "count"), [(10, 10), (1_000, 10), (16_000, 4)])
def test_chunked_body(
    benchmark: BenchmarkFixture, native: ctypes.CDLL, size: int, count: int
) -> None:
    body = b"%x\r\n%b\r\n" % (size, b"x" * size) * count + b"0\r\n\r\n"
    benchmark.extra_info["bytes"] = len(body)
    run(benchmark, native.chunks, (body, len(body), TURNS), 0)


@pytest.mark.parametrize(
    "path",
    ["/", "/api/v1/items/4711", "/a/../b/./c//d/%41%42", "/segment-of-some-length" * 20],
    ids=["root", "plain", "to be normalised", "long"],
)
def test_path(benchmark: BenchmarkFixture, native: ctypes.CDLL, path: str) -> None:
    run(benchmark, native.paths, (path.encode(), len(path), TURNS), 0)
