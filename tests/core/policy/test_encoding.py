"""What a client takes (RFC 9110 12.5.3), against a reader of its own."""

from __future__ import annotations

import random
import re

import pytest

from edgefast.core.policy.encoding import choose_encoding

pytestmark = pytest.mark.pure

ALL = ("gzip", "br", "zstd")


@pytest.mark.parametrize(
    ("accepted", "offered", "found"),
    [
        ("", ALL, ""),
        ("gzip", ALL, "gzip"),
        ("GZIP", ALL, "gzip"),
        ("x-gzip", ALL, "gzip"),
        ("gzip, br, zstd", ("br", "gzip"), "br"),
        ("gzip;q=0.5, br;q=0.8", ALL, "br"),
        ("gzip; q=0.5 ,\tbr ; q=0.501", ALL, "br"),
        ("gzip;q=0", ALL, ""),
        ("*", ("zstd",), "zstd"),
        ("*;q=0", ALL, ""),
        ("*, gzip;q=0", ALL, "br"),
        ("identity", ALL, ""),
        ("identity;q=0", ALL, ""),
        ("identity, gzip", ALL, "gzip"),
        ("identity, gzip;q=0.9", ALL, ""),
        ("identity;q=0.5, gzip;q=0.9", ALL, "gzip"),
        ("gzip;q=2", ALL, ""),
        ("gzip;q=1.001", ALL, ""),
        ("gzip;q=0.1234", ALL, ""),
        ("gzip;q=", ALL, ""),
        ("gzip;Q=1.000", ALL, "gzip"),
        ("gzip;level=9", ALL, "gzip"),
        ("gzip;q=0, gzip", ALL, ""),
        ("deflate, compress", ALL, ""),
        ("gzipped", ALL, ""),
        (",,gzip,,", ALL, "gzip"),
        ("g\u00e4ip", ALL, ""),
        ("gzip", (), ""),
    ],
)
def test_choices(accepted: str, offered: tuple[str, ...], found: str) -> None:
    assert choose_encoding(accepted, offered) == found


def naive(accepted: str, offered: tuple[str, ...]) -> str:
    """The same by one expression."""
    told: dict[str, float] = {}
    for part in accepted.split(","):
        found = re.fullmatch(
            r"[ \t]*([^;, \t]+)[ \t]*(?:;[ \t]*[qQ][ \t]*=[ \t]*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?[ \t]*",
            part,
        )
        if found:
            name = found[1].lower()
            told.setdefault("gzip" if name == "x-gzip" else name, float(found[2] or 1))
    ranked = [(told.get(name, told.get("*", 0.0)), -at, name) for at, name in enumerate(offered)]
    best = max((one for one in ranked if one[0] > 0), default=(0.0, 0, ""))
    return best[2] if "identity" not in told or best[0] >= told["identity"] else ""


def test_random_lists() -> None:
    pick = random.Random(7).choice
    names = ("gzip", "br", "zstd", "identity", "*", "x-gzip", "GZIP", "deflate", "")
    weights = ("", ";q=0", ";q=1", ";q=0.5", "; q=0.25", ";q=0.001", ";q=1.0", ";q=9", ";q=x")
    for _ in range(5000):
        text = pick((",", ", ")).join(pick(names) + pick(weights) for _ in range(pick(range(5))))
        offered = pick((ALL, ("br",), ("zstd", "gzip"), ()))
        assert choose_encoding(text, offered) == naive(text, offered), text
