# TCP proxy: one client's connection to one backend, from accept to the end of both.
#
# In: the events of two connections. Out: each one's bytes to the other, in order; each one's end to the other, by itself (half-close). A
# side that does not read pauses the other one, so STREAM_BUFFER bounds memory for each direction. A reset of one side resets the other one,
# after all that it has sent: a broken stream never looks complete. Endpoints are tried in turn until one accepts the connection; before
# that no byte of the client is read. Its tables may change meanwhile: it ends when its ends do, or with the drain, as tunnels of HTTP do.
# Must never look at the bytes.

cdef int reset_connection(Connection connection) except -1:
    """Close at once, and say by a reset that it was no orderly end."""
    if connection is None or connection.fd < 0:
        return 0
    return connection.reset()


cdef class TcpProxy(Timer):
    def __cinit__(self, Engine engine, StreamListener listener):
        self.engine = engine
        self.listener = listener
        self.down = TcpProxyDownstream.__new__(TcpProxyDownstream)
        self.up = TcpProxyUpstream.__new__(TcpProxyUpstream)
        self.down.tcp_proxy = self.up.tcp_proxy = self
        self.down.other = self.up
        self.up.other = self.down

    # --- until there is a backend ----------------------------------------------------------------------------------

    cdef int begin(self) except -1:
        """The client's connection is open."""
        cdef Engine engine = self.engine
        cdef Connection connection = self.down.connection
        cdef bint preamble
        engine.streams[self] = None
        trim_rose(&engine.trim.tcp_proxies, len(engine.streams))
        engine.count(G_STREAM_CONNECTIONS)
        engine.count(G_STREAM_ACTIVE)
        self.began = now_us()
        connection.buffer_bytes = STREAM_BUFFER
        connection.counted = &engine.stat.globals[G_STREAM_RECEIVED]
        if self.client.kind == ADDRESS_NONE:
            connection.learn_end(False, &self.client)
        preamble = self.listener.preamble and connection.wire is None and not self.listener.has_tls
        if not preamble and not self.admit():  # before it takes a place
            return 0
        if engine.closing or not self.listener.make_room(self):
            return self.refuse(PE_TOO_MANY)
        self.listener.take_in(self)
        if preamble:
            self.state = TCP_PROXY_PREAMBLE
            self.silent_since = engine.wheel.now
            self.listener.silent[self] = None
            return engine.wheel.arm(self, engine.wheel.now + self.listener.hello_timeout)
        return self.enter()

    cdef ssize_t on_preamble(self, const uint8_t *data, size_t n) except -1:
        """PROXY protocol v1 or v2 before the first byte."""
        length, address, port = parse_preamble(data[:n if n < PROXY_V2_MAX else PROXY_V2_MAX])
        if is_preamble_refused(length, self.listener.preamble, self.listener.senders.has(&self.client)):
            self.engine.count(G_PROXY_PROTOCOL_REFUSED)
            self.refuse(PE_PREAMBLE)
            return n
        if length == PREAMBLE_MORE:
            return 0
        if address is not None:
            inet_read_bytes(address, self.client.host)
            self.client.kind = ADDRESS_INET
            self.client.port = <uint16_t>port
            self.listener.change_client(self)
        if not self.admit():
            return n
        self.enter()
        return 0 if length == PREAMBLE_ABSENT else length

    cdef bint admit(self, bint counts=True) except -1:
        """Ask the policies of the rule; False: they refuse the connection. The rule is the one of now: a handshake may have begun before it.
        `counts`: the connection has not been counted yet."""
        self.rule = self.listener.find(self.sni)
        if self.rule is None or (self.rule.policies is None and self.rule.traffic is None):
            return True
        if self.rule.policies is not None:
            self.refusal = self.rule.policies.refuses(&self.client, self.sni, self.down.connection.wire, counts)
        if self.refusal is None:
            self.refusal = self.rule.closed()
        if self.refusal is None:
            return True
        self.refuse(PE_DENIED)
        return False

    cdef int enter(self) except -1:
        """The client address is known, and policies admit it."""
        cdef Engine engine = self.engine
        cdef bytes key = address_key(self.client.host)
        self.state = TCP_PROXY_CONNECTING
        self.listener.silent.pop(self, None)
        engine.wheel.disarm(self)
        self.down.connection.pause()
        if not stream_tables_of(engine).bounds.enter(self.listener, key):
            return self.refuse(PE_ADDRESS_CONNECTIONS)
        self.client_key = key
        if not stream_tables_of(engine).bounds.may_begin(self.listener, self.client.host, engine.reactor.now_us()):
            return self.refuse(PE_ADDRESS_RATE)
        if self.rule is None:
            return self.refuse(PE_NO_ROUTE)
        return self.connect()

    cdef int refuse(self, TcpProxyEnd why) except -1:
        """Nobody serves it."""
        if why == PE_CONNECT or why == PE_CONNECT_TIMEOUT or why == PE_BACKEND_TLS or why == PE_NO_ENDPOINT:
            self.engine.count(G_STREAM_REFUSED + REFUSED_BACKEND)
        elif why == PE_NO_ROUTE or why == PE_NO_BACKEND:
            self.engine.count(G_STREAM_REFUSED + REFUSED_ROUTE)
        elif why == PE_PREAMBLE:
            self.engine.count(G_STREAM_REFUSED + REFUSED_PREAMBLE)
        elif why == PE_DENIED:
            self.engine.count(G_STREAM_REFUSED_POLICY)
        elif why == PE_GAVE_WAY:
            self.engine.count(G_STREAM_REFUSED + REFUSED_LIMIT)
        else:
            self.engine.count(G_STREAM_REFUSED + REFUSED_LIMIT + <int>(why - PE_TOO_MANY))
        return self.end(why)

    cdef int connect(self) except -1:
        self.share = self.rule.pick(self.engine)
        if self.share is None:
            return self.refuse(PE_NO_BACKEND)
        self.cluster = self.share.cluster
        self.give_up = self.engine.wheel.now + self.listener.connect_timeout
        if self.rule.traffic is not None and self.rule.traffic.connect_timeout:
            self.give_up = self.engine.wheel.now + self.rule.traffic.connect_timeout
        return self.dial_next()

    cdef int choose_again(self) except -1:
        """The table is another one by now: its rule says who is asked, and the time goes on."""
        if not self.admit(False):
            return 0
        if self.rule is None:
            return self.refuse(PE_NO_ROUTE)
        self.share = self.rule.pick(self.engine)
        if self.share is None:
            return self.refuse(PE_NO_BACKEND)
        self.cluster = self.share.cluster
        self.tried = self.asked = 0
        self.tried_at = self.cluster.version
        return self.dial_next()

    cdef int dial_next(self) except -1:
        """Ask an endpoint that was not asked yet. A name that has no address yet may have one soon."""
        cdef Cluster cluster = self.cluster
        cdef int64_t now = self.engine.wheel.now, left = self.give_up - now
        cdef Endpoint endpoint
        cdef TcpProxyDial dial
        if left <= 0:
            return self.refuse(PE_CONNECT_TIMEOUT)
        if cluster.size == 0 and cluster.resolving():
            return self.engine.wheel.arm(self, now + (STREAM_LOOK_MS if STREAM_LOOK_MS < left else left))
        if self.tried_at != cluster.version:  # numbers of a set that is no more say nothing of the one that is
            self.tried_at = cluster.version
            self.tried = self.asked = 0
            if self.endpoint is not None and self.endpoint.is_regular():
                self.note_asked()
        endpoint = self.rule.choose(cluster, self.tried, self.client.host)
        if endpoint is None:
            return self.refuse(PE_NO_ENDPOINT)
        dial = TcpProxyDial.__new__(TcpProxyDial)
        dial.tcp_proxy = self
        dial.endpoint = endpoint
        dial.take_terms(cluster)
        self.tries += 1
        self.endpoint = endpoint
        self.note_asked()
        self.chosen = True
        cluster.count(endpoint)
        self.engine.count(G_UPSTREAM_CONNECTS)
        self.dial = dial
        if self.tries < STREAM_TRIES and <uint32_t>self.tries < cluster.size:
            left = (left + 1) // 2  # for who is asked next
        return dial.begin(self.engine.reactor, endpoint.host.encode(), endpoint.port or -1, self.up, left)

    cdef void note_asked(self) noexcept:
        """Its endpoint has had its try, in this set."""
        self.asked += 1
        if self.endpoint.index < 64:
            self.tried |= <uint64_t>1 << self.endpoint.index

    cdef int release_endpoint(self) except -1:
        if self.chosen:
            self.chosen = False
            self.cluster.done(self.endpoint)
        return 0

    cdef int on_dial_failed(self, End why, bint stale) except -1:
        """Not this one: the next, if there is one that was not asked. stale: it is not the endpoint's fault."""
        cdef Cluster cluster = self.cluster
        self.dial = None
        self.engine.count(G_UPSTREAM_CONNECT_FAILURES)
        if not stale:
            self.rule.failed(self.endpoint)
        self.release_endpoint()
        if stale and self.tries < STREAM_TRIES:
            return self.choose_again()
        if self.tries < STREAM_TRIES and (self.tried_at != cluster.version or self.asked < cluster.size):
            return self.dial_next()
        return self.refuse(PE_CONNECT_TIMEOUT if why == END_TIMED_OUT else PE_BACKEND_TLS if why == END_WIRE else PE_CONNECT)

    cdef int on_connected(self) except -1:
        """The backend's connection is open."""
        cdef Connection down = self.down.connection
        cdef Connection up = self.up.connection
        cdef size_t n
        self.engine.count(G_UPSTREAM_CONNECTIONS_ACTIVE)
        if not self.dial.keeps_terms():  # the handshake has proved what is not asked for any more
            return self.refuse(PE_BACKEND_TLS)
        self.dial = None
        self.state = TCP_PROXY_OPEN
        self.connected = now_us()
        self.endpoint.succeeded()
        up.buffer_bytes = STREAM_BUFFER
        up.counted = &self.engine.stat.globals[G_STREAM_SENT]
        if down.pending.len and up.state == WIRE_OPEN:  # what came with the preamble, or the hello
            n = down.pending.len
            self.down.pass_on(down.pending.data + down.pending.at, n)
            queue_take(&down.pending, n)
        if down.ended:
            up.end_writes()
        if not up.write_paused:
            down.resume()
        return self.touch()

    # --- while it is open ------------------------------------------------------------------------------------------

    cdef inline int touch(self) except -1:
        """Bytes have come."""
        self.idle_by = self.engine.wheel.now + self.listener.idle_timeout
        return self.engine.wheel.arm(self, self.idle_by if self.look_at == 0 or self.idle_by < self.look_at else self.look_at)

    cdef int watch(self) except -1:
        """A side has bytes to take: whether it does is looked at from now on."""
        cdef int64_t now = self.engine.wheel.now
        if self.look_at or self.state != TCP_PROXY_OPEN:
            return 0
        self.down.look(now)
        self.up.look(now)
        self.down.took_at = self.up.took_at = now
        self.look_at = now + STREAM_DRAIN_MS
        return self.engine.wheel.arm(self, self.look_at if self.idle_by <= now or self.look_at < self.idle_by else self.idle_by)

    cdef int look(self, int64_t now) except -1:
        """Whether bytes come, or are taken. None come for long and all are taken: it is idle. Some wait for long: that side is stuck."""
        cdef Connection down = self.down.connection
        cdef Connection up = self.up.connection
        cdef int64_t patience = STREAM_LEFT_MS
        cdef bint watched = self.look_at != 0
        cdef bint took = self.down.look(now)
        took = self.up.look(now) or took
        self.look_at = 0
        if not watched and (self.down.waits or self.up.waits):  # nobody knows since when
            return self.watch()
        if took and watched:
            self.idle_by = max(self.idle_by, now + self.listener.idle_timeout)
        if now >= self.idle_by:
            if not self.down.waits and not self.up.waits:
                return self.end(PE_IDLE)
            patience = min(patience, self.listener.idle_timeout)
        if (self.down.waits and now - self.down.took_at >= patience) or (self.up.waits and now - self.up.took_at >= patience):
            return self.end(PE_STALLED)
        if now >= self.idle_by or down.write_paused or up.write_paused or (down.fin and down.unsent()) or (up.fin and up.unsent()):
            self.look_at = now + STREAM_DRAIN_MS
        return self.engine.wheel.arm(self, self.look_at if self.look_at and (now >= self.idle_by or self.look_at < self.idle_by) else self.idle_by)

    cdef int on_side_ended(self, TcpProxySide side) except -1:
        """It has sent its last byte."""
        if self.state == TCP_PROXY_PREAMBLE:  # there will be none
            if self.listener.preamble == 2:
                self.engine.count(G_PROXY_PROTOCOL_REFUSED)
                return self.refuse(PE_PREAMBLE)
            return self.enter() if self.admit() else 0
        if self.state != TCP_PROXY_OPEN:
            return 0
        if side.other.connection.ended:
            return self.end(PE_DONE)
        side.other.connection.end_writes()
        if self.state != TCP_PROXY_OPEN:
            return 0
        self.touch()
        return self.watch() if side.other.connection.unsent() else 0

    cdef int on_side_lost(self, TcpProxySide side, Connection connection) except -1:
        """Its connection is gone."""
        cdef Connection other
        side.lost = True
        if side is self.up:
            self.engine.count_down(G_UPSTREAM_CONNECTIONS_ACTIVE)
        if self.state == TCP_PROXY_OPEN:
            self.why = (
                PE_STALLED if connection.why == END_STALLED or connection.why == END_OVERFLOW else
                PE_FAULT if connection.why == END_FAULT else PE_CLIENT if side is self.down else PE_BACKEND
            )
            self.state = TCP_PROXY_LEFT
            other = side.other.connection
            other.pause()
            side.other.took_at = self.engine.wheel.now
            return self.look_at_left()
        if self.state == TCP_PROXY_PREAMBLE or self.state == TCP_PROXY_CONNECTING:
            self.end(PE_CLIENT)
        if self.down.lost and (self.up.lost or self.up.connection is None or not self.up.connection.opened):
            return self.over()
        return 0

    cdef TcpProxySide remaining(self):
        return self.up if self.down.lost else self.down

    cdef int look_at_left(self) except -1:
        """Whether the side that is left has taken what the other one had sent before it was reset; then it hears of that."""
        cdef TcpProxySide side = self.remaining()
        cdef Connection connection = side.connection
        cdef int64_t now = self.engine.wheel.now
        side.look(now)
        if not side.waits or connection.broken or now - side.took_at >= STREAM_LEFT_MS:
            self.state = TCP_PROXY_CLOSING
            return reset_connection(connection)
        return self.engine.wheel.arm(self, now + STREAM_LOOK_MS)

    cdef int on_deadline(self, int64_t now) except -1:
        try:
            return self.on_due(now)
        except BaseException:  # without a deadline it would stay for ever
            _log.exception("tcp: the deadline of a connection could not be processed")
            return self.end(PE_FAULT)

    cdef int on_due(self, int64_t now) except -1:
        if self.state == TCP_PROXY_OPEN:
            return self.look(now)
        if self.state == TCP_PROXY_LEFT:
            return self.look_at_left()
        if self.state == TCP_PROXY_CONNECTING:
            return self.dial_next() if self.dial is None else 0
        if self.state == TCP_PROXY_PREAMBLE:
            return self.refuse(PE_PREAMBLE)
        return 0

    # --- the end ---------------------------------------------------------------------------------------------------

    cdef int end(self, TcpProxyEnd why) except -1:
        """Both connections end: in order when both sides have said their last, else with a reset."""
        cdef TcpProxyDial dial = self.dial
        cdef bint up_open = self.up.connection is not None and not self.up.lost
        if self.state >= TCP_PROXY_CLOSING:
            return 0
        if self.why == PE_NONE:
            self.why = why
        self.state = TCP_PROXY_CLOSING
        self.listener.silent.pop(self, None)
        self.engine.wheel.disarm(self)
        self.release_endpoint()
        if dial is not None:
            self.dial = None
            dial.call_off()
        if why == PE_DONE:
            self.up.connection.shut(False)
            return self.down.connection.shut(False)
        if up_open:
            reset_connection(self.up.connection)
        if self.down.lost:
            return 0
        return reset_connection(self.down.connection)

    cdef int over(self) except -1:
        """Nothing is left of it but its line."""
        cdef Engine engine = self.engine
        cdef TcpProxy alive = self  # nobody holds it from here on
        if self.state == TCP_PROXY_OVER:
            return 0
        self.state = TCP_PROXY_OVER
        engine.wheel.disarm(self)
        self.release_endpoint()
        engine.streams.pop(self, None)
        engine.trim.fell(&engine.trim.tcp_proxies, len(engine.streams))
        engine.count_down(G_STREAM_ACTIVE)
        self.uncount()
        if self.client_key is not None:
            stream_tables_of(engine).bounds.leave(self.listener, self.client_key)
        self.part()
        engine.observer.record_tcp_proxy(alive)
        return engine.observer.log_tcp_proxy(alive)

    cdef int uncount(self) except -1:
        return self.listener.let_out(self) if self.counted else 0

    cdef int retire(self, object port) except -1:
        """Clients of a port have to show something else from now on: who was let in by what they had to show before has to come again."""
        return self.end(PE_TLS_CHANGED) if self.port == port else 0

    cdef int part(self) except -1:
        """Its two sides hold it, and each other, no more."""
        self.down.tcp_proxy = self.up.tcp_proxy = None
        self.down.other = self.up.other = None
        return 0

    cdef int stop(self) except -1:
        """The worker ends."""
        return self.end(PE_DRAINED)


