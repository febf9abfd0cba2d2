# Header strip: header lines that only authentication and authorization services may set, not the client.
#
# In: the head of a request, fields behind its body, names.
# Out: the same, without these lines; or with them behind the others, visible only to the access checks. A name is any spelling that a
# backend may take for it (headernames.pyx).

cdef int strip_headers(list sets, Routed *at, ef_request *request) except -1:
    """What proofs and services may set is theirs to say: of the client nobody hears it from here on but they. It lies behind the other
    spans. What filters of its listener gave it stays."""
    cdef ef_head *head = at.head
    cdef ef_span hidden[128]  # EF_MAX_HEADERS
    cdef ef_span *span
    cdef HeaderNames names
    cdef uint16_t i, kept = 0, n = 0
    for i in range(head.n_spans):
        span = &head.spans[i]
        for names in sets:
            if names.covers(at.base + span.name_off, span.name_len) and not is_filter_line(at, span):
                hidden[n] = span[0]
                n += 1
                break
        else:
            if kept != i:
                head.spans[kept] = span[0]
            kept += 1
    if n:
        memcpy(&head.spans[kept], hidden, n * sizeof(ef_span))
    head.n_spans = kept
    request.n_spans = kept
    at.hidden = n
    return 0


cdef bytes lines_beside(bytes lines, bytes before):
    """Those whose names no line `before` has, as a backend may read names: a later service, which a route may have named itself, takes
    no earlier one's word away."""
    said = {fold_line(line) for line in before.splitlines()}
    return b"".join([line for line in lines.splitlines(True) if fold_line(line) not in said])


cdef bytes service_lines(RuleAuthFlow flow):
    """What whoever judges it there said, but for what filters of its listener have said already: the first word stays."""
    return flow.lines if flow.ex.filter_lines is None else lines_beside(flow.lines, flow.ex.filter_lines)


cdef inline bint is_filter_line(Routed *at, const ef_span *span) noexcept:
    """A filter of its listener gave it this line."""
    return at.given != 0 and span.name_off >= at.given


cdef int drop_filter_lines(RuleAuthFlow flow, HeaderNames names) except -1:
    """Of what filters of its listener gave it, lines of these names go no further."""
    cdef Exchange ex = flow.ex
    cdef Routed *at = &flow.at
    cdef ef_span *span
    cdef uint16_t i
    if ex.filter_lines is None:
        return 0
    for i in range(at.head.n_spans):
        span = &at.head.spans[i]
        if is_filter_line(at, span) and names.covers(at.base + span.name_off, span.name_len):
            span.flags |= EF_SPAN_HOP
    ex.filter_lines = b"".join([line for line in ex.filter_lines.splitlines(True) if not covers_name(names, line.partition(b":")[0])])
    return 0


cdef bytes fold_line(bytes line):
    """Its name, in one spelling of all that headernames.pyx takes for one."""
    cdef bytes name = line.partition(b":")[0]
    return bytes([fold_name(c) for c in name])
