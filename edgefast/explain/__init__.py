"""Explain: explanations of responses, and differences between two tables, for people and for CI.

In: the output of the compiler (translate, table), or the dump of a running proxy.
Out: plain values with a documented encoding, and their texts. Pure: no I/O, no clock. The names
below are imported at their first use, because most processes need few of them (`explain` is the
function of `edgefast.explain.explain`).
Must never: be imported by modules that serve requests.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgefast.explain.changes import Change, Difference
    from edgefast.explain.diff import diff_translations
    from edgefast.explain.dump import ProxyDump, read_dump
    from edgefast.explain.explanation import Explanation
    from edgefast.explain.request_spec import RequestSpec, RequestSpecError, read_request_spec
    from edgefast.explain.served_fleet import Live, Served, serve_translation

__all__ = [
    "RequestSpec",
    "RequestSpecError",
    "Change",
    "Difference",
    "Explanation",
    "Live",
    "Served",
    "ProxyDump",
    "diff_translations",
    "read_request_spec",
    "read_dump",
    "serve_translation",
]

_MODULES = {
    "RequestSpec": "request_spec",
    "RequestSpecError": "request_spec",
    "Change": "changes",
    "Difference": "changes",
    "Explanation": "explanation",
    "Live": "served_fleet",
    "Served": "served_fleet",
    "ProxyDump": "dump",
    "diff_translations": "diff",
    "read_request_spec": "request_spec",
    "read_dump": "dump",
    "serve_translation": "served_fleet",
}


def __getattr__(name: str) -> object:
    """Import a name at its first use (PEP 562)."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found
