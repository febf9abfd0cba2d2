# Freelist: ended exchanges, reused for new requests.

cdef class Freelist(Watched):
    cdef:
        PyObject *ended[64]     # SPARES; of this turn: whoever ended them may have them in hand
        PyObject *ready[64]     # as new
        int n_ended, n_ready
        Exchange new            # what as new means; nobody's request
        size_t size             # bytes of one

    cdef Exchange take(self)
    cdef int give(self, Exchange ex) except -1
    cdef void drop_ended(self) noexcept
    cdef void renew(self, Exchange ex) noexcept
