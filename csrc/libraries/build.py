"""Build a C library as static libraries with hidden symbols, once per version and machine: `build.py aws-lc`, `build.py nghttp2`.

In: NAME/Cargo.toml and NAME/Cargo.lock beside this file (version and checksums); cargo, cmake, make, a C and a C++ compiler; the
registry that cargo is configured for. Out: the folder that has include/ and the libraries, on standard output: below
$XDG_CACHE_HOME/edgefast (~/.cache), named after everything that it depends on, so that all checkouts share it. Must never write
into the tree or leave a half-built folder under the final name.

Only source is fetched, and no program of it is run but the library's own CMakeLists.txt: assembly of AWS-LC comes generated in the
package, so neither Go nor Perl is needed.
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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: What is needed, and the Debian package that has it.
TOOLS = {
    "cargo": "cargo (bookworm: cargo-web), or rustup",
    "cmake": "cmake",
    "make": "make",
    "cc": "gcc",
    "c++": "g++",
}
#: Hidden: the interpreter loads another libssl into the same process. Names of build folders must not be in a binary.
FLAGS = "-fvisibility=hidden -g1 -ffile-prefix-map={source}={name}"
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "CMAKE_POSITION_INDEPENDENT_CODE": "ON",
    "BUILD_SHARED_LIBS": "OFF",
    "BUILD_TESTING": "OFF",
}


@dataclass(frozen=True, slots=True)
class Library:
    """A library, and how its own CMakeLists.txt builds it."""

    #: The name of the folder beside this file.
    name: str
    #: The cargo package, and the folder of the library's source in it.
    package: str
    source: str
    options: Mapping[str, str]
    targets: tuple[str, ...]
    #: Files of the build tree to keep.
    libraries: tuple[str, ...]
    #: Folders of headers, below `source` and below the build tree.
    headers: str
    made_headers: str
    license: str
    #: Without the library.
    instead: str

    @property
    def title(self) -> str:
        """The name in messages."""
        return {"aws-lc": "AWS-LC"}.get(self.name, self.name)


LIBRARIES = {
    each.name: each
    for each in (
        Library(
            name="aws-lc",
            package="aws-lc-sys",
            source="aws-lc",
            options={
                "BUILD_LIBSSL": "ON",
                "BUILD_TOOL": "OFF",
                "DISABLE_GO": "ON",
                "DISABLE_PERL": "ON",
            },
            targets=("crypto", "ssl"),
            libraries=("crypto/libcrypto.a", "ssl/libssl.a"),
            headers="include",
            made_headers="",
            license="LICENSE",
            instead="Without EDGEFAST_TLS the system's OpenSSL is used",
        ),
        Library(
            name="nghttp2",
            package="libnghttp2-sys",
            source="nghttp2",
            options={
                "ENABLE_LIB_ONLY": "ON",
                "BUILD_STATIC_LIBS": "ON",
                "ENABLE_DOC": "OFF",
            },
            targets=("nghttp2_static",),
            libraries=("lib/libnghttp2.a",),
            headers="lib/includes",
            made_headers="lib/includes",
            license="COPYING",
            instead="Without EDGEFAST_HTTP2 the system's nghttp2 is used",
        ),
    )
}


class CannotBuild(Exception):
    """A build that failed; the text names what is missing, or the step."""


def find_version(library: Library) -> str:
    """The version that Cargo.lock pins, for example `0.47.0` or `0.1.13+1.68.1`."""
    locked = tomllib.loads((HERE / library.name / "Cargo.lock").read_text())["package"]
    return next(str(one["version"]) for one in locked if one["name"] == library.package)


def find_folder(library: Library) -> Path:
    """Where the libraries are, or will be: another lock, another builder, another machine is another folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    inputs = (HERE / library.name / "Cargo.lock").read_bytes() + Path(__file__).read_bytes()
    compiler = b""
    if shutil.which("cc"):
        compiler = subprocess.run(
            ["cc", "-dumpfullversion"], capture_output=True, check=True
        ).stdout
    made_by = hashlib.sha256(inputs + platform.machine().encode() + compiler).hexdigest()[:12]
    return cache / "edgefast" / f"{library.name}-{find_version(library)}-{made_by}"


