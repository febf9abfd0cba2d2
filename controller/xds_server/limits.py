"""Limits of the controller's side of the stream: sizes, counts and times, with reasons.

In: nothing.
Out: constants; each name or comment states seconds, bytes or counts. edgefast.xds.limits has the
limits that both ends share.
Must never: contain a setting that a user may change.
"""

from __future__ import annotations

__all__ = [
    "ADMIT_DEADLINE",
    "AGE_GRACE",
    "AGE_HOURS",
    "ANSWER_DEADLINE",
    "CALLS",
    "CALLS_PER_CONNECTION",
    "GONE_NODES",
    "ITEMS_AT_ONCE",
    "ITEMS_SECONDS",
    "KEYS_EVERY",
    "LOG_ENTRIES",
    "METADATA_LIMIT",
    "NODES",
    "OPENING_DEADLINE",
    "RECHECK_DEADLINE",
    "REFUSALS_KEPT",
    "REFUSAL_AGAIN",
    "REFUSAL_LINES",
    "REFUSAL_SUMS",
    "REVIEWS",
    "REVIEWS_AT_ONCE",
    "REVIEW_DEADLINE",
    "REVIEW_REFUSED_SECONDS",
    "REVIEW_SECONDS",
    "STREAMS_PER_POD",
    "TOKEN_LIMIT",
    "WRITE_DEADLINE",
]

#: Seconds to decide about a credential, and for the messages of a stream's opening.
ADMIT_DEADLINE = 10.0
OPENING_DEADLINE = 30.0
#: Seconds to write one message to a proxy; and until a commit is answered: workers apply a table in milliseconds,
#: a starting or stopped machine may need longer.
WRITE_DEADLINE = 30.0
ANSWER_DEADLINE = 60.0
#: Seconds to ask again about a token of a stream that is open.
RECHECK_DEADLINE = 2.0

#: Streams of all proxies of one controller, twice what it is meant for; and of one connection: a proxy has one.
CALLS = 2048
CALLS_PER_CONNECTION = 8
#: Streams of one pod at once: the one in use, and some that are not known to be gone yet. Pods of Gateways' namespaces are
#: their tenants': one of them must not use the streams of all.
STREAMS_PER_POD = 4
#: Nodes of one fleet whose answers are kept, and those of them that are gone (pods come and go).
NODES = 5000
GONE_NODES = 200
#: Hours after which a connection is to be made anew, so that replicas share proxies again (gateway-api B2); seconds of
#: grace for that.
AGE_HOURS = (10.0, 12.0)
AGE_GRACE = 120.0

#: Changed names that a fleet remembers: a stream further behind opens again and says what it has.
LOG_ENTRIES = 200_000
#: Resources of a change whose wire bytes are forgotten as soon as all streams have sent them; those of a larger change, and of one
#: that some send later, are kept until no proxy has come for so many seconds: proxies of a restart come one after the other.
ITEMS_AT_ONCE = 64
ITEMS_SECONDS = 15.0

#: Bytes of a call's metadata: a token has at most TOKEN_LIMIT.
METADATA_LIMIT = 24 * 1024
TOKEN_LIMIT = 16 * 1024
#: Seconds for which the API server's word on a token counts (issue: at most 60), and its refusal.
REVIEW_SECONDS = 60.0
REVIEW_REFUSED_SECONDS = 10.0
REVIEW_DEADLINE = 5.0
#: Reviews kept (some hundred bytes each), and under way at once.
REVIEWS = 8192
REVIEWS_AT_ONCE = 16

#: Seconds between looks at the mounted keys when nobody connects.
KEYS_EVERY = 5.0
#: Lines per second about refused calls; the others are counted.
REFUSAL_LINES = 10
#: Seconds before the same refusal of the same caller is told again. A fleet whose mode or authority was changed knocks every few
#: seconds with each of its pods for as long as it is kept: that is one thing to say, not thousands.
REFUSAL_AGAIN = 3600.0
#: Callers whose refusals are remembered; who knocks under ever new names is bounded by REFUSAL_LINES.
REFUSALS_KEPT = 1024
#: Seconds between lines that count the others.
REFUSAL_SUMS = 60.0
