# Fault: injected delays and aborts.

cdef class InjectedFault(Fault):
    cdef:
        int64_t delay           # ms
        uint32_t delay_share    # of a million requests
        uint32_t abort_share
        int status              # of HTTP; 0: none
        int grpc_status         # of gRPC; -1: what `status` becomes

    cdef bint inject(self, Exchange ex, Routed *at, const ef_request *request) except -1
    cdef bint refuses(self, Exchange ex) noexcept
    cdef int refuse(self, Exchange ex) except -1
