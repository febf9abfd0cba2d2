"""Refdoc: the reference docs of edgefast's kinds, as Markdown made from the same models as the schemas.

In: the models. Out: pages by file name: one per kind, and an index of every kind that is read.
`python -m edgefast.api.schema.refdoc --write FOLDER` writes them. It is a tool for developers and
the one place in this package that writes a file.
Must never: document what the decoder does not do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from edgefast.api.config.edgegateway import CONFIG_API_VERSION
from edgefast.api.kinds import EDGE_GROUP, KINDS
from edgefast.api.model.shape import Shape, shape_of
from edgefast.api.model.unsupported_fields import UNSERVED
from edgefast.api.schema.schema import OWN_KINDS, json_schema, plain_default

_MADE = (
    "<!-- Made from the models by `python -m edgefast.api.schema.refdoc --write docs/reference`; "
    "do not edit. -->\n"
)

_INTRO = {
    "EdgeProxy": """\
Settings of a proxy fleet and its proxies. A GatewayClass refers to one in `spec.parametersRef`, a
Gateway can refer to another in `spec.infrastructure.parametersRef`. If both set a field, the
Gateway's value applies, field by field; other fields have the default below. `workers`, `deployment`,
`service`, `hpa`, `pdb` and `shutdown` configure a fleet of a controller: `edgefast run`
has flags instead and warns about them.
""",
    "RateLimitFilter": """\
Limits that all proxies count together (`global`), or that each machine counts for itself (`local`). A rule of an HTTPRoute
uses one of its own namespace through a filter of type `ExtensionRef`. All headers of a selector and all selectors of a rule
must match for a request to count; every rule that matches counts, and each of them can deny, with 429 or the `statusCode` of a
local limit.
""",
    "Backend": """\
Endpoints without a Service. A `backendRef` refers to one with group `gateway.edge.io` and
kind `Backend`, without a port. Standalone always allows it; in a cluster the configuration must
allow it (`extensionApis.enableBackend`).
""",
    "SecurityPolicy": """\
Access control. A policy is attached to a Gateway, one of its listeners, a ListenerSet, one of its listeners, an HTTPRoute or
GRPCRoute, or one named rule of a route (`targetRefs`, `sectionName`), and applies to everything below it. Its features are
`authorization`, `apiKeyAuth`, `basicAuth`, `oidc`, `jwt` and `extAuth`; with several policies for a rule, each feature comes completely from the most
specific one that has it, unless `mergeType` changes this. Of two policies on one target the older one applies. An invalid policy
denies: requests get 500. Rules see the path as the router matched it, without dot segments and doubled slashes.
""",
    "BackendTrafficPolicy": """\
Settings for requests and backends. It is attached like a SecurityPolicy, and merged field by field: the most specific policy
that sets a field applies. With `mergeType: Override` the stricter of the two values counts, and `0s` is the least strict.
""",
    "HTTPRouteFilter": """\
Functions that the standard filters do not have. A rule of an HTTPRoute uses one of its own namespace through a filter of type
`ExtensionRef` with group `gateway.edge.io` and kind `HTTPRouteFilter`. A rule with a missing or invalid filter answers 500.
Filters of GRPCRoutes and of backendRefs cannot be of this kind.
""",
    "EdgeGateway": """\
The configuration file of the controller, and of standalone with `--config`. It is not an API object:
it has no metadata, and its fields are at the top level. Kubernetes keeps it as key
`edge-gateway.yaml` of the ConfigMap `edge-gateway-config`.
""",
}

#: How places end that are references.
_REFERENCES = ("Ref", "Refs", ".basicAuth.users")
#: What a field that is not served closes.
_CLOSED = {
    "SecurityPolicy": "requests to its targets get 500",
    "BackendTrafficPolicy": "requests to its targets get 500",
    "HTTPRouteFilter": "rules that use it answer 500",
}

#: Fields of the Gateway API's reference types, which the models leave undescribed.
_OF_REFERENCE = {
    "group": "Its API group.",
    "kind": "Its kind.",
    "name": "Its name.",
    "namespace": "Its namespace. Absent: the referrer's. Another one needs a ReferenceGrant.",
    "port": "Its port; required with a Service.",
    "weight": "Its weight, relative to the sum of all weights.",
}

_FORMATS = """\
## Formats

