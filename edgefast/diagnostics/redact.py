"""Redact: detects credentials in a configuration and replaces them in every output.

In: the name of a header or query parameter, a value.
Out: whether the value is a credential, and the replacement text with its length. Detection uses the
name (authorization, cookies, API keys, tokens, passwords) or the format (Basic and Bearer, JWT,
long random words). All outputs of header values use this module: dump, explain, diff, translate,
console, logs and error messages.
Must never: show a part of the value, or a digest that could be compared with a list of guesses.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from urllib.parse import unquote_plus

#: Names whose value is a credential. Underscores count as dashes, case does not count.
_NAME = re.compile(
    r"(?:.*-)?(?:"
    r"(?:proxy-)?authorization|set-cookie2?|cookie2?(?::.+)?|"
    r"api-?keys?|(?:access|account|auth|client|consumer|functions|license|private|secret|security|service|shared|"
    r"signing|subscription)-?keys?|"
    r"auth|tokens?|[a-z]*token|jwt|bearer|secrets?|[a-z]*secret|passw(?:or)?d|passphrase|credentials?|signature|"
    r"session(?:-?id)?|sid|assertion"
    r")(?:-v?[0-9]+)?"
)
#: An authentication scheme with what it carries (RFC 9110 11.4), or a JWT (RFC 7519) anywhere.
_SCHEME = re.compile(
    r"\s*(?:basic|bearer|digest|token|apikey|negotiate|ntlm|hmac|aws4-hmac-sha256)\s+\S", re.I
)
#: What stands before a dot that a token may have, whole, so that each character is looked at once.
_BEFORE_DOT = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{11,}+(?=\.[A-Za-z0-9_-]{4})")
_JWT = re.compile(r"eyJ[A-Za-z0-9_-]{8}")
#: Words that those who issue tokens begin them with, so that leaks are found.
_ISSUED = re.compile(
    r"(?:\b|_)(?:sk|pk|rk)[-_](?:live|test|proj|ant)[-_]|\b(?:gh[pousr]|github_pat|glpat|xox[abpers]|npm|hf|dop_v1)[-_]"
    r"|\b(?:AKIA|ASIA|AIza)[A-Za-z0-9]{12}"
)
#: Letters and digits without a break: words of a language, versions, names and UUIDs have one before.
_RUN = re.compile(r"[A-Za-z0-9_+/=~]{20,}")
_WORD = re.compile(r"[A-Za-z]{4,}")
#: Bits a character of a run of chance has at least; hexadecimal digits have four at most, and few are drawn.
_BITS = 3.0


def is_credential(name: str) -> bool:
    """Tell whether a header or query parameter of that name carries a credential; predicates on cookies are "cookie:NAME"."""
    if name.startswith("cookie:"):
        return True
    return _NAME.fullmatch(name.lower().replace("_", "-").replace(".", "-")) is not None


def is_token(value: str) -> bool:
    """Tell whether a value looks like a credential, whatever its name is."""
    if _SCHEME.match(value) or _ISSUED.search(value):
        return True
    if any(_JWT.search(one[0]) for one in _BEFORE_DOT.finditer(value)):
        return True
    return any(_is_chance(one) for one in _RUN.findall(value))


def is_hidden(name: str, value: str) -> bool:
    """Tell whether a value is not to be shown."""
    return is_credential(name) or is_token(value)


def hide(value: str) -> str:
    """Return what stands for a value."""
    return f"<{len(value)} characters, not shown>"


def hide_bytes(value: bytes) -> bytes:
    """Return what stands for bytes; for none of them none."""
    return b"<%d bytes, not shown>" % len(value) if value else b""


def show(name: str, value: str) -> str:
    """Return a value, or what stands for it."""
    return hide(value) if is_hidden(name, value) else value


def show_token(value: str) -> str:
    """Return a value of no name, or what stands for it."""
    return hide(value) if is_token(value) else value


def show_query(url: str) -> str:
    """Return a URL or a target with the values of its query parameters as they may be shown."""
    before, mark, query = url.partition("?")
    return before + mark + "&".join(_show_parameter(one) for one in query.split("&"))


def _show_parameter(text: str) -> str:
    name, equals, value = text.partition("=")
    plain = unquote_plus(value)
    return name + equals + hide(plain) if is_hidden(unquote_plus(name), plain) else text


def _is_chance(run: str) -> bool:
    """Tell whether a run of characters was drawn: letters and digits mixed, none often, and no words in it."""
    digits = sum(one.isdigit() for one in run)
    if digits == len(run) or (digits < 2 and not _is_mixed(run)):
        return False
    if run.count("/") > 1 and not any(one.isupper() for one in run):  # a path
        return False
    if sum(map(len, _WORD.findall(run))) > 0.6 * len(run) and not _is_mixed(run):
        return False
    counts = Counter(run).values()
    bits = -sum(count / len(run) * math.log2(count / len(run)) for count in counts)
    return bits >= _BITS


def _is_mixed(run: str) -> bool:
    """Tell whether both cases are mixed as no word has them."""
    changes = sum(
        one.islower() != other.islower()
        for one, other in zip(run, run[1:], strict=False)
        if one.isalpha() and other.isalpha()
    )
    return changes >= len(run) / 4
