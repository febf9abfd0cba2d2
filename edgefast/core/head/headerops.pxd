# Compiled header operations.

cdef class HeaderOps:
    cdef:
        tuple names         # lower-case names whose lines are dropped (set and remove)
        uint32_t *hashes
        int n
        bytes append        # b"name: value\r\n..." to add (set and add)
        bytes success       # the same, for answers with a status of SUCCESS_STATUSES alone; None: nothing
        bytes host          # value when the operations set Host, else None
        bint sets_server
        bint own                # drops lines that the proxy itself would write
        bint own_id             # ... x-request-id among them
        bint own_trace          # has a traceparent of its own, or drops ours

    cdef bint drops(self, const uint8_t *base, const ef_span *span) noexcept

cdef frozenset SUCCESS_STATUSES

cdef bytes add_own_headers(Exchange ex, bytes lines)

cdef int write_spans(
    Out *out, const uint8_t *base, const ef_head *head, uint8_t drop_flags, uint32_t drop_ids, HeaderOps ops, HeaderOps more
) except -1
