"""The reference page of the chart: every value, every permission with its reason.

In: the models and `rbac.py`.
Out: Markdown, docs/reference/chart.md.
Must never: describe a function that the chart does not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from controller.manifests.defaults import default_values
from controller.manifests.rbac import GROUPS
from controller.manifests.values import ChartValues
from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.api.model.shape import Shape, shape_of

_HEAD = """\
<!-- Made from controller/manifests by `python -m controller.manifests.generate --write`; do not edit. -->

# Values and permissions of the chart

How to install it: [edgefast in a Kubernetes cluster](../guides/kubernetes.md). The same values go to `helm install` and to `edgefast install`.

## Values

| value | default | meaning |
|---|---|---|
"""

_ROLES = """
## Permissions

Permissions of the controller's ServiceAccount, by deployment mode; `edgefast install --dry-run` shows the roles for a set of
values. The last group belongs to the Job that creates the first certificates.
"""


def render_page() -> str:
    """Return the page."""
    rows = _rows(shape_of(ChartValues), default_values(), "")
    return _HEAD + "".join(rows) + _ROLES + "".join(_groups())


def _rows(shape: Shape, defaults: Any, path: str) -> Iterator[str]:
    for field in shape.fields:
        here = f"{path}{field.name}"
        value = defaults.get(field.name)
        if field.shape.struct is EdgeGateway:
            text = f"{field.description} See [the reference](edgegateway.md)."
            yield f"| `{here}` | `{json.dumps(value)}` | {text} |\n"
        elif field.shape.kind == "struct":
            yield from _rows(field.shape, value, f"{here}.")
        else:
            shown = "" if value is None else f"`{json.dumps(value)}`"
            yield f"| `{here}` | {shown} | {field.description} |\n"


def _groups() -> Iterator[str]:
    for group in GROUPS:
        yield f"\n### {group.where[0].upper()}{group.where[1:]}\n\n"
        yield "| API group | resources | verbs | why |\n|---|---|---|---|\n"
        for one in group.grants:
            groups = ", ".join(name or "core" for name in one.groups)
            resources = ", ".join(one.resources)
            names = (*one.names, *(f"edge-gateway{suffix}" for suffix in one.own_names))
            if names:
                resources += f" (only {', '.join(names)})"
            yield f"| {groups} | {resources} | {', '.join(one.verbs)} | {one.why} |\n"
