# Places of a port's connections (EdgeProxy spec.http.maxConnections), which client addresses share.
#
# In: connections that open and end. Out: whether one more has a place. Each port has its own places. When all are in use, the quiet connection of the
# client with most is closed for a client with fewer: first connections without a request, then, of a client with many, those whose
# request waits for that client, or that have not taken the end of an answer. A connection that is closing gives way when its client has
# taken nothing for PLACE_GRACE_MS. Who holds what is written down when places run out for the first time, and forgotten when most are free again:
# before that a connection costs two additions. Must never close a connection that waits for its backend.

cdef bytes client_key_of(HttpSettings settings, bytes address):
    """The client that an address stands for (IPv6: the /64). None: a trusted proxy, which may speak for many, or no address."""
    cdef uint8_t host[INET_SIZE]
    if not inet_read_bytes(address, host) or (settings.n_trusted == 0 and settings.trusted_hops > 0) or is_trusted(settings, address):
        return None
    return host[:INET_SIZE] if inet_is_v4(host) else host[:INET_CLIENT]


cdef bint take_place(Engine engine, PortTable port, Peer peer, Connection connection) except -1:
    """A place for one more connection. False: there is none."""
    cdef uint32_t most = <uint32_t>port.settings.max_connections
    cdef ConnectionShare places
    cdef object found
    if port.open >= most:
        found = connection_to_close(engine, port, client_key_of(port.settings, peer.address))
        if found is None:
            return False
        places = port.places  # which may be forgotten by that
        places.make_way(found)
        if port.open >= most:  # the setting was larger before
            return False
    port.open += 1
    peer.placed = True
    if port.places is not None:
        port.places.enter(client_key_of(port.settings, peer.address), connection)
    return True


cdef int give_up_place(Peer peer, Connection connection) except -1:
    """It has ended, or ends for another one."""
    cdef PortTable port = peer.port
    if not peer.placed:
        return 0
    peer.placed = False
    port.open -= 1
    if port.places is not None:
        port.places.leave(connection)
        if <int64_t>port.open * 4 < port.settings.max_connections:
            port.places = None
    return 0


cdef int change_client(Peer peer, Connection connection) except -1:
    """The PROXY protocol has said who it is."""
    cdef ConnectionShare places = peer.port.places
    if places is not None and places.leave(connection):
        places.enter(client_key_of(peer.port.settings, peer.address), connection)
    return 0


cdef object connection_to_close(Engine engine, PortTable port, bytes client):
    """The connection that gives way to one more of this client; None: there is none."""
    cdef ConnectionShare places = port.places
    cdef int64_t now = engine.wheel.now
    cdef uint32_t held
    if places is None:
        places = port.places = find_places(engine, port)
    held = places.held(client)
    places.busy = False
    found = places.first(held + 2, now)
    if found is None:
        found = places.first(held + 1, now - PLACE_GRACE_MS)
    if found is None:
        found = places.first_unknown(now - PLACE_GRACE_MS)
    if found is None:
        places.busy = True
        found = places.first(max(2 * held + 2, port.open // CROWD_PART), now - CROWD_GRACE_MS)
    return found


cdef Py_ssize_t places_left(Engine engine, PortTable port, const uint8_t *host, Py_ssize_t opening) except -1:
    """How many more of this address may open beside so many that are opening; those that others would leave to it included."""
    cdef Py_ssize_t left = <Py_ssize_t>port.settings.max_connections - <Py_ssize_t>port.open - opening
    cdef bytes client
    cdef Ranked most
    if left > 0:
        return left
    client = client_key_of(port.settings, inet_text(host))
    if connection_to_close(engine, port, client) is None:
        return 0
    most = port.places.ranks.first()
    return max(<Py_ssize_t>1, (<Py_ssize_t>most.count - <Py_ssize_t>port.places.held(client)) // 2 if most is not None else 1)


cdef ConnectionShare find_places(Engine engine, PortTable port):
    """Who holds the places of a port."""
    cdef ConnectionShare places = ConnectionShare.__new__(ConnectionShare)
    cdef Session session
    cdef Peer peer
    for session in engine.connections:
        peer = (<H2Server>session).peer if isinstance(session, H2Server) else (<H1Server>session).peer
        if peer.port is port and peer.placed:
            places.enter(client_key_of(port.settings, peer.address), session.connection)
    return places


cdef class ConnectionShare(ClientShare):
    cdef int64_t quiet_since(self, object member) except -2:
        cdef Connection connection = <Connection>member
        if connection.state == WIRE_CLOSING:  # what is left of its last answer goes out
            return connection.took_at if self.busy or connection.took_at <= connection.reactor.wheel.now - PLACE_GRACE_MS else -1
        return connection.session.quiet_since(self.busy) if connection.state == WIRE_OPEN else -1

    cdef int make_way(self, object member) except -1:
        return (<Connection>member).session.make_way()
