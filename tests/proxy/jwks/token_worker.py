"""A worker that verifies tokens without requests: the real one, whose engine is asked with `dump`.

In: the agent's messages, as any worker; tokens as lines of the file EDGEFAST_TEST_TOKENS. Units of policies that ask for tokens become verifiers, all
else goes to the real engine. Out: its `dump` is what came of each token at the first unit, "" is good; None: it waits.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

import edgefast.core
from edgefast import ir
from edgefast.auth.jwt.outcome import Outcome
from edgefast.core.policy.token_requirements import Verifier, make_verifiers
from edgefast.proxy.worker.token_keys import TokenKeys

_Change = tuple[str, str, str, int, int]
TOKENS = "EDGEFAST_TEST_TOKENS"


class TokenEngine:
    """Stands in front of `Engine`."""

    keys: TokenKeys

    def __init__(self, loop: Any, arena: memoryview, *arguments: Any, **options: Any) -> None:
        self._engine = edgefast.core.Engine(loop, arena, *arguments, **options)
        self._arena = arena
        self._verifiers: dict[str, Verifier] = {}
        self._words: dict[bytes, str | None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def apply(self, changes: Sequence[_Change], version: str) -> Any:
        for op, type_, name, offset, length in changes:
            if type_ == "policy":
                self._verifiers.pop(name, None)
                if op == "put":
                    data = bytes(self._arena[offset : offset + length])
                    unit = msgspec.msgpack.decode(data, type=ir.PolicyUnit)
                    assert unit.jwt is not None
                    (self._verifiers[name],) = make_verifiers(self.keys.token_verifier(), unit.jwt)
        return self._engine.apply([one for one in changes if one[1] != "policy"], version)

    def dump(self, **_: Any) -> dict[str, str | None]:
        for token in Path(os.environ[TOKENS]).read_bytes().split():
            if self._words.get(token, "again") is not None:
                self._ask(token)
        return {token.decode(): word for token, word in self._words.items()}

    def _ask(self, token: bytes) -> None:
        verifier = next(iter(self._verifiers.values()))
        outcome = verifier.look(token)
        if outcome is None:

            def note(outcome: Outcome) -> None:
                self._words[token] = outcome.word

            outcome = verifier.submit(token, note).outcome
        self._words[token] = None if outcome is None else outcome.word


if __name__ == "__main__":
    from edgefast.proxy.worker import worker

    class TokenWorker(worker.Worker):
        """Shows its engine where keys are."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            TokenEngine.keys = self._token_keys

    vars(worker)["Engine"] = TokenEngine
    vars(worker)["Worker"] = TokenWorker
    worker.main()
