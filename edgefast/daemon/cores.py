"""No core dumps of a process that has private keys in its memory.

In: nothing. Out: the soft limit of this process, inherited through exec. A limit of 1 byte and not 0: for a kernel whose
core_pattern is a program 0 is no limit, and 1 is a word for "none" (core(5), do_coredump). The hard limit stays: who debugs
allows them again with prlimit --core=unlimited --pid PID. Must never fail.
"""

from __future__ import annotations

import contextlib
import resource

__all__ = ["forbid_cores"]


def forbid_cores() -> None:
    """Have no core dump written, nor given to a program, when this process dies."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0 if hard == 0 else 1, hard))
