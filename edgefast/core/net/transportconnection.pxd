# A connection on a transport of the loop.

cdef class TransportConnection(Connection):
    cdef:
        Engine engine
        object transport
        bint spilled        # the transport may hold unsent bytes