# The two sides of a TCP proxy: each is the session of a connection, and gives what comes to the other one.

cdef class TcpProxySide(Session):
    cdef bint relays(self) noexcept:
        return self.tcp_proxy is not None and self.tcp_proxy.state == TCP_PROXY_OPEN

    cdef int pass_on(self, const uint8_t *data, size_t n) except -1:
        """What has come, for the other side."""
        raise NotImplementedError

    cdef bint takes_bulk(self) noexcept:
        return self.relays() and self.other.connection.has_room()

    cdef int on_writable(self, bint writable) except -1:
        """This side takes no more, or does again: the other one waits, or goes on."""
        if not self.relays() or self.other.connection is None:
            return 0
        if writable:
            return self.other.connection.resume()
        self.other.connection.pause()
        return self.tcp_proxy.watch()

    cdef int64_t given(self) noexcept:
        """Bytes that were passed on to it."""
        return 0

    cdef bint look(self, int64_t now) noexcept:
        """Whether it has taken some since it was looked at last. What TLS adds to them counts as not taken."""
        cdef size_t left = self.connection.untaken()
        cdef int64_t taken = self.given() - <int64_t>left
        cdef bint took = taken > self.taken
        self.waits = left != 0
        if took:
            self.taken = taken
        if took or not self.waits:
            self.took_at = now
        return took

    cdef int on_eof(self) except -1:
        return self.tcp_proxy.on_side_ended(self) if self.tcp_proxy is not None else self.connection.shut(True)

    cdef int on_hangup(self) except -1:
        """It is gone in both directions while it is not read: what is still there to read is, while the other one takes it."""
        if self.relays():
            return 0 if self.other.connection.write_paused else self.connection.resume()
        return self.connection.shut(True)

    cdef int on_lost(self) except -1:
        return self.tcp_proxy.on_side_lost(self, self.connection) if self.tcp_proxy is not None else 0


