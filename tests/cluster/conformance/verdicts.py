"""What a run of the suite has come to, from its exit status and its own lines of outcome.

In: the text of `conformance.test -test.v`, the exit status. Out: every test with its outcome and time, and whether all is well.
Not from the report the suite writes: it notes a parallel test before that has run.
Must never: call a run good that ended early, or ran nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_OUTCOME = re.compile(r"^( *)--- (PASS|FAIL|SKIP): TestConformance/(\S+) \((\d+(?:\.\d+)?)s\)$")
_INDENT = 4  # of a test; steps of tests are deeper


@dataclass(frozen=True)
class Test:
    """One test of the suite."""

    name: str
    outcome: str  # PASS, FAIL or SKIP
    seconds: float
    failed: tuple[str, ...] = ()  # its steps


@dataclass(frozen=True)
class Verdict:
    """A whole run."""

    status: int
    tests: tuple[Test, ...] = field(default=())

    @property
    def good(self) -> bool:
        """Whether something ran and nothing failed."""
        return self.status == 0 and not self.named("FAIL") and bool(self.named("PASS"))

    def named(self, outcome: str) -> list[str]:
        """Return the tests of an outcome, by name."""
        return sorted(test.name for test in self.tests if test.outcome == outcome)

    def lines(self) -> list[str]:
        """Return the verdict in words: what ran with its time, slowest first, then what failed."""
        ran = sorted(
            (test for test in self.tests if test.outcome != "SKIP"), key=lambda test: -test.seconds
        )
        said = [f"{test.outcome} {test.seconds:7.2f} s  {test.name}" for test in ran]
        for test in ran:
            said += [f"failed: {test.name}/{step}" for step in test.failed]
        counts = ", ".join(f"{len(self.named(one))} {one}" for one in ("PASS", "FAIL", "SKIP"))
        return [*said, f"{counts}, exit status {self.status}"]


def judge(lines: Iterable[str], status: int) -> Verdict:
    """Read a run's output."""
    steps: dict[str, list[str]] = {}
    found: dict[str, tuple[str, float]] = {}
    for line in lines:
        match = _OUTCOME.match(line.rstrip("\n"))
        if match is None:
            continue
        name, _, step = match[3].partition("/")
        if not step and len(match[1]) == _INDENT:
            found[name] = (match[2], float(match[4]))
        elif step and match[2] == "FAIL":
            steps.setdefault(name, []).append(step)
    tests = (
        Test(name, outcome, seconds, tuple(steps.get(name, ())))
        for name, (outcome, seconds) in found.items()
    )
    return Verdict(status, tuple(tests))
