# Outlier report: reports success or failure of an attempt to its endpoint (upstream/outlier.pyx), once per attempt.
#
# In: the head of an answer, its end, or its absence. Out: one result. The head shows a failure. Only a complete answer is a success: an
# endpoint that begins every answer and ends none is unhealthy. For a gRPC call its own status counts.

cdef int report_head(Exchange ex, const uint8_t *base, ef_head *head) except -1:
    cdef int status = -1
    cdef uint16_t i
    ex.retry.called = ex.grpc and head.grpc == EF_GRPC
    if not ex.retry.called:
        return report_status(ex, head.response_status) if head.response_status >= 500 else 0
    for i in range(head.n_spans):
        if is_named(base, &head.spans[i], HASH_GRPC_STATUS, "grpc-status", 11):
            status = ef_grpc_status(base + head.spans[i].val_off, head.spans[i].val_len)
    return report_status(ex, http_equivalent(status)) if is_whole(head) else 0


cdef int report_end(Exchange ex) except -1:
    """All of it is here."""
    return report_status(ex, http_equivalent(ex.grpc_status) if ex.retry.called else 200)


cdef int report_loss(Exchange ex) except -1:
    """It never came, or not to its end."""
    cdef bint reported_outlier = ex.retry.reported
    ex.retry.reported = True
    return ex.endpoint.failed(ex.outlier, reported_outlier)


cdef int report_status(Exchange ex, int status) except -1:
    if ex.retry.reported or ex.endpoint is None:
        return 0
    ex.retry.reported = True
    return ex.endpoint.answered(ex.outlier, status)


cdef int http_equivalent(int status) noexcept:
    """What HTTP would have had for a call's own status, of those that count; -1: it has told none."""
    if status == GRPC_UNAVAILABLE:
        return 503
    if status == GRPC_DEADLINE_EXCEEDED:
        return 504
    if status == GRPC_UNIMPLEMENTED:
        return 501
    if status < 0 or status == GRPC_UNKNOWN or status == GRPC_INTERNAL or status == GRPC_DATA_LOSS:
        return 500
    return 200
