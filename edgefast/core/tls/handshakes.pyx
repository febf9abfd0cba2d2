# Handshakes: the handshakes of a worker's clients in progress, counted, bounded, one after the other.
#
# In: TLS connections from accept until they are open or gone. Out: whether one more may begin, and whether a step may run in this turn. A
# connection without a ClientHello costs its descriptor and what it has sent. When places run out, the one with the longest silent client is
# closed, so that silent clients cannot close a port. The order is by age and not by client: behind a PROXY protocol header the client is not
# known yet. A connection with a ClientHello costs 50 KiB of the library, and has its own bound.
# After many at once memory goes back to the system. Must never touch a connection that is open.

cdef class Handshakes:
    def __cinit__(self, Engine engine):
        self.engine = engine
        self.sessions = BackendSessions.__new__(BackendSessions)
        self.silent = OrderedDict()
        self.shaking = OrderedDict()
        self.lengthy = OrderedDict()

    cdef Py_ssize_t active(self) noexcept:
        return len(self.silent) + len(self.shaking)

    cdef bint may_step(self) noexcept:
        """Whether one more step may be taken in this turn of the loop; the kernel tells of the rest again."""
        cdef uint64_t turn = self.engine.reactor.cells.turns[0]
        if self.turn != turn:
            self.turn = turn
            self.steps = 0
            self.spent_ns = 0
        self.steps += 1
        return self.steps <= TURN_HANDSHAKES and self.spent_ns < TURN_HANDSHAKES_NS

    cdef bint may_dial(self) noexcept:
        """The same towards backends: what strangers begin does not keep them waiting."""
        cdef uint64_t turn = self.engine.reactor.cells.turns[0]
        if self.dial_turn != turn:
            self.dial_turn = turn
            self.dials = 0
        self.dials += 1
        return self.dials <= TURN_HANDSHAKES

    cdef bint make_room(self, line, Py_ssize_t most) except -1:
        """A place for one more among so many; whoever has had one for long gives it up."""
        cdef TlsWire oldest
        if len(line) < most:
            return True
        if not line:
            return False
        oldest = next(iter(line))
        if self.engine.wheel.now - oldest.since < HANDSHAKE_GRACE_MS:
            return False
        return self.give_up(oldest, line[oldest]) == 0

    cdef int give_up(self, TlsWire wire, connection) except -1:
        """For somebody else's sake."""
        wire.tls.failure = EF_TLS_F_LIMIT
        (<Connection>connection).cut(END_ABORTED, 0)
        return self.leave(wire)

    cdef bint weigh(self, TlsWire wire) except -1:
        """Some of its hello has come. Beyond EARLY_MOST bytes of all the first long one goes; False: it is this one."""
        cdef TlsWire first
        if wire not in self.silent:
            return True
        self.early = self.early - wire.early + wire.tls.early_len  # fewer than before, behind a preamble
        wire.early = wire.tls.early_len
        if wire.early > EARLY_LONG:
            self.lengthy.setdefault(wire)
        while self.early > EARLY_MOST:
            first = next(iter(self.lengthy or self.silent))
            if first is wire:
                return False
            self.give_up(first, self.silent[first])
        return True

    cdef int forget(self, TlsWire wire) except -1:
        """Its hello is whole, or nobody waits for it any more."""
        self.early -= wire.early
        wire.early = 0
        self.lengthy.pop(wire, None)
        return 0

    cdef int report(self, error) except -1:
        """A certificate could not be chosen: a line now and then, however many clients ask for it."""
        cdef int64_t now = self.engine.wheel.now
        if self.reported_at == 0 or now - self.reported_at >= TOLD_MS:
            self.reported_at = now
            _log.error("tls: a certificate could not be chosen: %s", error)
        return 0

    cdef int enter(self, TlsWire wire, Connection connection) except -1:
        wire.since = self.engine.wheel.now
        self.silent[wire] = connection
        self.engine.count(G_HANDSHAKES_ACTIVE)
        trim_rose(&self.engine.trim.handshakes, <size_t>self.active())
        return 0

    cdef int begin(self, TlsWire wire, int64_t patience) except -1:
        """It has said hello, to one who gives it so many ms from accept on."""
        cdef Connection known
        self.forget(wire)
        connection = self.silent.pop(wire, None)
        if connection is not None:
            known = <Connection>connection
            if wire.since + patience < known.open_by:
                known.open_by = wire.since + patience
                self.engine.wheel.arm(known, known.open_by)
            wire.since = self.engine.wheel.now
            self.shaking[wire] = connection
        return 0

    cdef int leave(self, TlsWire wire) except -1:
        self.forget(wire)
        if self.silent.pop(wire, None) is None and self.shaking.pop(wire, None) is None:
            return 0
        self.engine.count_down(G_HANDSHAKES_ACTIVE)
        return self.engine.trim.fell(&self.engine.trim.handshakes, <size_t>self.active())

    cdef TlsClientWire make_client_wire(self, object context, bytes name, str host, int port):
        return make_client_wire(self, <TlsContext>context, name, host, port)
