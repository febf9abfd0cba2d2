# CORS: answers preflights and records the CORS lines of other answers (HTTPCORSFilter).
#
# In: a routed request with a CORS filter at its backend. Out: an answer, or lines for the answer to come. Source: Fetch standard, CORS
# protocol.
# Must never send an answer of the proxy itself without its lines: a browser would hide it from the page.

cdef bint apply_cors(Exchange ex, const uint8_t *base, ef_head *head) except -1:
    """HTTPCORSFilter: answers preflights (True), remembers the lines for actual requests."""
    cdef Cors cors = ex.backend.cors
    cdef const ef_span *span
    cdef uint16_t i
    origin = None
    method = None
    headers = ""
    for i in range(head.n_spans):
        span = &head.spans[i]
        if span.id == EF_H_ORIGIN:
            origin = base[span.val_off:span.val_off + span.val_len].decode("latin-1")
        elif span.id == EF_H_ACCESS_CONTROL_REQUEST_METHOD:
            method = base[span.val_off:span.val_off + span.val_len].decode("latin-1")
        elif span.name_hash == HASH_REQUEST_HEADERS and span.name_len == 30:
            headers = base[span.val_off:span.val_off + span.val_len].decode("latin-1")
    if not cors.any_origin:
        ex.cors_lines = b"vary: Origin\r\n"  # the answer depends on it, also where none was sent
    if origin is None:
        return False
    if head.method == EF_M_OPTIONS and method is not None:
        if cors.allows(origin):
            ex.cors_lines = cors.preflight(origin, method, headers)
        ex.answer(204, b"", F_CORS)
        return True
    if cors.allows(origin):
        ex.cors_lines = cors.simple(origin)
    return False
