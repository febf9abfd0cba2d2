"""An engine that was built from other sources than those beside it says so, and what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

HINT = "ImportError: the engine is not built, or built from other sources: make build/.native"


@pytest.mark.parametrize(
    "change",
    [
        "cells.GLOBALS = cells.GLOBALS[::-1]",
        "cells.GLOBALS = cells.GLOBALS[:1]",
        "del cells.HTTP2_BREACHES",
        "sys.modules['edgefast.core.engine'] = None",
    ],
)
def test_an_engine_that_does_not_fit_its_sources_says_how_to_build_it(change: str) -> None:
    # What imports the sources without the engine.
    code = f"""
import importlib.util, pathlib, sys
found = importlib.util.find_spec("edgefast").submodule_search_locations[0]
spec = importlib.util.spec_from_file_location("edgefast.core.cells", pathlib.Path(found, "core/cells.py"))
cells = sys.modules["edgefast.core.cells"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cells)
{change}
import edgefast.core
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith(HINT)


def test_what_others_miss_is_told_as_it_is() -> None:
    code = "import sys; sys.modules['orjson'] = None; import edgefast.core"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.stderr.splitlines()[-1].startswith("ModuleNotFoundError: import of orjson")
