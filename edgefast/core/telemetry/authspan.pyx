# Auth span: the authorization calls of a traced request (docs/guides/tracing.md).
#
# In: a call that has ended, or that a request no longer waits for.
# Out: a record in the request's trace, in the order of span_record.AuthRecord. A call of several requests is a span in each of their traces;
# the service received the trace context of the first one.

cdef tuple AUTH_WORDS = (b"allowed", b"denied", b"error")  # by AuthOutcome


cdef int pack_auth_call(
    Exchange ex, const uint8_t *span_id, bytes cluster, int64_t began, bint grpc, int status, int outcome, bytes error, bytes endpoint, bytes protocol
) except -1:
    """span_id: of the call's own span, if this request began it; NULL: it has joined a call of another request. began: us. status: of
    the answer; 0: none. outcome: AuthOutcome. error: why the call has no answer; None: it has one."""
    cdef Trace trace = ex.trace
    cdef int64_t word
    cdef Out *out
    if trace is None or not trace.flags & 1 or trace.n_asked == SPAN_CALLS:
        return 0
    out = &trace.asked
    trace.n_asked += 1
    out_reserve(out, 160 + 4 * LOG_FIELD)
    pack_list(out, 11)
    if span_id != NULL:
        pack_bytes(out, span_id, 8, 8)
    else:
        word = ef_random(ex.engine.random) | 1
        pack_bytes(out, <const uint8_t *>&word, 8, 8)
    pack_text(out, cluster)
    pack_number(out, began - ex.started)
    pack_number(out, ex.engine.reactor.now_us() - began)
    pack_number(out, grpc)
    pack_number(out, status)
    pack_text(out, <bytes>AUTH_WORDS[outcome])
    pack_text(out, error)
    pack_text(out, endpoint)
    pack_text(out, protocol)
    pack_number(out, span_id == NULL)
    return 0
