# Address bound: the limits of one client address at a listener.

cdef struct RateSlot:
    uint64_t tag                # of listener and address; 0: free
    int64_t due                 # us: when it may begin the next connection, had it used all it may


cdef class AddressBounds:
    cdef:
        RateSlot *slots         # NULL until a listener has such a limit

    cdef bint may_begin(self, StreamListener listener, const uint8_t *host, int64_t now) except -1
    cdef bint enter(self, StreamListener listener, bytes client) except -1
    cdef int leave(self, StreamListener listener, bytes client) except -1
