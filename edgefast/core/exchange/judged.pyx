# What a backend's answer says of its endpoint (upstream/outlier.pyx).
#
# In: the head of an answer; of a call of gRPC what tells how it ended, which may come last. Out: one judgement for each try. Connections
# that end without an answer are judged where that is found.

cdef int judge_head(Attempts tries, const uint8_t *base, ef_head *head) except -1:
    cdef int status = -1
    cdef uint16_t i
    if not tries.grpc or head.grpc != EF_GRPC:
        return tries.endpoint.answered(tries.outlier, head.response_status)
    for i in range(head.n_spans):
        if is_named(base, &head.spans[i], HASH_GRPC_STATUS, "grpc-status", 11):
            status = ef_grpc_status(base + head.spans[i].val_off, head.spans[i].val_len)
    return judge_call(tries, status) if status >= 0 else 0


cdef int judge_call(Attempts tries, int status) except -1:
    """A call has ended with a status of its own: what HTTP would have had, of those that count."""
    cdef int same = 200
    if status == GRPC_UNAVAILABLE:
        same = 503
    elif status == GRPC_DEADLINE_EXCEEDED:
        same = 504
    elif status == GRPC_UNIMPLEMENTED:
        same = 501
    elif status < 0 or status == GRPC_UNKNOWN or status == GRPC_INTERNAL or status == GRPC_DATA_LOSS:
        same = 500
    return tries.endpoint.answered(tries.outlier, same)
