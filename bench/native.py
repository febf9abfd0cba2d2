"""Builds the C tools of the bench with gcc into bench/build/.

In: bench/native/*.c. Out: paths of up-to-date programs. Must never be part of the wheel: the
tools are rebuilt from source wherever the bench runs.
"""

import os
import subprocess
from pathlib import Path

SOURCES = Path(__file__).parent / "native"
BUILD = Path(__file__).parent / "build"
#: Name of a tool: its source, and what it is linked with.
TLS = ("-DBENCH_TLS", "-lssl", "-lcrypto")
HTTP2 = ("-lnghttp2",)
TOOLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "origin": ("origin.c", ()),
    "origin-loopbacks": ("origin.c", ("-DBENCH_LOOPBACKS",)),
    "floor": ("floor.c", ()),
    "floor-tls": ("floor.c", TLS),
    "load": ("load.c", ()),
    "handshakes": ("handshakes.c", TLS),
    "idle": ("idle.c", ()),
    "idle-tls": ("idle.c", TLS),
    "neighbour": ("neighbour.c", ()),
    "origin-h2": ("origin_h2.c", HTTP2),
    "load-h2": ("load_h2.c", HTTP2),
    "origin-udp": ("origin_udp.c", ()),
    "load-udp": ("load_udp.c", ()),
}
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


def find_tool(name: str) -> Path:
    """Path of a built tool; `build_tools` must have run."""
    return BUILD / name


def build_tools() -> None:
    """Compile what is missing or older than its source; CalledProcessError carries gcc's words."""
    BUILD.mkdir(exist_ok=True)
    headers = max(path.stat().st_mtime for path in SOURCES.glob("*.h"))
    for name, (file, libraries) in TOOLS.items():
        source, target = SOURCES / file, find_tool(name)
        newest = max(headers, source.stat().st_mtime)
        if not target.exists() or target.stat().st_mtime < newest:
            beside = BUILD / f"{name}.{os.getpid()}"  # somebody else may be building or running it
            subprocess.run(["gcc", *FLAGS, str(source), "-o", str(beside), *libraries], check=True)
            beside.replace(target)
