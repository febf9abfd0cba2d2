# Body buffer: memory of a worker for bodies that are buffered whole.

cdef class BodyBuffer:
    cdef:
        Engine engine
        size_t held         # bytes, of all bodies
        dict borrowers      # Exchange -> None, in the order in which they came
        dict late           # Cluster -> deque of its Exchange that did not come when they were last looked at; the furthest behind first
        int64_t look_at     # ms; before then it is not looked again

    cdef bint reserve(self, Exchange ex, size_t more) except -1
    cdef bint has_room(self, Cluster cluster, size_t more) noexcept
    cdef bint make_room(self, Exchange ex) except -1
    cdef Exchange find(self, Cluster cluster, int64_t until, Exchange requester)
    cdef int look(self) except -1
    cdef int give_back(self, Exchange ex) except -1
