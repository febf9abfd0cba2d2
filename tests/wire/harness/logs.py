"""Output of a gateway's process: its log (standard error) and its access log (standard output), in two files of a folder.

In: the files, as they grow. Out: the part of one test, and what is wrong with the lines that no check has seen yet. Must never: leave
a line out of all checks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

_BAD = re.compile(
    r"Traceback \(most recent|Exception ignored|never retrieved|exception was never|"
    r"Error in |Unhandled|AddressSanitizer|runtime error:|Segmentation|core dumped|"
    r"callback failed|AssertionError|\bpanic\b",
)


class Logs:
    """`begin` and `checked` are places in both files: where the test begins, and how far `check` has come."""

    def __init__(self, folder: Path) -> None:
        self._err, self._out = folder / "err", folder / "out"
        self._begin = self._checked = (0, 0)

    def begin(self) -> None:
        """A test begins: `err` and `out` show what no check has seen yet."""
        self._begin = self._checked

    def begin_out(self) -> None:
        """`out` begins behind the last whole line of now."""
        self._begin = self._begin[0], len(_whole(self._out.read_bytes()))

    @property
    def err(self) -> str:
        """Standard error, in this test."""
        return self._err.read_bytes()[self._begin[0] :].decode(errors="replace")

    @property
    def out(self) -> str:
        """Standard output, in this test."""
        return self._out.read_bytes()[self._begin[1] :].decode(errors="replace")

    def tail(self, lines: int) -> str:
        """The end of both."""
        out, err = self.out.splitlines()[-15:], self.err.splitlines()[-lines:]
        return "\n".join(["--- stderr", *err, "--- stdout", *out])

    def check(self, expected: Iterable[str], *, text: bool, ended: bool) -> None:
        """Check the lines since the last check: no traceback, sanitizer report or unhandled error, except the expected
        patterns; lines of the access log are JSON, or text. The last line must be whole only after the end of the process."""
        err = self._err.read_bytes()[self._checked[0] :]
        out = self._out.read_bytes()[self._checked[1] :]
        if not ended:
            err, out = _whole(err), _whole(out)
        for line in err.decode(errors="replace").splitlines():
            if _BAD.search(line) and not any(re.search(it, line) for it in expected):
                raise AssertionError(f"the log has {line!r}:\n{self.tail(60)}")
        for entry in out.split(b"\n"):
            assert entry.isascii() and entry.decode().isprintable(), entry
            assert not entry or text or isinstance(json.loads(entry), dict), entry
        self._checked = self._checked[0] + len(err), self._checked[1] + len(out)


def _whole(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]
