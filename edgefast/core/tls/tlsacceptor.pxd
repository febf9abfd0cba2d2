# TLS clients of a listener's port.

cdef class TlsAcceptor(PortAcceptor):
    cdef:
        Py_ssize_t shaking_most # handshakes in the library beside a new one
        object choose           # TlsWire.choose
