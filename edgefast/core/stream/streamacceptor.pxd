# Connections of a TCP port.

cdef class StreamAcceptor(Acceptor):
    cdef:
        Engine engine
        StreamPort port

    cpdef int retire(self) except -1
