# TCP proxy: one proxied connection.

cdef enum TcpProxyState:
    TCP_PROXY_PREAMBLE = 0    # waits for the PROXY protocol
    TCP_PROXY_CONNECTING = 1  # ... for a backend
    TCP_PROXY_OPEN = 2
    TCP_PROXY_LEFT = 3        # one side is gone before its end: the other one gets what is left, and is reset then
    TCP_PROXY_CLOSING = 4     # both have said their last, or it was ended
    TCP_PROXY_OVER = 5


# How it ended: places in TCP_PROXY_ENDS (telemetry/response_flags.pyx).
cdef enum TcpProxyEnd:
    PE_NONE = 0
    PE_DONE                 # both sides have ended what they send
    PE_CLIENT               # the client reset it, or is gone
    PE_BACKEND              # the backend did
    PE_IDLE                 # not a byte for too long
    PE_STALLED              # a side took no bytes for too long
    PE_DRAINED              # the worker ends
    PE_FAULT
    # before a byte of the client's was sent on:
    PE_TOO_MANY             # maxConnections
    PE_ADDRESS_CONNECTIONS
    PE_ADDRESS_RATE
    PE_PREAMBLE             # the PROXY protocol was not kept, or came too late
    PE_NO_ROUTE
    PE_NO_BACKEND           # the share's reference is invalid, or no share has a weight
    PE_NO_ENDPOINT
    PE_CONNECT              # no endpoint took it
    PE_CONNECT_TIMEOUT
    PE_BACKEND_TLS
    # of a session of UDP, mostly:
    PE_GAVE_WAY             # for another client's sake (of TCP: while the PROXY protocol is awaited)
    PE_BACKEND_GONE         # its endpoint is gone
    PE_TLS_CHANGED          # its client's TLS was made under a rule that is no more
    PE_DENIED               # a policy of its route
    PE_COUNT


# Either side of a TCP proxy.
cdef class TcpProxySide(Session):
    cdef:
        TcpProxy tcp_proxy         # None: it is over for this side
        TcpProxySide other
        bint lost
        bint waits              # it has not taken all that it was given, when it was looked at last
        int64_t taken           # bytes that it had taken then, of those that were passed on to it
        int64_t took_at         # ms of the wheel: when it was seen last to take some, or to have taken all

    cdef bint relays(self) noexcept
    cdef int pass_on(self, const uint8_t *data, size_t n) except -1
    cdef int64_t given(self) noexcept
    cdef bint look(self, int64_t now) noexcept


cdef class TcpProxyDownstream(TcpProxySide):
    pass


cdef class TcpProxyUpstream(TcpProxySide):
    pass


cdef class TcpProxyDial(Dial):
    cdef:
        TcpProxy tcp_proxy
        Endpoint endpoint
        object context          # of its cluster, when it began; None: plain
        str sni
        TlsClientWire speaks          # None: plain, or not connected yet
        bint called_off
        bint stale              # its cluster has other TLS, or its endpoint is gone

    cdef int take_terms(self, Cluster cluster) except -1
    cdef bint keeps_terms(self) except -1
    cdef int call_off(self) except -1


cdef class TcpProxyShare(ClientShare):   # members: TcpProxy, of one listener
    cdef int64_t flushed_at(self, TcpProxy tcp_proxy) noexcept


cdef class TcpProxy(Timer):
    cdef:
        Engine engine
        StreamListener listener
        StreamRule rule         # None until it is chosen
        StreamShare share
        Cluster cluster
        Endpoint endpoint       # chosen last; while `chosen` its load counts us
        bint chosen
        TcpProxyDownstream down
        TcpProxyUpstream up
        TcpProxyDial dial        # under way
        TcpProxyState state
        TcpProxyEnd why
        bint counted            # among the listener's connections
        bytes client_key        # counted among the address' connections; None: not
        NetAddress client       # as the PROXY protocol or the socket says
        bytes refusal           # PE_DENIED: by what, as members of its log line
        bytes sni, alpn         # as the hello has them; None: none, or no TLS
        uint64_t tried          # places of endpoints that were asked, in the set of this version
        uint32_t tried_at, asked    # which version; how many of it
        int tries
        int64_t give_up         # ms of the wheel: for all tries
        int64_t began           # us
        int64_t connected       # us; 0: never
        uint64_t received, sent # bytes from and to the client
        int64_t silent_since    # ms of the wheel: TCP_PROXY_PREAMBLE
        object port             # key of the StreamPort of whose TLS its client's is; None: none
        int64_t idle_by         # ms of the wheel: when nothing has come for too long
        int64_t look_at         # ... when it is looked again whether a side takes what waits for it; 0: nobody is waited for

    cdef int begin(self) except -1
    cdef ssize_t on_preamble(self, const uint8_t *data, size_t n) except -1
    cdef bint admit(self, bint counts=*) except -1
    cdef int enter(self) except -1
    cdef int refuse(self, TcpProxyEnd why) except -1
    cdef int connect(self) except -1
    cdef int choose_again(self) except -1
    cdef int dial_next(self) except -1
    cdef int on_dial_failed(self, End why, bint stale) except -1
    cdef void note_asked(self) noexcept
    cdef int release_endpoint(self) except -1
    cdef int on_connected(self) except -1
    cdef inline int touch(self) except -1
    cdef int watch(self) except -1
    cdef int look(self, int64_t now) except -1
    cdef int on_side_ended(self, TcpProxySide side) except -1
    cdef int on_side_lost(self, TcpProxySide side, Connection connection) except -1
    cdef int on_due(self, int64_t now) except -1
    cdef int look_at_left(self) except -1
    cdef TcpProxySide remaining(self)
    cdef int end(self, TcpProxyEnd why) except -1
    cdef int part(self) except -1
    cdef int uncount(self) except -1
    cdef int retire(self, object port) except -1
    cdef int over(self) except -1
    cdef int stop(self) except -1
