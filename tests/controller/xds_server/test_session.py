"""Session: requests in, messages out, no socket: the protocol's every step, and everything that is none of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from controller.xds_server import session as sessions
from controller.xds_server.history import History
from controller.xds_server.refusal import Refused
from controller.xds_server.session import Phase, SentState, Session
from edgefast.table.shards import TYPES, make_resource
from edgefast.xds.limits import MESSAGE_FILL
from edgefast.xds.messages import (
    COMMIT,
    TABLE,
    Node,
    Request,
    Response,
    decode_request,
    decode_response,
    encode_opening,
)
from edgefast.xds.proxy_problems import ProxyProblem
from edgefast.xds.rejections import MISMATCH
from edgefast.xds.rejections import Refused as Refusal
from tests.controller.xds_server.loopback import ONE, TWO, shards, shards_of

pytestmark = pytest.mark.pure

NODE = Node("pod-a", ("f1",))


def begin(
    history: History, held: Any = None, version: str = ""
) -> tuple[Session, SentState | None]:
    """Return a session whose opening is over, and what it told."""
    session = Session(history, ("f1", "f0"))
    told = None
    for data in encode_opening(NODE, held or {}, version):
        told = session.receive(decode_request(data))
    return session, told


def history_of(*tables: Any) -> History:
    history = History()
    for table in tables:
        history.publish(table)
    return history


def take(session: Session) -> list[Response]:
    batch = session.take()
    assert batch is not None
    return [decode_response(one) for one in batch]


def answer(
    session: Session, batch: Sequence[Response], refused: Sequence[Refusal] = ()
) -> SentState | None:
    told = None
    for one in batch:
        type_ = COMMIT if one.commits else one.type
        bad = tuple(refused) if one.commits else ()
        told = session.receive(Request(type=type_, nonce=one.nonce, refused=bad))
    return told


def refused(session: Session, request: Request) -> tuple[str, str]:
    with pytest.raises(Refused) as error:
        session.receive(request)
    return error.value.cause, error.value.status


def test_a_new_node_gets_the_table_and_then_what_changes() -> None:
    history = history_of(ONE)
    session, told = begin(history)
    assert told == SentState("")
    assert session.due
    batch = take(session)
    assert [(one.type, one.commits) for one in batch] == [("virtual_host", True)]
    assert {one.version for one in batch} == {ONE.version}
    assert session.phase is Phase.WAITING and not session.due
    assert answer(session, batch) == SentState(ONE.version)
    assert session.phase is Phase.IDLE and session.take() is None
    history.publish(TWO)
    batch = take(session)
    assert [one.name for one in batch[0].puts] == ["a"]
    assert answer(session, batch) == SentState(TWO.version)


def test_puts_and_removals_in_their_order_each_with_a_nonce() -> None:
    history = history_of(shards(make_resource(type_, "old", b"") for type_ in TYPES))
    session, _ = begin(history)
    answer(session, take(session))
    history.publish(shards(make_resource(type_, "new", b"") for type_ in TYPES))
    batch = take(session)
    assert [(one.type, bool(one.puts)) for one in batch] == [
        *((type_, True) for type_ in TYPES),
        *((type_, False) for type_ in reversed(TYPES)),
    ]
    assert [one.commits for one in batch] == [False] * (len(batch) - 1) + [True]
    assert len({one.nonce for one in batch}) == len(batch)


def test_nothing_differs_and_the_commit_comes_alone() -> None:
    history = history_of(ONE)
    versions = {key: one.version for key, one in ONE.resources.items()}
    for version in (ONE.version, ""):
        session, told = begin(history, versions, version)
        assert told == SentState(version)
        batch = take(session)
        assert [(one.type, one.commits) for one in batch] == [(COMMIT, True)]
        assert answer(session, batch) == SentState(ONE.version)


def test_a_resumed_stream_gets_the_difference_alone() -> None:
    history = history_of(ONE, TWO)
    versions = {key: one.version for key, one in ONE.resources.items()}
    other = {**versions, ("cluster", "foreign"): "00"}
    for held, version, names, removed in (
        (versions, ONE.version, ["a"], []),
        (versions, "", ["a"], []),
        (versions, "of another controller", ["a"], []),
        (other, "", ["a"], ["foreign"]),
        ({("virtual_host", "a"): ""}, "", ["a", "b"], []),
    ):
        session, _ = begin(history, held, version)
        batch = take(session)
        assert [one.name for message in batch for one in message.puts] == names
        assert [name for message in batch for name in message.removed] == removed


def test_one_batch_under_way_and_what_comes_meanwhile_is_one_batch() -> None:
    tables = [
        shards((make_resource("cluster", "c", b""), *one.resources.values()))
        for one in (ONE, TWO, shards_of({"a": "3"}))
    ]
    history = history_of(tables[0])
    session, _ = begin(history)
    batch = session.take()
    assert batch is not None
    first = decode_response(next(batch))
    history.publish(tables[1])
    history.publish(tables[2])
    assert session.take() is None
    rest = [decode_response(one) for one in batch]
    # What was begun ends as it was begun.
    assert rest[-1].version == tables[0].version
    assert session.take() is None
    answer(session, (first, *rest))
    batch2 = take(session)
    assert [one.name for one in batch2[0].puts] == ["a"]
    assert batch2[1].removed == ("b",) and batch2[1].commits
    assert len(batch2) == 2


def test_there_and_back_again_sends_a_commit_alone() -> None:
    history = history_of(ONE)
    session, _ = begin(history)
    answer(session, take(session))
    history.publish(TWO)
    history.publish(ONE)
    assert [one.type for one in take(session)] == [COMMIT]


def test_a_refused_resource_is_told_and_not_sent_again() -> None:
    history = history_of(ONE)
    session, _ = begin(history)
    bad = (Refusal("virtual_host", "a", "no"),)
    assert answer(session, take(session), bad) == SentState(ONE.version, bad)
    assert session.take() is None
    history.publish(shards_of({"a": "1", "b": "2"}))
    batch = take(session)
    assert [one.name for one in batch[0].puts] == ["b"]


def test_what_else_is_wrong_comes_with_answers() -> None:
    history = history_of(ONE)
    session, _ = begin(history)
    batch = take(session)
    assert answer(session, batch) == SentState(ONE.version)
    trouble = ProxyProblem("EdgeGateway", "", "", "rateLimit.backend", "NotCounted", "down")
    again = Request(type=COMMIT, nonce=batch[-1].nonce, node=NODE, troubles=(trouble,))
    assert session.receive(again) == SentState(ONE.version, (), (trouble,))
    assert session.receive(Request(type=COMMIT, nonce=batch[-1].nonce)) == SentState(ONE.version)
    other = Request(type=COMMIT, nonce=batch[-1].nonce, node=Node("pod-b"), troubles=(trouble,))
    assert refused(session, other) == ("node", "PERMISSION_DENIED")


def test_a_table_that_is_refused_whole_leaves_the_one_before() -> None:
    history = history_of(ONE)
    session, _ = begin(history)
    answer(session, take(session))
    history.publish(TWO)
    batch = take(session)
    late = (Refusal(COMMIT, TABLE, "late: 1 of 2 workers"),)
    assert answer(session, batch, late) == SentState(ONE.version, late)
    # The newest answer counts.
    assert session.receive(Request(type=COMMIT, nonce=batch[-1].nonce)) == SentState(TWO.version)
    again = Request(type=COMMIT, nonce=batch[-1].nonce, refused=late)
    assert session.receive(again) == SentState(TWO.version, late)


def test_an_answer_to_the_last_commit_may_cross_the_next_batch() -> None:
    history = history_of(ONE)
    session, _ = begin(history)
    first = take(session)
    late = (Refusal(COMMIT, TABLE, "late"),)
    answer(session, first, late)
    history.publish(TWO)
    batch = take(session)
    assert session.receive(Request(type=COMMIT, nonce=first[-1].nonce)) == SentState(ONE.version)
    assert session.phase is Phase.WAITING
    assert answer(session, batch) == SentState(TWO.version)
    stale = Request(type=COMMIT, nonce=first[-1].nonce)
    assert refused(session, stale) == ("replayed", "INVALID_ARGUMENT")


def test_a_mismatch_ends_it() -> None:
    history = history_of(ONE)
    session, _ = begin(history)
    batch = take(session)
    bad = (Refusal(COMMIT, TABLE, MISMATCH),)
    told = session.receive(Request(type=COMMIT, nonce=batch[-1].nonce, refused=bad))
    assert told == SentState("", bad)
    assert session.phase is Phase.OVER
    history.publish(TWO)
    assert session.take() is None
    assert refused(session, Request(type=COMMIT, nonce="1")) == ("protocol", "INVALID_ARGUMENT")


def test_messages_are_filled_and_made_one_at_a_time() -> None:
    half = MESSAGE_FILL // 2 - 200
    table = shards(make_resource("cluster", f"c{i}", bytes(half)) for i in range(7))
    history = history_of(table)
    session, _ = begin(history)
    batch = session.take()
    assert batch is not None
    next(batch)
    assert history.encoded <= 5  # and the next one: the last commits
    rest = list(batch)
    assert history.encoded == 7
    assert [len(decode_response(one).puts) for one in rest] == [2, 2, 1]
    assert max(map(len, rest)) <= MESSAGE_FILL + 500


def test_all_sessions_share_the_bytes() -> None:
    history = history_of(shards_of({f"h{i}": "x" for i in range(100)}))
    for _ in range(50):
        take(begin(history)[0])
    assert history.encoded == 100


def test_one_changed_route_of_many_costs_every_stream_the_same() -> None:
    """Assert on resources and bytes: they may not grow with the table."""
    cost = []
    for many in (10, 10_000):
        names = {f"host-{i:05}": "x" * 50 for i in range(many)}
        history = history_of(shards_of(names))
        session, _ = begin(history)
        answer(session, take(session))
        before = session.resources_sent
        history.publish(shards_of({**names, "host-00003": "y" * 50}))
        batch = session.take()
        assert batch is not None
        cost.append((sum(map(len, batch)), session.resources_sent - before))
    # Nonces have more digits in a longer opening; nothing else differs.
    assert cost[0][1] == cost[1][1] == 1
    assert abs(cost[0][0] - cost[1][0]) <= 4
    assert cost[0][0] < 600


def test_too_far_behind_opens_again() -> None:
    history = History(limit=3)
    history.publish(shards_of({"a": "0"}))
    session, _ = begin(history)
    batch = take(session)
    for i in range(1, 6):
        history.publish(shards_of({"a": str(i)}))
    answer(session, batch)
    with pytest.raises(Refused) as error:
        session.take()
    assert (error.value.cause, error.value.status) == ("behind", "ABORTED")


@pytest.mark.parametrize("count", range(len(TYPES) + 1))
def test_an_opening_has_every_type_in_its_order(count: int) -> None:
    parts = [decode_request(data) for data in encode_opening(NODE, {}, "")]
    for wrong in range(len(parts)):
        if wrong in (count, count - 1):
            continue
        session = Session(history_of(ONE), ("f1",))
        for one in parts[:count]:
            session.receive(one)
        assert refused(session, parts[wrong])[0] == "protocol"


def test_a_type_may_take_several_messages() -> None:
    history = history_of(shards_of({"a": "1", "b": "1", "c": "1"}))
    held = {one.name: one.version for one in ONE.resources.values()}
    session = Session(history, ("f1",))
    for data in encode_opening(NODE, {}, ""):
        request = decode_request(data)
        session.receive(request)
        if request.type == "virtual_host":
            for name, version in held.items():
                session.receive(
                    Request(type="virtual_host", subscribe=("*",), held={name: version})
                )
    assert [one.name for one in take(session)[0].puts] == ["c"]


def test_formats_must_meet() -> None:
    """Refused when the opening is over: before, gRPC would hide the status behind a write that fails."""
    session = Session(history_of(ONE), ("f2", "f3"))
    *opening, last = (decode_request(data) for data in encode_opening(NODE, {}, "of-theirs"))
    for request in opening:
        assert session.receive(request) is None
    with pytest.raises(
        Refused, match=r"pod-a .* \(f2, f3; stream .*\) and keeps its last"
    ) as error:
        session.receive(last)
    assert error.value.status == "FAILED_PRECONDITION"
    assert session.serves == "of-theirs"


@pytest.mark.parametrize(
    "wrong",
    [
        Request(type="virtual_host", nonce="99"),
        Request(type="listener", nonce="1"),  # the nonce is another type's
        Request(type=COMMIT, nonce="0"),
        Request(type="virtual_host", nonce="2"),  # it commits
        Request(type="virtual_host"),
        Request(type="cluster", nonce="1", subscribe=("*",)),
        Request(type="cluster", nonce="1", held={"a": "1"}),
        Request(type="cluster", nonce="1", node=Node("pod-b")),
        Request(type=COMMIT, nonce="2"),  # before the rest of its batch
    ],
)
def test_answers_that_are_none(wrong: Request) -> None:
    session, _ = begin(
        history_of(shards((make_resource("cluster", "c", b""), *ONE.resources.values())))
    )
    assert [one.nonce for one in take(session)] == ["1", "2"]
    cause, _ = refused(session, wrong)
    assert cause in ("replayed", "protocol", "node")


def test_no_answer_before_the_commit_was_sent() -> None:
    session, _ = begin(history_of(ONE))
    batch = session.take()
    assert batch is not None
    first = decode_response(next(batch))
    assert refused(session, Request(type=first.type, nonce=first.nonce))[0] == "replayed"


def test_what_is_held_is_bounded() -> None:
    session = Session(history_of(ONE), ("f1",))
    session.receive(Request(type="secret", node=NODE, subscribe=("*",)))
    held = {f"name-{i}": "" for i in range(250_001)}
    assert refused(session, Request(type="secret", subscribe=("*",), held=held))[0] == "protocol"


def test_what_is_said_of_it_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "HELD_LIMIT", 10_000)
    session = Session(history_of(ONE), ("f1",))
    session.receive(Request(type="secret", node=NODE, subscribe=("*",)))
    part = Request(type="secret", subscribe=("*",), held={"n" * 3000: "v" * 1000})
    session.receive(part)
    other = Request(type="secret", subscribe=("*",), held={"m" * 3000: "v" * 3000})
    session.receive(other)
    assert refused(session, part)[0] == "protocol"
