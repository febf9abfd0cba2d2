# Span: the trace state of a request, and the batch of unsent spans.

cdef class Trace:
    cdef:
        uint8_t trace_id[16]
        uint8_t parent_id[8]    # of the client's span
        uint8_t span_id[8]      # of ours towards the client
        uint8_t client_id[8]    # of ours towards the backend, one for each try: what the backend is told
        uint8_t flags           # trace-flags of W3C Trace Context: bit 0 is sampled
        bint has_parent
        size_t reported_at          # where the digits of client_id are in the backend's request head; 0: nowhere
        int64_t try_began       # us; a connection to the backend was asked for. 0: no try is under way
        uint32_t tries          # that have begun
        uint32_t kept           # tries in `ended`
        Out ended               # tries that are over, as MessagePack: the first ones and the last
        size_t last_at          # where the last of them begins
        Out asked               # calls of authorisation services that it waited for, as MessagePack
        uint32_t n_asked        # of them
        bytes state             # tracestate, as it came


cdef class SpanBatch:
    cdef:
        Engine engine
        Out out                 # MessagePack: an array of spans, its length filled in at the end
        uint32_t count
        object sink             # takes a batch; must not block. None: nobody is there to take spans
        bint scheduled

    cdef void open(self) noexcept
    cdef int written(self) except -1
