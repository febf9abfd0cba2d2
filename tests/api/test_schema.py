"""Schemas and reference docs: made from the models, structural, up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgefast.api.schema.refdoc import main, render_pages
from edgefast.api.schema.schema import OWN_KINDS, json_schema

pytestmark = pytest.mark.pure

DOCS = Path(__file__).parents[2] / "docs" / "reference"


def _nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _nodes(inner, f"{path}.{name}")
    if "items" in schema:
        yield from _nodes(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from _nodes(schema["additionalProperties"], f"{path}{{}}")


@pytest.mark.parametrize("kind", OWN_KINDS)
def test_schema_is_structural(kind: str) -> None:
    for path, node in _nodes(json_schema(kind)):
        free = node.get("x-kubernetes-preserve-unknown-fields")
        either = node.get("x-kubernetes-int-or-string")
        assert ("type" in node) or free or either, path
        # An empty one is dropped when it is stored: the next apply would be a conflict.
        assert node.get("properties") != {}, path
        assert set(node.get("required", ())) <= set(node.get("properties", ())), path
        keys = node.get("x-kubernetes-list-map-keys", ())
        assert set(keys) <= set(node.get("items", {}).get("required", ())), path
        assert r"\Z" not in node.get("pattern", ""), path
        if node.get("x-kubernetes-list-type") == "set":
            assert node["items"]["type"] in ("string", "integer"), path
        for rule in node.get("x-kubernetes-validations", ()):
            assert node["type"] == "object", path
            assert set(rule) == {"rule", "message"}, path


@pytest.mark.parametrize("kind", OWN_KINDS)
def test_every_field_is_described(kind: str) -> None:
    for path, node in _nodes(json_schema(kind)):
        for name, inner in node.get("properties", {}).items():
            of_reference = path.rstrip("[]").endswith(
                ("Ref", "Refs", ".basicAuth.users", ".oidc.clientSecret")
            )
            if f"{path}.{name}" != ".metadata" and not of_reference:
                assert inner.get("description"), f"{path}.{name}"


def test_edgeproxy_has_no_structural_defaults() -> None:
    nodes = dict(_nodes(json_schema("EdgeProxy")))
    assert not [path for path, node in nodes.items() if "default" in node]
    assert nodes[".spec.http.requestHead"]["description"].endswith("Default: 32KiB.")
    assert nodes[".spec.http.requestHead"]["x-kubernetes-int-or-string"] is True


def test_ratelimitfilter_schema() -> None:
    nodes = dict(_nodes(json_schema("RateLimitFilter")))
    header = nodes[".spec.global.rules[].clientSelectors[].headers[]"]
    assert header["required"] == ["name"]
    assert header["properties"]["type"]["default"] == "Exact"
    assert header["properties"]["type"]["enum"] == ["Distinct", "Exact", "RegularExpression"]
    assert header["x-kubernetes-validations"][0]["rule"].startswith("self.type == 'Distinct'")
    assert nodes[".spec.global.rules"]["maxItems"] == 16
    assert nodes[".spec.global.rules[].limit.requests"]["format"] == "int64"
    assert nodes[""]["required"] == ["spec"]


def test_no_schema_for_kinds_of_others() -> None:
    with pytest.raises(KeyError):
        json_schema("HTTPRoute")


def test_reference_docs_are_up_to_date() -> None:
    pages = render_pages()
    made = {path.name for path in DOCS.iterdir() if "schema.refdoc" in path.read_text()}
    assert made == set(pages)
    for name, text in pages.items():
        assert (DOCS / name).read_text() == text, (
            f"{name} is stale: python -m edgefast.api.schema.refdoc --write docs/reference"
        )


def test_reference_docs_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--write", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == set(render_pages())
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err


def test_no_row_of_a_table_is_without_meaning() -> None:
    for name, text in render_pages().items():
        for line in text.splitlines():
            if line.startswith("| `"):
                assert line.split(" | ")[-1].strip("| "), f"{name}: {line}"
