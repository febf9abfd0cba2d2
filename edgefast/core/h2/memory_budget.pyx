# Memory budget: the shared memory and streams of a worker's HTTP/2 clients, divided fairly among their addresses.
#
# In: connections that come and go, the memory of each (h2_hold), streams that open and close.
# Out: which connection may have more, and which stream is evicted. An address may have as much as is free: one alone gets half, n of them
# the same part each. A new address therefore always finds memory. Memory beyond that (a read of each answer) has a ceiling. At the ceiling,
# streams behind `answerRate` or `bodyRate` are evicted. Addresses that hold most of them come first; then new streams. A connection is
# closed only when the largest holder has neither. ClientShare counts the connections of a client, and not its bytes: these change with each
# write, and the order at the ceiling depends on time.

cdef void h2_hold(H2Server session, size_t held) noexcept:
    """So much memory waits for this client: what others lack."""
    memory_of(session.engine).hold(session, held)


cdef void h2_recount(H2Server session) noexcept:
    """What the socket has not taken counts as well."""
    cdef size_t queued = session.connection.out.room
    if queued != session.queued:
        h2_hold(session, session.held + queued - session.queued)
        session.queued = queued


cdef int h2_evict(H2Server session, int64_t now) except -1:
    """Others need what it holds: the streams that are late, where their resets can be said, else fresh ones, else all of it."""
    cdef H2Stream stream
    cdef bint late = session.late > 0
    if session.late + session.fresh == 0 or (late and session.connection.write_paused):
        session.calm(EF_H2_B_MEMORY)
        session.connection.shut(True)
        session.queued = 0
        h2_hold(session, 0)
        return 0
    session.engine.count(G_H2_BREACH + EF_H2_B_MEMORY - 1)
    session.engine.observer.log_refused(session.peer, 400, b"http2 " + <bytes>ef_h2_breach_name(EF_H2_B_MEMORY))
    for stream in list(session.streams.values()):
        if stream.counted and (h2_is_late(stream, now) if late else h2_is_fresh(stream, now)):
            stream.give_up(NGHTTP2_ENHANCE_YOUR_CALM)
            if not late and memory_of(session.engine).held <= EF_H2_HELD_AFTER:
                break
    return session.mark()


cdef class H2ClientUsage(ClientEntry):
    cdef int look(self, int64_t now) except -1:
        """How much of it nobody takes."""
        cdef H2Server session
        self.late = self.fresh = 0
        for session in self.members:
            h2_look_at_held(session, now)
            self.late += session.late
            self.fresh += session.fresh
        if self.held <= EF_H2_SHARE:  # who holds little loses nothing of it to one who takes just enough of very much
            self.fresh = 0
        return 0

    cdef tuple rank(self):
        """Those that come first give way first."""
        return -<int64_t>self.late, -<int64_t>self.fresh, -<int64_t>self.held, id(self), self

    cdef H2Server first_to_give(self):
        """Of its connections, the one that holds most of what is late, else of what is fresh, else of anything."""
        cdef H2Server session, most = None
        for session in self.members:
            if session.held and not session.busy and (
                most is None or (session.late, session.fresh, session.held) > (most.late, most.fresh, most.held)
            ):
                most = session
        return most


cdef class H2Clients(ClientShare):
    cdef ClientEntry make_entry(self):
        return H2ClientUsage.__new__(H2ClientUsage)


cdef class H2MemoryBudget:
    def __cinit__(self):
        self.clients = H2Clients.__new__(H2Clients)

    cdef void count(self, int streams) noexcept:
        """More streams are open, or fewer."""
        self.streams += <uint32_t>streams

    cdef void hold(self, H2Server session, size_t held) noexcept:
        self.held += held - session.held
        session.holder.held += held - session.held
        session.held = held

    cdef int join(self, H2Server session) except -1:
        self.clients.enter(client_key_of(session.port.settings, session.peer.address) or session, session)
        session.holder = <H2ClientUsage>self.clients.owners[session]
        return 0

    cdef int leave(self, H2Server session) except -1:
        h2_hold(session, 0)
        self.clients.leave(session)
        return 0

    cdef bint has_stream(self, H2ClientUsage holder) noexcept:
        """One more may be open, which is not counted yet."""
        return self.streams < EF_H2_STREAMS and holder.streams < EF_H2_STREAMS - self.streams

    cdef bint is_crowded(self, H2ClientUsage holder) noexcept:
        """It holds more than is free: backends wait for its clients."""
        return self.held >= EF_H2_HELD or holder.held > EF_H2_HELD - self.held

    cdef bint refuses(self, H2Server session) noexcept:
        """Nothing new is begun for a connection that holds as much as others of its address, or more, of more than that may have."""
        cdef H2ClientUsage holder = session.holder
        return (
            holder.held > EF_H2_SHARE and self.is_crowded(holder)
            and session.held * holder.count >= holder.held
        )

    cdef int make_room(self, int64_t now) except -1:
        """All is held that may be: some give way, so many that this is not for each answer."""
        cdef H2ClientUsage holder
        cdef H2Server session
        cdef list order = []
        cdef size_t before
        for holder in self.clients.entries.values():
            if holder.held:
                holder.look(now)
                order.append(holder.rank())
        heapify(order)
        while order and self.held > EF_H2_HELD_AFTER:
            holder = heappop(order)[4]
            session = holder.first_to_give()
            if session is None:
                continue
            before = holder.held
            h2_evict(session, now)
            if holder.held and holder.held < before:
                holder.look(now)
                heappush(order, holder.rank())
        return 0
