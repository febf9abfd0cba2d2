# Plain clients of a listener's port.

cdef class PortAcceptor(Acceptor):
    cdef:
        Engine engine
        PortTable port
        bint retired            # ... is served under another rule now

    cpdef int retire(self) except -1
