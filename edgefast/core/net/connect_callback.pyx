# Connect callback: called once per connection with the result of the connect: a wire may have a handshake to do.

cdef class ConnectCallback(Watched):
    cdef int on_opened(self, Connection connection) except -1:
        """After its session's on_open."""
        return 0

    cdef int on_not_opened(self, Connection connection) except -1:
        """connection.why says why. Its session has heard nothing, unless on_open itself ended it."""
        return 0
