"""Location template: the grammar of a Location that is made of parts of the request.

In: a text. Out: whether it is a template.
Must never: let a part of the request decide to which host a client goes, except its own Host.
"""

from __future__ import annotations

import re

__all__ = ["LOCATION_VARIABLES", "is_template"]

#: Variables of a template.
LOCATION_VARIABLES = ("authority", "escapedTarget", "host", "path", "query", "scheme", "target")
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
