# Connect callback: the interface of an object that opens connections.

cdef class ConnectCallback(Watched):
    cdef int on_opened(self, Connection connection) except -1
    cdef int on_not_opened(self, Connection connection) except -1
