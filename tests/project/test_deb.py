"""The Debian package on a Debian system with systemd: installed, upgraded under load, removed, purged.

`make wheels` and `make deb` build it first; needs root and a network.
"""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest

from edgefast import __version__
from project.debian_machine import PACKAGES, DebianMachine
from project.test_wheels import wheels  # noqa: F401 a fixture
from release.deb import build_package
from release.debian_tree import make_tree
from release.interpreters import PLACE

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(3600)]

NEXT = f"{__version__}+next"
#: Each request on a connection of its own, until a file appears.
LOAD = """
import http.client, json, os, threading
good, bad, lock = 0, [], threading.Lock()
def ask():
    connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=60)
    connection.request("GET", "/")
    status = connection.getresponse().status
    connection.close()
    return status
def work():
    global good
    while not os.path.exists("/mnt/stop"):
        try:
            status = ask()
        except Exception as error:
            status = repr(error)
        with lock:
            good += status == 404
            if status != 404:
                bad.append(status)
        if good + len(bad) == 200:
            open("/mnt/begun", "w").close()
workers = [threading.Thread(target=work) for _ in range(4)]
[one.start() for one in workers]
[one.join() for one in workers]
print(json.dumps([good, bad[:10]]))
"""


@pytest.fixture(scope="module")
def packages(wheels: dict[str, Path]) -> tuple[Path, Path]:  # noqa: F811
    """This version, and a later one."""
    with (PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build_package("12", PLACE), build_package("12", PLACE, NEXT)


def test_install_upgrade_and_purge(packages: tuple[Path, Path], tmp_path: Path) -> None:
    tree = PLACE / "machine-bookworm"
    make_tree("bookworm", PACKAGES, tree)
    (tmp_path / "load.py").write_text(LOAD)
    for path in packages:
        (tmp_path / path.name).hardlink_to(path)
    with DebianMachine(tree, tmp_path) as machine:
        machine.run("dpkg", "--install", f"/mnt/{packages[0].name}")
        assert machine.run("systemctl", "is-active", "edgefast").strip() == "active"
        head = machine.run("curl", "--silent", "--include", "http://127.0.0.1:8080/")
        assert head.startswith("HTTP/1.1 404 ")  # the first configuration has no route
        before = machine.run("systemctl", "show", "--property=MainPID", "edgefast")

        load = machine.start("python3", "/mnt/load.py")
        while not (tmp_path / "begun").exists():
            assert load.poll() is None
        machine.run("dpkg", "--install", f"/mnt/{packages[1].name}")
        (tmp_path / "stop").touch()
        good, bad = json.loads(load.communicate(timeout=120)[0])
        assert good > 200 and not bad, bad
        assert machine.run("systemctl", "show", "--property=MainPID", "edgefast") != before
        assert NEXT in machine.run("dpkg-query", "--show", "edgefast")

        machine.run("dpkg", "--remove", "edgefast")
        assert machine.call("curl", "--silent", "http://127.0.0.1:8080/").returncode == 7
        assert machine.run("ls", "/etc/edgefast").split() == ["gateway.yaml"]
        machine.run("dpkg", "--purge", "edgefast")
        for path in ("/etc/edgefast", "/usr/lib/edgefast", "/usr/bin/edgefast"):
            assert machine.call("test", "-e", path).returncode == 1, path
        assert machine.call("getent", "group", "edgefast-config").returncode == 2
