"""A token verifier without an event loop: turns, timers and both clocks are the test's."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from auth.jwt.issuer import ISSUER, NOW
from edgefast.auth.jwt.outcome import Outcome
from edgefast.core.policy.token_requirements import Verifier, make_verifiers
from edgefast.core.policy.token_verification import BUDGET, TokenVerifier, VerifyRequest
from edgefast.ir.credentials import Jwt, JwtProvider, RemoteKeys

_DEADLINE = 30.0
URI = "https://issuer.example.com/keys"


class Timer:
    """One of `call_later`."""

    def __init__(self, due: float, call: Callable[[], object]) -> None:
        self.due = due
        self.call: Callable[[], object] | None = call

    def cancel(self) -> None:
        self.call = None


class VerifierRig:
    """A TokenVerifier and all that is around it. Verifying a token takes `cost` seconds."""

    def __init__(self, cost: float = BUDGET / 10) -> None:
        self.now = float(NOW)
        self.time = 1000.0
        self.cost = cost
        self.soon: list[Callable[[], object]] = []
        self.landed: queue.Queue[Callable[[], object]] = queue.Queue()
        self.timers: list[Timer] = []
        self.asked: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.token_verifier = TokenVerifier(
            self,
            self.asked.append,
            clock=lambda: self.now,
            steady=self._steady,
        )

    def _steady(self) -> float:
        self.time += self.cost  # from before a token to after it
        return self.time

    # --- the loop ---------------------------------------------------------------------------------------------------

    def call_soon(self, callback: Callable[..., object], /, *args: object) -> None:
        self.soon.append(lambda: callback(*args))

    def call_soon_threadsafe(self, callback: Callable[..., object], /, *args: object) -> None:
        self.landed.put(lambda: callback(*args))

    def call_later(self, delay: float, callback: Callable[..., object], /, *args: object) -> Timer:
        timer = Timer(self.time + delay, lambda: callback(*args))
        self.timers.append(timer)
        return timer

    def turn(self) -> None:
        """One turn: what was asked for before it."""
        due, self.soon = self.soon, []
        for call in due:
            call()

    def settle(self) -> int:
        """Turns until nothing is left; returns how many."""
        turns = 0
        while self.soon:
            self.turn()
            turns += 1
        return turns

    def land(self, count: int = 1) -> None:
        """Wait for so many words of the thread."""
        for _ in range(count):
            self.landed.get(timeout=_DEADLINE)()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.time += seconds
        due = [one for one in self.timers if one.due <= self.time]
        self.timers = [one for one in self.timers if one.due > self.time]
        for one in due:
            if one.call is not None:
                one.call()

    # --- tokens -----------------------------------------------------------------------------------------------------

    def verifier(self, *specs: JwtProvider) -> Verifier:
        (one,) = make_verifiers(self.token_verifier, Jwt(specs))
        return one

    def ask(self, verifier: Verifier, token: bytes, client: bytes = b"") -> VerifyRequest:
        return verifier.submit(bytes(bytearray(token)), self.note, client)

    def note(self, outcome: Outcome) -> None:
        self.words.append(outcome.word)

    def word(self, verifier: Verifier, token: bytes) -> str | None:
        """What is said at once: of a token that is known, or that is verified in line; None: later."""
        outcome = verifier.look(bytes(bytearray(token))) or self.ask(verifier, token).outcome
        return None if outcome is None else outcome.word


def remote(**more: Any) -> JwtProvider:
    """Return a provider whose keys are fetched."""
    named = {
        "name": "r",
        "issuer": ISSUER,
        "audiences": ("api",),
        "remote": RemoteKeys(URI),
        **more,
    }
    return JwtProvider(**named)
