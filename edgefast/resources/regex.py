"""Regular expressions: are they RE2, as the data plane will compile them.

In: a pattern. Out: what is wrong with it, or "". RE2 runs in linear time, has no look-around and no
back-references (https://github.com/google/re2/wiki/Syntax); patterns match whole values.
Must never: use Python's `re`, which accepts more and can take exponential time.
"""

from __future__ import annotations

from functools import lru_cache

import re2  # type: ignore[import-untyped]  # the package ships no types

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False  # the error is returned; the library would also write to stderr


@lru_cache(maxsize=4096)
def check_regex(pattern: str) -> str:
    """Return RE2's complaint about a pattern, "" when it compiles."""
    try:
        re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        said = error.args[0]
        return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return ""
