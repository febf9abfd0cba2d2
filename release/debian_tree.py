"""Install a Debian system into a folder: `make_tree(release, packages, folder)`.

In: the mirror of this machine's apt; debootstrap and root. Out: a complete folder, or none after an error.
Must never: leave an incomplete system under the final name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from release.steps import StepFailed, run_step

#: Seconds; a slow mirror takes minutes.
DEBOOTSTRAP_SECONDS = 1800


def make_tree(release: str, packages: Iterable[str], folder: Path) -> None:
    """Install the system unless the folder exists."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = folder.with_name(f"{folder.name}.part")
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    _run([*as_root, "rm", "-rf", "--one-file-system", str(made)])
    options = ["--variant=minbase", f"--include={','.join(packages)}"]
    _run([*as_root, "debootstrap", *options, release, str(made), _find_mirror()])
    _run([*as_root, "mv", str(made), str(folder)])


def _find_mirror() -> str:
    targets = _run(["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)"]).splitlines()
    for line in targets:
        site, _, suite = line.partition(" ")
        if "-" not in suite and site.endswith("/debian"):
            return site
    raise StepFailed("apt has no Debian mirror here")


def _run(argv: list[str]) -> str:
    return run_step(argv, seconds=DEBOOTSTRAP_SECONDS)