cdef class TcpProxyDownstream(TcpProxySide):
    cdef int64_t given(self) noexcept:
        return <int64_t>self.tcp_proxy.sent

    cdef int on_open(self) except -1:
        return self.tcp_proxy.begin()

    cdef int retire(self, object port, bint outdated) except -1:
        return self.tcp_proxy.retire((<PortTable>port).key) if self.tcp_proxy is not None and port is not None else 0

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        cdef TcpProxy tcp_proxy = self.tcp_proxy
        if tcp_proxy is None or tcp_proxy.state >= TCP_PROXY_LEFT:
            return n
        if tcp_proxy.state == TCP_PROXY_OPEN:
            self.pass_on(data, n)
            return n
        return tcp_proxy.on_preamble(data, n) if tcp_proxy.state == TCP_PROXY_PREAMBLE else 0

    cdef int pass_on(self, const uint8_t *data, size_t n) except -1:
        self.tcp_proxy.received += n
        self.other.connection.send(data, n)
        return self.tcp_proxy.touch() if self.relays() else 0


cdef class TcpProxyUpstream(TcpProxySide):
    cdef int64_t given(self) noexcept:
        return <int64_t>self.tcp_proxy.received

    cdef int on_open(self) except -1:
        if self.tcp_proxy is None or self.tcp_proxy.state != TCP_PROXY_CONNECTING:  # the client is gone
            return self.connection.shut(True)
        return self.tcp_proxy.on_connected()

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        if self.relays():
            self.pass_on(data, n)
        return n

    cdef int pass_on(self, const uint8_t *data, size_t n) except -1:
        self.tcp_proxy.sent += n
        self.other.connection.send(data, n)
        return self.tcp_proxy.touch() if self.relays() else 0


