# gRPC retry: retries gRPC calls by their status (EdgeProxy spec.grpc.retry, docs/guides/grpc.md).
#
# In: an attempt that ended before the client received anything: a head without messages ("Trailers-Only"), a head that is not gRPC, or no
# head.
# Out: whether the call goes to a backend again, and after which delay. The rules are those of gRPC clients (grpc/proposal A6). A head with
# messages behind it belongs to the client. The retry budget is the cluster's.

cdef uint32_t HASH_GRPC_PUSHBACK = ef_name_hash(<const uint8_t *>b"grpc-retry-pushback-ms", 22)


cdef bint grpc_repeats(Exchange ex, int status) except -1:
    """A call that ends like this goes to a backend again."""
    if not ex.settings.grpc_codes >> <uint32_t>status & 1 or not ex.retry.may_retry(ex, ex.settings.grpc_attempts):
        return False
    ex.engine.count(G_GRPC_RETRIES)
    return True


cdef int64_t grpc_repeats_after(Exchange ex, const uint8_t *base, ef_head *head) except -2:
    """The pause after an answer like this, in ms; -1: it is the client's."""
    cdef int64_t wait = -1
    cdef int status = -1
    cdef ef_span *span
    cdef uint16_t i
    if head.grpc != EF_GRPC:
        status = mapped_status(head.response_status) if head.response_status != 200 else -1
    elif is_whole(head):
        for i in range(head.n_spans):
            span = &head.spans[i]
            if is_named(base, span, HASH_GRPC_STATUS, "grpc-status", 11):
                status = ef_grpc_status(base + span.val_off, span.val_len)
            elif is_named(base, span, HASH_GRPC_PUSHBACK, "grpc-retry-pushback-ms", 22):
                wait = milliseconds(base + span.val_off, span.val_len)
                if wait < 0:
                    return -1  # the backend does not want it
    if status <= GRPC_OK or status > GRPC_UNAUTHENTICATED or not grpc_repeats(ex, status):
        return -1
    return wait if wait >= 0 else ex.retry.backoff(ex, ex.settings.grpc_backoff)


cdef inline bint is_whole(const ef_head *head) noexcept:
    """The head of an answer is all of it."""
    return head.body == EF_BODY_NONE or (head.body == EF_BODY_LENGTH and head.content_length == 0)


cdef int64_t milliseconds(const uint8_t *text, size_t n) noexcept:
    """A number of at most GRPC_PUSHBACK_MS; -1: it is none, or a longer time than anybody is kept here."""
    cdef int64_t number = 0
    cdef size_t i
    if n == 0 or n > 5:
        return -1
    for i in range(n):
        if text[i] < c"0" or text[i] > c"9":
            return -1
        number = number * 10 + text[i] - c"0"
    return number if number <= GRPC_PUSHBACK_MS else -1
