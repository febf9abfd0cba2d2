# TLS wire: a wire with TLS.

cdef class TlsWire(TlsClientWire):
    cdef:
        ef_tls tls
        Handshakes handshakes
        TlsContext context      # None until a server knows the name
        object choose           # of a server: name -> TlsContext, None where nobody has it
        StreamPort streams      # of a server: who else has names on the port; None: nobody
        TcpProxy tcp_proxy         # of a server: what it becomes, when a listener of layer 4 has the name
        bint passes             # ... and its TLS is not ours: the hello goes on as it came
        bytes name              # a server's: what it is asked for, None: nothing; a client's: what it asks for
        bytes client            # of a server: who its client is, as the PROXY protocol says; None: the socket's
        int client_port
        int preamble            # the PROXY protocol's: 0 is none, or was there; 1 optional, 2 required before the hello
        bint trusted            # the preamble of its client is trusted
        tuple backend           # of a client: whose sessions it may use
        int64_t verified_at     # ... ms of the wheel: when its backend showed its certificate
        int64_t http_ms         # of a server: that a client of HTTPS has to be open; NEVER_MS: nobody has bounded it
        int64_t since           # ms of the wheel: accepted, or said hello
        uint32_t early          # bytes of its hello that Handshakes has counted
        Py_ssize_t shaking_most # clients in handshakes beside it
        bint is_client, is_address

    cdef int greet(self, int fd) noexcept
    cdef bint find_tcp_proxy(self, const ef_hello *hello) except -1
    cdef int await_more(self, int fd) noexcept
    cdef int read_preamble(self, int fd) noexcept
    cdef int believe(self) except -3
    cdef int connect(self, int fd) noexcept
    cdef int keep_session(self) noexcept
    cdef TlsContext find(self, const ef_hello *hello)
    cdef ssize_t settle(self, ssize_t result) noexcept
    cdef ClientCertificate read_certificate(self, bytes result)
    cdef bytes read_part(self, int part)


cdef TlsWire make_client_wire(Handshakes handshakes, TlsContext context, bytes name, str host, int port)
