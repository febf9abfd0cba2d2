"""Generator: writes all files that are derived from the models.

In: `python -m controller.manifests.generate --write` (without the flag: exit status 1 when a file
differs).
Out: CRDs, values.yaml, values.schema.json, Chart.yaml, the rules of roles, the monitoring objects,
the reference page. A test compares generated and committed files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from controller.manifests.crds import render_crds
from controller.manifests.defaults import render_values
from controller.manifests.naming import CHART
from controller.manifests.objects import VERSION
from controller.manifests.page import render_page
from controller.manifests.rbac import GROUPS, Grant
from controller.manifests.values_schema import render_schema
from edgefast.monitoring.dashboards import render_boards
from edgefast.monitoring.rules_file import render_rules

FOLDER = Path(__file__).parent / "chart"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "chart.md"
_MADE = "# Made by `python -m controller.manifests.generate --write`; do not edit.\n"


def generated() -> dict[Path, str]:
    """Return every generated file with its text."""
    files = {
        FOLDER / "Chart.yaml": _MADE + _yaml(_chart()),
        FOLDER / "values.yaml": render_values(),
        FOLDER / "values.schema.json": json.dumps(render_schema(), indent=1) + "\n",
        FOLDER / "templates" / "_rules.tpl": "".join(_rules()),
        FOLDER / "monitoring" / "rules.yaml": render_rules(),
        PAGE: render_page(),
    }
    for name, text in render_boards().items():
        files[FOLDER / "monitoring" / f"{name}.json"] = text
    for crd in render_crds():
        files[FOLDER / "crds" / f"{crd['metadata']['name']}.yaml"] = _MADE + _yaml(crd)
    return files


def _chart() -> dict[str, Any]:
    return {
        "apiVersion": "v2",
        "name": CHART,
        "description": "edgefast: a Gateway API controller and its proxies",
        "type": "application",
        "version": VERSION,
        "appVersion": VERSION,
        "kubeVersion": ">=1.31.0-0",
        "keywords": ["gateway-api", "ingress", "proxy"],
    }


def _rules() -> Iterator[str]:
    yield "{{/* Made from controller/manifests/rbac.py by `python -m controller.manifests.generate --write`; do not edit. */}}\n"
    for group in GROUPS:
        yield f'\n{{{{- define "edge.rules.{group.name}" -}}}}\n'
        yield "\n".join(_rule(grant) for grant in group.grants)
        yield "\n{{- end -}}\n"


def _rule(grant: Grant) -> str:
    rule = grant.rule('{{ include "edge.base" . }}')
    lines = [f"{key}: {json.dumps(value)}" for key, value in rule.items()]
    text = "\n  ".join(lines).replace('\\"', '"')
    return f"# {grant.why}\n- {text}"


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)


def main(arguments: list[str]) -> int:
    """Write the files, or say which differ."""
    stale = [
        path for path, text in generated().items() if not path.exists() or path.read_text() != text
    ]
    for path in stale:
        if arguments == ["--write"]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(generated()[path])
        else:
            sys.stderr.write(f"{path} is stale: python -m controller.manifests.generate --write\n")
    return 1 if stale and arguments != ["--write"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
