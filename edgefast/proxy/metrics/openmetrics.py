"""OpenMetrics 1.0: its differences from the text format, and content negotiation.

In: a scraper's Accept header, families, exemplars.
Out: pieces of the exposition; exposition.py defines order and numbers.
Source: OpenMetrics 1.0.0 (counter headings have no `_total`, `le` is canonical, `# EOF` is the last
line).
Must never: be sent to a scraper that did not accept it by name.
"""

from __future__ import annotations

from edgefast.monitoring.family import Family
from edgefast.proxy.traces.exemplars import Exemplar

__all__ = ["EOF", "OPENMETRICS_TYPE", "canonical", "heading_of", "is_wanted", "write_exemplar"]

OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
EOF = "# EOF\n"
_MEDIA_TYPE = "application/openmetrics-text"
_VERSIONS = ("1.0.0", "0.0.1")


def is_wanted(accept: str) -> bool:
    """Tell whether an Accept header names OpenMetrics in a version that this is, with a q that is not 0."""
    return any(_names(one) for one in accept.lower().split(","))


def _names(media_range: str) -> bool:
    name, *rest = (part.strip() for part in media_range.split(";"))
    if name != _MEDIA_TYPE:
        return False
    parameters = {
        key.strip(): value.strip().strip('"')
        for key, _, value in (part.partition("=") for part in rest)
    }
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        return False
    return quality > 0 and parameters.get("version", _VERSIONS[0]) in _VERSIONS


def heading_of(family: Family) -> str:
    """Return the HELP and TYPE lines."""
    name = family.name.removesuffix("_total") if family.kind == "counter" else family.name
    text = family.help.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return f"# HELP {name} {text}\n# TYPE {name} {family.kind}\n"


def canonical(bound: str) -> str:
    """Return a bucket's bound as `le` has it: whole numbers with ".0"."""
    return f"{bound}.0" if bound.isdecimal() else bound


def write_exemplar(one: Exemplar) -> str:
    """Return what stands behind a sample: two labels of 62 characters together (128 may be), seconds, Unix seconds."""
    ids = f'trace_id="{one.trace_id.hex()}",span_id="{one.span_id.hex()}"'
    return f" # {{{ids}}} {one.took / 1e6:.6f} {one.ended / 1e6:.3f}"
