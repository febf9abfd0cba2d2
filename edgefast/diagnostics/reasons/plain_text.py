"""Plain text: texts of the catalogue without Markdown links, for a terminal and the console.

In: a text of a `Page`, with links in the format of docs/problems.
Out: the same as plain text. A link to another reason becomes its name. A link to a page becomes the
command that prints the page.
Must never: change anything but links.
"""

from __future__ import annotations

import re

__all__ = ["plain_text"]

_LINK = re.compile(r"\[([^\]]*)\]\(([^)#]*)[^)]*\)")


def plain_text(text: str, *, targets: bool = True) -> str:
    """Return a text without links; without `targets` nothing is left of where they led."""

    def write(link: re.Match[str]) -> str:
        words, target = link[1], link[2]
        if not targets or not target.startswith("../"):
            return words
        return f"{words} (edgefast docs {target.removeprefix('../').removesuffix('.md').removesuffix('/README')})"

    return _LINK.sub(write, text)
