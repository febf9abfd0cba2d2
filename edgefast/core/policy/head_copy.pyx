# Head copy: a copy of a request's head with more lines behind its own.
#
# In: a routed request, lines that authentication and services set. Out: the same request on a copy, which one `free` releases: the bytes
# of the head are gone when a result comes later, and lines cannot be added to them in place.
# Must never drop a line but those of `without`.

cdef uint32_t _COOKIE_HASH = ef_name_hash(<const uint8_t *>b"cookie", 6)


cdef bytes spans_of(bytes lines):
    """The spans of whole lines "name: value" CRLF, as an array that counts from the first line; an invalid line ends it."""
    cdef const uint8_t *text = <const uint8_t *>PyBytes_AS_STRING(lines)
    cdef size_t size = PyBytes_GET_SIZE(lines), at = 0
    cdef list spans = []
    cdef ef_span span
    while at < size:
        at = ef_trailer_next(text, size, at, &span)
        if at == 0:
            break
        span.flags = 0  # what a trailer must not set, a service may
        spans.append((<const char *>&span)[:sizeof(ef_span)])
    return b"".join(spans)


cdef size_t copy_head(Routed *at, ef_request *request, HeaderNames without, bytes cookies, bytes lines, bytes spans, void **memory) except 0:
    """Replace the head by a copy. Returns the bytes of `memory`.

    without: names of lines that are not copied, None: all are; cookies: a line "cookie: value" CRLF, or b""; lines, spans: as of `spans_of`.
    """
    cdef ef_head *head = at.head
    cdef ef_head *copy
    cdef ef_span *span
    cdef const ef_span *added = <const ef_span *>PyBytes_AS_STRING(spans)
    cdef const uint8_t *old = at.base
    cdef size_t before = <size_t>(<char *>&head.spans[0] - <char *>head)
    cdef size_t first = PyBytes_GET_SIZE(cookies), more = PyBytes_GET_SIZE(lines), count = PyBytes_GET_SIZE(spans) // sizeof(ef_span)
    cdef size_t total = head.n_spans + at.hidden, room = before + (total + count + 1) * sizeof(ef_span)
    cdef bint apart = at.query != NULL and not old <= at.query < old + head.head_len  # another owner may release it
    cdef size_t length = head.head_len + first + more, n = 0, shown, i
    cdef size_t size = room + length + at.path_len + (at.query_len if apart else 0)
    cdef uint8_t *text
    memory[0] = malloc(size)
    if memory[0] == NULL:
        raise MemoryError
    copy = <ef_head *>memory[0]
    text = <uint8_t *>memory[0] + room
    memcpy(copy, head, before)
    memcpy(text, old, head.head_len)
    memcpy(text + head.head_len, PyBytes_AS_STRING(cookies), first)
    memcpy(text + head.head_len + first, PyBytes_AS_STRING(lines), more)
    memcpy(text + length, at.path, at.path_len)
    if apart:
        memcpy(text + length + at.path_len, at.query, at.query_len)
    for i in range(head.n_spans):
        span = &head.spans[i]
        if without is None or not without.covers(old + span.name_off, span.name_len):
            copy.spans[n] = span[0]
            n += 1
    if first:
        span = &copy.spans[n]
        span.name_off, span.name_len = head.head_len, 6
        span.val_off, span.val_len = <uint32_t>(head.head_len + 8), <uint32_t>(first - 10)
        span.line_end = <uint32_t>(head.head_len + first)
        span.name_hash, span.id, span.flags = _COOKIE_HASH, 0, 0
        n += 1
    for i in range(count):
        span = &copy.spans[n]
        span[0] = added[i]
        span.name_off += <uint32_t>(head.head_len + first)
        span.val_off += <uint32_t>(head.head_len + first)
        span.line_end += <uint32_t>(head.head_len + first)
        n += 1
    shown = n
    for i in range(<size_t>head.n_spans, total):
        span = &head.spans[i]
        if without is None or not without.covers(old + span.name_off, span.name_len):
            copy.spans[n] = span[0]
            n += 1
    at.hidden = <uint16_t>(n - shown)
    copy.n_spans = <uint16_t>shown
    copy.head_len = <uint32_t>length
    if request.path == at.path:
        request.path = text + length
    if apart:
        at.query = text + length + at.path_len
    elif at.query != NULL:
        at.query = text + (at.query - old)
    at.path = text + length
    at.base, at.head = text, copy
    request.query, request.base = at.query, text
    request.spans, request.n_spans = copy.spans, <uint32_t>shown
    return size
