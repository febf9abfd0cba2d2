"""Session: one proxy's stream without I/O: requests in, batches of messages out (protocol: edgefast.xds.messages).

In: decoded requests, and the fleet's history, which advances independently.
Out: the state that the proxy reported (`SentState`), and the messages of the next batch when one is
due. All state changes of a stream are in this file.
Must never: have two batches in progress, send unchanged resources, or accept what the protocol does
not define; it raises Refused instead. A session that has refused is closed.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Sequence

import msgspec

from controller.xds_server.history import NOTHING, Held, History
from controller.xds_server.refusal import Refused
from edgefast.table.shards import TYPES, Delta, Key
from edgefast.xds.limits import HELD_LIMIT, TABLE_RESOURCES
from edgefast.xds.messages import (
    COMMIT,
    STREAM_VERSION,
    TABLE,
    Node,
    Request,
    cut_items,
    cut_names,
    encode_commit,
    encode_response,
)
from edgefast.xds.proxy_problems import ProxyProblem
from edgefast.xds.rejections import MISMATCH
from edgefast.xds.rejections import Refused as Refusal

__all__ = ["Phase", "Session", "SentState"]

_ORDER = (*TYPES, COMMIT)


class Phase(enum.Enum):
    """Where a stream is. OPENING -> IDLE -> SENDING -> WAITING -> IDLE ...; OVER after a mismatch."""

    OPENING = "opening"
    IDLE = "idle"  # everything sent is answered
    SENDING = "sending"  # a batch's messages are being taken
    WAITING = "waiting"  # for the answer to its commit
    OVER = "over"  # the proxy said that it holds something else: it opens again


class SentState(msgspec.Struct, frozen=True):
    """What a proxy serves: the table's version ("" for none known), and what of it is not in force."""

    version: str
    refused: tuple[Refusal, ...] = ()
    troubles: tuple[ProxyProblem, ...] = ()  # what else is wrong with the proxy


