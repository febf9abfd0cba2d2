# Pool dial: a new connection to an endpoint for a pool. When it opens, its user may be gone, or its cluster may have other settings.

cdef class DialQueue(FairQueue):
    cdef int join(self, UpstreamUser user) except -1:
        self.endpoint.cluster.begin(user, self.endpoint)
        return FairQueue.join(self, user)

    cdef int leave(self, UpstreamUser user) except -1:
        cdef Cluster cluster = self.endpoint.cluster
        if self.served is user:
            cluster.keep_place(user, self.endpoint)
        else:
            cluster.done(self.endpoint)
        return FairQueue.leave(self, user)


cdef tuple TLS_FAILURES = tuple([one.encode() for one in BACKEND_TLS_FAILURES])


cdef bint is_own_fault(int error) noexcept:
    """What this process has too little of: it says nothing of a backend."""
    return error == EMFILE or error == ENFILE or error == ENOBUFS or error == ENOMEM or error == EADDRNOTAVAIL


cdef UpFailure failure_for(UpstreamUser user, PoolDial dial, UpFailure why) noexcept:
    return UP_OTHERWISE if user.probing and is_own_fault(dial.error) else why


cdef class PoolDial(Dial):
    cdef Wire wire(self):
        if self.fresh.wanted is None:
            return None
        self.speaks = self.pool.engine.handshakes.make_client_wire(
            self.fresh.wanted, self.fresh.sni.encode(), self.endpoint.host, self.endpoint.port
        )
        return self.speaks

    cdef int on_opened(self, Connection connection) except -1:
        self.fresh = None
        if self.up is None:
            return 0  # until the backend has said what it takes: on_ready
        if self.queue is not None:
            return self.pool.on_dialed_by_many(self, self.up)
        return self.pool.on_dialed(self.user, self.ticket, self.up)

    cdef int on_ready(self, MultiplexedSession session) except -1:
        """A connection for many is there."""
        return self.pool.on_shared(self, session)

    cdef int on_refused(self) except -1:
        """There was one, but of no use."""
        self.refused = True
        return self.on_failed(END_CLOSED, 0)

    cdef int on_failed(self, End why, int error) except -1:
        cdef bint opened = self.fresh is None or (self.up is not None and self.up.opened)
        self.error = error
        if self.speaks is not None:
            self.speaks.forget_session()
        self.fresh = None
        if not opened:
            connection_gone(self.pool, self.endpoint)
        if self.reactor.closing:  # nobody is served any more
            if self.queue is None:
                self.pool.done(self.endpoint)
            elif self.endpoint.coming is self:
                self.endpoint.coming = None
            return 0
        return self.pool.on_dial_failed(
            self,
            UP_PROTOCOL if self.refused else UP_CONNECT_TIMEOUT if why == END_TIMED_OUT else self.tls_failure() if why == END_WIRE else UP_CONNECT,
        )

    cdef UpFailure tls_failure(self) except *:
        """Why the handshake failed; counted, unless this is a health check."""
        if self.speaks is None:
            return UP_TLS
        if (<Cluster>self.pool).health is self.pool.engine.health:
            count_tls_failure(<Cluster>self.pool, self.speaks)
        return <UpFailure>(<int>UP_TLS_BY + self.speaks.backend_failure())


cdef int count_tls_failure(Cluster cluster, TlsClientWire wire) except -1:
    """Count a failed handshake by cluster and reason. Its row is made at the first failure, so other clusters cost nothing."""
    cdef bytes label = b"backend\t%b\t%b" % (cluster.name.encode(), TLS_FAILURES[wire.backend_failure()])
    cdef ef_stat_row *row = ef_stat_hold(cluster.engine.stat, <const uint8_t *>PyBytes_AS_STRING(label), PyBytes_GET_SIZE(label))
    ef_stat_add(&row.cells[B_TLS_FAILED], 1)
    ef_stat_release(row)
    return 0
