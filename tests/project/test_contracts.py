"""Imports between rooms go the way ARCHITECTURE.md says (contracts in pyproject.toml, checked by import-linter)."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]


def test_contracts_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_room_and_floor_has_its_place() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = config["tool"]["importlinter"]["contracts"]
    layered = [one for one in contracts if one["type"] == "layers"]
    assert layered[0]["containers"] == ["edgefast"]
    for contract in layered:
        (container,) = contract["containers"]
        placed = {room.strip() for layer in contract["layers"] for room in layer.split("|")}
        found = {
            path.stem
            for path in (ROOT / container.replace(".", "/")).iterdir()
            if (path.is_dir() and any(path.glob("*.py")))
            or (path.suffix == ".py" and path.stem != "__init__")
        }
        assert placed == found, container


def test_the_pure_rooms_are_the_ones_of_the_architecture() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = config["tool"]["importlinter"]["contracts"]
    pure = next(
        contract for contract in contracts if "asyncio" in contract.get("forbidden_modules", ())
    )
    assert {f"edgefast.{room}" for room in ("api", "translate", "ir", "table")} <= set(
        pure["source_modules"]
    )
