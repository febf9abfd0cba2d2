"""Why: explanations of answers, and differences between two tables, for people and for CI.

In: what the compiler made (translate, table), or what a running proxy tells. Out: plain values with a documented
encoding, and their texts. Pure: no I/O, no clock. The names below are imported at their first use, because most processes
need few of them (`explain` is the function of `edgefast.why.explain`). Must never: be imported by modules that serve requests.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgefast.why.ask import Ask, AskError, read_ask
    from edgefast.why.changes import Change, Difference
    from edgefast.why.diff import diff_translations
    from edgefast.why.dump import Told, read_dump
    from edgefast.why.explanation import Explanation
    from edgefast.why.served import Live, Served, serve_translation

__all__ = [
    "Ask",
    "AskError",
    "Change",
    "Difference",
    "Explanation",
    "Live",
    "Served",
    "Told",
    "diff_translations",
    "read_ask",
    "read_dump",
    "serve_translation",
]

_MODULES = {
    "Ask": "ask",
    "AskError": "ask",
    "Change": "changes",
    "Difference": "changes",
    "Explanation": "explanation",
    "Live": "served",
    "Served": "served",
    "Told": "dump",
    "diff_translations": "diff",
    "read_ask": "ask",
    "read_dump": "dump",
    "serve_translation": "served",
}


def __getattr__(name: str) -> object:
    """Import a name at its first use (PEP 562)."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found
