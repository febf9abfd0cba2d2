# Record: what counters, the access log and spans get of a request.
#
# In: the head of a request, and its exchange when it has ended. Out: the counters of its rule, a line of the access log, a span. Nothing is
# kept of the head where the port neither logs nor traces.

cdef inline int keep_head(Exchange ex, const uint8_t *base, ef_head *head) except -1:
    """Keep what log and spans need: the bytes of the head are gone when the exchange ends."""
    cdef uint16_t i
    if ex.down.peer.port.log_off and not ex.down.peer.port.traces:
        return 0
    out_reserve(&ex.raw, head.head_len)
    out_raw(&ex.raw, base, head.head_len)
    ex.method_len = head.method_len
    ex.target_off, ex.target_len = head.target_off, head.target_len
    ex.authority_off, ex.authority_len = head.authority_off, head.authority_len
    if ex.down.peer.port.log_wants_request or ex.down.peer.port.log_wants_address:
        ex.engine.observer.keep_request(ex, head)
    for i in range(head.n_spans):
        if head.spans[i].name_hash == HASH_USER_AGENT and head.spans[i].name_len == 10:
            ex.agent_off = head.spans[i].val_off
            ex.agent_len = head.spans[i].val_len
            break
    return 0


cdef inline int record_end(Exchange ex) except -1:
    """Count an ended request in the cells of its rule, then log and trace it."""
    cdef int64_t took = ex.engine.reactor.now_us() - ex.started
    cdef ef_stat_row *row = ex.rule.row if ex.rule is not None else ex.engine.unmatched
    cdef int kind
    if ex.grpc:
        end_grpc(ex, row)
    kind = http_status_of(ex, ex.status) // 100 - 1
    if ex.flags & F_CLIENT_GONE or kind < 0 or kind > 4:
        kind = C_ABORTED
    ef_stat_add(&row.cells[kind], 1)
    ef_stat_add(&row.cells[C_BYTES_RECEIVED], ex.body.received)
    ef_stat_add(&row.cells[C_BYTES_SENT], ex.bytes_out)
    ef_stat_add(&row.cells[C_DURATION_US], took)
    ef_stat_add(&row.cells[C_UPSTREAM_US], ex.upstream_us)
    ef_stat_add(&row.cells[C_BUCKETS + ef_stat_bucket(took)], 1)
    if (ex.rule is None or ex.rule.status) and ex.raw.size and ex.engine.policies.has_extractors():
        ex.engine.policies.cover_unrouted(ex)  # a rule with a mistake has no guard
    if ex.raw.size and not ex.down.peer.port.log_off:
        ex.engine.observer.log_exchange(ex, took)
    if ex.trace is not None and ex.trace.flags & 1:
        ex.engine.observer.record_span(ex, took)
    return 0
