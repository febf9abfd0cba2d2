"""Snippet: the lines of configuration-snippet and server-snippet that have an exact counterpart, and the effect of each other line.

In: the text of a snippet. Out: a `Snippet`: header edits, lists of addresses, answers, and a `Refused` for each other line. A line
that can decide access, or that edgefast does not know, closes the location. A line that cannot is left out with a note.
Source: nginx ngx_http_headers_module, ngx_http_proxy_module, ngx_http_access_module, ngx_http_rewrite_module, headers-more;
ingress-nginx nginx.tmpl.
Must never: show a value of a snippet, or serve a part of a directive.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import msgspec

from edgefast.translate.ingress.redirect_variables import has_variables, translate_location
from edgefast.translate.ingress.snippet_conditions import Condition, read_condition
from edgefast.translate.ingress.values import read_range
from edgefast.translate.match.header_name import check_header_name

__all__ = [
    "ConditionAnswer",
    "Refused",
    "Snippet",
    "SnippetAnswer",
    "read_server_snippet",
    "read_snippet",
]

#: Bytes of a snippet, and directives of one; a longer one closes the location.
_LONGEST = 16_384
_DIRECTIVES = 128
#: Header edits of one kind that a rule has.
_EDITS = 8
#: Maximum of `if` directives in a snippet, and of rules that one rule can become.
_BRANCHES = 8
_CODE = re.compile("[1-5][0-9]{2}")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}")
_VALUE = re.compile(r"[\t\x20-\x7e]{1,4096}")
_URL = re.compile(
    r"https?://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?(/[-A-Za-z0-9/._~!&'()*+,;=:@?%#]{0,1024})?"
)
#: Characters whose escape reaches a directive as it is written.
_KEPT_ESCAPES = tuple("-./+*?()[]|^$bdswBDSW")
#: All addresses.
_EVERY = ("0.0.0.0/0", "::/0")
_REDIRECTS = (301, 302, 303, 307, 308)
#: Directives without an effect on answers of edgefast.
_HARMLESS = frozenset(
    {"access_log", "client_body_buffer_size", "error_log", "log_not_found", "log_subrequest"}
    | {"proxy_buffer_size", "proxy_buffering", "proxy_buffers", "proxy_busy_buffers_size"}
    | {"proxy_max_temp_file_size", "proxy_request_buffering", "rewrite_log", "tcp_nodelay"}
)
#: Directives that change answers and cannot decide access: the effect of leaving one out, and what to do.
_LEFT_OUT = {
    "add_header": ("the header is missing", "write one header without variables"),
    "brotli": ("answers are not encoded", "write a BackendTrafficPolicy with compression"),
    "etag": ("ETag of the backend stays", ""),
    "expires": ("Expires and Cache-Control of the backend stay", "write more_set_headers"),
    "gzip": ("answers are not encoded", "write a BackendTrafficPolicy with compression"),
    "gzip_types": ("answers are not encoded", "write a BackendTrafficPolicy with compression"),
    "limit_rate": (
        "the bandwidth of a response is not limited",
        "write the annotation limit-rate",
    ),
    "more_clear_headers": ("the header stays", "write one name without * for each directive"),
    "more_set_headers": ("the header is missing", "write one header without variables or options"),
    "proxy_hide_header": ("the header stays", "write more_clear_headers"),
    "proxy_pass_header": ("no effect", ""),
    "sub_filter": ("bodies stay as they are", ""),
    "sub_filter_once": ("bodies stay as they are", ""),
}
#: Headers to backends that ingress-nginx or edgefast writes; a second one would be a header of its own.
_WRITTEN = frozenset(
    {"authorization", "connection", "host", "proxy", "upgrade", "x-code", "x-forwarded-for"}
    | {"x-forwarded-host", "x-forwarded-port", "x-forwarded-prefix", "x-forwarded-proto"}
    | {"x-forwarded-scheme", "x-original-forwarded-for", "x-original-forwarded-host"}
    | {"x-original-uri", "x-real-ip", "x-request-id", "x-scheme", "via"}
)
#: Headers of answers whose order of edits nginx leaves open.
_CONTESTED = frozenset({"location", "set-cookie", "strict-transport-security", "server", "date"})

Pairs = tuple[tuple[str, str], ...]


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A directive that is not served."""

    line: int
    directive: str  # "" where it has no name that can be shown
    effect: str
    fix: str = ""
    closes: bool = True


class SnippetAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A `return`: an answer without a backend."""

    code: int
    url: str = ""  # its Location
    template: str = ""  # its Location, with variables


class ConditionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An `if` with a `return`."""

    condition: Condition
    answer: SnippetAnswer


class Snippet(msgspec.Struct, frozen=True, kw_only=True):
    """What a snippet asks for."""

    sets: Pairs = ()  # headers of answers
    adds: Pairs = ()
    successes: Pairs = ()  # added to answers of success and redirection alone
    removes: tuple[str, ...] = ()
    requests: Pairs = ()  # headers to backends
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    branches: tuple[ConditionAnswer, ...] = ()  # answers of `if`, in order
    answer: SnippetAnswer | None = None  # to all other requests
    refused: tuple[Refused, ...] = ()

    @property
    def closes(self) -> bool:
        """Tell whether a line closes the location."""
        return any(one.closes for one in self.refused)

    @property
    def edits_answers(self) -> bool:
        """Tell whether answers have other headers."""
        return bool(self.sets or self.adds or self.removes or self.successes)


