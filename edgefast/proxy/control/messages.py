"""Messages between the agent and a worker: the complete list.

In: built by agent and worker.
Out: MessagePack frames (channel.py), each at most FRAME_LIMIT bytes. Larger contents are split into
several messages that one of another kind closes (Changes* Commit, Refused* Ack, DumpPart* and Keys*
with `last`).
Must never: carry a secret or the bytes of a request; those exist only in the arena. Exceptions:
spans of traced requests, public keys, and codes and tokens of OIDC logins, which are never logged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from edgefast.rate_limit.store_status import StoreStatus

__all__ = [
    "FRAME_LIMIT",
    "Ack",
    "AgentMessage",
    "Change",
    "Changes",
    "CloseSockets",
    "Commit",
    "Drain",
    "Drained",
    "DumpPart",
    "DumpRequest",
    "Exit",
    "ForgetRows",
    "Hello",
    "Keys",
    "KeysGone",
    "KeysWanted",
    "Leave",
    "LogLevel",
    "OldGone",
    "Outlive",
    "Ping",
    "Pong",
    "Refused",
    "Sockets",
    "SocketsLost",
    "Spans",
    "Started",
    "StopAccepting",
    "Taking",
    "Tokens",
    "CancelTokens",
    "TokensWanted",
    "Uncounted",
    "WorkerMessage",
    "split_changes",
    "split_keys",
    "split_refused",
]

#: Bytes of one frame: well below the kernel's default socket buffer (212,992), so that it is one
#: datagram without a large contiguous allocation.
FRAME_LIMIT = 64 * 1024
#: Bytes of a payload that the split functions fill, leaving room for the message around it.
_FILL = FRAME_LIMIT - 4096
#: Bytes of a piece of keys; names of sources have a part of the rest (jwks/target.py).
KEYS_PART = 48 * 1024
_ERROR_TEXT = 400  # characters of a refusal that travel; names are at most 253 + 253 + 63
_CHANGE_OVERHEAD = 40  # MessagePack of op, type, two integers


class Change(NamedTuple):
    """One step of a commit; `op` is "put" or "del" (offset and length are 0 then)."""

    op: str
    type: str
    name: str
    offset: int
    length: int


class _Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Settings that all messages share."""


# --- agent to worker ------------------------------------------------------------------------------


class Hello(_Message, frozen=True):
    """First of all; brings the descriptors of the arena, the counters, the limits, the keys of tickets and the health of
    backends, in this order."""

    worker: int
    arena_bytes: int
    log_level: str
    access_log: str = ""  # path of its file; "": standard output
    zone: str = ""  # the proxy's, as it was told at its start
    node: str = ""  # its name, by which it finds its zone in the table; "": it has no controller
    own_ports: tuple[int, ...] = ()  # of the proxy's own servers, which are never backends


class Sockets(_Message, frozen=True):
    """Listening sockets, one (bind address, bind port, number) per descriptor that comes along."""

    places: tuple[tuple[str, int, int], ...]


class CloseSockets(_Message, frozen=True):
    """Empty the accept queues of these and close them."""

    places: tuple[tuple[str, int, int], ...]


class Changes(_Message, frozen=True):
    """A part of a commit; nothing is applied before `Commit`."""

    items: tuple[Change, ...]


class Commit(_Message, frozen=True):
    """Apply all parts received since the last commit in one swap."""

    epoch: int
    version: str


class Drain(_Message, frozen=True):
    """Go on accepting, close connections as they become idle."""


class StopAccepting(_Message, frozen=True):
    """Empty all accept queues, close the sockets, say `Drained` when no connection is left."""


class Leave(_Message, frozen=True):
    """Accept no more, but leave the queues alone: the sockets live on elsewhere. Say `Drained` when no connection
    is left; not `patient`: none but those from before `Drain`.
    """

    patient: bool


class Outlive(_Message, frozen=True):
    """Serve on when the agent is gone, until a successor asks on the socket that comes along (worker/orphan.py)."""

    workers: int
    drain_timeout: float


class Exit(_Message, frozen=True):
    """Abort what is left and exit."""


class Ping(_Message, frozen=True):
    """Answered with `Pong` from the worker's loop."""

    number: int


class DumpRequest(_Message, frozen=True):
    """Answered with `DumpPart`s."""

    number: int


class LogLevel(_Message, frozen=True):
    """Set the worker's log level (debug, info, warning, error)."""

    level: str


class ForgetRows(_Message, frozen=True):
    """Give away the counters of these labels, as far as no rule holds them."""

    labels: tuple[bytes, ...]


class Keys(_Message, frozen=True):
    """A piece of the keys of a source (ircredential.RemoteKeys), as edgefast/auth/jwt/key_set.py writes them; b"" in all: there are none."""

    uri: str
    cluster: str
    issuer: str
    data: bytes
    last: bool


class KeysGone(_Message, frozen=True):
    """No table names this source any more."""

    uri: str
    cluster: str
    issuer: str


class Lend(_Message, frozen=True):
    """Users of this cluster wait in another worker for connections that this one may have (ConnectionsWanted)."""

    cluster: str
    to: int


class Tokens(_Message, frozen=True):
    """The answer to TokensWanted: tokens, or the cause of a failure: "rejected" by the provider, "busy", or "provider"."""

    number: int
    word: str
    data: bytes = b""  # MessagePack of auth/oidc/token_response.py TokenResponse

    def __repr__(self) -> str:
        return f"Tokens({self.number}, {self.word!r}, <redacted>)"


