# Long-lived streams: upgraded connections (WebSocket tunnels) from the moment they are asked for, and answers that last longer than STREAM_AFTER_MS
# (server-sent events, downloads). Each holds a connection of its client's, and one of its backend's.
#
# In: exchanges that ask for a tunnel, or whose answer lasts. Out: places among the streams of the port (EdgeProxy spec.http.maxStreams, and
# addressStreams of one client) and of the backend (streamShare); 503 for a tunnel without one. Where places run out the client with most
# gives way to a client with fewer. How long an answer lasts is known only later: it is cut when a limit of the port is passed, or when
# requests have waited for its connection for STREAM_PATIENCE_MS and streams hold more than their share. Must never refuse a tunnel while there are places.

cdef class LongStreams(ClientShare):
    cdef int64_t quiet_since(self, object member) except -2:
        return (<Exchange>member).quiet_since()

    cdef int make_way(self, object member) except -1:
        return (<Exchange>member).make_way()


cdef uint32_t stream_places(Cluster cluster, uint32_t connections, HttpSettings settings) noexcept:
    """Streams that a backend of so many connections may have."""
    return share_of(min(cluster.max_connections, connections), settings.stream_share)


cdef bint begin_tunnel(Exchange ex) except -1:
    """Places for a tunnel that is asked for. False: there are none."""
    cdef PortTable port = ex.down.peer.port
    cdef Cluster cluster = ex.backend.cluster
    cdef HttpSettings settings = ex.settings
    cdef LongStreams held = port.streams
    cdef bytes client = ex.origin()
    cdef int64_t now = ex.engine.wheel.now
    cdef uint32_t bound = <uint32_t>-1
    if held is not None and (
        (settings.address_streams and held.held(client) >= settings.address_streams) or not held.has_room(client, settings.max_streams, now)
    ):
        return False
    held = cluster.streams
    if held is not None:
        if ex.breaker is not None and ex.breaker.connections >= 0:
            bound = clipped(ex.breaker.connections)
        if not held.has_room(client, stream_places(cluster, bound, settings), now):
            return False
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


cdef int leave_streams(Attempts ex) except -1:
    """It has ended, or was no stream after all."""
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
    """An answer that is not here at once."""
    return head.body != EF_BODY_NONE and (head.body != EF_BODY_LENGTH or head.content_length > STREAM_BYTES)


cdef int begin_lasting(Attempts ex) except -1:
    """Its answer has lasted for STREAM_AFTER_MS: it is a long-lived stream. Past a limit of the port one gives way."""
    cdef HttpSettings settings = ex.settings
    cdef LongStreams held
    cdef int64_t now = ex.engine.wheel.now
    cdef bytes client
    if ex.up is None or not ex.started_response or ex.lasts:
        return 0
    client = ex.origin()
    enter_streams(<Exchange>ex, client, not ex.up.shares)
    held = (<Exchange>ex).down.peer.port.streams
    found = None
    if settings.address_streams and held.held(client) > settings.address_streams:
        found = held.quietest(<ClientPart>held.parts[client], now)
    elif held.count > settings.max_streams:
        found = held.first(2, now)
        if found is None:
            found = ex
    return held.make_way(found) if found is not None else 0


cdef int cut_lasting(Cluster cluster) except -1:
    """Users that have waited for a connection for too long get those of streams beyond their share. Returns how many were cut."""
    cdef LongStreams held = cluster.streams
    cdef int64_t now = cluster.engine.wheel.now
    cdef uint32_t bound = crowded_at(cluster)
    cdef UpstreamUser user
    cdef Line line
    cdef int late = 0, cut = 0, looks = SHARE_TURNS
    cdef uint32_t most = 0
    for line in cluster.pending.order:
        user = line.first()
        if now - user.waits_since >= STREAM_PATIENCE_MS:
            late += 1
            most = max(most, stream_places(cluster, bound, user.settings))
        looks -= 1
        if looks == 0:
            break
    while cut < min(late, <int>SHARE_BURST) and held.count > most:
        found = held.first(1, now)
        if found is None:
            found = held.first_unknown(now)
        if found is None:
            break
        held.make_way(found)
        cut += 1
    if cut and held.ranks.top:  # its own requests are served after those of others
        cluster.pending.most = cluster.pending.lines.get((<ClientPart>held.ranks.first()).client)
    return cut
