"""Mentions: the reasons in a text, because a message may be a reader's only reference to their pages.

In: the text of a problem, a condition or an answer, in the format of `Problem.text`.
Out: the reasons that have a page, in order.
Must never: report a word of a user's object or of a proxy's message; only the position of a reason
counts.
"""

from __future__ import annotations

import re
from typing import get_args

from edgefast.diagnostics.reasons.word import Word

__all__ = ["BEHIND", "BY_PROXIES", "MORE", "lead_on", "name_reasons"]

#: Before the command, at the end of a message that leaves us: a condition, an Event.
MORE = "; more about it: edgefast problem "
#: Before what proxies say: errors of their systems, which are no reasons of ours. Nothing behind these is searched.
BEHIND = ", behind: "
BY_PROXIES = "refused by proxies, which keep what they had: "
_MOST = 3

_WORDS: dict[str, Word] = {word: word for word in get_args(Word)}
#: Behind the subject of a problem, or at the beginning: "HTTPRoute default/a spec.rules[0]: NotFound ...".
_REASON = re.compile(r"(?:^|: |; )([A-Z][A-Za-z]+)(?=[ ,;:]|$)")
#: Values of users in double quotes, and odd keys in the brackets of a path. One that does not end reaches to the end: the
#: message was cut. A mark within a value is no end of it unless what follows looks like one.
_USERS = re.compile(
    r'"(?:[^"]|"(?![ ,;:.)\]]|$))*(?:"|$)|\[(?:[^\]]|\](?![ ,;:.)\[]|$))*(?:\]|$)', re.DOTALL
)
_PROXIES = re.compile("|".join(map(re.escape, (BEHIND, BY_PROXIES))))


def lead_on(reason: str, message: str) -> str:
    """Return the end of a condition's or an Event's message: the command that says more, "" for a reason without a page."""
    words = [_WORDS[reason]] if reason in _WORDS else []
    words = list(dict.fromkeys((*words, *name_reasons(message))))[:_MOST]
    return MORE + " ".join(words) if words else ""


def name_reasons(text: str) -> tuple[Word, ...]:
    """Return the reasons of a text, each once."""
    ours = _PROXIES.split(_USERS.sub('""', text), maxsplit=1)[0]
    return tuple(dict.fromkeys(_WORDS[one] for one in _REASON.findall(ours) if one in _WORDS))
