# Datagrams: from a UDP port to backends and back, in sessions by client address and port and local address (datagramsession.pyx).
#
# In: batches of datagrams from clients. Out: each to its session, which begins with it within the listener's limit (udp_session_limit.pyx).
# A datagram without a session is dropped, as in a network. Memory is bounded by maxSessions. A fault costs its own session.
# Must never look into a datagram.

cdef int write_datagram_key(uint8_t *key, const NetAddress *client, const ef_udp_way *way) except -1:
    """Whose session a datagram is of: who sent it, on which link if that is part of who it is, and to which of our addresses, as its
    answers have to come from there."""
    cdef const sockaddr_in6 *peer = <const sockaddr_in6 *>&way.peer
    memset(key, 0, DATAGRAM_KEY)
    memcpy(key, client, 18)
    ef_udp_local(way, key + 18)
    if way.peer.ss_family == AF_INET6:
        memcpy(key + 34, &peer.sin6_scope_id, 4)
    return 0


cdef class DatagramPort(Watched):
    def __cinit__(self):
        self.sessions = {}

    def __dealloc__(self):
        ef_udp_batch_free(self.batch)

    cdef int listen(self, Reactor reactor, int fd) except -1:
        """Take what comes to this bound descriptor, of which we have a copy: answers go out there when it is its owner's again."""
        cdef sockaddr_storage name
        cdef socklen_t length = sizeof(name)
        self.reactor = reactor
        if getsockname(fd, <sockaddr *>&name, &length) < 0:
            raise OSError(errno, "getsockname")
        self.batch = ef_udp_batch_new()
        if self.batch == NULL:
            raise MemoryError
        self.fd = fcntl_dup(fd)
        if self.fd < 0:
            raise OSError(errno, "dup")
        if ef_udp_prepare(self.fd, name.ss_family) < 0:
            error = errno
            close(self.fd)
            self.fd = -1
            raise OSError(error, "IP_PKTINFO")
        return reactor.watch(self, EPOLLIN)

    cpdef int stop(self) except -1:
        """Take no more: the descriptor is its owner's. Sessions that wait for an answer get it within DATAGRAM_GRACE_MS."""
        cdef DatagramSession session
        if self.stopped:
            return 0
        self.stopped = True
        self.reactor.unwatch(self, False)
        if not self.reactor.in_turn:
            self.reactor.wheel.refresh()
        for session in list(self.sessions.values()):
            session.leave()
        return self.part()

    cpdef int retire(self) except -1:
        return self.stop()

    cdef int part(self) except -1:
        """The copy goes with the last session."""
        if self.stopped and not self.sessions and self.fd >= 0:
            self.reactor.unwatch(self, True)
            close(self.fd)
            self.fd = -1
            self.release()
        return 0

    cdef int detach(self, bint fault) except -1:
        return 0 if fault else self.stop()

    cdef int on_due(self, int64_t now) except -1:
        return 0

    cdef int on_events(self, uint32_t events) except -1:
        self.take(DATAGRAM_BURST)
        return 0

    cpdef int take(self, int most) except -1:
        """Pass on what waits, at most so many; how many there were."""
        cdef int taken = 0, n
        if not self.reactor.in_turn:
            self.reactor.wheel.refresh()
        while taken < most and not self.stopped:
            n = ef_udp_take(self.fd, self.batch, EF_UDP_BATCH, 1)
            if n <= 0:  # nothing waits; an error of an answer that somebody did not want is told here, too, and over
                break
            self.pass_on(n)
            taken += n
            if n < EF_UDP_BATCH:
                break
        return taken

    cdef int pass_on(self, int n) except -1:
        """Give each client's datagrams of the batch that stand together to its session."""
        cdef Engine engine = self.engine
        cdef NetAddress client
        cdef uint8_t datagram_key[DATAGRAM_KEY]
        cdef uint8_t before[DATAGRAM_KEY]
        cdef DatagramSession session
        cdef bytes key
        cdef int i, first = 0
        cdef size_t total = 0
        memset(before, 0, DATAGRAM_KEY)
        for i in range(n):
            total += self.batch.iov[i].iov_len
        engine.count_n(G_STREAM_DATAGRAMS_IN, n)
        engine.count_n(G_STREAM_RECEIVED, total)
        for i in range(n + 1):
            if i < n:
                address_read(&self.batch.ways[i].peer, &client)
                write_datagram_key(datagram_key, &client, &self.batch.ways[i])
                if i > 0 and memcmp(datagram_key, before, DATAGRAM_KEY) == 0:
                    continue
            if i > first:
                key = (<const char *>before)[:DATAGRAM_KEY]
                try:
                    self.serve(self.port.only, key, first, i - first)
                except BaseException:  # the others of the batch are not to miss theirs
                    ef_stat_add(self.reactor.cells.faults, 1)
                    _log.exception("udp: a datagram could not be forwarded")
                    session = self.sessions.get(key)
                    if session is not None:
                        session.end(PE_FAULT)
            first = i
            memcpy(before, datagram_key, DATAGRAM_KEY)
        return 0

    cdef int serve(self, StreamListener listener, bytes key, int first, int n) except -1:
        """Datagrams of one client, which stand together in the batch."""
        cdef DatagramSession session = self.sessions.get(key)
        cdef NetAddress client
        if session is not None and not session.stands():  # the client has another backend from here on
            session.leave()
            session = None
        if session is None:
            address_read(&self.batch.ways[first].peer, &client)
            if client.kind == ADDRESS_INET and client.port != 0:  # nobody else could be answered
                session = self.begin(listener, key, &client, &self.batch.ways[first])
        if session is None:
            self.engine.count_n(G_STREAM_DATAGRAMS_DROPPED, n)
            return 0
        return session.give(first, n)

    cdef DatagramSession begin(self, StreamListener listener, bytes key, const NetAddress *client, const ef_udp_way *way):
        """A session for a client that has none; None: it is not served now."""
        cdef Engine engine = self.engine
        cdef DatagramSession session
        cdef StreamRule rule
        cdef bytes who, refusal
        cdef int refused
        if listener is None:
            engine.count(G_STREAM_REFUSED + REFUSED_ROUTE)
            return None
        rule = listener.find(None)
        if rule is not None and (rule.policies is not None or rule.traffic is not None):  # before it takes a place
            refusal = rule.policies.refuses(client, None, None, True) if rule.policies is not None else None
            if refusal is None:
                refusal = rule.closed()
            if refusal is not None:
                engine.count(G_STREAM_REFUSED_POLICY)
                if listener.may_log_refusal(self.reactor.wheel.now):
                    session = self.make_session(listener, key, client, way)
                    session.rule = rule
                    session.refusal = refusal
                    session.why = PE_DENIED
                    engine.observer.log_datagrams(session)
                return None
        who = address_key(client.host)
        refused = self.let_in(listener, who, client)
        if refused != PE_NONE:
            engine.count(G_STREAM_REFUSED + REFUSED_LIMIT + <int>(refused - PE_TOO_MANY))
            return None
        session = self.make_session(listener, key, client, way)
        session.client_key = who
        session.admitted_at = engine.tables.policy_epoch
        listener.active += 1
        listener.seats.enter(session)
        self.sessions[key] = session
        engine.sessions.add(session)
        engine.count(G_STREAM_SESSIONS)
        engine.count(G_STREAM_SESSIONS_ACTIVE)
        session.rule = rule
        session.share = session.rule.pick(engine) if session.rule is not None else None
        if session.share is None:
            engine.count(G_STREAM_REFUSED + REFUSED_ROUTE)
            session.end(PE_NO_ROUTE if session.rule is None else PE_NO_BACKEND)
            return None
        session.cluster = session.share.cluster
        if not session.connect(0):
            engine.count(G_STREAM_REFUSED + REFUSED_BACKEND)
            session.end(PE_NO_ENDPOINT)
            return None
        return session

    cdef DatagramSession make_session(self, StreamListener listener, bytes key, const NetAddress *client, const ef_udp_way *way):
        cdef DatagramSession session = DatagramSession.__new__(DatagramSession)
        session.owner = self
        session.reactor = self.reactor
        session.key = key
        session.client = client[0]
        session.way = way[0]
        session.listener = listener
        session.began = now_us()
        return session

    cdef int let_in(self, StreamListener listener, bytes who, const NetAddress *client) except -1:
        """Have a place for one more session of an address; PE_NONE: it is had. Its own bounds come first: past them nobody gives way to it."""
        cdef AddressBounds bounds = stream_tables_of(self.engine).bounds
        cdef DatagramSession other
        if not bounds.may_begin(listener, client.host, self.reactor.now_us()):
            return PE_ADDRESS_RATE
        if not bounds.enter(listener, who):
            return PE_ADDRESS_CONNECTIONS
        if listener.active >= listener.max_sessions:
            other = listener.seats.first(who, listener.max_sessions)
            if other is not None:
                other.end(PE_GAVE_WAY)
            if listener.active >= listener.max_sessions:  # nobody would, or there are fewer places than there were
                bounds.leave(listener, who)
                return PE_TOO_MANY
        return PE_NONE

    cdef int lost(self, DatagramSession session) except -1:
        """It is over."""
        if self.sessions.get(session.key) is session:
            del self.sessions[session.key]
        return self.part()
