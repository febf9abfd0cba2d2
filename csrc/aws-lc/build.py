"""Build AWS-LC's libcrypto and libssl as static libraries with hidden symbols, once per version and machine.

In: Cargo.toml and Cargo.lock beside this file (version and checksums); cargo, cmake, make, a C and a C++ compiler; the registry that
cargo is configured for. Out: the folder that has include/, libssl.a and libcrypto.a, on standard output: below
$XDG_CACHE_HOME/edgefast (~/.cache), named after everything that it depends on, so that all checkouts share it. Must never write
into the tree, nor leave a half-built folder under the final name.

Only source is fetched, and no program of it is run but AWS-LC's own CMakeLists.txt: assembly comes generated in the package, so neither
Go nor Perl is needed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = "aws-lc-sys"
#: What is needed, and the Debian package that has it.
TOOLS = {
    "cargo": "cargo (bookworm: cargo-web), or rustup",
    "cmake": "cmake",
    "make": "make",
    "cc": "gcc",
    "c++": "g++",
}
#: Hidden: the interpreter loads another libssl into the same process. Names of build folders must not be in a binary.
FLAGS = "-fvisibility=hidden -g1 -ffile-prefix-map={source}=aws-lc"
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "CMAKE_POSITION_INDEPENDENT_CODE": "ON",
    "BUILD_SHARED_LIBS": "OFF",
    "BUILD_LIBSSL": "ON",
    "BUILD_TESTING": "OFF",
    "BUILD_TOOL": "OFF",
    "DISABLE_GO": "ON",
    "DISABLE_PERL": "ON",
}


class CannotBuild(Exception):
    """What is missing, or what failed, in words for who started the build."""


def find_version() -> str:
    """The version that Cargo.lock pins."""
    locked = tomllib.loads((HERE / "Cargo.lock").read_text())["package"]
    return next(str(one["version"]) for one in locked if one["name"] == PACKAGE)


def find_folder() -> Path:
    """Where the libraries are, or will be: another lock, another builder, another machine is another folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    inputs = (HERE / "Cargo.lock").read_bytes() + Path(__file__).read_bytes()
    compiler = b""
    if shutil.which("cc"):
        compiler = subprocess.run(
            ["cc", "-dumpfullversion"], capture_output=True, check=True
        ).stdout
    made_by = hashlib.sha256(inputs + platform.machine().encode() + compiler).hexdigest()[:12]
    return cache / "edgefast" / f"aws-lc-{find_version()}-{made_by}"


def check_tools() -> None:
    """CannotBuild names all that is missing at once."""
    missing = [
        f"{name} (Debian: {package})" for name, package in TOOLS.items() if not shutil.which(name)
    ]
    if missing:
        raise CannotBuild(
            f"EDGEFAST_TLS=aws-lc needs {', '.join(missing)}. "
            "Without EDGEFAST_TLS the system's OpenSSL is used, which needs none of them."
        )


def run(argv: list[str | Path], log: Path) -> None:
    """Run one step; what it printed is shown only if it fails."""
    with log.open("ab") as out:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False)
    if done.returncode:
        last = log.read_text(errors="replace").splitlines()[-30:]
        step = " ".join(map(str, argv[:2]))
        raise CannotBuild("\n".join([*last, f"AWS-LC: {step} ended with status {done.returncode}"]))


def build(target: Path, scratch: Path) -> None:
    """Fetch, compile and move the outcome to `target`."""
    log, vendor, made = scratch / "log", scratch / "vendor", scratch / "made"
    # Without --respect-source-config vendoring would pass by a mirror that cargo is told to use.
    fetch = [
        "cargo",
        "vendor",
        "--quiet",
        "--locked",
        "--versioned-dirs",
        "--respect-source-config",
    ]
    run([*fetch, "--manifest-path", HERE / "Cargo.toml", vendor], log)
    source = vendor / f"{PACKAGE}-{find_version()}" / "aws-lc"
    flags = FLAGS.format(source=source)
    options = {
        **OPTIONS,
        "CMAKE_C_FLAGS": flags,
        "CMAKE_CXX_FLAGS": flags,
        "CMAKE_ASM_FLAGS": flags,
    }
    tree = scratch / "tree"
    settings = [f"-D{name}={value}" for name, value in options.items()]
    run(["cmake", "-S", source, "-B", tree, "-G", "Unix Makefiles", *settings], log)
    jobs = str(len(os.sched_getaffinity(0)))
    run(["cmake", "--build", tree, "--target", "crypto", "ssl", "--parallel", jobs], log)
    made.mkdir()
    for library in ("crypto/libcrypto.a", "ssl/libssl.a"):
        shutil.copy2(tree / library, made)
    shutil.copytree(source / "include", made / "include")
    shutil.copy2(source / "LICENSE", made)
    made.replace(target)


def main() -> int:
    """Print the folder; build it first if it is not there."""
    try:
        target = find_folder()
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.with_name(f"{target.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a second build waits for the first, then finds it
            if not target.exists():
                check_tools()
                with tempfile.TemporaryDirectory(prefix=".aws-lc-", dir=target.parent) as scratch:
                    build(target, Path(scratch))
    except CannotBuild as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
