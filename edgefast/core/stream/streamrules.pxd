# Stream rules: the routing of layer 4 connections of a listener.

cdef object OF_HTTPS            # in StreamPort.names: a hostname that a listener of HTTPS has


# One share of a rule.
cdef class StreamShare:
    cdef:
        Cluster cluster         # None: the reference is invalid
        str name                # its cluster's
        int proxy_protocol      # version of the PROXY protocol that it is told; 0: none


cdef class StreamRule:
    cdef:
        list shares
        int64_t *current        # of the smooth weighted choice
        uint32_t *weights
        uint32_t n
        bytes log               # '"route":"TCPRoute ns/name","rule":0', of a log line
        bytes route             # "TCPRoute ns/name"
        int index               # of its rule
        ConnectionPolicies policies     # None: every client may connect
        Traffic traffic         # None: no policy sets anything

    cdef StreamShare pick(self, Engine engine)
    cdef bytes closed(self)
    cdef Endpoint choose(self, Cluster cluster, uint64_t tried, const uint8_t *host)
    cdef int failed(self, Endpoint endpoint) except -1
    cdef StreamShare share(self, str name)


cdef class StreamListener:
    cdef:
        readonly str name
        object spec             # ir.Listener; None until it has come, or when it is gone
        bytes hostname          # lower case; b"*" for any
        dict rules              # hostname -> StreamRule
        uint64_t serial         # no other listener of this process has or had it
        bint passes             # TLS is not terminated
        bint has_tls
        int64_t connect_timeout, idle_timeout, hello_timeout, session_timeout
        uint32_t max_connections, max_sessions, address_connections, address_rate
        int preamble            # the PROXY protocol of clients: 0 none, 1 optional, 2 required
        PreambleSenders senders # trusted peers
        bint log_off
        double log_sampling
        int log_min_status
        int64_t log_min_ms
        bytes log               # its name as a JSON string
        double traced           # share of its connections that have a span; 0: none
        uint32_t active         # connections
        dict held               # client (INET_CLIENT bytes, or 4) -> its open connections
        object silent           # OrderedDict by age: TcpProxy of whom the PROXY protocol is awaited -> None
        object __weakref__
        UdpSessionLimit seats      # of UDP: its sessions
        TcpProxyShare places     # its connections by client; None: places have not run out
        int64_t refusals_since  # ms of the wheel: when the second of `refusal_lines` began
        uint32_t refusal_lines  # log lines of refused datagrams in it

    cdef int take(self, object spec) except -1
    cdef StreamRule find(self, bytes name)
    cdef bint make_room(self, TcpProxy negotiation) except -1
    cdef int take_in(self, TcpProxy tcp_proxy) except -1
    cdef int change_client(self, TcpProxy tcp_proxy) except -1
    cdef int let_out(self, TcpProxy tcp_proxy) except -1
    cdef bint may_log_refusal(self, int64_t now) noexcept
    cdef TcpProxy to_close(self, Engine engine, bytes client)


# The listeners of one port: of TCP one, of TLS one for each hostname, beside those of HTTPS.
cdef class StreamPort:
    cdef:
        object __weakref__
        readonly int number
        object key              # (number, addresses)
        StreamListener only     # of TCP
        dict names              # hostname -> StreamListener, or OF_HTTPS
        list listeners          # those of TLS
        bint has_tls            # there are some
        # of these the largest:
        Py_ssize_t max_connections
        int64_t hello_timeout
        int preamble
        PreambleSenders senders # of the first one with a preamble; None: no listener has one

    cdef int arrange(self, list listeners, list https) except -1
    cdef object find(self, bytes name)
    cdef Py_ssize_t room(self, Engine engine, Py_ssize_t opening) except -1


cdef class StreamTables(StreamHooks):
    cdef:
        Engine engine
        dict listeners          # name -> StreamListener
        object retired          # ... of those that are gone, while somebody has them
        object ports            # (number, addresses) -> StreamPort, of TCP; those that an acceptor or a connection has
        object datagrams        # ... of UDP
        dict streams_at         # (number, addresses) -> StreamListeners
        dict datagrams_at       # ... of UDP
        dict https_at           # (number, addresses) -> hostnames of HTTPS listeners
        dict served_udp         # number of a UDP port -> the addresses of its listeners
        AddressBounds bounds

    cdef StreamListener listener(self, str name)
    cdef int forget(self, str name) except -1
    cdef StreamPort datagram_port(self, tuple key)
    cdef int arrange_port(self, StreamPort port) except -1
    cdef int arrange_datagrams(self, StreamPort port) except -1
    cdef StreamPort port(self, tuple key)


cdef inline StreamTables stream_tables_of(Engine engine):
    return <StreamTables>engine.stream_tables
