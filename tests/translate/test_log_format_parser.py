"""Templates of access log lines: what is read, what is refused and how, and that no text at all gets anything else through."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast import ir
from edgefast.api.edge.edgeproxy import ProxyAccessLog
from edgefast.translate.edgeproxy.log_format_parser import MAX_LIMIT, OPERATORS, parse_template

pytestmark = pytest.mark.pure


def piece(operator: str = "", text: str = "", other: str = "", limit: int = 0) -> ir.LogPiece:
    return ir.LogPiece(operator=operator, text=text, other=other, limit=limit)


SOUND = {
    "": (),
    "\n": (),
    "plain\r\n": (piece(text="plain"),),
    "100%%": (piece(text="100%"),),
    "%%%PROTOCOL%%%": (piece(text="%"), piece("PROTOCOL"), piece(text="%")),
    "%%PROTOCOL%%": (piece(text="%PROTOCOL%"),),
    "%REQ(X-A?:Path):7%": (piece("REQ", "x-a", ":path", 7),),
    "%RESP(:STATUS)%": (piece("RESP", ":status"),),
    f"%REQ(a):{MAX_LIMIT}%": (piece("REQ", "a", limit=MAX_LIMIT),),
    "%START_TIME%": (piece("START_TIME"),),
    "%START_TIME()%": (piece("START_TIME"),),
    "%START_TIME(%s.%3f)%.": (piece("START_TIME", "%s.%3f"), piece(text=".")),
    "%EMIT_TIME(100%%)%": (piece("EMIT_TIME", "100%%"),),
    "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%": (
        piece("RESP", "x-envoy-upstream-service-time", "x-edge-upstream-service-time"),
    ),
    "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME?X-B)%": (
        piece("RESP", "x-envoy-upstream-service-time", "x-b"),
    ),
}


@pytest.mark.parametrize("text", SOUND)
def test_what_is_read(text: str) -> None:
    assert parse_template(text) == (SOUND[text], ())


WRONG = {
    "%": "Invalid",
    "%RESPONSE_CODE": "Invalid",
    "%{path}": "Invalid",
    "% %": "Invalid",
    "%REQ(a)(b)%": "Invalid",
    "%REQ(a%": "Invalid",
    "%REQ%": "Invalid",
    "%REQ(a b)%": "Invalid",
    "%REQ(a?)%": "Invalid",
    "%REQ(?a)%": "Invalid",
    "%REQ(a):%": "Invalid",
    "%REQ(a):0%": "Invalid",
    f"%REQ(a):{MAX_LIMIT + 1}%": "Invalid",
    "%REQ(a):99999999999999999999%": "Invalid",
    "%REQ(:STATUS)%": "NotSupported",
    "%RESP(:METHOD)%": "NotSupported",
    "%PROTOCOL()%": "Invalid",
    "%PROTOCOL:1%": "Invalid",
    "%START_TIME(%)%": "NotSupported",
    "%START_TIME(%0f)%": "NotSupported",
    "%START_TIME(%EY)%": "NotSupported",
    "%START_TIME(%n)%": "NotSupported",
    "%PROTOCOLS%": "NotSupported",
    "%DYNAMIC_METADATA(a:b)%": "NotSupported",
    "a\tb": "Invalid",
    "a\nb\n": "Invalid",
    "%START_TIME(\n)%": "Invalid",
    "\x7f": "Invalid",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_refused(text: str) -> None:
    _, mistakes = parse_template(text)
    assert [one.reason for one in mistakes] == [WRONG[text]], mistakes


def test_a_slip_is_told_with_what_was_meant() -> None:
    for wrong, meant in (
        ("%RESPONSE_COD%", "RESPONSE_CODE"),
        ("%start_time%", "START_TIME"),
        ("%UPSTREAMHOST%", "UPSTREAM_HOST"),
        ("%REQ(:AUTORITY)%", ":AUTHORITY"),
    ):
        ((mistake,), _) = (parse_template(wrong)[1], None)
        assert mistake.hint == f"did you mean {meant}?"


def _write(pieces: tuple[ir.LogPiece, ...]) -> str:
    """The template of pieces."""
    text = ""
    for one in pieces:
        if not one.operator:
            text += one.text.replace("%", "%%")
        elif OPERATORS[one.operator] in ("request", "response"):
            other = f"?{one.other}" if one.other else ""
            limit = f":{one.limit}" if one.limit else ""
            text += f"%{one.operator}({one.text}{other}){limit}%"
        elif OPERATORS[one.operator] == "time":
            text += f"%{one.operator}({one.text})%"
        else:
            text += f"%{one.operator}%"
    return text


_TOKENS = st.sampled_from(
    ["%", "%%", "(", ")", ":", "?", "REQ", "RESP", "START_TIME", "f", "3", "\n", '"', "-"]
    + [f"%{name}%" for name in OPERATORS]
    + ["%REQ(x-a)%", "%RESP(:STATUS?b):9%", "%START_TIME(%Y %9f)%"]
)
_TEMPLATES = st.one_of(st.text(max_size=60), st.lists(_TOKENS, max_size=12).map("".join))


@given(_TEMPLATES)
def test_any_text_is_read_or_refused(text: str) -> None:
    pieces, mistakes = parse_template(text)
    if mistakes:
        assert all(one.reason in ("Invalid", "NotSupported") and one.message for one in mistakes)
        return
    for one in pieces:
        assert one.operator in OPERATORS or (not one.operator and one.text)
        assert not any(letter < " " or letter == "\x7f" for letter in one.text + one.other)
        assert 0 <= one.limit <= MAX_LIMIT
    assert parse_template(_write(pieces)) == (pieces, ())


def test_all_that_the_schema_lets_in_is_bounded() -> None:
    longest = ProxyAccessLog(template="%REQ(a):4096%" * 315)
    assert longest.template is not None
    assert len(parse_template(longest.template)[0]) == 315


def test_the_manual_has_every_operator_and_no_other() -> None:
    text = (Path(__file__).parents[2] / "docs/guides/access-log.md").read_text()
    table = text[text.index("## Operators") : text.index("## Flags")]
    assert set(re.findall(r"%([A-Z_]{2,})(?:\([A-Z?]+\))?(?::Z)?%", table)) == set(OPERATORS)
