# Port acceptor: plain clients of a listener's port.

cdef class PortAcceptor(Acceptor):
    cdef:
        Engine engine
        PortTable port
        bint retired            # ... is served under another rule now

    cpdef int retire(self) except -1


# The remaining time of a connection after the TLS rule of its port has changed.
cdef class DrainTimer(Timer):
    cdef Session session        # they refer to each other until the connection is lost

cdef int forget_connection(Engine engine, Session session) except -1

cdef int move_drain_timer(Session first, Session second) except -1

cdef int start_drain_timer(Engine engine, PortTable port, Session session) except -1