def check_tools(library: Library) -> None:
    """CannotBuild names all that is missing at once."""
    missing = [
        f"{name} (Debian: {package})" for name, package in TOOLS.items() if not shutil.which(name)
    ]
    if missing:
        raise CannotBuild(
            f"The build of {library.title} needs {', '.join(missing)}. "
            f"{library.instead}, which needs none of them."
        )


def run(library: Library, argv: list[str | Path], log: Path) -> None:
    """Run one step; what it printed is shown only if it fails."""
    with log.open("ab") as out:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False)
    if done.returncode:
        last = log.read_text(errors="replace").splitlines()[-30:]
        step = " ".join(map(str, argv[:2]))
        ended = f"{library.title}: {step} ended with status {done.returncode}"
        raise CannotBuild("\n".join([*last, ended]))


def build(library: Library, target: Path, scratch: Path) -> None:
    """Fetch, compile and move the outcome to `target`."""
    log, vendor, made = scratch / "log", scratch / "vendor", scratch / "made"
    # Without --respect-source-config, vendoring ignores the mirror of the cargo configuration.
    fetch = [
        "cargo",
        "vendor",
        "--quiet",
        "--locked",
        "--versioned-dirs",
        "--respect-source-config",
    ]
    manifest = HERE / library.name / "Cargo.toml"
    run(library, [*fetch, "--manifest-path", manifest, vendor], log)
    source = vendor / f"{library.package}-{find_version(library)}" / library.source
    flags = FLAGS.format(source=source, name=library.name)
    options = {
        **OPTIONS,
        **library.options,
        "CMAKE_C_FLAGS": flags,
        "CMAKE_CXX_FLAGS": flags,
        "CMAKE_ASM_FLAGS": flags,
    }
    tree = scratch / "tree"
    settings = [f"-D{name}={value}" for name, value in options.items()]
    run(library, ["cmake", "-S", source, "-B", tree, "-G", "Unix Makefiles", *settings], log)
    jobs = str(len(os.sched_getaffinity(0)))
    targets = ["--target", *library.targets]
    run(library, ["cmake", "--build", tree, *targets, "--parallel", jobs], log)
    made.mkdir()
    for path in library.libraries:
        shutil.copy2(tree / path, made)
    ignore = shutil.ignore_patterns("*.in", "CMakeLists.txt", "Makefile*")
    shutil.copytree(source / library.headers, made / "include", ignore=ignore)
    if library.made_headers:
        made_headers = tree / library.made_headers
        shutil.copytree(made_headers, made / "include", ignore=_not_headers, dirs_exist_ok=True)
    shutil.copy2(source / library.license, made / "LICENSE")
    made.replace(target)


def _not_headers(folder: str, names: list[str]) -> list[str]:
    """List the files of a build tree that are no headers."""
    return [name for name in names if not (Path(folder, name).is_dir() or name.endswith(".h"))]


def main(name: str) -> int:
    """Print the folder; build it first if it is not there."""
    library = LIBRARIES[name]
    try:
        target = find_folder(library)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.with_name(f"{target.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a second build waits for the first, then finds it
            if not target.exists():
                check_tools(library)
                prefix = f".{library.name}-"
                with tempfile.TemporaryDirectory(prefix=prefix, dir=target.parent) as scratch:
                    build(library, target, Path(scratch))
    except CannotBuild as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{target}\n")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] not in [[name] for name in LIBRARIES]:
        sys.exit(f"usage: build.py NAME, where NAME is one of {', '.join(LIBRARIES)}")
    sys.exit(main(sys.argv[1]))
