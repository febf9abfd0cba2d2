"""Snippet edits: the header edits of a configuration-snippet, as filters of a rule.

In: a `Draft`, the `Snippet` of its Ingress. Out: the draft with the edits, and a note for each header that another annotation decides.
nginx runs the edits behind those of custom-headers, and applies them to all answers of a location.
Source: nginx ngx_http_headers_module, headers-more; ingress-nginx nginx.tmpl.
"""

from __future__ import annotations

import msgspec

from edgefast.api.edge.httproutefilter import AddedHeader, HTTPRouteFilterSpec, ResponseHeaders
from edgefast.api.gateway.httproutefilter import HTTPHeader, HTTPHeaderFilter, HTTPRouteFilter
from edgefast.translate.ingress.configmap import Note
from edgefast.translate.ingress.draft import Draft
from edgefast.translate.ingress.snippet import Snippet

__all__ = ["edit_answers"]


def edit_answers(draft: Draft, snippet: Snippet) -> tuple[Draft, tuple[Note, ...]]:
    """Return a rule whose answers have the header edits of a snippet."""
    notes: list[Note] = []
    others = tuple(one for one in draft.filters if one.response_header_modifier is None)
    before = HTTPHeaderFilter()
    for one in draft.filters:
        before = one.response_header_modifier or before
    names = {*(name for name, _ in snippet.sets), *snippet.removes}
    kept = tuple(one for one in before.set if one.name.lower() not in names)
    taken = {one.name.lower() for one in kept}
    for name, _ in snippet.adds:
        if name in taken:
            message = "add_header of a header that custom-headers sets is not served; clients get the header of custom-headers"
            notes.append(Note(name="configuration-snippet", message=message, reason="NotSupported"))
    edits = HTTPHeaderFilter(
        set=(*kept, *(HTTPHeader(name=name, value=value) for name, value in snippet.sets)),
        add=tuple(
            HTTPHeader(name=name, value=value) for name, value in snippet.adds if name not in taken
        ),
        remove=snippet.removes,
    )
    filters = others
    if edits != HTTPHeaderFilter():
        made = HTTPRouteFilter(type="ResponseHeaderModifier", response_header_modifier=edits)
        filters = (*others, made)
    specs = draft.specs
    if snippet.successes:
        headers = tuple(AddedHeader(name=name, value=value) for name, value in snippet.successes)
        added = ResponseHeaders(add_on_success=headers)
        specs = (*specs, HTTPRouteFilterSpec(response_headers=added))
    return msgspec.structs.replace(draft, filters=filters, specs=specs), tuple(notes)
