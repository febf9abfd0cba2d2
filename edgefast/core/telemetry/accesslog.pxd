# Access log: the batch of unsent access log lines.

cdef class LogBatch:
    cdef:
        Engine engine
        Out out
        object sink             # takes batches of complete lines; must not block
        bint scheduled

    cdef int written(self) except -1
