# Stream rules: the tables of layer 4: from a port, and the server name of TLS, to a listener, a rule, and a share of its connections.
#
# In: ir.StreamRoute and ir.Listener as applied. Out: a StreamRule and one of its shares. A replaced or removed rule goes on for the
# connections that it has begun.
# Must never resolve a name, or keep what no listener and no connection uses.

_decode_stream_route = msgspec.msgpack.Decoder(ir.StreamRoute).decode
cdef uint64_t STREAM_SERIALS = 0
OF_HTTPS = object()  # a name that a listener of HTTPS has


cdef tuple covering_key(tuple key, dict served):
    """The key of the listeners that are served at all addresses of a key; the key itself if no listeners are."""
    cdef list found = served.get(key[0], [])
    if key[1] in found:
        return key
    for addresses in found:  # no two have an address in common
        if not addresses or (key[1] and set(key[1]) <= set(addresses)):
            return key[0], addresses
    return key


cdef dict addresses_by_port(object keys):
    cdef dict found = {}
    for number, addresses in sorted(set(keys)):
        found.setdefault(number, []).append(addresses)
    return found


cdef class StreamShare:
    pass


cdef class StreamRule:
    def __init__(self, Engine engine, object spec):
        cdef StreamShare share
        cdef uint32_t i
        chosen = [one for one in spec.backends if one.weight > 0]
        self.n = <uint32_t>len(chosen)
        self.current = <int64_t *>calloc(self.n + 1, sizeof(int64_t))
        self.weights = <uint32_t *>calloc(self.n + 1, sizeof(uint32_t))
        if self.current == NULL or self.weights == NULL:
            raise MemoryError
        self.shares = []
        for i in range(self.n):
            share = StreamShare.__new__(StreamShare)
            share.name = chosen[i].cluster
            share.proxy_protocol = {"": 0, "v1": 1, "v2": 2}[chosen[i].proxy_protocol]
            self.weights[i] = chosen[i].weight
            self.shares.append(share)
        self.log = b'"route":%b,"rule":%d' % (json_encode(spec.route), spec.index)
        self.route = spec.route.encode()
        self.index = spec.index
        self.policies = engine.policies.make_connection_policies(spec.policies) if spec.policies else None
        self.traffic = Traffic(engine, spec, -1, 0) if spec.traffic else None

    def __dealloc__(self):
        free(self.current)
        free(self.weights)

    cdef StreamShare pick(self, Engine engine):
        """The share whose turn it is; None when there is none, or nobody stands behind it."""
        cdef int i = ef_pick_wrr(self.current, self.weights, self.n) if self.n else -1
        cdef StreamShare share
        if i < 0:
            return None
        share = self.shares[i]
        if share.cluster is None and share.name:
            share.cluster = engine.tables.cluster(share.name)
        return share if share.cluster is not None else None

    cdef bytes closed(self):
        """The traffic unit that closes the rule, as a member of a log line; None: all are valid."""
        cdef Policy unit
        if self.traffic is None or self.traffic.refresh():
            return None
        unit = self.traffic.closed
        ef_stat_add(&unit.row.cells[P_ERROR], 1)
        return b'"policy":%b' % unit.log

    cdef Endpoint choose(self, Cluster cluster, uint64_t tried, const uint8_t *host):
        """One of a cluster of the rule, for a client; None: it has none."""
        return self.traffic.choose_endpoint(cluster, tried, host) if self.traffic is not None else choose_near(cluster, tried)

    cdef int failed(self, Endpoint endpoint) except -1:
        """The endpoint did not accept."""
        return endpoint.failed(self.traffic.outlier if self.traffic is not None else None, False)

    cdef StreamShare share(self, str name):
        """The one of this cluster; None: it has none."""
        cdef StreamShare share
        for share in self.shares:
            if share.name == name:
                return share
        return None


