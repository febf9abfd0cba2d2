# TLS acceptor: TLS clients of a listener's port.

cdef class TlsAcceptor(PortAcceptor):
    cdef:
        Py_ssize_t shaking_most # handshakes in the library beside a new one
        object choose           # TlsWire.choose
        NetAddress client       # the client that is being accepted
        int64_t http_ms         # TlsWire.http_ms
        StreamPort streams      # who has names on the port besides HTTPS

    cdef Py_ssize_t places(self, const NetAddress *peer) except -1


# A TLS client of a port with several kinds of listeners, until its name is known and what it has agreed on.
cdef class PendingTlsSession(Session):
    cdef:
        Engine engine
        PortTable port
