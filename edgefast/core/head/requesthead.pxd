# Request head: writes the backend's request head from the spans of the client's (header rules: docs/reference/http1.md, spec 4).

cdef tuple forwarded_lines(Exchange ex)

cdef int take_request_id(Exchange ex, const uint8_t *base, const ef_span *sent, bint internal) except -1
