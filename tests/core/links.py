"""A network namespace with two links between the same link-local addresses: clients that only their scope ids tell apart.

In: a process that may have namespaces (root, or a user namespace of its own). Out: the command that enters one; in it two pairs of
interfaces c1-s1 and c2-s2, `CLIENT` on both of the first, `SERVER` on both of the second. Must never: touch the namespace we are in.
"""

from __future__ import annotations

import os
import socket
import subprocess

import pytest

CLIENT, SERVER = "fe80::c", "fe80::5"
LINKS = (1, 2)


def enter_command() -> list[str]:
    """Return what runs a command in a namespace of its own; the test is skipped where nobody may."""
    command = ["unshare", *(["--map-root-user"] if os.getuid() else []), "--net"]
    try:
        subprocess.run([*command, "ip", "link"], check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no network namespace can be had here: {error}")
    return command


def make_links() -> None:
    """Make them, in the namespace that we are in."""
    _ip("link set lo up")
    for n in LINKS:
        _ip(f"link add c{n} type veth peer name s{n}")
        for name, address in ((f"c{n}", CLIENT), (f"s{n}", SERVER)):
            _ip(f"link set {name} addrgenmode none")
            _ip(f"link set {name} up")
            _ip(f"addr add {address}/64 dev {name} nodad")


def scope_of(link: int) -> int:
    """Return the scope id of a client on a link."""
    return socket.if_nametoindex(f"c{link}")


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, timeout=20)
