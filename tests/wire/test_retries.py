"""A route's `retry`, from its YAML to the backend. Its rules: core/exchange/test_retry."""

from __future__ import annotations

from origin.answers import response
from origin.message import Message
from origin.recording import RecordingOrigin
from wire.harness.scenes import objects_for
from wire.harness.site import shared


class Failing:
    """Answers `status` to the first `count` requests of each target."""

    def __init__(self, status: int, count: int) -> None:
        self.status = status
        self.count = count
        self.seen: dict[bytes, int] = {}

    def __call__(self, message: Message) -> bytes:
        target = message.target
        self.seen[target] = self.seen.get(target, 0) + 1
        return response(b"late", self.status if self.seen[target] <= self.count else 200)


def test_retry_repeats_the_body() -> None:
    """A listed code with a body that can be sent again; with a larger one, the client gets the code."""
    failing = Failing(503, 1)
    retry = {"codes": [503], "attempts": 1, "backoff": "5ms"}
    with RecordingOrigin(failing) as origin, shared(objects_for(origin.port, retry=retry)) as site:
        assert site.ask("PUT", "/small", body=b"y" * 60_000).status == 200
        assert site.ask("PUT", "/big", body=b"y" * 200_000).status == 503
        origin.turn()
        bodies = [(m.target, len(m.body)) for m in origin.take().messages]
    assert bodies == [(b"/small", 60_000), (b"/small", 60_000), (b"/big", 200_000)]