cdef class StreamListener:
    def __cinit__(self, str name):
        global STREAM_SERIALS
        STREAM_SERIALS += 1
        self.serial = STREAM_SERIALS
        self.name = name
        self.log = json_encode(name)
        self.hostname = b"*"
        self.rules = {}
        self.held = {}
        self.silent = OrderedDict()
        self.seats = UdpSessionLimit()

    cdef int take(self, object spec) except -1:
        stream = spec.stream
        log = spec.access_log
        self.hostname = spec.hostname.lower().encode()
        self.has_tls = spec.protocol == "TLS"
        self.passes = self.has_tls and spec.tls is None
        self.connect_timeout = stream.connect_timeout or NEVER_MS
        self.idle_timeout = stream.idle_timeout or NEVER_MS
        self.hello_timeout = stream.hello_timeout or NEVER_MS
        self.session_timeout = stream.session_timeout or NEVER_MS
        self.max_connections = stream.max_connections
        self.max_sessions = stream.max_sessions
        self.address_connections = stream.address_connections
        self.address_rate = stream.address_rate
        self.preamble = {"off": 0, "optional": 1, "required": 2}[spec.http.client_address.proxy_protocol]
        self.senders = PreambleSenders(spec.http.client_address.proxy_senders)
        self.log_off = log.off
        self.log_sampling = log.sampling
        self.log_min_status = log.min_status
        self.log_min_ms = log.min_duration
        self.traced = spec.tracing.sampling if spec.tracing is not None and spec.tracing.connections else 0.0
        self.spec = spec
        return 0

    cdef StreamRule find(self, bytes name):
        """The rule for a name that was asked for, in lower case: its own, that of ever shorter wildcards, then anybody's."""
        found = self.rules.get(name) if name else None
        rest = name or b""
        while found is None and b"." in rest:
            rest = rest.partition(b".")[2]
            found = self.rules.get(b"*." + rest)
        return found if found is not None else self.rules.get(b"*")

    cdef bint make_room(self, TcpProxy negotiation) except -1:
        """Reserve a place for one more connection. If all are in use, close the connection that has waited longest for its PROXY protocol
        header, or one of the client with most."""
        cdef Engine engine = negotiation.engine
        cdef TcpProxyShare places
        cdef TcpProxy oldest
        if self.active < self.max_connections:
            return True
        if self.silent:
            oldest = next(iter(self.silent))
            if engine.wheel.now - oldest.silent_since >= HANDSHAKE_GRACE_MS:
                oldest.refuse(PE_GAVE_WAY)
                oldest.uncount()
                return self.active < self.max_connections
        oldest = self.to_close(engine, address_key(negotiation.client.host))
        if oldest is None:
            return False
        places = self.places  # that call may delete it
        places.preempt(oldest)
        return self.active < self.max_connections

    cdef int take_in(self, TcpProxy tcp_proxy) except -1:
        """It has a place."""
        tcp_proxy.counted = True
        self.active += 1
        return self.places.enter(address_key(tcp_proxy.client.host), tcp_proxy) if self.places is not None else 0

    cdef int change_client(self, TcpProxy tcp_proxy) except -1:
        """The PROXY protocol header has set the client address."""
        if self.places is not None and self.places.leave(tcp_proxy):
            self.places.enter(address_key(tcp_proxy.client.host), tcp_proxy)
        return 0

    cdef int let_out(self, TcpProxy tcp_proxy) except -1:
        """It releases its place."""
        tcp_proxy.counted = False
        self.active -= 1
        if self.places is not None:
            self.places.leave(tcp_proxy)
            if <uint64_t>self.active * 4 < self.max_connections:
                self.places = None
        return 0

    cdef bint may_log_refusal(self, int64_t now) noexcept:
        """Whether a refused datagram gets a log line. The address of a datagram can be forged, and their number has no limit."""
        if now - self.refusals_since >= 1000:
            self.refusals_since = now
            self.refusal_lines = 0
        self.refusal_lines += 1
        return self.refusal_lines <= REFUSAL_LINES

    cdef TcpProxy to_close(self, Engine engine, bytes client):
        """The connection to close for a new one of this client. A client that holds a large part of the places loses an idle one, or any
        if it has more than twice as many. Other clients lose one that has been idle for long. None: no connection may be closed."""
        cdef TcpProxy tcp_proxy
        cdef int64_t now = engine.wheel.now
        cdef uint32_t held, part = <uint32_t>(self.max_connections // EVICTION_PART + 1)
        if self.places is None:
            self.places = TcpProxyShare.__new__(TcpProxyShare)
            for tcp_proxy in engine.streams:
                if tcp_proxy.listener is self and tcp_proxy.counted:
                    self.places.enter(address_key(tcp_proxy.client.host), tcp_proxy)
        held = self.places.held(client)
        tcp_proxy = self.places.first(max(held + 2, part), now - STREAM_QUIET_MS)
        if tcp_proxy is None:
            tcp_proxy = self.places.first(max(2 * held + 3, part), now)
        return tcp_proxy if tcp_proxy is not None else self.places.first(held + 2, now - STREAM_REST_MS)


# Places of a listener's connections (EdgeProxy spec.stream.maxConnections), which client addresses share (share/client_share.pyx).
cdef class TcpProxyShare(ClientShare):
    cdef int64_t inactive_since(self, object member) except -2:
        cdef TcpProxy tcp_proxy = <TcpProxy>member
        if tcp_proxy.state == TCP_PROXY_OPEN:
            return max(tcp_proxy.idle_by - tcp_proxy.listener.idle_timeout, <int64_t>0)
        if tcp_proxy.state == TCP_PROXY_PREAMBLE:
            return tcp_proxy.silent_since
        if tcp_proxy.state == TCP_PROXY_LEFT:
            return tcp_proxy.remaining().took_at
        return self.flushed_at(tcp_proxy) if tcp_proxy.state == TCP_PROXY_CLOSING else -1

    cdef int preempt(self, object member) except -1:
        cdef TcpProxy tcp_proxy = <TcpProxy>member
        tcp_proxy.uncount()
        if tcp_proxy.state != TCP_PROXY_CLOSING:
            return tcp_proxy.end(PE_GAVE_WAY)
        if self.flushed_at(tcp_proxy):
            tcp_proxy.why = PE_GAVE_WAY
        reset_connection(tcp_proxy.up.connection)
        return reset_connection(tcp_proxy.down.connection)

    cdef int64_t flushed_at(self, TcpProxy tcp_proxy) noexcept:
        """TCP_PROXY_CLOSING: ms of the wheel since which no side has read its remaining bytes; 0: no bytes remain."""
        cdef TcpProxySide side
        cdef int64_t last = 0
        for side in (tcp_proxy.down, tcp_proxy.up):
            if side.connection is not None and side.connection.unsent():
                last = max(last, side.connection.took_at)
        return last


cdef class StreamPort:
    def __cinit__(self, tuple key):
        self.key = key
        self.number = key[0]
        self.names = {}
        self.listeners = []

    cdef int arrange(self, list listeners, list https) except -1:
        """Take the listeners of this port, in the order of the table, and the hostnames of its HTTPS listeners."""
        cdef StreamListener listener
        self.only = None
        self.listeners = []
        self.max_connections = self.hello_timeout = self.preamble = 0
        self.senders = None
        self.names = {name: OF_HTTPS for name in https}
        for listener in listeners:
            if listener.has_tls:
                self.names.setdefault(listener.hostname, listener)
                self.listeners.append(listener)
                self.max_connections = max(self.max_connections, listener.max_connections)
                self.hello_timeout = max(self.hello_timeout, listener.hello_timeout)
                if listener.preamble and self.senders is None:
                    self.senders = listener.senders  # settings belong to the port
                self.preamble = max(self.preamble, listener.preamble)
            elif self.only is None:
                self.only = listener
        self.has_tls = bool(self.listeners)
        return 0

    cdef Py_ssize_t room(self, Engine engine, Py_ssize_t opening) except -1:
        """How many more connections a TLS listener may have, beside `opening` ones. Includes places that clients with many would lose
        to others."""
        cdef StreamListener listener
        cdef Py_ssize_t most = 0
        for listener in self.listeners:
            most = max(most, <Py_ssize_t>listener.max_connections - <Py_ssize_t>listener.active - opening)
        if most <= 0:
            for listener in self.listeners:
                if listener.to_close(engine, b"") is not None:
                    most = max(most, <Py_ssize_t>listener.places.most().count // 2)
        return most

    cdef object find(self, bytes name):
        """The listener of the most specific hostname: a StreamListener, OF_HTTPS, or None. b"": no name was asked for."""
        found = self.names.get(name) if name else None
        rest = name or b""
        while found is None and b"." in rest:
            rest = rest.partition(b".")[2]
            found = self.names.get(b"*." + rest)
        return found if found is not None else self.names.get(b"*")


cdef class StreamTables:
    def __cinit__(self, Engine engine):
        self.engine = engine
        self.bounds = AddressBounds()
        self.listeners = {}
        self.retired = WeakValueDictionary()
        self.ports, self.datagrams = WeakValueDictionary(), WeakValueDictionary()
        self.streams_at, self.datagrams_at, self.https_at, self.served, self.served_udp = {}, {}, {}, {}, {}

    cdef StreamListener listener(self, str name):
        found = self.listeners.get(name)
        if found is None:
            found = self.retired.pop(name, None) or StreamListener(name)  # with what it has open
            self.listeners[name] = found
        return found

    cdef int change_route(self, str op, str name, uint64_t offset, uint64_t length) except -1:
        cdef StreamListener listener
        owner, _, hostname = name.rpartition("/")
        key = hostname.encode()
        if op == "del":
            listener = self.listeners.get(owner)
            if listener is not None:
                listener.rules.pop(key, None)
                self.forget(owner)
            return 0
        spec = _decode_stream_route(self.engine.tables.at(offset, length)[:length])
        if spec.listener != owner or spec.hostname != hostname:
            raise ValueError("the record belongs to another listener or hostname")
        rule = StreamRule(self.engine, spec)
        self.listener(owner).rules[key] = rule
        return 0

    cdef bint change_listener(self, str op, str name, object spec) except -1:
        """True: it is one of these."""
        cdef StreamListener listener = self.listeners.get(name)
        if op == "put" and spec.protocol in ("TLS", "TCP", "UDP"):
            self.listener(name).take(spec)
            return True
        if listener is not None:
            listener.spec = None
            listener.traced = 0.0
            self.forget(name)
        return False

    cdef int forget(self, str name) except -1:
        """Of a listener that is gone its rules may be, too: then nothing is left of it but its connections."""
        cdef StreamListener listener = self.listeners[name]
        if listener.spec is None and not listener.rules:
            self.retired[name] = self.listeners.pop(name)
        return 0

    cdef int arrange(self, dict https, dict http) except -1:
        """https: (port, addresses) -> hostnames of its HTTPS listeners. http: the keys of all listeners of HTTP."""
        cdef StreamListener listener
        cdef dict streams = {}, datagrams = {}
        for name in sorted(self.listeners):
            listener = self.listeners[name]
            if listener.spec is not None:
                group = datagrams if listener.spec.protocol == "UDP" else streams
                group.setdefault((listener.spec.port, listener.spec.addresses), []).append(listener)
        self.streams_at, self.datagrams_at, self.https_at = streams, datagrams, https
        self.served, self.served_udp = addresses_by_port([*streams, *http]), addresses_by_port(datagrams)
        for port in list(self.ports.values()):
            self.arrange_port(port)
        for port in list(self.datagrams.values()):
            self.arrange_datagrams(port)
        return 0

    cdef int arrange_port(self, StreamPort port) except -1:
        key = covering_key(port.key, self.served)
        return port.arrange(self.streams_at.get(key, []), self.https_at.get(key, []))

    cdef int arrange_datagrams(self, StreamPort port) except -1:
        return port.arrange(self.datagrams_at.get(covering_key(port.key, self.served_udp), []), [])

    cdef tuple key_at(self, int number, const NetAddress *local):
        """The key of the listeners that a TCP port has at a local address; None: it has none there."""
        cdef str host = inet_text(local.host).decode() if local.kind == ADDRESS_INET else ""
        for addresses in self.served.get(number, ()):
            if not addresses or host in addresses:
                return number, addresses
        return None

    cdef tuple covering_key(self, tuple key):
        return covering_key(key, self.served)

    cdef list hostnames(self, tuple key):
        """What listeners of TLS have on a port."""
        cdef StreamPort port = self.port(key)
        return [one for one, found in port.names.items() if found is not OF_HTTPS]

    cdef StreamPort port(self, tuple key):
        """The table of a listeners' port; empty until a listener has come."""
        found = self.ports.get(key)
        if found is None:
            found = self.ports[key] = StreamPort(key)
            self.arrange_port(found)
        return found

    cdef StreamPort datagram_port(self, tuple key):
        found = self.datagrams.get(key)
        if found is None:
            found = self.datagrams[key] = StreamPort(key)
            self.arrange_datagrams(found)
        return found

    def dump(self):
        cdef StreamListener listener
        return [
            {
                "name": listener.name,
                "port": listener.spec.port if listener.spec is not None else None,
                "hostname": listener.hostname.decode(),
                "routes": sorted([key.decode() for key in listener.rules]),
                "active": listener.active,
            }
            for listener in self.listeners.values()
        ]
