"""Generated files are what the models make today, and the chart's values are those of the models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import re2
import yaml

from controller.manifests.crds import LOOKS, render_crds
from controller.manifests.defaults import default_values
from controller.manifests.generate import FOLDER, generated, main
from controller.manifests.values import ChartValues
from edgefast import __version__
from edgefast.api.model.shape import Shape, shape_of
from edgefast.api.schema.schema import OWN_KINDS, json_schema

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_committed_is_generated(path: Path) -> None:
    assert path.read_text() == generated()[path], "python -m controller.manifests.generate --write"


def test_nothing_is_left_over() -> None:
    assert {path.name for path in (FOLDER / "crds").iterdir()} == {
        path.name for path in generated() if path.parent.name == "crds"
    }


def test_a_stale_file_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert not capsys.readouterr().err


def test_every_kind_of_ours_has_a_crd_with_its_schema() -> None:
    crds = {one["spec"]["names"]["kind"]: one["spec"] for one in render_crds()}
    assert set(crds) == set(LOOKS) == set(OWN_KINDS) - {"EdgeGateway"}
    for kind, spec in crds.items():
        (version,) = spec["versions"]
        schema = version["schema"]["openAPIV3Schema"]
        status = schema["properties"].pop("status", None)
        assert schema == json_schema(kind)
        assert (version.get("subresources") == {"status": {}}) == (status is not None)
        assert (status is not None) == kind.endswith("Policy")
        assert spec["names"]["categories"] == ["edge"]


def test_an_api_server_compiles_every_pattern() -> None:
    """Go's regular expressions repeat at most 1,000 times, as RE2 does; one pattern above that and the CRD is refused."""

    def patterns(node: Any) -> Iterator[str]:
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if key == "pattern" and isinstance(value, str):
                yield value
            elif isinstance(value, dict | list):
                yield from patterns(value)

    found = [pattern for crd in render_crds() for pattern in patterns(crd)]
    assert len(found) > 100
    for pattern in found:
        re2.compile(pattern)


def test_values_yaml_says_the_defaults() -> None:
    text = (FOLDER / "values.yaml").read_text()
    assert yaml.safe_load(text) == default_values()
    names = set(_names(shape_of(ChartValues)))
    assert names <= set(re.findall(r"^\s*(?:# )?(\w+):", text, re.M))


def _names(shape: Shape) -> list[str]:
    found = []
    for field in shape.fields:
        found.append(field.name)
        if field.shape.kind == "struct" and field.name != "edgeGateway":
            found += _names(field.shape)
    return found


def test_the_schema_is_closed() -> None:
    schema = json.loads((FOLDER / "values.schema.json").read_text())

    def visit(node: object, path: str) -> int:
        count = 0
        if isinstance(node, dict):
            if "properties" in node:
                assert node["additionalProperties"] is False, path
                count += 1
            count += sum(visit(value, f"{path}/{key}") for key, value in node.items())
        return count

    assert visit(schema, "") > 20
    config = schema["properties"]["config"]["properties"]["edgeGateway"]
    assert set(config["properties"]) == set(json_schema("EdgeGateway")["properties"])


def test_one_version_everywhere() -> None:
    chart = yaml.safe_load((FOLDER / "Chart.yaml").read_text())
    assert chart["name"] == "gateway-chart"
    assert chart["version"] == chart["appVersion"] == __version__