class _Directive(msgspec.Struct, frozen=True, kw_only=True):
    line: int
    words: tuple[str, ...]
    block: bool = False  # it ends with {
    body: tuple[_Directive, ...] = ()  # of a block

    @property
    def name(self) -> str:
        return self.words[0] if self.words else ""


def read_server_snippet(text: str) -> tuple[Refused, ...]:
    """Return the directives that close a host: all that have an effect."""
    return tuple(
        _refuse(one, "all locations of its hosts answer 503")
        for one in _parse(text)
        if one is None or one.block or one.name not in _HARMLESS
    )


def read_snippet(text: str) -> Snippet:
    """Read a configuration-snippet."""
    return _Reader().read(text)


class _Reader:
    def __init__(self) -> None:
        self._edits: dict[str, tuple[str, str]] = {}  # name -> action, value
        self._requests: dict[str, str] = {}
        self._rules: list[tuple[_Directive, str]] = []
        self._refused: list[Refused] = []
        self._branches: list[ConditionAnswer] = []
        self._answer: SnippetAnswer | None = None

    def read(self, text: str) -> Snippet:
        for one in _parse(text):
            if one is not None and one.block and one.name == "if" and self._add_branch(one):
                continue
            if one is None or one.block:
                self._refused.append(_refuse(one))
            elif one.name not in _HARMLESS:
                self._take(one)
        allow, deny = self._lists()
        for kind in ("set", "add", "success", "remove"):
            if sum(action == kind for action, _ in self._edits.values()) > _EDITS:
                self._refused.append(_refuse(None))
        if len(self._requests) > _EDITS:
            self._refused.append(_refuse(None))
        return Snippet(
            sets=tuple(
                (name, value) for name, (kind, value) in self._edits.items() if kind == "set"
            ),
            adds=tuple(
                (name, value) for name, (kind, value) in self._edits.items() if kind == "add"
            ),
            successes=tuple(
                (name, value) for name, (kind, value) in self._edits.items() if kind == "success"
            ),
            removes=tuple(name for name, (kind, _) in self._edits.items() if kind == "remove"),
            requests=tuple(self._requests.items()),
            allow=allow,
            deny=deny,
            branches=tuple(self._branches),
            answer=self._answer,
            refused=tuple(self._refused),
        )

    def _take(self, one: _Directive) -> None:
        served = {
            "add_header": self._add_header,
            "allow": self._add_rule,
            "deny": self._add_rule,
            "more_clear_headers": self._clear_header,
            "more_set_headers": self._set_header,
            "proxy_set_header": self._set_request_header,
            "return": self._return,
        }.get(one.name)
        if served is not None and served(one):
            return
        effect, fix = _LEFT_OUT.get(one.name, ("", ""))
        if effect:
            name = _shown(one)
            self._refused.append(
                Refused(line=one.line, directive=name, effect=effect, fix=fix, closes=False)
            )
        else:
            self._refused.append(_refuse(one))

    # --- headers of answers ---

    def _add_header(self, one: _Directive) -> bool:
        """Without always nginx adds it to some statuses alone."""
        if len(one.words) == 3:
            return self._edit(one.words[1], "success", one.words[2])
        if len(one.words) != 4 or one.words[3] != "always":
            return False
        return self._edit(one.words[1], "add", one.words[2])

    def _set_header(self, one: _Directive) -> bool:
        if len(one.words) != 2:
            return False
        name, colon, value = one.words[1].partition(":")
        if colon and not value.strip():
            return self._edit(name, "remove", "")  # headers-more clears a header without a value
        return bool(colon) and self._edit(name, "set", value.strip())

    def _clear_header(self, one: _Directive) -> bool:
        return len(one.words) == 2 and self._edit(one.words[1], "remove", "")

    def _edit(self, name: str, action: str, value: str) -> bool:
        name = name.strip().lower()
        if not _is_static(value or "x") or check_header_name(name) or name in _CONTESTED:
            return False
        if "*" in name:  # headers-more takes it for any text
            return False
        before = self._edits.get(name)
        if before is not None and {"add", "success"} & {before[0], action}:
            return False  # their order is that of the modules, not of the lines
        self._edits[name] = (action, value)
        return True

    # --- headers to backends ---

    def _set_request_header(self, one: _Directive) -> bool:
        if len(one.words) != 3:
            return False
        name, value = one.words[1].lower(), one.words[2]
        if not _is_static(value) or check_header_name(name):
            return False
        if name in _WRITTEN or name in self._requests or name.startswith("x-edge-"):
            return False
        self._requests[name] = value
        return True

    # --- access ---

    def _add_rule(self, one: _Directive) -> bool:
        if len(one.words) != 2:
            return False
        found = "all" if one.words[1] == "all" else read_range(one.words[1])
        if found is None:
            return False
        self._rules.append((one, found))
        return True

    def _lists(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return rules as a list of allowed or of denied ranges; the first rule that matches decides in nginx."""
        allow = [found for one, found in self._rules if one.name == "allow" and found != "all"]
        deny = [found for one, found in self._rules if one.name == "deny" and found != "all"]
        ends = [one.name for one, found in self._rules if found == "all"]
        last = self._rules[-1] if self._rules else None
        if last is None:
            return (), ()
        if ends == ["deny"] and len(self._rules) == 1:
            return (), _EVERY
        if ends == ["deny"] and last[1] == "all" and allow and not deny:
            return tuple(sorted(set(allow))), ()
        if deny and not allow and ends in ([], ["allow"]) and (not ends or last[1] == "all"):
            return (), tuple(sorted(set(deny)))
        self._refused.append(_refuse(last[0]))
        return (), ()

    # --- answers ---

    def _return(self, one: _Directive) -> bool:
        found = None if self._answer is not None else _read_answer(one)
        self._answer = found or self._answer
        return found is not None

    def _add_branch(self, one: _Directive) -> bool:
        """Read an `if` with nothing but a `return`."""
        if self._answer is not None or len(one.body) != 1 or one.body[0].name != "return":
            return False
        answer, condition = _read_answer(one.body[0]), read_condition(one.words[1:])
        if answer is None or condition is None or len(self._branches) >= _BRANCHES:
            return False
        made = ConditionAnswer(condition=condition, answer=answer)
        rest = [
            len(each.condition.matches)
            for each in (*self._branches, made)
            if each.condition.negative
        ]
        if math.prod(rest) > _BRANCHES:
            return False
        self._branches.append(made)
        return True


def _read_answer(one: _Directive) -> SnippetAnswer | None:
    """Read a `return`; None: not served."""
    if one.block or len(one.words) not in (2, 3) or not _CODE.fullmatch(one.words[1]):
        return None
    code = int(one.words[1])
    if len(one.words) == 2:
        served = code == 204 or (400 <= code <= 599 and code != 444)
        return SnippetAnswer(code=code) if served else None
    url = one.words[2]
    if code not in _REDIRECTS:
        return None
    if has_variables(url):
        template, wrong = translate_location(url)
        return None if wrong else SnippetAnswer(code=code, template=template)
    return SnippetAnswer(code=code, url=url) if _URL.fullmatch(url) else None


def _is_static(value: str) -> bool:
    return "$" not in value and _VALUE.fullmatch(value) is not None


def _shown(one: _Directive) -> str:
    return one.name if _WORD.fullmatch(one.name) else ""


def _refuse(one: _Directive | None, effect: str = "its locations answer 503") -> Refused:
    if one is None:
        return Refused(line=1, directive="", effect=effect)
    return Refused(line=one.line, directive=_shown(one), effect=effect)


def _parse(text: str) -> Iterator[_Directive | None]:
    """Give the directives of a text, each with its first line; None: it has a form that nginx refuses, or too many."""
    if len(text) > _LONGEST:
        yield None
        return
    words: list[str] = []
    line = start = 1
    at = count = depth = 0
    block: _Directive | None = None  # with this depth 1
    body: list[_Directive] = []
    while at < len(text):
        char = text[at]
        if char == "\n":
            line += 1
        if char.isspace():
            at += 1
            continue
        if char == "#":
            while at < len(text) and text[at] != "\n":
                at += 1
            continue
        if char in ";{}":
            at += 1
            if char == "}":
                depth -= 1
                if words or depth < 0:
                    yield None
                    return
                if depth == 0 and block is not None:
                    yield msgspec.structs.replace(block, body=tuple(body))
                continue
            if not words:
                yield None
                return
            count += 1
            depth += char == "{"
            if count > _DIRECTIVES:
                yield None
                return
            made = _Directive(line=start, words=tuple(words), block=char == "{")
            words = []
            if depth == 0:
                yield made
            elif made.block and depth == 1:
                block, body = made, []
            else:
                body.append(made)
            continue
        if not words:
            start = line
        word, at, line = _read_word(text, at, line)
        if word is None:
            yield None
            return
        words.append(word)
    if words or depth:
        yield None


def _read_word(text: str, at: int, line: int) -> tuple[str | None, int, int]:
    """Read one word, quoted or not; nginx keeps some escapes, and the others are refused."""
    quote = text[at] if text[at] in "\"'" else ""
    begin = at = at + len(quote)
    while at < len(text):
        char = text[at]
        if char == "\\":
            if text[at + 1 : at + 2] not in _KEPT_ESCAPES:
                return None, at, line
            at += 2
            continue
        if quote and char == quote:
            after = text[at + 1 : at + 2]
            if after and not after.isspace() and after not in ";{)":
                return None, at, line
            return text[begin:at], at + 1, line
        if not quote and (char.isspace() or char in ";{}"):
            # ${name} is a variable
            if char == "{" and text[begin:at].endswith("$"):
                return None, at, line
            return text[begin:at], at, line
        if char == "\n":
            line += 1
        at += 1
    return None, at, line
