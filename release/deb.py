"""Build a Debian package: `python -m release.deb`, or `make deb`.

In: a wheel in dist/ (make wheels), docs/edgefast.service, the files in release/debian. Out: dist/edgefast_VERSION_ARCHITECTURE.deb
for the Debian release that has the Python of the wheel. Must never: run a program of the package, or need root.

The package contains a virtual environment in /usr/lib/edgefast with all requirements of edgefast. It uses the distribution's Python.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
from pathlib import Path

from edgefast import __version__
from release.interpreters import PLACE, ROOT
from release.steps import StepFailed, run_step
from release.wheels import DIST, write_sums

PARTS = Path(__file__).with_name("debian")
#: Debian release -> its Python.
PYTHONS = {"12": "3.11", "13": "3.13"}
HOME = Path("usr/lib/edgefast")
#: Optional requirements of an installed gateway: traces, and configuration from a controller.
EXTRAS = "tracing,xds"
#: Compression takes longer than the installation of requirements on a busy machine.
STEP_SECONDS = 3600
COMMAND = """\
#!/{home}/bin/python -I
import sys

from edgefast.cli.main import main

sys.exit(main())
"""


def main(arguments: list[str] | None = None) -> int:
    """Build the packages of the releases."""
    parser = argparse.ArgumentParser(prog="make deb", description="Build Debian packages.")
    parser.add_argument("--release", metavar="NUMBER", action="append", choices=sorted(PYTHONS))
    try:
        for release in parser.parse_args(arguments).release or sorted(PYTHONS):
            print(f"deb: {build_package(release, DIST).name}", flush=True)
    except StepFailed as error:
        print(f"deb: {error}", file=sys.stderr)
        return 1
    write_sums()
    return 0


def build_package(release: str, folder: Path, version: str = __version__) -> Path:
    """Build the package for a Debian release; returns its path in the folder."""
    python = PYTHONS[release]
    tag = f"cp{python.replace('.', '')}"
    wheels = sorted(DIST.glob(f"edgefast-{__version__}-{tag}-*-manylinux*.whl"))
    if not wheels:
        raise StepFailed(f"dist/ has no wheel for Python {python}; run make wheels")
    root = PLACE / f"deb{release}"
    shutil.rmtree(root, ignore_errors=True)
    _fill_environment(root / HOME, python, wheels[-1])
    _fill_system(root)
    architecture = _run(["dpkg", "--print-architecture"]).strip()
    _fill_control(root, f"{version}-1~deb{release}", python, architecture)
    made = folder / f"edgefast_{version}-1~deb{release}_{architecture}.deb"
    pack(root, made)
    return made


def pack(root: Path, made: Path) -> None:
    """Write the package of a folder. After an error no file has its name."""
    part = made.with_name(f"{made.name}.part")
    try:
        _run(["dpkg-deb", "--root-owner-group", "--build", "-Zxz", str(root), str(part)])
        part.replace(made)
    finally:
        part.unlink(missing_ok=True)


def _fill_environment(home: Path, python: str, wheel: Path) -> None:
    """Make a virtual environment for the distribution's interpreter, which this machine may lack."""
    packages = home / "lib" / f"python{python}" / "site-packages"
    packages.mkdir(parents=True)
    programs = home / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(f"/usr/bin/python{python}")
    settings = f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {python}\n"
    (home / "pyvenv.cfg").write_text(settings)
    glibc = _read_glibc(wheel)
    platforms = [f"--platform=manylinux_2_{minor}_{os.uname().machine}" for minor in glibc]
    platforms += [f"--platform=manylinux2014_{os.uname().machine}"]
    install = ["-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:"]
    where = [f"--python-version={python}", "--implementation=cp", f"--target={packages}"]
    _run([sys.executable, *install, *platforms, *where, f"{wheel}[{EXTRAS}]"])
    shutil.rmtree(packages / "bin", ignore_errors=True)  # scripts of this machine's interpreter
    command = programs / "edgefast"
    command.write_text(COMMAND.format(home=HOME))
    command.chmod(0o755)


def _read_glibc(wheel: Path) -> list[int]:
    """Return the minor versions of glibc that requirements may have: all up to that of the wheel."""
    most = int(wheel.stem.rpartition("manylinux_2_")[2].partition("_")[0])
    return list(range(most, 16, -1))


def _fill_system(root: Path) -> None:
    """Write the command, the systemd unit, the first configuration and the documents."""
    (root / "usr/bin").mkdir()
    (root / "usr/bin/edgefast").symlink_to(f"/{HOME}/bin/edgefast")
    units = root / "lib/systemd/system"
    units.mkdir(parents=True)
    unit = (ROOT / "docs/edgefast.service").read_text()
    (units / "edgefast.service").write_text(unit.replace("/opt/edgefast/bin/", "/usr/bin/"))
    configuration = root / "etc/edgefast"
    configuration.mkdir(parents=True)
    shutil.copyfile(PARTS / "gateway.yaml", configuration / "gateway.yaml")
    (configuration / "gateway.yaml").chmod(0o640)
    configuration.chmod(0o750)
    documents = root / "usr/share/doc/edgefast"
    documents.mkdir(parents=True)
    shutil.copyfile(ROOT / "LICENSE", documents / "copyright")
    shutil.copyfile(ROOT / "CHANGELOG.md", documents / "CHANGELOG.md")


def _fill_control(root: Path, version: str, python: str, architecture: str) -> None:
    """Write DEBIAN/, the control files of dpkg."""
    control = root / "DEBIAN"
    control.mkdir()
    files = [path for path in root.rglob("*") if path.is_file() and control not in path.parents]
    size = sum(path.stat().st_size for path in files) // 1024
    following = f"3.{int(python.partition('.')[2]) + 1}"
    text = (PARTS / "control").read_text()
    values = {
        "version": version,
        "architecture": architecture,
        "size": str(size),
        "python": python,
        "following": following,
    }
    (control / "control").write_text(text.format_map(values))
    (control / "conffiles").write_text("/etc/edgefast/gateway.yaml\n")
    lines = [
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(root)}\n"
        for path in sorted(files)
    ]
    (control / "md5sums").write_text("".join(lines))
    for script in ("postinst", "prerm", "postrm"):
        shutil.copyfile(PARTS / script, control / script)
        (control / script).chmod(0o755)


def _run(argv: list[str]) -> str:
    return run_step(argv, seconds=STEP_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