# A TCP proxy's dial: one try at one endpoint, with the TLS that its cluster had when it began. A cluster that has other TLS by now, or is
# gone, gets not a byte: no TLS is what a cluster says, never what is left of one.

cdef class TcpProxyDial(Dial):
    cdef int take_terms(self, Cluster cluster) except -1:
        self.context = cluster.stream_tls()
        self.sni = cluster.sni
        return 0

    cdef bint keeps_terms(self) except -1:
        """The cluster is there, and has the TLS that the dial began with."""
        cdef Cluster cluster = self.endpoint.cluster
        return cluster.spec is not None and cluster.stream_tls() is self.context and cluster.sni == self.sni

    cdef Wire wire(self):
        if self.context is None:
            return None
        self.speaks = self.endpoint.cluster.engine.handshakes.make_client_wire(
            self.context, self.sni.encode(), self.endpoint.host, self.endpoint.port
        )
        return self.speaks

    cdef int on_connected(self) except -1:
        """The PROXY protocol comes first, before TLS, too. A new socket takes that much at once."""
        cdef uint8_t header[STREAM_PROXY_MOST]
        cdef size_t n
        if not self.endpoint.is_regular() or not self.keeps_terms():
            self.stale = True
            return self.end(END_ABORTED, 0)
        if self.tcp_proxy is not None and self.tcp_proxy.share.proxy_protocol:
            n = write_proxy_header(self.tcp_proxy, header)
            if send(self.fd, header, n, MSG_NOSIGNAL) != <ssize_t>n:
                return self.end(END_RESET, 0)
        return Dial.on_connected(self)

    cdef int call_off(self) except -1:
        """Nobody waits for it any more."""
        self.called_off = True
        return self.end(END_ABORTED, 0) if self.fd >= 0 else 0

    cdef int on_opened(self, Connection connection) except -1:
        self.tcp_proxy = None
        return 0

    cdef int on_failed(self, End why, int error) except -1:
        cdef TcpProxy tcp_proxy = self.tcp_proxy
        self.tcp_proxy = None
        if self.speaks is not None:
            if why == END_WIRE:
                count_tls_failure(self.endpoint.cluster, self.speaks)
            self.speaks.forget_session()
        if self.called_off or tcp_proxy is None or tcp_proxy.dial is not self:
            return 0
        return tcp_proxy.on_dial_failed(why, self.stale)
