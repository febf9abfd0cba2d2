"""The newest proxies that this machine can have: a tree of a newer Debian release, and programs that cargo builds.

In: the mirror of this machine's apt, the registry of its cargo. Out: `bench/build/newest/bin`, in which each program is a script or an
executable; what cannot be made has a line in `missing.txt` with the reason. Programs of the tree run with the tree's own loader
and libraries, and see the files of this machine. Must never change anything outside of bench/build.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.native import BUILD, SOURCES
from release.debian_tree import make_tree
from release.steps import StepFailed

RELEASE = "trixie"
PACKAGES = ("nginx", "libnginx-mod-stream", "haproxy", "nghttp2-proxy")
PROGRAMS = ("nginx", "haproxy", "nghttpx")
NEWEST = BUILD / "newest"
TREE = NEWEST / RELEASE
BIN = NEWEST / "bin"
MISSING = NEWEST / "missing.txt"
STREAM_MODULE = TREE / "usr/lib/nginx/modules/ngx_stream_module.so"
SOZU_VERSION = "2.3.3"
#: A release build of one of the two takes some minutes on two CPUs.
CARGO_SECONDS = 3600


def find_newest(name: str) -> Path | None:
    """The program that `make_newest` has made, or None."""
    path = BIN / name
    return path if path.exists() else None


def read_missing(name: str) -> str:
    """Why a program could not be made, or an empty string."""
    lines = MISSING.read_text().splitlines() if MISSING.exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith(f"{name}: ")), "")


def make_newest() -> None:
    """Make what is missing; a failure leaves its program out."""
    BIN.mkdir(parents=True, exist_ok=True)
    missing = []
    for make, names in (
        (_make_tree, PROGRAMS),
        (_make_pingora, ("pingora",)),
        (_make_sozu, ("sozu",)),
    ):
        if all(find_newest(name) for name in names):
            continue
        try:
            make()
        except (OSError, subprocess.SubprocessError, StepFailed) as error:
            last = getattr(error, "stderr", None) or str(error)
            reason = " ".join(last.strip().splitlines()[-1:])
            missing += [f"{name}: {reason}" for name in names]
            print(f"{', '.join(names)}: {reason}", file=sys.stderr)
    MISSING.write_text("".join(f"{line}\n" for line in missing))


def _run(argv: list[str], **settings: object) -> str:
    done = subprocess.run(  # type: ignore[call-overload]
        argv, check=True, capture_output=True, text=True, timeout=CARGO_SECONDS, **settings
    )
    return str(done.stdout)


def _make_tree() -> None:
    """Debian's programs of a newer release; debootstrap needs root."""
    make_tree(RELEASE, PACKAGES, TREE)
    _write_scripts()


def _write_scripts() -> None:
    machine = os.uname().machine
    (loader,) = TREE.glob(f"lib64/ld-linux-{machine.replace('_', '-')}.so.*")
    libraries = TREE / "usr/lib" / f"{machine}-linux-gnu"
    for name in PROGRAMS:
        program = next(
            path for part in ("sbin", "bin") if (path := TREE / "usr" / part / name).exists()
        )
        script = BIN / name
        script.write_text(
            f'#!/bin/sh\nexec {loader} --argv0 {name} --library-path {libraries} {program} "$@"\n'
        )
        script.chmod(0o755)


def _make_pingora() -> None:
    target = NEWEST / "pingora"
    _run(
        [
            "cargo",
            "build",
            "--release",
            "--locked",
            "--manifest-path",
            str(SOURCES / "pingora/Cargo.toml"),
        ],
        # The system's OpenSSL, as the other proxies have it; the crate would compile one of its own.
        env={**os.environ, "CARGO_TARGET_DIR": str(target), "OPENSSL_NO_VENDOR": "1"},
    )
    shutil.copy(target / "release/bench-pingora", BIN / "pingora")


def _make_sozu() -> None:
    target = NEWEST / "sozu"
    _run(
        ["cargo", "install", "--locked", "sozu", "--version", SOZU_VERSION, "--root", str(target)],
        env={**os.environ, "CARGO_TARGET_DIR": str(target / "target")},
    )
    shutil.copy(target / "bin/sozu", BIN / "sozu")


if __name__ == "__main__":
    make_newest()
