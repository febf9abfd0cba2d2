# Freelist: ended exchanges, reused for new requests: allocation and release of one cost more than most of its work.
#
# In: ended exchanges. Out: exchanges as new. One is reused only when no other object refers to it. That check runs at the end of the turn,
# when no code uses the exchange. From then on it holds nothing of its request, rule and client.
# Must never give out an exchange that is still reachable, or keep more than SPARES.

cdef class Freelist(Watched):
    def __cinit__(self):
        self.new = Exchange.__new__(Exchange)
        self.size = Exchange.__basicsize__

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
        """Whatever it refers to is let go of by name; the rest is what a new one has. A reference that is not named here would be lost, and
        its object stay for ever, but no request would see another one's."""
        cdef size_t first = <size_t>(<char *>&ex._previous - <char *><void *>ex)
        out_free(&ex.head)
        out_free(&ex.body)
        out_free(&ex.trailers)
        out_free(&ex.raw)
        ex.engine = None
        ex.settings = None
        ex.up = None
        ex.endpoint = None
        ex.tried_past = None
        ex.bound = None
        ex.outlier = None
        ex.breaker = None
        ex.check = None
        ex.window = None
        ex.zones = None
        ex.client_queue = None
        ex.place = None
        ex.sender = None
        ex.down = None
        ex.rule = None
        ex.backend = None
        ex.up_protocol = None
        ex.web = None
        ex.slow = None
        ex.mirrors = None
        ex.sets = None
        ex.filter_lines = None
        ex.auth_result = None
        ex.auth_flow = None
        ex.override = None
        ex.compressor = None
        ex.accepts = None
        ex.validators = None
        ex.new_cookies = None
        ex.session = None
        ex.decision = None
        ex.joined_share = None
        ex.listener = None
        ex.asked = None
        ex.kept = None
        ex.refuser = None
        ex.refuser_rule = None
        ex.token = None
        ex.token_unit = None
        ex.user = None
        ex.trace = None
        ex.cors_lines = None
        ex.own_ops = None
        ex.client = None
        ex.received = None
        ex.forwarded_host = None
        memcpy(<char *><void *>ex + first, <char *><void *>self.new + first, self.size - first)
