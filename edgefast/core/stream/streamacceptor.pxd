# Stream acceptor: connections of a TCP port.

cdef class StreamAcceptor(Acceptor):
    cdef:
        Engine engine
        StreamPort port

    cdef StreamListener listener_at(self)
    cpdef int retire(self) except -1
