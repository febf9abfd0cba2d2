# The batch of access log lines that has not been handed over yet.

cdef class LogBatch:
    cdef:
        Engine engine
        Out out
        object sink             # takes batches of complete lines; must not block
        bint scheduled

    cdef int written(self) except -1
