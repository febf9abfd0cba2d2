"""Print one list of requirements of pyproject.toml, one per line: `build`, or the name of an extra.

It lets the Makefile install what a step needs without building the package again. Must run on a bare Python 3.11.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parent.with_name("pyproject.toml").read_text())
name = sys.argv[1]
extras = project["project"]["optional-dependencies"]
sys.stdout.write(
    "\n".join(project["build-system"]["requires"] if name == "build" else extras[name]) + "\n"
)
