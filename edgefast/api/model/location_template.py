"""Location template: the grammar of a Location, and of the path of a check, that are made of parts of the request.

In: a text. Out: whether it is a template.
Must never: let a part of the request decide to which host a client goes, except its own Host.
"""

from __future__ import annotations

import re

__all__ = [
    "CHECK_PATH_LENGTH",
    "CHECK_PATH_PATTERN",
    "CHECK_PATH_VARIABLES",
    "LOCATION_VARIABLES",
    "is_template",
]

#: Variables of a template.
LOCATION_VARIABLES = ("authority", "escapedTarget", "host", "path", "query", "scheme", "target")
#: Variables of the path of a check, and the maximum of them in one path.
CHECK_PATH_VARIABLES = (
    "authority",
    "escapedTarget",
    "host",
    "method",
    "path",
    "query",
    "scheme",
    "target",
)
_MOST = 8
_CHECK_TEXT = r"(?:[-A-Za-z0-9._~!$&'()*+,;=:@?/]|[%][0-9a-fA-F]{2})*"
#: Bytes of the path and query of a check, before variables are replaced.
CHECK_PATH_LENGTH = 1024
#: The path and query of a check; its first byte is a slash.
CHECK_PATH_PATTERN = (
    rf"^/{_CHECK_TEXT}(?:\{{(?:{'|'.join(CHECK_PATH_VARIABLES)})\}}{_CHECK_TEXT}){{0,{_MOST}}}\Z"
)
_TEXT = r"[-A-Za-z0-9._~!$&'()*+,;=:@?#/]|%[0-9a-fA-F]{2}"
_LATER = rf"(?:{_TEXT}|\\[0-9]|\{{(?:{'|'.join(LOCATION_VARIABLES)})\}})*"
_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9.]{0,251}[A-Za-z0-9])?(?::[0-9]{1,5})?"
#: Scheme and name; then a slash, or a variable that begins with one.
_ABSOLUTE = re.compile(
    rf"(?:https?|\{{scheme\}})://(?:{_NAME}|\{{host\}}(?::[0-9]{{1,5}})?|\{{authority\}})"
    rf"(?:(?:/|\{{target\}}|\{{path\}}){_LATER})?"
)
_RELATIVE = re.compile(rf"/(?![/\\]?\{{(?:target|path)\}})(?!/){_LATER}")


def is_template(text: str) -> bool:
    """Tell whether a text is the template of a Location."""
    return len(text) <= 1024 and bool(_ABSOLUTE.fullmatch(text) or _RELATIVE.fullmatch(text))
