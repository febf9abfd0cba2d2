# A connection of a pool that is being made.

cdef class PoolDial(Dial):
    cdef:
        Pool pool
        Endpoint endpoint
        UpstreamUser user
        uint32_t ticket         # of the user's try that it is for
        H1Client up
        TlsWire speaks          # None: plain, or not connected yet
