# Datagrams: of a port, in sessions: one for each client address and port, and local address.

cdef class DatagramPort(Watched):
    cdef:
        Engine engine
        StreamPort port
        ef_udp_batch *batch     # NULL: not listening yet
        dict sessions           # key (write_datagram_key) -> DatagramSession
        bint stopped            # nothing is read any more: answers that are awaited still go out
        readonly uint64_t accepted, turned_away

    cdef int listen(self, Reactor reactor, int fd) except -1
    cpdef int take(self, int most) except -1
    cpdef int stop(self) except -1
    cpdef int retire(self) except -1
    cdef int pass_on(self, int n) except -1
    cdef int serve(self, StreamListener listener, bytes key, int first, int n) except -1
    cdef DatagramSession begin(self, StreamListener listener, bytes key, const NetAddress *client, const ef_udp_way *way)
    cdef DatagramSession make_session(self, StreamListener listener, bytes key, const NetAddress *client, const ef_udp_way *way)
    cdef int let_in(self, StreamListener listener, bytes who, const NetAddress *client) except -1
    cdef int part(self) except -1
    cdef int lost(self, DatagramSession session) except -1
