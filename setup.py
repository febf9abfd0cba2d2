"""Build the native modules: the engine in units (Cython on csrc, below edgefast/core) and `edgefast._csrc` (cffi on csrc).

In: *.pyx|pxd|pxi below edgefast/core, csrc/*.c|h, edgefast/table/csrc_build.py. Out: extension modules; everything else about
the package is in pyproject.toml. Objects are compiled in parallel and only when they or a header they read have changed.
Environment: EDGEFAST_DEBUG=1 builds with bounds checks, C asserts and no optimisation; EDGEFAST_SANITIZE=1 adds
AddressSanitizer and UndefinedBehaviorSanitizer; EDGEFAST_QUICK=1 leaves optimisation out, for work on the engine; EDGEFAST_TLS=aws-lc links the engine with AWS-LC in place of the system's OpenSSL,
EDGEFAST_HTTP2=static with an nghttp2 of its own in place of the system's (csrc/libraries/build.py fetches and builds both, once per
version). Must never read the network otherwise, nor write outside build/ and the modules.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from Cython import Build as cython
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

DEBUG = os.environ.get("EDGEFAST_DEBUG") == "1"
SANITIZE = os.environ.get("EDGEFAST_SANITIZE") == "1"
QUICK = os.environ.get("EDGEFAST_QUICK") == "1" and not SANITIZE
TLS = os.environ.get("EDGEFAST_TLS") or "system"
if TLS not in ("system", "aws-lc"):
    sys.exit(f"EDGEFAST_TLS is {TLS!r}; there are: system, aws-lc")
AWS_LC = TLS == "aws-lc"
HTTP2 = os.environ.get("EDGEFAST_HTTP2") or "system"
if HTTP2 not in ("system", "static"):
    sys.exit(f"EDGEFAST_HTTP2 is {HTTP2!r}; there are: system, static")
STATIC_HTTP2 = HTTP2 == "static"
VARIANT = (
    ("debug" if DEBUG else "release")
    + "-sanitize" * SANITIZE
    + "-quick" * QUICK
    + "-aws-lc" * AWS_LC
    + "-static-http2" * STATIC_HTTP2
)
JOBS = len(os.sched_getaffinity(0))

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"] if SANITIZE else []
# A sanitizer's build names lines, for which -g1 is enough, and is compiled more often than it is waited for: -O1 takes three times as long.
OPTIMISE = ["-O0", "-g1", "-fno-omit-frame-pointer"] if DEBUG or SANITIZE else ["-O2", "-g1"]
if QUICK:
    OPTIMISE = ["-O0", "-g0"]
# With link-time optimisation the second half of a compilation runs on all CPUs, and csrc is inlined into the units that call it.
LTO = not (DEBUG or SANITIZE or QUICK) and shutil.which("gcc-ar") is not None
if LTO:
    OPTIMISE += ["-flto", "-fno-fat-lto-objects"]
# -idirafter, not -I: csrc/limits.h must not stand in for <limits.h>.
# A function that one TLS library lacks is found by the build, not when the module is loaded.
MISSING = "-Werror=implicit-function-declaration"
COMPILE = ["-std=c11", MISSING, "-idirafter", "csrc", "-fvisibility=hidden", *OPTIMISE, *SANITIZERS]

# The one place for Cython directives. Release code checks bounds where the C does: at load and in the head scan.
DIRECTIVES = {
    "language_level": "3",
    "auto_pickle": False,
    "binding": False,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "nonecheck": DEBUG,
    "cdivision": True,
    "embedsignature": False,
    "freethreading_compatible": False,
    "warn.maybe_uninitialized": DEBUG,
    "warn.unreachable": DEBUG,
    "warn.unused": DEBUG,
}


def c_sources() -> list[str]:
    """All of csrc; its unit tests, benches and fuzz targets are in folders of their own."""
    return sorted(map(str, Path("csrc").glob("*.c")))


def static_library(name: str) -> Path:
    """The folder of a library that csrc/libraries builds."""
    builder = [sys.executable, "csrc/libraries/build.py", name]
    done = subprocess.run(builder, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return Path(done.stdout.strip())


def http2_library() -> dict[str, Any]:
    """How the engine is linked with nghttp2.

    The distribution's, whatever TLS is linked with: its fixes come with the system's. A wheel for many distributions has its own inside.
    """
    if not STATIC_HTTP2:
        return {"libraries": ["nghttp2"]}
    folder = static_library("nghttp2")
    return {
        "include_dirs": [str(folder / "include")],
        "extra_objects": [str(folder / "libnghttp2.a")],
    }


def tls_library() -> dict[str, Any]:
    """How the engine is linked with libssl and libcrypto.

    AWS-LC is inside of the module and shows none of its names, because Python's own ssl brings another libssl into the process.
    """
    if not AWS_LC:
        return {"libraries": ["ssl", "crypto"]}
    folder = static_library("aws-lc")
    return {
        "include_dirs": [str(folder / "include")],
        "extra_objects": [str(folder / "libssl.a"), str(folder / "libcrypto.a")],
    }


def tls_sources() -> list[str]:
    """What speaks to the TLS library: of the engine alone."""
    return sorted(map(str, Path("csrc/tls").glob("*.c")))


# The engine's compilation units. `fastpath` is what every request passes; the others cimport it and are never cimported by it
# (edgefast/core/hooks.pxd); `engine` connects them. The largest comes first: units are built side by side.
CORE = "edgefast.core"
FASTPATH = f"{CORE}.fastpath"
UNITS = ("policy", "h2", "stream", "telemetry", "tls", "healthcheck")


def engine() -> list[Extension]:
    room = Path("edgefast/core")

    def unit(name: str, source: Path, more: list[str] | None = None, **settings: Any) -> Extension:
        # Cython knows what a unit includes and cimports; csrc comes as an archive, and its changes need a new link.
        return Extension(name, [str(source), *(more or [])], depends=c_sources(), **settings)

    modules = [unit(FASTPATH, room / "fastpath.pyx")]
    for name in UNITS:
        source = room / name / "extension.pyx"
        if name == "tls":
            made = unit(f"{CORE}.{name}.extension", source, tls_sources(), **tls_library())
        elif name == "h2":
            made = unit(f"{CORE}.{name}.extension", source, **http2_library())
        else:
            made = unit(f"{CORE}.{name}.extension", source)
        modules.append(made)
    modules.append(unit(f"{CORE}.engine", room / "engine.pyx"))
    translate: Any = cython.cythonize
    translated: list[Extension] = translate(
        modules,
        build_dir=f"build/cython-{VARIANT}",
        compiler_directives=DIRECTIVES,
        include_path=["edgefast/core", "edgefast"],
        nthreads=JOBS,
    )
    return translated


class Build(build):
    """Keep the objects of each variant apart: a debug build must never reuse release objects."""

    def finalize_options(self) -> None:
        if self.build_base == "build":
            self.build_base = f"build/{VARIANT}"
        super().finalize_options()


class BuildExt(build_ext):
    """Same flags for both modules, objects compiled in parallel and only those whose source or headers are newer.

    Modules are built side by side. The engine's units take what they need of csrc from one archive.
    """

    def finalize_options(self) -> None:
        super().finalize_options()
        # One place for objects, whoever builds (pip's editable mode would use a temporary folder and forget them).
        self.build_temp = f"build/{VARIANT}/objects-{sys.implementation.cache_tag}"
        self.parallel = JOBS

    def build_extensions(self) -> None:
        for extension in self.extensions:
            extension.depends += map(str, Path("csrc").rglob("*.h"))
            extension.include_dirs = [d for d in extension.include_dirs if d != "csrc"]
            extension.extra_compile_args = COMPILE
            extension.libraries = [*extension.libraries, "m"]
            # What static libraries bring along must not be seen, or take the place of, anybody else's.
            extension.extra_link_args = [*SANITIZERS, "-Wl,--exclude-libs,ALL"]
            if LTO:
                extension.extra_link_args += [*OPTIMISE, f"-flto={JOBS}"]
            if DEBUG:
                extension.define_macros.append(("EF_DEBUG", "1"))
                extension.undef_macros.append("NDEBUG")
        # Modules in the tree that another variant left are newer than their sources, but not these.
        mark = Path("build/inplace-variant")
        if self.inplace and (not mark.exists() or mark.read_text() != VARIANT):
            self.force = True
        compiler: Any = self.compiler

        def compile_all(sources: list[str], output_dir: str | None = None, **settings: Any) -> Any:
            _, objects, extra, options, todo = compiler._setup_compile(
                output_dir,
                settings.get("macros"),
                settings.get("include_dirs"),
                sources,
                settings.get("depends"),
                settings.get("extra_postargs"),
            )
            flags = [*compiler._get_cc_args(options, settings.get("debug"), None), "-MMD"]

            def compile_one(obj: str) -> None:
                if not is_fresh(Path(obj)):
                    compiler._compile(obj, *todo[obj], flags, extra, options)

            with ThreadPoolExecutor(JOBS) as pool:
                list(pool.map(compile_one, todo))
            return objects

        compiler.compile = compile_all
        archive = self._archive_csrc(compile_all)
        for extension in self.extensions:
            if extension.name.startswith(CORE):
                extension.extra_objects = [archive, *extension.extra_objects]
        super().build_extensions()
        if self.inplace:
            mark.parent.mkdir(exist_ok=True)
            mark.write_text(VARIANT)

    def _archive_csrc(self, compile_all: Any) -> str:
        """Compile csrc once for all units; returns the path of a static library."""
        objects = compile_all(
            c_sources(),
            self.build_temp,
            macros=[("EF_DEBUG", "1")] if DEBUG else [],
            extra_postargs=COMPILE,
        )
        archive = Path(self.build_temp, "libcsrc.a")
        if not archive.exists() or any(
            os.path.getmtime(one) > archive.stat().st_mtime for one in objects
        ):
            archive.unlink(missing_ok=True)
            subprocess.run(["gcc-ar" if LTO else "ar", "rcs", str(archive), *objects], check=True)
        return str(archive)


def is_fresh(obj: Path) -> bool:
    """True when the object is newer than every file its compilation read (its make dependency file) and setup.py."""
    rule = obj.with_suffix(".d")
    if not obj.exists() or not rule.exists():
        return False
    read = rule.read_text().replace("\\\n", " ").split()[1:]
    built = obj.stat().st_mtime
    return all(os.path.exists(f) and os.path.getmtime(f) < built for f in [*read, __file__])


class BuildPy(build_py):
    """Put the pages of docs/ into the package: messages point at them, and `edgefast docs` prints them."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return  # a checkout has them beside the package
        pages = sorted(Path("docs").rglob("*.md"))
        if not pages:
            sys.exit("docs/ is missing: the package carries its pages")
        for page in pages:
            self.copy_file(str(page), self._target(page))

    def _target(self, page: Path) -> str:
        target = Path(self.build_lib, "edgefast", page)
        target.parent.mkdir(parents=True, exist_ok=True)
        return str(target)


setup(
    ext_modules=engine(),
    cffi_modules=["edgefast/table/csrc_build.py:ffi"],
    cmdclass={"build": Build, "build_ext": BuildExt, "build_py": BuildPy},
)
