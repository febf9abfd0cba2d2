# A wire that speaks TLS.

cdef class TlsWire(Wire):
    cdef:
        ef_tls tls
        Handshakes handshakes
        TlsContext context      # None until a server knows the name
        object choose           # of a server: name -> TlsContext, None where nobody has it
        bytes name              # a server's: what it is asked for, None: nothing; a client's: what it asks for
        int64_t since           # ms of the wheel: accepted, or said hello
        uint32_t early          # bytes of its hello that Handshakes has counted
        Py_ssize_t shaking_most # clients in handshakes beside it
        bint is_client, is_address

    cdef int greet(self, int fd) noexcept
    cdef int await_more(self, int fd) noexcept
    cdef TlsContext find(self, const ef_hello *hello)
    cdef ssize_t settle(self, ssize_t result) noexcept


cdef TlsWire make_client_wire(Handshakes handshakes, TlsContext context, bytes name)