| format | is written | read as |
|---|---|---|
| duration | up to four pairs of a number and `h`, `m`, `s` or `ms`: `500ms`, `1h30m` (GEP-2257) | milliseconds |
| size | bytes, or a number with `Ki`, `Mi`, `Gi`, `Ti`, `k`, `M`, `G`, `T` and an optional `B`: `32KiB`, `10Mi` | bytes |
"""


def render_pages() -> dict[str, str]:
    """Return every page of the reference docs: file name -> text."""
    pages = {f"{kind.lower()}.md": render_kind(kind) for kind in OWN_KINDS}
    return {"README.md": _render_index(), **pages}


def _render_index() -> str:
    lines = [
        _MADE,
        "# Reference",
        "",
        "[Features](features.md), [conformance](conformance.md), [limits](limits.md) and "
        "[metrics](metrics.md) have separate pages.",
        "",
        "Every kind of object that edgefast reads, and the versions it accepts:",
        "",
        "| kind | apiVersion | scope |",
        "|---|---|---|",
    ]
    for info in KINDS.values():
        own = info.kind in OWN_KINDS
        name = f"[{info.kind}]({info.kind.lower()}.md)" if own else info.kind
        versions = ", ".join(f"`{version}`" for version in info.api_versions)
        scope = "namespace" if info.namespaced else "cluster"
        lines.append(f"| {name} | {versions} | {scope} |")
    lines += [
        f"| [EdgeGateway](edgegateway.md) | `{CONFIG_API_VERSION}` | configuration file |",
        "",
        "Unknown fields are errors. `status` and the fields of `metadata` that Kubernetes sets "
        "are ignored. An object without a namespace is in `default`.",
        "",
        _FORMATS,
    ]
    return "\n".join(lines)


def render_kind(kind: str) -> str:
    """Return the page of one of OWN_KINDS."""
    api_version = CONFIG_API_VERSION if kind == "EdgeGateway" else f"{EDGE_GROUP}/v1alpha1"
    lines = [
        _MADE,
        f"# {kind}",
        "",
        f"`{api_version}`",
        "",
        _INTRO[kind],
        "| field | type | default | meaning |",
        "|---|---|---|---|",
    ]
    shape = shape_of(OWN_KINDS[kind])
    for row in _rows(shape, json_schema(kind), ""):
        lines.append("| " + " | ".join(_cell(one) for one in row) + " |")
    if kind in UNSERVED:
        lines += ["", *_render_unserved(kind)]
    rules = list(_rules(json_schema(kind), ""))
    if rules:
        lines += ["", "## Rules", "", "| of | rule |", "|---|---|"]
        lines += [f"| `{path}` | {_cell(message)} |" for path, message in rules]
    return "\n".join(lines) + "\n"


def _render_unserved(kind: str) -> Iterator[str]:
    """Give what Envoy Gateway has in an object of that name, and this release does not do."""
    yield from ("## Not available yet", "", "| field | what happens |", "|---|---|")
    fates = {"nothing": "ignored with a warning"}
    for path, closes in UNSERVED[kind].items():
        yield f"| `{path}` | {fates.get(closes, _CLOSED[kind])} |"


def _rows(shape: Shape, schema: dict[str, Any], path: str) -> Iterator[tuple[str, ...]]:
    for field in shape.fields:
        if not path and field.name in ("metadata", "apiVersion", "kind"):
            continue
        below = f"{path}.{field.name}" if path else field.name
        inner = schema["properties"][field.name]
        text, default = _split_default(inner.get("description", ""))
        written = plain_default(field)
        if field.required:
            default = "required"
        elif field.shape.kind == "struct":
            default = ""
        elif written is not None:
            default = f"`{_json(written)}`" if written != "" else '`""`'
        if not text and path.rstrip("[]").endswith(_REFERENCES):
            text = _OF_REFERENCE[field.name]
        yield f"`{below}`", _type(field.shape), default, text
        at, inside = field.shape, inner
        while at.kind == "list" and at.item is not None:
            at, inside, below = at.item, inside["items"], f"{below}[]"
        if at.kind == "struct":
            yield from _rows(at, inside, below)


def _rules(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield path or ".", rule["message"]
    for name, inner in schema.get("properties", {}).items():
        yield from _rules(inner, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from _rules(schema["items"], f"{path}[]")


def _split_default(text: str) -> tuple[str, str]:
    before, found, after = text.rpartition(" Default: ")
    return (before, f"`{after.removesuffix('.')}`") if found else (text, "")


def _type(shape: Shape) -> str:
    if shape.enum:
        return " or ".join(f"`{word}`" for word in shape.enum)
    if shape.kind == "list" and shape.item is not None:
        inner = "objects" if shape.item.kind in ("struct", "map") else _type(shape.item)
        bounds = _bounds(shape.min_length, shape.max_length)
        return f"list of {inner}{bounds}"
    if shape.kind == "choice":
        return " or ".join(_type(one) for one in _distinct(shape.choices))
    if shape.kind == "map":
        free = shape.item is not None and shape.item.kind == "any"
        return "object" if free else f"map of names to {_type(shape.item or shape)}"
    if shape.kind in ("integer", "number"):
        return f"{'integer' if shape.kind == 'integer' else 'number'}{_range(shape)}"
    if shape.kind == "string":
        return _words(shape.expects) if shape.expects else "text"
    return {"struct": "object", "boolean": "boolean", "bytes": "base64 text"}.get(shape.kind, "any")


def _words(expects: str) -> str:
    """Shorten what a pattern expects to what fits a column."""
    words = expects.partition(" such as ")[0].rstrip(",")
    return words.removeprefix("an ").removeprefix("a ")


def _distinct(choices: tuple[Shape, ...]) -> tuple[Shape, ...]:
    kinds = {one.kind for one in choices}
    if kinds == {"integer", "number"}:
        return tuple(one for one in choices if one.kind == "number")
    texts = tuple(one for one in choices if one.kind == "string" and one.expects)
    return texts or choices


def _range(shape: Shape) -> str:
    low, high = shape.minimum, shape.maximum
    if low is None and high is None:
        return ""
    return f" from {low}" if high is None or high >= 2**31 - 1 else f" {low} to {high}"


def _bounds(low: int | None, high: int | None) -> str:
    if high is None:
        return ""
    return f" ({low or 0} to {high})"


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main(arguments: list[str]) -> int:
    """Write the reference docs into a folder: `--write FOLDER`."""
    if len(arguments) != 2 or arguments[0] != "--write":
        sys.stderr.write("usage: python -m edgefast.api.schema.refdoc --write FOLDER\n")
        return 2
    for name, text in render_pages().items():
        with open(f"{arguments[1]}/{name}", "w", encoding="utf-8") as page:
            page.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
