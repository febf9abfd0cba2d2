"""Error reply: the kind of a store's error, its reason as text, and whether the same call may be sent again.

In: the text of the reply.
Out: `Refusal`. A call is sent again only if the server executed no part of it. A script without
write permission fails at its first write, and a server refuses a slot of another server before it
runs the script.
Source: Redis protocol errors; Redis Cluster specification, "Redirection and resharding".
Must never: be used for an answer to AUTH; the answer to an unknown command contains its arguments.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

__all__ = ["CODES", "Refusal", "Refused", "Then", "read_refusal"]

#: What to do with the call: give it up; load the script and send it again; find the primary again and send it there; send it
#: where the refusal says; send it there once, after ASKING; send its keys one by one.
Then = Literal["fail", "load", "reconnect", "moved", "ask", "split"]


class Refusal(NamedTuple):
    """One answer that is no count, or no answer at all."""

    kind: str  # one word, for counters
    reason: str  # for people
    then: Then = "fail"
    address: str = ""  # "host:port" of "moved" and "ask"; ":port" is the same host


class Refused(Exception):
    """A connection could not be set up, for this reason."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


_TABLE: tuple[tuple[str, str, Then], ...] = (
    ("NOSCRIPT", "the store no longer has the script", "load"),
    ("READONLY", "the server is a replica", "reconnect"),
    ("LOADING", "the store is loading its data", "reconnect"),
    ("MASTERDOWN", "the server is a replica without its primary", "reconnect"),
    ("CLUSTERDOWN", "the cluster is down", "reconnect"),
    ("NOAUTH", "the store requires a password", "reconnect"),
    ("WRONGPASS", "the store refuses the user or the password", "reconnect"),
    ("TRYAGAIN", "the slot is being moved", "split"),
    ("CROSSSLOT", "the store is a cluster, but is configured as one server", "fail"),
    ("NOPERM", "the user may not run the script or write the keys", "fail"),
    ("OOM", "the store is out of memory", "fail"),
    ("MISCONF", "the store cannot save and refuses writes", "fail"),
    ("NOREPLICAS", "the store has too few replicas and refuses writes", "fail"),
    ("BUSY", "the store is busy with another script", "fail"),
    ("DENIED", "the store is in protected mode", "fail"),
)

#: Error codes with a meaning here.
CODES = {code: Refusal(code.lower(), reason, then) for code, reason, then in _TABLE}

# Redis 6 wraps the error of a command in a script: "ERR Error running script (call to f_...): ...: -READONLY You can't ...".
_WRAPPED = re.compile(r" -?([A-Z]{3,}) ")


def read_refusal(text: str) -> Refusal:
    """Read an error reply to a call of the script."""
    code, _, rest = text.partition(" ")
    if code in ("MOVED", "ASK"):  # "MOVED 3999 127.0.0.1:6381"
        address = rest.rpartition(" ")[2]
        then: Then = "moved" if code == "MOVED" else "ask"
        return Refusal(code.lower(), "the slot is at another server", then, address)
    if code == "ERR":
        code = next((word for word in _WRAPPED.findall(rest) if word in CODES), code)
    known = CODES.get(code)
    if known is not None:
        return known
    plain = "".join(char if char.isprintable() else "?" for char in text[:160])
    return Refusal("error", f"the store answers: {plain}")
