"""promtool of Debian's `prometheus`: checks expositions, expressions and rules as Prometheus itself does."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def run_promtool(*arguments: str | Path, stdin: bytes = b"") -> str:
    """Run it; it must be there (`make test` installs it) and content."""
    tool = shutil.which("promtool")
    assert tool, "promtool is missing: .ci/packages prometheus"
    done = subprocess.run(
        [tool, *arguments],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
    )
    said = done.stdout.decode()
    assert done.returncode == 0, said
    return said
