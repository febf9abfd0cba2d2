# Pool dial: a new connection of a pool.

cdef class PoolDial(Dial):
    cdef:
        Pool pool
        Endpoint endpoint
        UpstreamUser user       # whose it is; None: of those in turns
        uint32_t ticket         # of the user's try that it is for
        TlsClientWire speaks          # None: plain, or not connected yet
        DialQueue queue         # who waits for it, when it may be for many; None: it is for one
        Outlier outlier         # of whose it was at first
        ProtocolNegotiation fresh          # the session before it is known what is spoken
        H1Client up             # ... and when that is HTTP/1.1
        bint refused            # the backend speaks, but not what it has to

    cdef int on_ready(self, MultiplexedSession session) except -1
    cdef int on_refused(self) except -1
    cdef UpFailure tls_failure(self) except *


# Who waits for one connection that may be for all of them: each is chosen for its endpoint already.
cdef class DialQueue(FairQueue):
    cdef:
        Endpoint endpoint
        UpstreamUser served     # whose turn it is: it goes on

cdef int count_tls_failure(Cluster cluster, TlsClientWire wire) except -1

cdef bint is_own_fault(int error) noexcept
