# Freelist: ended exchanges, reused for new requests: allocation and release of one cost more than most of its work.
#
# In: ended exchanges. Out: exchanges as new. One is reused only when no other object refers to it. That check runs at the end of the turn,
# when no code uses the exchange. From then on it holds nothing of its request, rule and client.
# Must never give out an exchange that is still reachable, or keep more than SPARES.

cdef class Freelist(Watched):
    def __cinit__(self):
        self.find_blocks()

    def __dealloc__(self):
        self.drop_ended()
        while self.n_ready:
            self.n_ready -= 1
            Py_DECREF(<Exchange>self.ready[self.n_ready])

    cdef Exchange take(self):
        cdef Exchange ex
        if self.n_ready == 0:
            return Exchange.__new__(Exchange)
        self.n_ready -= 1
        ex = <Exchange>self.ready[self.n_ready]
        Py_DECREF(ex)
        return ex

    cdef int give(self, Exchange ex) except -1:
        if ex.compressor is not None:
            ex.compressor.end(ex)
        if self.n_ended == FREELIST_SIZE:
            return 0
        Py_INCREF(ex)
        self.ended[self.n_ended] = <PyObject *>ex
        self.n_ended += 1
        return self.reactor.mark(self)

    cdef int on_turn_end(self) except -1:
        cdef PyObject *one
        while self.n_ended:
            self.n_ended -= 1
            one = self.ended[self.n_ended]
            if self.n_ready < FREELIST_SIZE and one.ob_refcnt == 1 and (<Exchange>one)._slot < 0:
                self.renew(<Exchange>one)
                self.ready[self.n_ready] = one
                self.n_ready += 1
            else:
                Py_DECREF(<Exchange>one)
        return 0

    cdef int detach(self, bint fault) except -1:
        self.drop_ended()
        return 0

    cdef void drop_ended(self) noexcept:
        while self.n_ended:
            self.n_ended -= 1
            Py_DECREF(<Exchange>self.ended[self.n_ended])

    cdef void renew(self, Exchange ex) noexcept:
        """Reset by structure: each reference becomes None, each plain field 0; parts reset themselves."""
        out_free(&ex.head)
        out_free(&ex.raw)
        ex.body.reset()
        ex.retry.reset()
        ex.deadline = 0
        reset_fields(ex, &self.of_user)
        reset_fields(ex, &self.of_exchange)

    cdef int find_blocks(self) except -1:
        """Where the blocks of fields are. A new exchange has None in each reference and 0 in each plain field: this finds a field that is
        declared in the wrong block (upstreamuser.pxd, exchange.pxd)."""
        cdef Exchange new = Exchange.__new__(Exchange)
        cdef char *at = <char *><void *>new
        self.of_user.references = Timer.__basicsize__
        self.of_user.plain = <size_t>(<char *>&new.tried - at)
        self.of_user.end = UpstreamUser.__basicsize__
        self.of_exchange.references = self.of_user.end + EXCHANGE_PARTS * sizeof(void *)
        self.of_exchange.plain = <size_t>(<char *>&new.head - at)
        self.of_exchange.end = Exchange.__basicsize__
        if not is_new(new, &self.of_user) or not is_new(new, &self.of_exchange):
            raise AssertionError("a field of an exchange is not in the block of its kind")
        return 0


cdef extern from *:
    """
    static void ef_release_references(PyObject **slot, PyObject **end) {
        /* Most references are None already. */
    #pragma GCC unroll 8
        for (; slot < end; slot++) {
            PyObject *old = *slot;
            if (__builtin_expect(old != Py_None, 0)) {
                Py_INCREF(Py_None);
                *slot = Py_None;
                Py_DECREF(old);
            }
        }
    }
    """
    void ef_release_references(PyObject **slot, PyObject **end) noexcept


cdef void reset_fields(Exchange ex, const FieldBlocks *blocks) noexcept:
    cdef char *at = <char *><void *>ex
    cdef char *plain = at + blocks.plain
    ef_release_references(<PyObject **>(at + blocks.references), <PyObject **>plain)
    memset(plain, 0, blocks.end - blocks.plain)


cdef bint is_new(Exchange ex, const FieldBlocks *blocks) noexcept:
    cdef char *at = <char *><void *>ex
    cdef size_t i
    for i in range(blocks.references, blocks.plain, sizeof(void *)):
        if (<PyObject **>(at + i))[0] != <PyObject *>None:
            return False
    for i in range(blocks.plain, blocks.end):
        if at[i] != 0:
            return False
    return blocks.references < blocks.plain < blocks.end