AgentMessage = (
    Hello
    | Sockets
    | CloseSockets
    | Changes
    | Commit
    | Drain
    | StopAccepting
    | Leave
    | Outlive
    | Exit
    | Ping
    | DumpRequest
    | LogLevel
    | ForgetRows
    | Keys
    | KeysGone
    | Tokens
    | Lend
)


# --- worker to agent ------------------------------------------------------------------------------


class Started(_Message, frozen=True):
    """The worker's loop runs."""

    pid: int
    tls: str = ""  # the library that its engine is linked with


class Refused(_Message, frozen=True):
    """A part of what a commit's acknowledgement refuses: (type, name, error)."""

    items: tuple[tuple[str, str, str], ...]


class Taking(_Message, frozen=True):
    """A commit is under way and will take longer: certificates are loaded one by one."""


class Ack(_Message, frozen=True):
    """The swap to `epoch` is done; older blobs are no longer read, new ports accept.

    `short`: what was refused was refused for want of descriptors or memory; later it may be taken.
    """

    epoch: int
    short: bool = False


class SocketsLost(_Message, frozen=True):
    """There was no room for the sockets of these places: send them again, a little later."""

    places: tuple[tuple[str, int, int], ...]


class Pong(_Message, frozen=True):
    """State of the worker's connections."""

    number: int
    connections: int
    active: int
    unresolved: tuple[str, ...] = ()  # names of backends without an address, the first ones


class DumpPart(_Message, frozen=True):
    """A piece of the MessagePack of `Engine.dump()`."""

    number: int
    data: bytes
    last: bool


class Spans(_Message, frozen=True):
    """Traced requests, as the engine packs them (traces/span_record.py)."""

    batch: bytes


class OldGone(_Message, frozen=True):
    """No connection from before `Drain` is left."""


class Uncounted(_Message, frozen=True):
    """What keeps limits from counting.

    `standing`: how the places of counters stand; None: not known yet. `fail_closed`: what becomes of requests meanwhile. `crowded`: limits without
    room for further values, as (route, limit, milliseconds until their windows end).
    """

    standing: StoreStatus | None
    fail_closed: bool
    crowded: tuple[tuple[str, str, int], ...]


class KeysWanted(_Message, frozen=True):
    """A token names a key that this source has not told of; answered with `Keys`, soon or after another fetch."""

    uri: str
    cluster: str
    issuer: str


class TokensWanted(_Message, frozen=True):
    """A login needs tokens of its provider; answered with `Tokens`, within a deadline (oidc/token_exchange.py)."""

    number: int
    unit: str  # ir.PolicyUnit.name
    code: str = ""  # of a callback, with the two below
    redirect_uri: str = ""
    verifier: str = ""
    refresh_token: str = ""  # or of a session
    scope: bytes = b""  # of the client that the worker knows (auth/oidc/cookie_names.py)
    state: str = ""  # id of the login
    client: bytes = b""  # address of the browser
    revokes: bool = False  # the refresh token, in place of a refresh: the answer has no tokens

    def __repr__(self) -> str:
        return f"TokensWanted({self.number}, {self.unit!r}, <redacted>)"


class CancelTokens(_Message, frozen=True):
    """The request that needed these tokens is over."""

    number: int


class ConnectionsWanted(_Message, frozen=True):
    """There may be no more connections of this cluster, and users wait for one: other workers are told to lend."""

    cluster: str


class Drained(_Message, frozen=True):
    """Sockets are closed and no connection is left."""


WorkerMessage = (
    Started
    | Refused
    | Taking
    | Ack
    | SocketsLost
    | Pong
    | DumpPart
    | Spans
    | Uncounted
    | KeysWanted
    | TokensWanted
    | CancelTokens
    | ConnectionsWanted
    | OldGone
    | Drained
)


def split_changes(changes: Sequence[Change]) -> Iterator[Changes]:
    """Cut a list of changes into messages that fit into a frame."""
    part: list[Change] = []
    size = 0
    for change in changes:
        cost = _CHANGE_OVERHEAD + len(change.name.encode())
        if size + cost > _FILL and part:
            yield Changes(tuple(part))
            part, size = [], 0
        part.append(change)
        size += cost
    if part:
        yield Changes(tuple(part))


def split_keys(uri: str, cluster: str, issuer: str, data: bytes) -> Iterator[Keys]:
    """Cut the keys of a source into messages that fit into a frame, whatever its name is."""
    for start in range(0, max(1, len(data)), KEYS_PART):
        part = data[start : start + KEYS_PART]
        yield Keys(uri, cluster, issuer, part, start + KEYS_PART >= len(data))


def split_refused(refused: Sequence[tuple[str, str, str]]) -> Iterator[Refused]:
    """Cut a list of refusals into messages that fit into a frame; long texts are cut."""
    part: list[tuple[str, str, str]] = []
    size = 0
    for type_, name, error in refused:
        text = error if len(error) <= _ERROR_TEXT else error[: _ERROR_TEXT - 1] + "…"
        cost = _CHANGE_OVERHEAD + len(name.encode()) + len(text.encode())
        if size + cost > _FILL and part:
            yield Refused(tuple(part))
            part, size = [], 0
        part.append((type_, name, text))
        size += cost
    if part:
        yield Refused(tuple(part))
