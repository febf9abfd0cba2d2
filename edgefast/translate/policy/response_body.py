"""Response body: the body of a direct response, inline or from a ConfigMap of the same namespace.

In: the body field of an object, a Reader. Out: its bytes, or what is wrong with their source.
Must never: read a ConfigMap of another namespace.
"""

from __future__ import annotations

from edgefast.api.edge.httproutefilter import MAX_ANSWER_BODY, DirectResponseBody
from edgefast.translate.deps.dependency_facts import Reader

__all__ = ["read_body"]

_KEY = "response.body"


def read_body(body: DirectResponseBody, namespace: str, reader: Reader) -> tuple[bytes, str]:
    """Return the bytes of a sound body, and what is wrong with where they are, "" when nothing is."""
    if body.value_ref is None:
        return (body.inline or "").encode(), ""
    name = body.value_ref.name
    found, named = reader.config_map(namespace, name), f"ConfigMap {namespace}/{name}"
    if found is None:
        return b"", f"{named} not found"
    texts = {**{key: text.encode() for key, text in found.data.items()}, **found.binary_data}
    key = _KEY if _KEY in texts or len(texts) != 1 else next(iter(texts))
    if key not in texts:
        has = ", ".join(sorted(texts)) or "none"
        return b"", f"{named} needs key {_KEY}, or exactly one key (it has {has})"
    if len(texts[key]) > MAX_ANSWER_BODY:
        size = f"{len(texts[key])} bytes (at most {MAX_ANSWER_BODY})"
        return b"", f"{named} key {key} has {size}"
    return texts[key], ""
