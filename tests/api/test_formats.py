"""Durations (GEP-2257), sizes, and plain YAML scalars."""

from __future__ import annotations

import math

import pytest

from edgefast.api.decode.scalar import resolve_plain, resolve_tagged
from edgefast.api.model.units import parse_duration, parse_size

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0s", 0),
        ("500ms", 500),
        ("10s", 10_000),
        ("1h2m3s", 3_723_000),
        ("1h2m3s4ms", 3_723_004),
        ("99999h", 359_996_400_000),
        ("1s1s", 2_000),
        ("3ms1h", 3_600_003),
    ],
)
def test_duration(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "s",
        "1.5s",
        "-1s",
        "+1s",
        "1 s",
        "100000s",
        "1h1m1s1ms1h",
        "1d",
        "1s\n",
        "1S",
        "١s",
    ],
)
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("value", "size"),
    [(32768, 32768), ("32768", 32768), ("32KiB", 32768), ("32Ki", 32768), ("1M", 10**6)]
    + [("10Mi", 10 * 2**20), ("1k", 1000), ("1KB", 1000), ("2GiB", 2**31), ("7B", 7)],
)
def test_size(value: int | str, size: int) -> None:
    assert parse_size(value) == size


@pytest.mark.parametrize("value", ["", "Ki", "1.5Ki", "-1", "1KiBB", "1 Ki", "1Ki\n", "1Pi"])
def test_no_size(value: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(value)


def test_size_out_of_range() -> None:
    for wrong in (-1, 2**63, "999999999999999Ti"):
        with pytest.raises(ValueError, match="out of range"):
            parse_size(wrong)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("Null", None),
        ("yes", True),
        ("OFF", False),
        ("True", True),
        ("y", "y"),
        ("tRUE", "tRUE"),
        ("0", 0),
        ("-12", -12),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 15),
        ("0b11", 3),
        ("09", 9.0),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        (".", "."),
        ("-", "-"),
        ("1:30", "1:30"),
        ("1.2.3", "1.2.3"),
        ("2026-01-01", "2026-01-01"),
        ("0x_", "0x_"),
        ("1" * 65, "1" * 65),
        ("nobody", "nobody"),
    ],
)
def test_plain_scalar(text: str, value: object) -> None:
    got = resolve_plain(text)
    assert got == value
    assert type(got) is type(value)


def test_not_a_number() -> None:
    got = resolve_plain(".nan")
    assert isinstance(got, float)
    assert math.isnan(got)


def test_tagged_scalar() -> None:
    assert resolve_tagged("1", "tag:yaml.org,2002:str") == "1"
    assert resolve_tagged("1", "!") == "1"
    assert resolve_tagged("1", "tag:yaml.org,2002:float") == 1.0
    assert resolve_tagged("no", "tag:yaml.org,2002:bool") is False
    for text, tag in (("x", "int"), ("1", "bool"), ("x", "float"), ("x", "timestamp")):
        with pytest.raises(ValueError, match="not supported"):
            resolve_tagged(text, f"tag:yaml.org,2002:{tag}")
