# Span: the batch of unsent spans.

cdef class SpanBatch:
    cdef:
        Engine engine
        Out out                 # MessagePack: an array of spans, its length filled in at the end
        uint32_t count
        object sink             # takes a batch; must not block. None: nobody is there to take spans
        bint scheduled

    cdef void open(self) noexcept
    cdef int written(self) except -1
