"""No core dump has private keys in it."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
from edgefast.daemon.process import forbid_cores
hard = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
forbid_cores()
sys.stdout.write(repr(resource.getrlimit(resource.RLIMIT_CORE)))
"""


@pytest.mark.parametrize(("hard", "soft"), [(0, 0), (1, 1), (4096, 1)])
def test_none_is_written_and_none_is_piped(hard: int, soft: int) -> None:
    """The hard limit stays for who debugs; of nothing there is nothing to lower."""
    before = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if before != resource.RLIM_INFINITY and before < hard:
        pytest.skip("this machine allows less")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(hard)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == repr((soft, hard)), done.stderr
