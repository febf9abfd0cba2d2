"""`edgefast demo`: its objects are valid, and its ports are free ones. tests/cli/test_first_run.py starts it."""

from __future__ import annotations

import datetime
import socket
from pathlib import Path

import pytest
import yaml

from cli.calling import call
from edgefast.cli.demo import make_demo_objects, show_commands
from edgefast.cli.freeport import choose_ports
from edgefast.providers.document import TextDocument
from edgefast.providers.files import FileSource
from edgefast.providers.localauthority import make_local_certificate
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import settings_from
from edgefast.translate.tls.certificate import parse_pair
from wire.harness.ports import free_port

NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)


@pytest.mark.pure
def test_the_objects_are_valid() -> None:
    made = make_local_certificate("demo", NOW)
    document = TextDocument("<demo>", make_demo_objects(1080, 1443, made.certificate, made.key))
    reading = FileSource((), documents=(document,)).read()
    assert not reading.problems
    translation = translate(reading.snapshot, settings_from(None, now=int(NOW.timestamp())))
    # The command adds the endpoints of both Services.
    assert {one.reason for one in translation.problems} <= {"EndpointsNotFound"}
    (fleet,) = translation.ir.fleets
    assert {(one.protocol, one.port) for one in fleet.listeners} == {("HTTP", 1080), ("HTTPS", 1443)}  # fmt: skip
    rules = {one.name: one for one in fleet.virtual_hosts[0].rules}
    assert set(rules) == {"api", "limited", "private", "web"}
    assert rules["limited"].rate_limits and rules["private"].policies


@pytest.mark.pure
def test_no_key_is_shown() -> None:
    made = make_local_certificate("demo", NOW)
    document = TextDocument("<demo>", make_demo_objects(1080, 1443, made.certificate, made.key))
    assert b"PRIVATE KEY" in made.key
    assert repr(made) == "LocalCertificate()" and repr(document) == "TextDocument('<demo>')"
    outcome = call("demo", "--print")
    kinds = [one["kind"] for one in yaml.safe_load_all(outcome.out)]
    assert outcome.status == 0 and "Gateway" in kinds and "tls.key" not in outcome.out


@pytest.mark.pure
def test_the_certificate_is_for_localhost_and_short() -> None:
    made = make_local_certificate("demo", NOW)
    pair = parse_pair(made.certificate, made.key)
    assert not isinstance(pair, str)
    assert pair.names == ("localhost",) and not pair.check_name("localhost")
    assert pair.not_after - NOW.timestamp() == 7 * 86400


@pytest.mark.pure
def test_the_commands_have_the_ports() -> None:
    text = show_commands(1080, 1443, Path("/tmp/ca.crt"))
    lines = [line for line in text.splitlines() if line.startswith("  curl ")]
    assert len(lines) == 5 and all(":1080/" in line or ":1443/" in line for line in lines)


@pytest.mark.wire
def test_ports_in_use_are_replaced() -> None:
    free, taken = free_port(), free_port()
    with socket.create_server(("127.0.0.1", taken)):
        chosen = choose_ports((free, taken, taken, free))
    assert chosen[0] == free and len(set(chosen)) == 4 and taken not in chosen
    for port in chosen:
        with socket.create_server(("127.0.0.1", port)):
            pass


@pytest.mark.wire
@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_a_port_of_the_other_family_is_in_use() -> None:
    """curl tries ::1 first for localhost, so another process would answer."""
    port = free_port()
    try:
        other = socket.create_server(("::1", port), family=socket.AF_INET6)
    except OSError:
        pytest.skip("::1 is not an address of this machine")
    with other:
        assert choose_ports((port,)) != (port,)
