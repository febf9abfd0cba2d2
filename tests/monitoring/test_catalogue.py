"""The catalogue: names by the conventions, one page, and files that are made from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast.monitoring.controller_metrics import CONTROLLER, CONTROLLER_PREFIX
from edgefast.monitoring.family import PREFIX, Family, by_name
from edgefast.monitoring.generate import DOCS, generated, main
from edgefast.monitoring.proxy_metrics import PROXY

pytestmark = pytest.mark.pure

ALL = [*PROXY.values(), *CONTROLLER.values()]


@pytest.mark.parametrize("family", ALL, ids=lambda one: one.name)
def test_names_keep_the_conventions(family: Family) -> None:
    assert family.name.startswith(PREFIX)
    assert (family.kind == "counter") == family.name.endswith("_total")
    stem = family.name.removesuffix("_total")
    assert (family.unit == "seconds") == (
        stem.endswith("_seconds") and not stem.endswith("_timestamp_seconds")
    )
    assert (family.unit == "timestamp") == stem.endswith("_timestamp_seconds")
    assert (family.unit == "bytes") == stem.endswith("_bytes")
    assert not {"milli", "micro", "kilo", "ms", "us", "kb"} & set(stem.split("_"))
    assert family.help[0].isupper() or family.help[0].isdigit()
    assert family.help.endswith(".") or ";" in family.help
    assert "\n" not in family.help


def test_a_name_stands_once() -> None:
    assert len({one.name for one in ALL}) == len(ALL)
    assert all(
        name.startswith(CONTROLLER_PREFIX) for name in (one.name for one in ALL[len(PROXY) :])
    )
    with pytest.raises(ValueError, match="is defined twice"):
        by_name([ALL[0], ALL[0]])


def test_files_are_made_from_the_catalogue() -> None:
    stale = [str(path) for path, text in generated().items() if path.read_text() != text]
    assert not stale, "python -m edgefast.monitoring.generate --write"
    assert main([]) == 0


def test_nothing_else_is_in_the_folder() -> None:
    folder = DOCS / "monitoring"
    assert set(folder.iterdir()) == {path for path in generated() if path.parent == folder}


def test_the_page_has_every_family() -> None:
    page = (Path(DOCS) / "reference" / "metrics.md").read_text()
    assert not [one.name for one in ALL if f"| `{one.name}` | {one.kind} |" not in page]
