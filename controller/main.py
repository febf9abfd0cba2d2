"""The `edgefast-controller` command, which refuses: there is no controller in this version.

In: nothing. Out: one message on standard error and exit status 2. It must not start anything that looks like one.
"""

from __future__ import annotations

import sys

REFUSAL = (
    "edgefast-controller: this version has no controller: nothing watches a cluster, writes statuses or starts proxies. "
    "To serve Gateway API objects from files on this machine, use `edgefast run -f FILE|DIR`."
)


def main() -> int:
    """Say what is missing and what to do instead."""
    sys.stderr.write(REFUSAL + "\n")
    return 2
