"""Why: explanations of answers, and differences between two tables, for people and for CI.

In: what the compiler made (translate, table), or what a running proxy tells. Out: plain values with a documented
encoding, and their texts. Pure: no I/O, no clock. Must never: be imported by what serves requests.
"""

from edgefast.why.ask import Ask, AskError, read_ask
from edgefast.why.changes import Change, Difference
from edgefast.why.diff import diff_translations
from edgefast.why.dump import Told, read_dump
from edgefast.why.explain import explain
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
    "explain",
    "read_ask",
    "read_dump",
    "serve_translation",
]
