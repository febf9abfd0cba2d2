# Response head: writes the client's response head from the spans of the backend's (header rules: docs/reference/http1.md, spec 4).

cdef int write_response_head(Exchange ex, const uint8_t *base, ef_head *head, uint32_t drop) except -1

cdef int write_status_rest(Out *out, const uint8_t *base, ef_head *head) except -1
