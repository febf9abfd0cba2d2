# Freelist: ended exchanges, reused for new requests.

cdef enum:
    EXCHANGE_PARTS = 2          # Body, RetryState: they stay with their exchange


# Fields that a class declares, as offsets in its objects: references, then plain fields.
cdef struct FieldBlocks:
    size_t references
    size_t plain
    size_t end


cdef class Freelist(Watched):
    cdef:
        PyObject *ended[64]     # SPARES; of this turn: whoever ended them may have them in hand
        PyObject *ready[64]     # as new
        int n_ended, n_ready
        FieldBlocks of_user     # of UpstreamUser
        FieldBlocks of_exchange

    cdef Exchange take(self)
    cdef int give(self, Exchange ex) except -1
    cdef void drop_ended(self) noexcept
    cdef void renew(self, Exchange ex) noexcept
    cdef int find_blocks(self) except -1
