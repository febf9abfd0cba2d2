# Dial: one connect in progress.

cdef class Dial(ConnectCallback):
    cdef:
        Session session         # of the connection to be
        SocketName to
        int64_t give_up         # ms of the wheel
        End why                 # END_NONE: under way, or connected
        int error

    cdef int begin(self, Reactor reactor, bytes host, int port, Session session, int64_t timeout) except -1
    cdef int connect_now(self, bytes host, int port) except -1
    cdef int attempt(self) except -1
    cdef int on_connected(self) except -1
    cdef int end(self, End why, int error) except -1
    cdef Wire wire(self)
    cdef int on_failed(self, End why, int error) except -1
