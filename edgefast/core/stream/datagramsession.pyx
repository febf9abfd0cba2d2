# Datagram session: one client's, with its own connected socket to its backend.
#
# In: a client's datagrams, its backend's answers. Out: each to the other one, and never a byte to another address. A session begins with a
# datagram, and its socket accepts only its backend's. It drops what a socket does not take, as in a network. The source of a first datagram
# may be spoofed. Until the client has sent again after an answer, its own traffic bounds the answers. The bound is in number and bytes;
# such answers do not renew the session.
# Must never continue with a backend that the tables no longer have.

cdef class DatagramSession(Watched):
    cdef bint connect(self, uint64_t tried) except -1:
        """Choose an endpoint and have a socket towards it. False: there is none."""
        cdef Cluster cluster = self.cluster
        cdef Endpoint endpoint = self.rule.choose(cluster, tried, self.client.host)
        cdef SocketName to
        if endpoint is None or endpoint.port == 0:
            return False
        socket_name(endpoint.host.encode(), endpoint.port, &to)
        if self.reactor.own_ports is not None and leads_here(self.reactor.own_ports, &to, True):
            self.rule.failed(endpoint)
            return False
        self.fd = socket(to.address.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
        if self.fd < 0:
            return False
        if connect(self.fd, <sockaddr *>&to.address, to.length) < 0:
            close(self.fd)
            self.fd = -1
            self.rule.failed(endpoint)
            return False
        self.endpoint = endpoint
        self.chosen = True
        cluster.count(endpoint)
        try:
            self.reactor.watch(self, EPOLLIN)
        except OSError:  # the kernel's limit of watches
            self.disconnect()
            return False
        return True

    cdef bint stands(self) except -1:
        """Whether the tables would still give it its backend: its listener has the port, its rule, or the one in its place, the share, and
        policies admit it. If they do not admit it, the session has ended."""
        cdef StreamRule rule
        cdef StreamShare share
        if self.listener is not self.owner.port.only:
            return False
        rule = self.listener.find(None)
        if rule is not self.rule:
            share = rule.share(self.share.name) if rule is not None else None
            if share is None:
                return False
            self.rule = rule
            self.share = share
            self.admitted_at = 0
        return self.admitted() and self.endpoint.is_regular()

    cdef bint admitted(self) except -1:
        """Ask the policies again that have changed; False: they refuse the client, and the session has ended."""
        cdef StreamRule rule = self.rule
        cdef bytes refusal = None
        if self.admitted_at == self.owner.engine.tables.policy_epoch or (rule.policies is None and rule.traffic is None):
            return True
        if rule.policies is not None:
            refusal = rule.policies.refuses(&self.client, None, None, False)
        if refusal is None:
            refusal = rule.closed()
        if refusal is None:
            self.admitted_at = self.owner.engine.tables.policy_epoch
            return True
        self.refusal = refusal
        self.end(PE_DENIED)
        return False

    cdef int give(self, int first, int n) except -1:
        """Pass datagrams of the batch on."""
        cdef ef_udp_batch *batch = self.owner.batch
        cdef Engine engine = self.owner.engine
        cdef size_t total = 0
        cdef int done
        if self.fd < 0:
            return 0
        done = ef_udp_give(self.fd, batch, first, n, NULL, &total)
        if done < 0 and errno == ECONNREFUSED and self.move():  # told of an earlier one; nothing of these has gone
            done = ef_udp_give(self.fd, batch, first, n, NULL, &total)
        self.received += total
        if done < n:
            engine.count_n(G_STREAM_DATAGRAMS_DROPPED, n - (done if done > 0 else 0))
        if self.fd < 0:  # nobody took it
            return self.end(PE_CONNECT)
        self.datagrams_in += n
        if self.proven:
            self.listener.seats.speak(self)
        elif self.answered:  # its client has had an answer: the address is nobody else's
            self.proven = True
            self.listener.seats.prove(self)
        if done > 0:
            self.awaited += done
        self.spoke = self.reactor.wheel.now
        return self.reactor.wheel.arm(self, self.spoke + self.listener.session_timeout)

    cdef int afford(self, int n) noexcept:
        """How many of so many answers go to a client that is not proven."""
        cdef uint64_t total = self.sent
        cdef int i
        for i in range(n):
            total += self.owner.batch.iov[i].iov_len
            if self.datagrams_out + i >= self.datagrams_in * UNPROVEN_ANSWERS or total > self.datagrams_in * UNPROVEN_BYTES:
                return i
        return n

    cdef bint move(self) except -1:
        """Its endpoint refuses what it is sent: another one, if there is one."""
        cdef uint64_t tried = <uint64_t>1 << self.endpoint.index if 0 <= self.endpoint.index < 64 else 0
        self.rule.failed(self.endpoint)
        self.owner.engine.count(G_UPSTREAM_CONNECT_FAILURES)
        if self.cluster.size < 2:
            return True
        self.disconnect()
        return self.connect(tried)

    cdef int disconnect(self) except -1:
        if self.fd >= 0:
            self.reactor.unwatch(self, True)
            close(self.fd)
            self.fd = -1
            self.awaited = 0
        if self.chosen:
            self.chosen = False
            self.cluster.done(self.endpoint)
        return 0

    cdef int on_refused(self) except -1:
        """Nobody is there: the endpoint has failed, and the client's next datagram begins anew."""
        self.rule.failed(self.endpoint)
        self.owner.engine.count(G_UPSTREAM_CONNECT_FAILURES)
        return self.end(PE_CONNECT)

    cdef int on_events(self, uint32_t events) except -1:
        """Answers."""
        cdef DatagramPort owner = self.owner
        cdef Engine engine = owner.engine
        cdef ef_udp_batch *batch = owner.batch
        cdef bint stands = self.stands()
        cdef int n, most, sent
        cdef int64_t now = self.reactor.wheel.now, due
        cdef size_t total = 0
        if self.why != PE_NONE:  # policies refuse its client by now
            return 0
        n = ef_udp_take(self.fd, batch, DATAGRAM_ANSWERS, 0)
        if n < 0:
            if errno == EAGAIN or errno == EINTR:
                return 0
            return self.on_refused()
        most = n if self.proven else self.afford(n)
        sent = ef_udp_give(owner.fd, batch, 0, most, &self.way, &total) if most > 0 else 0
        if sent < 0:
            sent = 0
        self.datagrams_out += sent
        self.sent += total
        engine.count_n(G_STREAM_SENT, total)
        engine.count_n(G_STREAM_DATAGRAMS_OUT, sent)
        if sent < n:
            engine.count_n(G_STREAM_DATAGRAMS_DROPPED, n - sent)
        if not self.answered:
            self.answered = True
            self.endpoint.succeeded()
        self.awaited -= min(self.awaited, <uint64_t>n)
        if self.left:
            return self.end(PE_DRAINED) if owner.stopped and self.awaited == 0 else 0
        if not self.proven or not stands:
            return 0
        due = self.spoke + DATAGRAM_SILENCES * self.listener.session_timeout
        return self.reactor.wheel.arm(self, min(now + self.listener.session_timeout, due))

    cdef int leave(self) except -1:
        """Its client sends nothing over it any more; what it waits for may still come."""
        if self.left or self.why != PE_NONE:
            return 0
        self.left = True
        self.listener.seats.give_up(self)
        if not self.owner.stopped:
            if self.owner.sessions.get(self.key) is self:
                del self.owner.sessions[self.key]
        if self.awaited == 0:
            return self.end(PE_DRAINED if self.owner.stopped else PE_BACKEND_GONE)
        return self.reactor.wheel.arm(self, self.reactor.wheel.now + DATAGRAM_GRACE_MS)

    cdef int on_due(self, int64_t now) except -1:
        return self.end(PE_DRAINED if self.left and self.owner.stopped else PE_BACKEND_GONE if self.left else PE_IDLE)

    cdef int detach(self, bint fault) except -1:
        return self.end(PE_FAULT if fault else PE_DRAINED)

    cdef int end(self, TcpProxyEnd why) except -1:
        cdef Engine engine = self.owner.engine
        if self.why != PE_NONE:
            return 0
        self.why = why
        self.reactor.wheel.disarm(self)
        self.disconnect()
        self.listener.active -= 1
        self.listener.seats.leave(self)
        stream_tables_of(engine).bounds.leave(self.listener, self.client_key)
        engine.sessions.discard(self)
        engine.count_down(G_STREAM_SESSIONS_ACTIVE)
        self.owner.lost(self)
        engine.observer.log_datagrams(self)
        self.release()
        return 0
