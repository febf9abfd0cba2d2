# Exhausted: counters without remaining requests.

# One counter, until a moment: no need to ask.
cdef class ExhaustedLimit:
    cdef:
        readonly uint32_t limit
        readonly int64_t until  # ms of Wheel.now
        readonly uint64_t window


cdef class ExhaustedLimits:
    cdef:
        object rooms            # OrderedDict Limit.counter -> OrderedDict key -> Spent, oldest first; none is empty
        Py_ssize_t most
        readonly Py_ssize_t count
        bytes largest           # the limit that had most of them when last looked at; None: not known

    cpdef ExhaustedLimit find(self, bytes counter, bytes key, uint32_t limit, int64_t now)
    cpdef int note(self, bytes counter, bytes key, uint32_t limit, int64_t until, uint64_t window, int64_t now) except -1
    cdef int make_room(self, int64_t now) except -1
    cdef int drop(self, bytes counter, object room, bytes key) except -1
