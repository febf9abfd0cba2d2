# HTTP/2: begins HTTP/2 on connections of clients and of backends, for the fast path (hooks.pxd).

cdef class Http2(Http2Hooks):
    def __cinit__(self):
        self.memory = H2MemoryBudget()

    cdef bint is_agreed(self, H1Server first) noexcept:
        return h2_is_agreed(first)

    cdef int switch(self, H1Server first) except -1:
        return h2_switch(first)

    cdef int may_switch(self, H1Server first, const uint8_t *data, size_t n) except -1:
        return h2_may_switch(first, data, n)

    cdef MultiplexedSession make_client(self, Endpoint endpoint, HttpSettings settings, object tls, str sni, PoolDial dial):
        cdef H2Client session = H2Client.__new__(H2Client, dial.pool.engine, endpoint, settings)
        session.tls = tls
        session.sni = sni
        session.dial = dial
        return session

    cdef size_t open_streams(self) noexcept:
        return self.memory.streams
