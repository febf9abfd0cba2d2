"""The ring of session tickets' secrets: written by one, read by many, handed on, wiped."""

from __future__ import annotations

import logging
import mmap
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edgefast.proxy.tls.ticket_key_rotation import PERIOD, TicketSecret
from edgefast.proxy.tls.ticket_keys import TicketKeys
from edgefast.proxy.tls.ticket_memory import TicketMemory, map_ticket_memory
from edgefast.xds.ticket_secrets import TicketSecrets

pytestmark = pytest.mark.pure


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 5000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def ring() -> Iterator[TicketMemory]:
    with closing(TicketMemory()) as made:
        yield made


def secrets_of(ring: TicketMemory) -> set[bytes]:
    return {one.secret for one in ring.read()}


def test_what_is_written_is_read(ring: TicketMemory) -> None:
    assert ring.read() == ()
    wanted = (TicketSecret(b"a" * 32, 1, 2, 3), TicketSecret(b"b" * 32, 2, 3, 4))
    ring.write(wanted)
    assert ring.read() == wanted
    assert ring.generation == 1
    with pytest.raises(ValueError, match="order"):
        ring.write((TicketSecret(b"c" * 32, 3, 2, 1),))
    assert ring.read() == wanted


def test_a_worker_reads_what_the_agent_writes_and_writes_nothing(ring: TicketMemory) -> None:
    with map_ticket_memory(ring.fd) as seen:
        ring.write((TicketSecret(b"secret of thirty-two bytes, a..b", 1, 2, 3),))
        assert b"secret of thirty-two bytes, a..b" in seen[:]
        ring.write((TicketSecret(b"x" * 32, 1, 2, 3),))
        assert b"secret of thirty-two bytes, a..b" not in seen[:]
    with pytest.raises(PermissionError):
        mmap.mmap(ring.fd, 0)


def test_it_is_kept_out_of_core_dumps(ring: TicketMemory) -> None:
    inode = str(
        os.fstat(ring.fd).st_ino
    )  # other tests of this process may have mapped rings of theirs
    with map_ticket_memory(ring.fd):
        flags: list[list[str]] = []
        ours = False
        for line in Path("/proc/self/smaps").read_text().splitlines():
            ours = line.split()[4] == inode if "-" in line.split(" ")[0] else ours
            if ours and line.startswith("VmFlags:"):
                flags.append(line.split()[1:])
        assert len(flags) >= 2
        assert all("dd" in one for one in flags)


def test_a_successor_has_a_ring_of_its_own_with_the_same_secrets(ring: TicketMemory) -> None:
    wanted = (TicketSecret(b"a" * 32, 1, 2, 3),)
    ring.write(wanted)
    with closing(TicketMemory.go_on(os.dup(ring.fd))) as after:
        assert after.read() == wanted
        ring.write(())
        assert after.read() == wanted


def test_what_is_no_ring_is_not_gone_on_with(caplog: pytest.LogCaptureFixture) -> None:
    for content in (b"", b"\xa5" * 4096):
        fd = os.memfd_create("other", os.MFD_ALLOW_SEALING)
        os.write(fd, content)
        with closing(TicketMemory.go_on(fd)) as ring:
            assert ring.read() == ()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
    assert caplog.text.count("start new TLS sessions") == 2


def test_own_keys_take_turns(ring: TicketMemory) -> None:
    clock = Clock()
    keys = TicketKeys(ring, clock)
    assert len(secrets_of(ring)) == 2
    first = ring.read()
    generation = ring.generation
    keys.look()
    assert ring.generation == generation  # nothing was due
    clock.now += PERIOD
    assert 0 < keys.look() <= 60
    assert {one.secret for one in first} < secrets_of(ring)
    clock.now += PERIOD
    keys.look()
    assert first[0].secret not in secrets_of(ring)


def test_a_controllers_keys_come_and_go(
    ring: TicketMemory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    clock = Clock()
    keys = TicketKeys(ring, clock)
    own = ring.read()[0].secret
    given = TicketSecrets(b"", b"a" * 32, b"b" * 32)
    keys.use(given)
    assert secrets_of(ring) == {own, given.current, given.next}
    clock.now += PERIOD
    keys.look()
    assert secrets_of(ring) == {given.current, given.next}
    keys.use(None)
    now = [one for one in ring.read() if one.begins <= clock.now < one.ends]
    assert now
    clock.now += 3 * PERIOD
    keys.look()
    assert not secrets_of(ring) & {given.current, given.next}
    assert "aaaa" not in caplog.text


def test_keys_that_a_controller_has_thrown_away_are_gone_at_once(ring: TicketMemory) -> None:
    """Given to this process or to the one before; a key that this process made itself was never the controller's."""
    clock = Clock()
    leaked = TicketSecrets(b"p" * 32, b"c" * 32, b"n" * 32)
    fresh = TicketSecrets(b"", b"a" * 32, b"b" * 32)
    keys = TicketKeys(ring, clock)
    own = ring.read()[0].secret
    keys.use(leaked)
    with closing(TicketMemory.go_on(os.dup(ring.fd))) as inherited:
        TicketKeys(inherited, clock).use(fresh)
        assert secrets_of(inherited) == {fresh.current, fresh.next}
    keys.use(fresh)
    assert secrets_of(ring) == {own, fresh.current, fresh.next}


def test_when_a_controller_is_silent_for_long_the_agent_makes_keys(ring: TicketMemory) -> None:
    clock = Clock()
    keys = TicketKeys(ring, clock)
    given = TicketSecrets(b"", b"a" * 32, b"b" * 32)
    keys.use(given)
    for _ in range(12):
        clock.now += PERIOD // 4
        keys.look()
        assert any(one.begins <= clock.now < one.ends for one in ring.read())
    assert given.current not in {one.secret for one in ring.read() if clock.now < one.ends}
