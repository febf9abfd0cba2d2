# Auth span: the authorization calls of a traced request (docs/guides/tracing.md).
#
# In: a call that has ended, or that a request no longer waits for.
# Out: a record in the request's trace, in the order of span_record.AuthRecord. A call of several requests is a span in each of their traces;
# the service received the trace context of the first one.

cdef tuple AUTH_WORDS = (b"allowed", b"denied", b"error")  # by AuthOutcome


cdef int note_asked(AuthFlow flow, AuthCall call, AuthOutcome outcome, bytes error) except -1:
    """`error`: why there is no answer; None: there is."""
    cdef Exchange ex = flow.ex
    cdef Trace trace = ex.trace
    cdef int64_t began = call.flows_since(flow), word
    cdef bint first = flow is call.notified
    cdef Out *out
    if trace is None or not trace.flags & 1 or trace.n_asked == SPAN_CALLS:
        return 0
    out = &trace.asked
    trace.n_asked += 1
    out_reserve(out, 160 + 4 * LOG_FIELD)
    pack_list(out, 11)
    if first:
        pack_bytes(out, call.span_id, 8, 8)
    else:
        word = ef_random(ex.engine.random) | 1
        pack_bytes(out, <const uint8_t *>&word, 8, 8)
    pack_text(out, call.cluster.name.encode() if call.cluster is not None else None)
    pack_number(out, began - ex.started)
    pack_number(out, ex.engine.reactor.now_us() - began)
    pack_number(out, call.service.grpc)
    pack_number(out, call.reported_status())
    pack_text(out, <bytes>AUTH_WORDS[outcome])
    pack_text(out, error)
    pack_text(out, call.endpoint.text if call.endpoint is not None else None)
    pack_text(out, call.spoken)
    pack_number(out, not first)
    return 0
