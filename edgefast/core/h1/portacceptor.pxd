# Plain clients of a listener's port.

cdef class PortAcceptor(Acceptor):
    cdef:
        Engine engine
        PortTable port
