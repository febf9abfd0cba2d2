"""Who was let through in which window, by the proxies' access logs.

In: lines of one or more proxies. Out: for each limit and window how many passed and how many did not. Each line names the
window of the store's in which its request was counted, so nothing here depends on when it was sent, logged or read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Line = dict[str, Any]


@dataclass
class Window:
    """Decisions of one counter in one window."""

    passed: int = 0
    refused: int = 0

    @property
    def demand(self) -> int:
        """Requests that came for it."""
        return self.passed + self.refused


Account = dict[str, dict[int, Window]]  # limit -> start of the window -> decisions


def draw_account(lines: Iterable[Line]) -> Account:
    """Sort decisions; a line that is no decision of the store's fails the test."""
    account: Account = {}
    for line in lines:
        window = account.setdefault(line["limit"], {}).setdefault(line["limit_window"], Window())
        if (line["status"], line["flags"]) == (200, ""):
            window.passed += 1
        else:
            assert (line["status"], line["flags"]) == (429, "RL"), line
            assert "endpoint" not in line, f"a backend saw it: {line}"
            assert line["limit_remaining"] == 0, line
            window.refused += 1
    return account


def full_windows(account: Account, limits: Mapping[str, int]) -> int:
    """How many windows of every limit had more demand than the limit; the least of all limits."""
    return min(
        sum(window.demand > requests for window in account.get(name, {}).values())
        for name, requests in limits.items()
    )


def check_exact(account: Account, limits: Mapping[str, int]) -> None:
    """In every window the limit passed, or all that came if that was less: never more, never fewer."""
    assert set(account) == set(limits)
    wrong = [
        f"{name}: window {start}: {window.passed} of {window.demand} passed, limit {limits[name]}"
        for name, windows in account.items()
        for start, window in windows.items()
        if window.passed != min(window.demand, limits[name])
    ]
    assert not wrong, wrong


def count_passed(account: Account) -> int:
    """Over all limits and windows."""
    return sum(window.passed for windows in account.values() for window in windows.values())
