# Acceptor: a listening socket.

cdef enum Taken:
    TAKEN_ONE = 1       # one of those who waited is gone, however
    TAKEN_NONE = 0      # the queue is empty
    TAKEN_REST = -2     # it cannot be read now


cdef class Acceptor(ConnectCallback):
    cdef:
        bint inet               # TCP; else a unix socket
        bint reported               # what is wrong with the queue, since it was read last
        bint paused             # on_due goes on
        int taken               # the descriptor of the connection that is admitted
        uint64_t turn           # in which it had a burst last
        int64_t handshake_ms    # that a wire may take to open
        readonly uint64_t accepted
        readonly uint64_t turned_away   # for want of descriptors

    cdef int listen(self, Reactor reactor, int fd) except -1
    cpdef int stop(self) except -1
    cpdef int take(self, int most) except -1
    cdef int take_one(self) except -1
    cdef Taken turn_away(self) noexcept
    cdef void on_turned_away(self) noexcept
    cdef int pause(self) except -1
    cdef Session admit(self, const NetAddress *peer)
    cdef Wire wire(self)
    cdef int on_accepted(self, Connection connection) except -1
