"""gRPC ignores unknown options: the test compares every name in the sources with gRPC's own list."""

from __future__ import annotations

import re
from pathlib import Path

import grpc._cython.cygrpc as library
import pytest

ROOT = Path(__file__).parents[2]
#: The first member of a pair, as both ends of gRPC take options.
_NAME = re.compile(r'\(\s*"(grpc\.[a-z0-9_.]+)",')

#: A channel of gRPC, or of OpenTelemetry's exporter with options.
_CHANNEL = re.compile(r"\b(?:in)?secure_channel\(|channel_options=")


def _names() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for folder in ("edgefast", "controller", "tests"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            if file == Path(__file__):
                continue
            for name in _NAME.findall(file.read_text()):
                found.setdefault(name, []).append(str(file.relative_to(ROOT)))
    return found


@pytest.fixture(scope="module")
def strings() -> frozenset[bytes]:
    """Return all strings of gRPC's compiled library that look like the name of an option."""
    return frozenset(re.findall(rb"grpc\.[a-z0-9_.]+(?=\0)", Path(library.__file__).read_bytes()))


def test_each_option_is_one_that_grpc_reads(strings: frozenset[bytes]) -> None:
    names = _names()
    assert len(names) > 15, "the sources' options are not found any more"
    unknown = {name: files for name, files in names.items() if name.encode() not in strings}
    assert not unknown, f"gRPC reads no such option: {unknown}"


def test_a_name_that_grpc_does_not_read_is_seen(strings: frozenset[bytes]) -> None:
    assert b"grpc.http2.min_ping_interval_without_data_ms" in strings
    assert b"grpc.http2.min_recv_ping_interval_without_data_ms" not in strings


def test_no_channel_goes_through_a_proxy_of_the_environment() -> None:
    """Controllers, proxies and checked collectors are connected to directly: `http_proxy` would connect in their place."""
    folders = {"edgefast/xds", "edgefast/proxy/traces", "controller/xds_server"}
    found: dict[str, list[str]] = {}
    for top in ("edgefast", "controller"):
        for file in sorted((ROOT / top).rglob("*.py")):
            if _CHANNEL.search(file.read_text()):
                found.setdefault(str(file.parent.relative_to(ROOT)), []).append(file.name)
    assert found.keys() == folders
    for folder in found:
        texts = [file.read_text() for file in (ROOT / folder).glob("*.py")]
        channels = sum(len(_CHANNEL.findall(text)) for text in texts)
        assert sum(text.count('("grpc.enable_http_proxy", 0)') for text in texts) == channels, (
            folder
        )
