"""Which addresses are of this machine: the kernel answers, in a network namespace with secondary addresses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, ip_address
from pathlib import Path

import pytest

from core.links import enter_command
from edgefast import local_address
from edgefast.local_address import is_local, leads_to

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parent.parent
OWN = ("192.0.2.1", "192.0.2.2", "198.51.100.7", "2001:db8::1", "2001:db8::2", "::ffff:192.0.2.2")
OTHERS = ("192.0.2.3", "203.0.113.1", "2001:db8::3")
_SCRIPT = f"""
import subprocess
from ipaddress import ip_address
from edgefast.local_address import is_local
for words in (
    "link set lo up", "link add one type veth peer name two", "link set one up", "link set two up",
    "addr add 192.0.2.1/24 dev one", "addr add 192.0.2.2/24 dev one",
    "addr add 2001:db8::1/64 dev one nodad", "addr add 2001:db8::2/64 dev one nodad",
    "route add local 198.51.100.0/24 dev lo", "route add default via 192.0.2.9",
):
    subprocess.run(["ip", *words.split()], check=True)
print(*[one for one in {OWN + OTHERS!r} if is_local(ip_address(one))])
"""


def test_every_address_of_this_machine_is_own() -> None:
    """Secondary addresses of one prefix, and a range that a route of type local covers."""
    done = subprocess.run(
        [*enter_command(), sys.executable, "-c", _SCRIPT],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, timeout=60, text=True,
    )  # fmt: skip
    assert tuple(done.stdout.split()) == OWN


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("127.9.9.9", True),
        ("0.1.2.3", True),
        ("::", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
    ]
    + [("198.18.0.77", False)],
)
@pytest.mark.parametrize("netlink", [True, False])
def test_without_netlink_the_answer_is_the_same(
    monkeypatch: pytest.MonkeyPatch, netlink: bool, text: str, own: bool
) -> None:
    """A service manager can forbid netlink sockets."""
    if not netlink:
        monkeypatch.setattr(local_address, "_question", _forbid)
    elif not own:
        monkeypatch.setattr(local_address, "_reads_local", lambda answer: False)  # no route here
    assert is_local(ip_address(text)) is own


def _forbid(*_: object) -> bytes:
    raise PermissionError


def test_without_descriptors_an_address_counts_as_own(monkeypatch: pytest.MonkeyPatch) -> None:
    local_address._kernel.close()

    def full(*_: object) -> socket.socket:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(socket, "socket", full)
    assert is_local(ip_address("198.18.0.77"))
    assert leads_to("198.18.0.77", 80, (80,))
    assert not leads_to("198.18.0.77", 80, (81,))


OTHER = ip_address("198.18.0.77")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[socket.socket]:
    """Return the sockets that are opened from here on."""
    local_address._kernel.close()
    found: list[socket.socket] = []
    make = socket.socket

    def open_socket(*arguments: int) -> socket.socket:
        found.append(make(*arguments))
        return found[-1]

    monkeypatch.setattr(socket, "socket", open_socket)
    return found


def test_one_socket_serves_all_threads(opened: list[socket.socket]) -> None:
    """Each thread gets the answer to its own query."""
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: local_address._kernel.ask(_numbered(n)), range(400)))
    assert len(opened) == 1 and opened[0].fileno() >= 0
    assert not opened[0].get_inheritable()
    assert all(_numbered(n).packed in answer for n, answer in enumerate(answers))


def _numbered(n: int) -> IPv4Address:
    return IPv4Address(f"127.1.{n // 200}.{n % 200 + 1}")


def test_a_broken_socket_is_opened_again(opened: list[socket.socket]) -> None:
    first = is_local(OTHER)
    os.close(opened[0].detach())
    assert is_local(OTHER) is first
    assert [one.family for one in opened] == [socket.AF_NETLINK] * 2
    # An answer that is left over from another query.
    opened[1].sendto(local_address._question(ip_address("127.0.0.1"), 0), (0, 0))
    assert is_local(OTHER) is first
    assert len(opened) == 3


def test_a_forked_process_opens_its_own_socket(opened: list[socket.socket]) -> None:
    """Also while a thread of the parent has the lock."""
    first = is_local(OTHER)
    with local_address._kernel._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if is_local(OTHER) is first and len(opened) == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert is_local(OTHER) is first and len(opened) == 1
