# Long streams: upgraded connections (WebSocket tunnels) from their request on, and answers that last longer than STREAM_AFTER_MS
# (server-sent events, downloads). Each holds a connection of its client and one of its backend.
#
# In: exchanges with a tunnel or a long answer.
# Out: places among the streams of the port (EdgeProxy spec.http.maxStreams, addressStreams of one client) and of the backend (streamShare).
# A tunnel without a place gets 503. When all places are in use, a stream of the client with most streams ends for a client with fewer. The
# length of an answer is known only later, so an answer ends when the port exceeds a limit. An answer also ends while streams hold more than
# their share and requests of a client have waited for a connection for STREAM_PATIENCE_MS. That client must have at most half as many
# streams. Then a tunnel ends, an answer that its client does not read, or one that has paused for STREAM_PAUSE_MS. An answer in progress
# ends only while its client alone holds more than this share.
# Must never: end an answer of an unidentified client; refuse a tunnel while places are free.

cdef class LongStreams(ClientShare):
    cdef int64_t inactive_since(self, object member) except -2:
        cdef Exchange ex = <Exchange>member
        cdef int64_t since = ex.inactive_since()
        if not self.cutting or ex.upgrade:
            return since
        if ex.slow is not None:
            return ex.slow_at
        return since if since <= ex.engine.wheel.now - STREAM_PAUSE_MS else -1

    cdef int preempt(self, object member) except -1:
        return (<Exchange>member).preempt()

    cdef object first_to_cut(self, uint32_t least, int64_t now):
        """`first`, for waiting requests."""
        self.cutting = True
        try:
            return self.first(least, now)
        finally:
            self.cutting = False

    cdef object first_of_crowd(self, uint32_t least, int64_t now):
        """The stream to end of the client with most streams, in progress or not; None: it holds fewer than `least`."""
        cdef ClientEntry part = self.most()
        return self.longest_idle(part, now) if part is not None and part.count >= least else None


cdef uint32_t stream_places(Cluster cluster, uint32_t connections, HttpSettings settings) noexcept:
    """Streams that a backend of so many connections may have."""
    return share_of(min(cluster.max_connections, connections), settings.stream_share)


cdef bint begin_tunnel(Exchange ex) except -1:
    """Reserve places for a requested tunnel. False: no place is free, and no stream was ended."""
    cdef Cluster cluster = ex.backend.cluster
    cdef HttpSettings settings = ex.settings
    cdef LongStreams of_port = ex.down.peer.port.streams
    cdef LongStreams of_cluster = cluster.streams
    cdef bytes client = ex.origin()
    cdef int64_t now = ex.engine.wheel.now
    cdef uint32_t bound = <uint32_t>-1
    cdef object first = of_port, second = of_cluster  # the stream to end for it; the LongStreams itself: a place is free
    if of_port is not None:
        if settings.address_streams and of_port.held(client) >= settings.address_streams:
            return False
        first = of_port.room_for(client, settings.max_streams, now)
        if first is None:
            return False
    if of_cluster is not None and first not in of_cluster.owners:
        if ex.breaker is not None and ex.breaker.connections >= 0:
            bound = clipped(ex.breaker.connections)
        second = of_cluster.room_for(client, stream_places(cluster, bound, settings), now)
        if second is None:
            return False
    if first is not of_port:
        of_port.preempt(first)
    if second is not of_cluster:
        of_cluster.preempt(second)
    enter_streams(ex, client, cluster.protocol != SPEAKS_H2)
    return True


cdef int enter_streams(Exchange ex, bytes client, bint alone) except -1:
    """alone: it holds a connection to the backend."""
    cdef PortTable port = ex.down.peer.port
    cdef Cluster cluster = ex.backend.cluster
    ex.lasts = True
    if port.streams is None:
        port.streams = LongStreams.__new__(LongStreams)
    port.streams.enter(client, ex)
    if alone:
        if cluster.streams is None:
            cluster.streams = LongStreams.__new__(LongStreams)
        cluster.streams.enter(client, ex)
    return 0


cdef int leave_streams(Exchange ex) except -1:
    """It has ended, or was not a long-lived stream."""
    cdef PortTable port = ex.down.peer.port
    cdef Cluster cluster = ex.backend.cluster
    ex.lasts = False
    if port.streams is not None:
        port.streams.leave(ex)
        if port.streams.count == 0:
            port.streams = None
    if cluster.streams is not None:
        cluster.streams.leave(ex)
        if cluster.streams.count == 0:
            cluster.streams = None
    return 0


cdef inline bint may_last(ef_head *head) noexcept:
    """An answer that is not complete at once."""
    return head.body != EF_BODY_NONE and (head.body != EF_BODY_LENGTH or head.content_length > STREAM_BYTES)


cdef int begin_lasting(Exchange ex) except -1:
    """Its answer has lasted for STREAM_AFTER_MS: it is a long-lived stream. Above a limit of the port one stream ends."""
    cdef HttpSettings settings = ex.settings
    cdef LongStreams held
    cdef int64_t now = ex.engine.wheel.now
    cdef bytes client
    if ex.up is None or ex.retry.state != TRY_ANSWERED or ex.lasts:
        return 0
    client = ex.origin()
    enter_streams(ex, client, not ex.up.shares)
    held = ex.down.peer.port.streams
    found = None
    if settings.address_streams and held.held(client) > settings.address_streams:
        found = held.longest_idle(<ClientEntry>held.entries[client], now)
    elif held.count > settings.max_streams:
        found = held.first(2, now)
        if found is None:
            found = ex
    return held.preempt(found) if found is not None else 0


cdef int cut_lasting(Cluster cluster) except -1:
    """End streams above their share for users that have waited too long for a connection. The clients of these streams have at least twice
    as many as the user's client. Returns how many were ended."""
    cdef LongStreams held = cluster.streams
    cdef int64_t now = cluster.engine.wheel.now
    cdef uint32_t bound = crowded_at(cluster)
    cdef ClientEntry part
    cdef UpstreamUser user
    cdef ClientEntry waiting
    cdef list late = []
    cdef object busiest = None
    cdef int cut = 0
    cdef uint32_t most = 0, own
    for waiting in islice(cluster.pending.clients.entries.values(), SHARE_TURNS):
        user = waiting.first()
        if now - user.waits_since >= STREAM_PATIENCE_MS:
            late.append(waiting.client)
            most = max(most, stream_places(cluster, bound, user.settings))
    for address in late:
        if cut == SHARE_BURST or held.count <= most:
            break
        part = held.entries.get(address)  # clients without an address count as one client: their shares are unknown
        own = part.count if part is not None else 0
        found = held.first_to_cut(max(2 * own, own + 1), now)
        if found is None:
            found = held.first_of_crowd(max(2 * own, most) + 1, now)
        if found is None:
            continue
        part = held.owners[found]
        held.preempt(found)
        if busiest is None:
            busiest = part.client
        cut += 1
    if cut:  # its own requests are served after those of others
        cluster.pending.most = cluster.pending.clients.entries.get(busiest)
    return cut
