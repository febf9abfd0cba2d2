"""Commands of docs/ that need a gateway: a block marked with the name of an example is run beside that example.

"sh quickstart" stands for `make run`, "sh tracing" for `make run FILE=examples/tracing.yaml`. Blocks of one page and example share
a gateway, in their order; outputs are compared as in test_readme.py. Fixed ports become free ones, and nothing else changes.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples.running import EXAMPLES, Example, leave_the_hour

from .scripts import run_script
from .test_docs import PAGES
from .test_readme import expect, read_blocks

pytestmark = [pytest.mark.wire, pytest.mark.timeout(300)]

_NAMES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))
_RUN = [
    (page, name, blocks)
    for page in PAGES
    for name in _NAMES
    if (blocks := read_blocks(page.read_text(), name))
]


@pytest.mark.parametrize(
    ("page", "name"),
    [(page, name) for page, name, _ in _RUN],
    ids=[f"{page.stem}-{name}" for page, name, _ in _RUN],
)
def test_blocks_do_what_they_show(page: Path, name: str, tmp_path: Path) -> None:
    if name == "ratelimit":
        leave_the_hour()
    with Example(f"{name}.yaml", tmp_path) as run:
        for block in read_blocks(page.read_text(), name):
            script = run.ports.replace(block.script)
            out, shown = run_script(script, page.name, log=lambda: run.log)
            assert block.output is not None, "a block that shows nothing proves nothing"
            wanted = expect(_columns(run.ports.replace(block.output)))
            assert wanted.fullmatch(_columns(out)), shown


def _columns(text: str) -> str:
    """Make every column as narrow as can be: a free port may be longer than the fixed one."""
    return re.sub(r"(?<=\S) {2,}", "  ", text)


def test_pages_about_a_running_proxy_show_one() -> None:
    assert {page.stem for page, _, _ in _RUN} >= {
        "console",
        "explain",
        "rate-limits",
        "status",
        "tracing",
    }


@pytest.mark.pure
def test_every_shell_block_is_run_by_somebody() -> None:
    """A mark that no test knows would leave its block alone."""
    marks = {"", "cluster", "nodes", *_NAMES}  # tests/cluster runs "cluster" and "nodes"
    for page in PAGES:
        for line in page.read_text().splitlines():
            words = line.strip().removeprefix("```").split()
            if line.strip().startswith("```") and words[:1] in (["sh"], ["bash"], ["console"]):
                assert line.startswith("```sh") and " ".join(words[1:]) in marks, (page.name, line)
