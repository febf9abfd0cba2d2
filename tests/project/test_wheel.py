"""The wheel and the sdist carry what they must, and the installed wheel works away from the source tree.

The build runs on a copy of the tree that brings the release objects along, so that nothing is compiled twice.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from edgefast.cli.init import list_starter_files

ROOT = Path(__file__).parents[2]
PARTS = [
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "Dockerfile",
    "Makefile",
]
ROOMS = ["csrc", "edgefast", "controller", "examples", "docs"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with the objects of the release build."""
    copy = tmp_path_factory.mktemp("tree")
    for name in PARTS:
        shutil.copy2(ROOT / name, copy / name)
    leave_out = shutil.ignore_patterns("*.so", "*.o", "_csrc.c", "__pycache__")
    for name in ROOMS:
        shutil.copytree(ROOT / name, copy / name, ignore=leave_out)
    for name in [
        *(ROOT / "build").glob("cython-release"),
        *(ROOT / "build/release").glob("objects-*"),
    ]:
        shutil.copytree(name, copy / name.relative_to(ROOT))
    return copy


@pytest.fixture(scope="module")
def wheel(tree: Path) -> Path:
    """The wheel of the tree."""
    _build(tree, "bdist_wheel")
    (made,) = (tree / "dist").glob("*.whl")
    return made


def _build(tree: Path, command: str) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", command],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_wheel_has_the_modules_and_their_types(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "edgefast/py.typed" in names
    for unit in ("engine", "fastpath", "policy/extension", "h2/extension", "tls/extension"):
        assert any(
            name.startswith(f"edgefast/core/{unit}.") and name.endswith(".so") for name in names
        )
    assert any(name.startswith("edgefast/_csrc.") and name.endswith(".so") for name in names)
    assert "edgefast/console/static/index.html" in names
    starter = {f"edgefast/cli/starter/{path.name}" for path in list_starter_files()}
    assert {"edgefast/cli/demo.yaml", *starter} <= set(names)
    for kind in ("*.py", "*.pyx", "*.pxd", "*.pxi", "*.pyi"):
        wanted = {str(path.relative_to(ROOT)) for path in (ROOT / "edgefast").rglob(kind)}
        assert wanted <= set(names), sorted(wanted - set(names))
    pages = {f"edgefast/{path.relative_to(ROOT)}" for path in (ROOT / "docs").rglob("*.md")}
    assert pages and pages <= set(names), sorted(pages - set(names))
    rooms = {name.partition("/")[0] for name in names}
    assert {room for room in rooms if not room.endswith(".dist-info")} == {"edgefast", "controller"}


@pytest.mark.timeout(600)
def test_sdist_can_be_built_from(tree: Path) -> None:
    _build(tree, "sdist")
    (made,) = (tree / "dist").glob("*.tar.gz")
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for room, kinds in (
        ("csrc", ("*.c", "*.h")),
        ("edgefast", ("*.py", "*.pyx", "*.pxd", "*.pxi", "*.pyi")),
    ):
        wanted = {
            str(path.relative_to(ROOT)) for kind in kinds for path in (ROOT / room).rglob(kind)
        }
        assert wanted <= names, sorted(wanted - names)
    assert {"pyproject.toml", "setup.py", "LICENSE", "README.md", "edgefast/py.typed"} <= names
    assert not [name for name in names if name.endswith((".so", ".o"))]


@pytest.mark.timeout(600)
def test_installed_wheel_works_elsewhere(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
    ]
    subprocess.run([*pip, str(wheel)], check=True, timeout=120, stdin=subprocess.DEVNULL)
    shutil.copy(ROOT / "examples/quickstart.yaml", tmp_path)
    environment = os.environ | {"PYTHONPATH": str(site)}

    def call(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    where = call("-c", "import edgefast, edgefast.core, edgefast._csrc; print(edgefast.__file__)")
    assert where.startswith(str(site))
    page = call("-m", "edgefast.cli.main", "docs", "migrating")
    written = (ROOT / "docs/guides/migrating/README.md").read_text()
    assert page.startswith("# ") and written.endswith(f"-->\n\n{page}")
    translated = call(
        "-m",
        "edgefast.cli.main",
        "translate",
        "--to",
        "status",
        "-o",
        "json",
        "-f",
        "quickstart.yaml",
    )
    assert json.loads(translated)
    call("-m", "edgefast.cli.main", "init", "gateway")
    call("-m", "edgefast.cli.main", "check", "--strict", "gateway")
    assert "kind: Gateway\n" in call("-m", "edgefast.cli.main", "demo", "--print")
    _run_demo(tmp_path, environment)


def _run_demo(folder: Path, environment: dict[str, str]) -> None:
    """Start the demo of the wheel, and end it when it is ready."""
    demo = subprocess.Popen(
        [sys.executable, "-m", "edgefast.cli.main", "demo"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert demo.stderr is not None
        lines = []
        for line in demo.stderr:  # the timeout of the test bounds it
            lines.append(line)
            if line == "Ctrl-C ends the demo.\n":
                break
        assert lines and lines[-1].startswith("Ctrl-C"), lines
        demo.send_signal(signal.SIGINT)
        assert demo.wait(60) == 0
    finally:
        demo.kill()
        demo.communicate(timeout=60)