class Session:
    """The protocol state of one proxy's stream, without I/O.

    `node` is None until the first request.
    """

    def __init__(self, history: History, formats: Collection[str]) -> None:
        """`formats`: of the tables that the server writes (edgefast.table.format)."""
        self.phase = Phase.OPENING
        self.node: Node | None = None
        self.resources_sent = 0
        self._history = history
        self._formats = frozenset(formats)
        self._held = NOTHING
        self._rank = -1  # of the last type in the opening
        self._versions: dict[Key, str] = {}  # told in the opening
        self._reported = 0  # characters of them
        self._serves = ""  # version that the node is known to serve
        self._nonce = 0  # the last one given away
        self._open: dict[
            str, str
        ] = {}  # nonce -> type of what is not answered yet, the commit aside
        self._commit = ""  # nonce of the commit that waits for its answer
        self._answered = ("", "")  # nonce and version of the last commit that was answered
        self._target = (0, "")  # number and version of the last batch

    @property
    def serves(self) -> str:
        """Version of the table that the node has said it serves, "" for none."""
        return self._serves

    @property
    def due(self) -> bool:
        """There is something to send: what the proxy holds is not the present table, or it has just come."""
        return self.phase is Phase.IDLE and self._target[0] != self._history.number

    # --- requests -------------------------------------------------------------------------------

    def receive(self, request: Request) -> SentState | None:
        """Take in a request; returns what is known now of the node, if that is news. Raises Refused."""
        if self.phase is Phase.OVER:
            raise _protocol("a message after a mismatch")
        if self.phase is Phase.OPENING:
            return self._receive_opening(request)
        return self._receive_answer(request)

    def _receive_opening(self, request: Request) -> SentState | None:
        rank = _ORDER.index(request.type)
        # Several requests of one type add up; no type is left out.
        if rank not in (self._rank, self._rank + 1) or (rank == self._rank == len(TYPES)):
            raise _protocol(f"the opening's request of type {request.type} is out of order")
        if request.nonce or request.refused:
            raise _protocol("an answer before anything was sent")
        if request.subscribe != ("*",):
            raise _protocol('a fleet\'s table is read whole: subscribe to "*"')
        first = self._rank < 0
        if first != (request.node is not None):
            raise _protocol("only the first request must name the node")
        if first:
            self.node = request.node
        self._rank = rank
        if request.type != COMMIT:
            if len(self._versions) + len(request.held) > TABLE_RESOURCES:
                raise _protocol(f"the proxy has more than {TABLE_RESOURCES} resources")
            self._reported += sum(len(name) + len(one) for name, one in request.held.items())
            if self._reported > HELD_LIMIT:
                raise _protocol(f"names and versions of more than {HELD_LIMIT} characters")
            self._versions.update(
                ((request.type, name), version) for name, version in request.held.items()
            )
            return None
        if not request.held.keys() <= {TABLE}:
            raise _protocol(f"the only resource of type {COMMIT} is {TABLE}")
        self._serves = request.held.get(TABLE, "")
        assert self.node is not None
        self._check_formats(self.node)
        number = self._history.number_of(self._serves) if self._serves else 0
        self._held = Held(number) if number else self._history.compare(self._versions)
        self._versions = {}
        self.phase = Phase.IDLE
        return SentState(self._serves)

    def _check_formats(self, node: Node) -> None:
        if self._formats.isdisjoint(node.formats):
            raise Refused(
                "format",
                "FAILED_PRECONDITION",
                f"proxy {node.id} does not support a table format of this controller "
                f"({', '.join(sorted(self._formats))}; stream version {STREAM_VERSION}) and "
                "keeps its last table; update its pod to the controller's release",
            )

    def _receive_answer(self, request: Request) -> SentState | None:
        if request.node is not None and request.node != self.node:
            raise Refused("node", "PERMISSION_DENIED", "a stream can serve only one node")
        if request.subscribe or request.held:
            raise Refused("replayed", "INVALID_ARGUMENT", "a stream can be opened only once")
        if not request.nonce:
            raise Refused(
                "replayed", "INVALID_ARGUMENT", "a request without a nonce after the opening"
            )
        if request.type == COMMIT and request.nonce == self._commit:
            return self._close_batch(request)
        if request.type == COMMIT and request.nonce == self._answered[0]:
            return self._learn(request)
        if not self._commit:
            raise Refused("replayed", "INVALID_ARGUMENT", "an answer without a pending response")
        if self._open.get(request.nonce) != request.type:
            raise Refused("replayed", "INVALID_ARGUMENT", "no pending response has this nonce")
        del self._open[request.nonce]
        return None

    def _close_batch(self, request: Request) -> SentState:
        """Take in the answer to the commit, which is the last of its batch."""
        if self._open and request.whole != MISMATCH:
            raise _protocol("the commit was answered before the rest of its batch")
        self._open.clear()
        self._answered = (self._commit, self._target[1])
        self._commit = ""
        self._held = Held(self._target[0])
        self.phase = Phase.OVER if request.whole == MISMATCH else Phase.IDLE
        return self._learn(request)

    def _learn(self, request: Request) -> SentState:
        """A commit may be answered again, until the next one is answered: the newest answer counts."""
        if not request.whole:
            self._serves = self._answered[1]
        return SentState(self._serves, request.refused, request.troubles)

    # --- batches --------------------------------------------------------------------------------

    def take(self) -> Iterator[bytes] | None:
        """Return the messages of the next batch, to be sent in order, or None when there is none to send.

        Messages are made as they are taken: one, and what the next one holds, are in memory. The last one commits. Raises Refused when the
        proxy is too far behind.
        """
        if not self.due:
            return None
        delta = self._history.difference(self._held)
        if delta is None:
            raise Refused(
                "behind", "ABORTED", "too many changes since the last answer; open a new stream"
            )
        self._target = (self._history.number, self._history.version)
        self.phase = Phase.SENDING
        return self._messages(delta)

    def _messages(self, delta: Delta) -> Iterator[bytes]:
        version = self._target[1]
        self.resources_sent += len(delta.put) + len(delta.remove)
        parts = self._cut(delta)
        last = next(parts, None)
        for part in parts:
            assert last is not None
            yield encode_response(*last, self._next_nonce(last[0]), version)
            last = part
        self._nonce += 1
        self._commit = str(self._nonce)
        self.phase = Phase.WAITING
        if last is None:
            yield encode_commit(version, self._commit)
        else:
            yield encode_response(*last, self._commit, version, commits=True)

    def _cut(self, delta: Delta) -> Iterator[tuple[str, Sequence[bytes], Sequence[str]]]:
        """Give what is in each message: type, items, names of what goes."""
        for type_ in TYPES:
            puts = (self._history.item(one) for one in delta.put if one.type == type_)
            for items in cut_items(puts):
                yield type_, items, ()
        for type_ in reversed(TYPES):
            gone = (name for kind, name in delta.remove if kind == type_)
            for names in cut_names(gone):
                yield type_, (), names

    def _next_nonce(self, type_: str) -> str:
        self._nonce += 1
        nonce = str(self._nonce)
        self._open[nonce] = type_
        return nonce


def _protocol(message: str) -> Refused:
    return Refused("protocol", "INVALID_ARGUMENT", message)
