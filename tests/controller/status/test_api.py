"""KubeStatuses: when another controller has a Gateway, as its status says it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
import pytest

from controller.kube.status_author import Word
from controller.kube.store import Present
from controller.status.api import KubeStatuses

pytestmark = pytest.mark.pure

HERE = ("192.0.2.1", "lb.example")
KEY = ("default", "gw")


class Cache:
    """Shows one Gateway."""

    def __init__(self, present: Present | None) -> None:
        self._present = present

    def present(self, ref: Any) -> Present | None:
        return self._present


def is_elsewhere(
    status: str = "True",
    address: str = "192.0.2.77",
    *,
    word: Word = "",
    generation: int = 1,
    observed: int | None = 1,
    here: Collection[str] = HERE,
) -> bool:
    """Ask of a Gateway with this status; address "" is none."""
    condition = {"type": "Programmed", "status": status}
    if observed is not None:
        condition["observedGeneration"] = observed  # type: ignore[assignment]
    said = {"conditions": [condition], "addresses": [{"value": address}] if address else []}
    present = Present("1", generation, "u", msgspec.json.encode(said), word)
    statuses = KubeStatuses(None, Cache(present))  # type: ignore[arg-type]
    return statuses.is_elsewhere(KEY, here)


def test_another_one_has_it_when_it_says_so_of_the_present_gateway_at_another_address() -> None:
    assert is_elsewhere()
    assert is_elsewhere(observed=None)
    assert is_elsewhere(generation=2, observed=2)


@pytest.mark.parametrize(
    "seen",
    [
        {"word": "ours"},
        {"word": "unsigned"},
        {"status": "False"},
        {"status": "Unknown"},
        {"address": HERE[0]},
        {"address": ""},
        {"generation": 2},
    ],
    ids=[
        "our word",
        "perhaps our word",
        "not",
        "nobody",
        "our address",
        "nowhere",
        "a Gateway of the past",
    ],
)
def test_anything_less_is_nobodys(seen: dict[str, Any]) -> None:
    assert not is_elsewhere(**seen)


def test_nobody_has_it_while_our_own_addresses_are_not_known() -> None:
    assert not is_elsewhere(here=())


def test_what_is_not_there_or_says_nothing_is_nobodys() -> None:
    for present in (None, Present("1", 1, "u", b"")):
        statuses = KubeStatuses(None, Cache(present))  # type: ignore[arg-type]
        assert not statuses.is_elsewhere(KEY, HERE)
        assert not statuses.is_ours(("Gateway", *KEY))


def test_an_unsigned_word_is_ours_of_what_a_fleet_of_ours_serves() -> None:
    """Another installation of a release before wrote so too: the two would write over each other for ever."""
    ref = ("Gateway", *KEY)
    words: tuple[Word, ...] = ("ours", "unsigned", "")
    for word, (alone, held) in zip(
        words, ((True, True), (False, True), (False, False)), strict=True
    ):
        statuses = KubeStatuses(None, Cache(Present("1", 1, "u", b"{}", word)))  # type: ignore[arg-type]
        assert (statuses.is_ours(ref), statuses.is_ours(ref, held=True)) == (alone, held)
