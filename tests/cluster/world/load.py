"""A steady load as a test uses it: `with client.load(url, hosts, rate) as answers:`.

In: an address as URL, Host values, requests per second. Out: `Answers`, counted while the load goes on and final after
the block. The work is done by a process of its own (`generator.py`) in the client's namespace, so that a busy test does
not slow the load and the other way round.
Must never: outlive the test, or run longer than `seconds`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster.world import netns

_TESTS = Path(__file__).resolve().parents[2]
_ENV = {"PYTHONPATH": str(_TESTS)}


class Answers:
    """What came back. A request that got no whole answer is an error; every request is one or the other."""

    def __init__(self) -> None:
        self.by_status: Counter[int] = Counter()
        #: Kind of failure -> how often: refused, reset, closed, timeout, malformed, unreachable.
        self.errors: Counter[str] = Counter()
        #: Requests sent again because a kept connection had been closed under them (RFC 9110 9.2.2).
        self.stale = 0
        #: Connections opened.
        self.connections = 0
        #: The first answers that were not expected: time, Host, path, what.
        self.bad: list[dict[str, object]] = []
        #: Milliseconds of the slowest answer.
        self.slowest_ms = 0.0
        self._changed = threading.Condition()

    @property
    def total(self) -> int:
        """Requests that have got an answer or failed."""
        return sum(self.by_status.values()) + sum(self.errors.values())

    def unexpected(self, *expected: int) -> str:
        """Return what else came than the expected statuses (200), "" when nothing did."""
        allowed = set(expected or (200,))
        wrong = {status: count for status, count in self.by_status.items() if status not in allowed}
        if not wrong and not self.errors:
            return ""
        return f"of {self.total}: {wrong} {dict(self.errors)}, first: {self.bad[:5]}"

    def wait_more(self, count: int = 1, seconds: float = 60.0) -> None:
        """Wait for so many more answers than there are now."""
        self.wait_total(self.total + count, seconds)

    def wait_total(self, count: int, seconds: float = 60.0) -> None:
        """Wait until there are so many answers."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.total >= count, seconds):
                raise TimeoutError(f"{self.total} answers after {seconds} s, not {count}")

    def take(self, told: Mapping[str, object]) -> None:
        """Take in what the generator tells."""
        with self._changed:
            statuses, errors, bad = told["statuses"], told["errors"], told["bad"]
            assert isinstance(statuses, dict)
            assert isinstance(errors, dict)
            assert isinstance(bad, list)
            self.by_status = Counter({int(status): count for status, count in statuses.items()})
            self.errors = Counter(errors)
            self.bad += bad
            self.stale = int(str(told["stale"]))
            self.connections = int(str(told["connections"]))
            self.slowest_ms = float(str(told["slowest_ms"]))
            self._changed.notify_all()


class Load:
    """One load generator; a context manager."""

    def __init__(
        self,
        in_netns: str | None,
        url: str,
        hosts: Sequence[str] = (),
        rate: float = 200.0,
        *,
        connections: int = 8,
        per_connection: int = 0,
        paths: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        body: str = "",
        expected: Sequence[int] = (200,),
        deadline: float = 10.0,
        seconds: float = 600.0,
    ) -> None:
        """See `generator.Plan` for the meaning of the options; `url` may be https, hosts are then server names too."""
        self.answers = Answers()
        self._command = [
            *netns.prefix(in_netns),
            sys.executable,
            "-m",
            "cluster.world.generator",
            json.dumps(
                {
                    "url": url,
                    "hosts": list(hosts),
                    "rate": rate,
                    "connections": connections,
                    "per_connection": per_connection,
                    "paths": list(paths),
                    "headers": dict(headers or {}),
                    "method": method,
                    "body": body,
                    "expected": list(expected),
                    "deadline": deadline,
                    "seconds": seconds,
                }
            ),
        ]
        self._child: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Answers:
        guard = ["setpriv", "--pdeathsig", "KILL", "--"]
        self._child = subprocess.Popen(
            [*guard, *self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_ENV},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        deadline = time.monotonic() + 60
        while not self.answers.total:
            if not self._reader.is_alive() or time.monotonic() > deadline:
                self._end()
                raise RuntimeError(f"the load generator has not begun: {self._command}")
            time.sleep(0.01)
        return self.answers

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        """Close its stdin: it finishes what is under way, tells the last counts and ends."""
        assert self._child is not None
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        assert self._reader is not None
        self._child.stdin.close()
        try:
            self._child.wait(30)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._reader.join(10)
        self._child.stdout.close()

    def _read(self) -> None:
        assert self._child is not None
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self.answers.take(json.loads(line))
