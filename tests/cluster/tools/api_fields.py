"""The fields that the Gateway API has, release by release and channel by channel, as its own CRDs have them.

In: the CRDs of RELEASES. Out: the text of tests/api/apifields.txt: by kind one line for each field, "!" if every release requires it,
the words that it takes and, unless all releases and channels have it, those that do. tests/api/test_api_fields.py holds the product against it; a release that is
added here brings its new fields there. `python -m cluster.tools.api_fields` in the folder tests writes the file.
Must never: be edited in what it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cluster.tools.crds import gateway_api_crds
from cluster.tools.versions import GATEWAY_API, NEWEST_GATEWAY_API
from edgefast.api.kinds import KINDS

LIST = Path(__file__).parents[2] / "api" / "apifields.txt"
#: The last patch of each release that translate/settings.py names.
RELEASES = (GATEWAY_API, NEWEST_GATEWAY_API)
CHANNELS = ("standard", "experimental")
_HEAD = "# Made by `python -m cluster.tools.api_fields` from the CRDs of the Gateway API; do not edit.\n"

Field = tuple[str, str]  # kind, path: "spec.listeners[].port"
_Found = tuple[str, tuple[str, ...], bool]  # path, words, whether it is required


def render_list() -> str:
    """Return the text of the list."""
    sources = [(release, channel) for release in RELEASES for channel in CHANNELS]
    having: dict[Field, set[tuple[str, str]]] = {}
    words: dict[Field, dict[str, None]] = {}
    optional: set[Field] = set()
    for release, channel in sources:
        for field, taken, required in _read_fields(release, channel):
            having.setdefault(field, set()).add((release, channel))
            words.setdefault(field, {}).update(dict.fromkeys(taken))
            if not required:
                optional.add(field)
    lines = [_HEAD, f"# {', '.join(RELEASES)}; {', '.join(CHANNELS)}\n"]
    kind = ""
    for field in sorted(having):
        if field[0] != kind:
            kind = field[0]
            lines.append(f"\n{kind}\n")
        line = f"  {field[1]}{'' if field in optional else ' !'}"
        if words[field]:
            line += f" = {' '.join(sorted(words[field]))}"
        if len(having[field]) < len(sources):
            line += f"  # {', '.join(' '.join(one) for one in sources if one in having[field])}"
        lines.append(f"{line}\n")
    return "".join(lines)


def _read_fields(release: str, channel: str) -> Iterator[tuple[Field, tuple[str, ...], bool]]:
    for crd in gateway_api_crds(channel, release):
        spec = crd["spec"]
        names = spec.get("names", {})
        info = KINDS.get((spec.get("group", ""), names.get("kind", "")))
        for version in spec["versions"] if info else ():
            if version["served"] and info and version["name"] in info.versions:
                schema = version["schema"]["openAPIV3Schema"]
                for path, words, required in _walk(schema, ""):
                    if not path.startswith(("apiVersion", "kind", "metadata", "status")):
                        yield (info.kind, path), words, required


def _walk(schema: dict[str, Any], at: str) -> Iterator[_Found]:
    for name, one in schema.get("properties", {}).items():
        below, path = one, f"{at}.{name}" if at else name
        inside = path
        while below.get("type") == "array":
            below, inside = below["items"], f"{inside}[]"
        yield path, tuple(map(str, below.get("enum", ()))), name in schema.get("required", ())
        yield from _walk(below, inside)


if __name__ == "__main__":
    LIST.write_text(render_list())
