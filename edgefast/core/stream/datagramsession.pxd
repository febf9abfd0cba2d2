# Datagram session: one client's datagrams to one backend, and the answers.

cdef class DatagramSession(Watched):
    cdef:
        DatagramPort owner
        bytes key
        StreamListener listener
        StreamRule rule
        StreamShare share
        Cluster cluster
        Endpoint endpoint       # None: not yet
        bint chosen             # its load counts us
        uint64_t awaited        # answers: one for each datagram that its backend has and has not answered
        bint answered
        bint proven             # its client has spoken again after an answer
        bint left               # its client has another session now, or its port is gone
        NetAddress client
        ef_udp_way way          # where answers go, and from which address
        bytes client_key
        int64_t began           # us
        int64_t spoke           # ms of the wheel: its client's last datagram
        uint64_t received, sent, datagrams_in, datagrams_out
        TcpProxyEnd why
        bytes refusal           # PE_DENIED: by what, as members of its log line
        uint64_t admitted_at    # epoch of policies

    cdef bint connect(self, uint64_t tried) except -1
    cdef bint stands(self) except -1
    cdef bint admitted(self) except -1
    cdef bint move(self) except -1
    cdef int disconnect(self) except -1
    cdef int on_refused(self) except -1
    cdef int give(self, int first, int n) except -1
    cdef int afford(self, int n) noexcept
    cdef int leave(self) except -1
    cdef int end(self, TcpProxyEnd why) except -1
