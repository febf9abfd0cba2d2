"""The file descriptor limit: raised as far as allowed, and said when that is not enough."""

from __future__ import annotations

import logging
import resource
import subprocess
import sys

import pytest

from edgefast import ir
from edgefast.proxy.process.file_limit import check_descriptors, needed_descriptors
from proxy.living import ROOT


def listener(port: int, name: str, connections: int) -> ir.Listener:
    http = ir.HttpSettings(max_connections=connections)
    return ir.Listener(name=name, port=port, bind_port=port, protocol="HTTP", http=http)


@pytest.mark.pure
def test_need_is_counted_by_port_not_by_listener() -> None:
    one = [listener(80, "a/b/c", 1000), listener(80, "a/b/d", 1000)]
    two = [*one, listener(81, "a/b/e", 500)]
    assert needed_descriptors(two) - needed_descriptors(one) == 1000
    assert needed_descriptors(one) - needed_descriptors([]) == 2000


@pytest.mark.pure
def test_caps_out_of_reach_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    listeners = [listener(80, "a/b/c", 77_777)]
    with caplog.at_level(logging.WARNING, "edgefast.proxy.process.file_limit"):
        assert not check_descriptors(listeners, 4096)
        assert not check_descriptors(listeners, 4096)
        assert check_descriptors(listeners, 200_000)
    (record,) = caplog.records
    assert "LimitNOFILE" in record.getMessage()
    assert "4096" in record.getMessage()


def stream_listener(port: int, name: str, protocol: ir.Protocol) -> ir.Listener:
    settings = ir.StreamSettings(max_connections=3_333, max_sessions=5_555)
    return ir.Listener(name=name, port=port, bind_port=port, protocol=protocol, stream=settings)


@pytest.mark.pure
def test_caps_of_layer_4_count_by_listener() -> None:
    """Limits there are each listener's; a session of UDP has one socket of its own, towards its backend."""
    tls = [stream_listener(443, name, "TLS") for name in ("a/b/c", "a/b/d")]
    beside = listener(443, "a/b/https", 1000)
    assert needed_descriptors([*tls, beside]) - needed_descriptors([]) == 2 * (2 * 3_333 + 1000)
    both = [stream_listener(53, "a/b/t", "TCP"), stream_listener(53, "a/b/u", "UDP")]
    assert needed_descriptors(both) - needed_descriptors([]) == 2 * 3_333 + 5_555


@pytest.mark.pure
def test_the_settings_that_count_are_named(caplog: pytest.LogCaptureFixture) -> None:
    udp, tcp = stream_listener(53, "a/b/u", "UDP"), stream_listener(53, "a/b/t", "TCP")
    with caplog.at_level(logging.WARNING, "edgefast.proxy.process.file_limit"):
        assert not check_descriptors([udp], 4096)
        assert not check_descriptors([udp, tcp], 4096)
        assert not check_descriptors([udp, tcp, listener(80, "a/b/c", 77_778)], 4096)
    first, second, third = (record.getMessage() for record in caplog.records)
    assert "5555 for spec.stream.maxSessions" in first and "maxConnections" not in first
    assert "6666 for spec.stream.maxConnections" in second and "spec.http" not in second
    assert "or lower spec.http.maxConnections or spec.stream.maxConnections or" in third


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    script = (
        "import resource\n"
        "from edgefast.proxy.process.file_limit import raise_limit\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))\n"
        "print(raise_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    told, soft, hard_now = map(int, done.stdout.split())
    assert told == soft == hard_now >= hard
