# Who makes connections.

cdef class Opener(Watched):
    cdef int on_opened(self, Connection connection) except -1
    cdef int on_not_opened(self, Connection connection) except -1
