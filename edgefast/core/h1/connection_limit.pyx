# Connection limit: the maximum of connections of a port (EdgeProxy spec.http.maxConnections), shared by client addresses.
#
# In: connections that open and end. Out: whether one more may open. Each port has its own maximum. At the maximum, an idle connection of
# the client with most connections is closed for a client with fewer. First come connections without a request. If the client has many, next
# come those with a request that waits for that client, or with an unread end of an answer. A closing connection counts as idle when its
# client has read nothing for PLACE_GRACE_MS. The share of each client is recorded from the first time at the maximum until most places are
# free again. Before that a connection costs two additions. Must never: close a connection that waits for its backend.

cdef bytes client_key_of(HttpSettings settings, bytes address):
    """The client of an address (IPv6: the /64). None: a trusted proxy, which may send requests of many clients, or no address."""
    cdef uint8_t host[INET_SIZE]
    if not inet_read_bytes(address, host) or (settings.n_trusted == 0 and settings.trusted_hops > 0) or is_trusted(settings, address):
        return None
    return host[:INET_SIZE] if inet_is_v4(host) else host[:INET_CLIENT]


cdef bint take_slot(Engine engine, PortTable port, Peer peer, Connection connection) except -1:
    """Reserve a place for one more connection. False: no place is free."""
    cdef uint32_t most = <uint32_t>port.settings.max_connections
    cdef ConnectionShare places
    cdef object found
    if port.open >= most:
        found = connection_to_close(engine, port, client_key_of(port.settings, peer.address))
        if found is None:
            return False
        places = port.places  # that call may delete it
        places.preempt(found)
        if port.open >= most:  # the setting was larger before
            return False
    port.open += 1
    peer.placed = True
    if port.places is not None:
        port.places.enter(client_key_of(port.settings, peer.address), connection)
    return True


cdef int release_slot(Peer peer, Connection connection) except -1:
    """The connection has ended, or ends for another one."""
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
    """The PROXY protocol header has set the client address."""
    cdef ConnectionShare places = peer.port.places
    if places is not None and places.leave(connection):
        places.enter(client_key_of(peer.port.settings, peer.address), connection)
    return 0


cdef object connection_to_close(Engine engine, PortTable port, bytes client):
    """The connection to close for a new one of this client; None: no connection may be closed."""
    cdef ConnectionShare places = port.places
    cdef int64_t now = engine.wheel.now
    cdef uint32_t held
    if places is None:
        places = port.places = find_slots(engine, port)
    held = places.held(client)
    places.busy = False
    found = places.first(held + 2, now)
    if found is None:
        found = places.first(held + 1, now - PLACE_GRACE_MS)
    if found is None:
        found = places.first_unknown(now - PLACE_GRACE_MS)
    if found is None:
        places.busy = True
        found = places.first(max(2 * held + 2, port.open // EVICTION_PART), now - EVICTION_GRACE_MS)
    return found


cdef Py_ssize_t slots_left(Engine engine, PortTable port, const uint8_t *host, Py_ssize_t opening) except -1:
    """How many more connections of this address may open, beside `opening` ones; includes places that other clients would lose to it."""
    cdef Py_ssize_t left = <Py_ssize_t>port.settings.max_connections - <Py_ssize_t>port.open - opening
    cdef bytes client
    cdef ClientEntry most
    if left > 0:
        return left
    client = client_key_of(port.settings, inet_text(host))
    if connection_to_close(engine, port, client) is None:
        return 0
    most = port.places.most()
    return max(<Py_ssize_t>1, (<Py_ssize_t>most.count - <Py_ssize_t>port.places.held(client)) // 2 if most is not None else 1)


cdef ConnectionShare find_slots(Engine engine, PortTable port):
    """The connections of a port by client."""
    cdef ConnectionShare places = ConnectionShare.__new__(ConnectionShare)
    cdef Session session
    cdef Peer peer
    for session in engine.connections:
        peer = (<MultiplexedSession>session).peer if isinstance(session, MultiplexedSession) else (<H1Server>session).peer
        if peer.port is port and peer.placed:
            places.enter(client_key_of(port.settings, peer.address), session.connection)
    return places


cdef class ConnectionShare(ClientShare):
    cdef int64_t inactive_since(self, object member) except -2:
        cdef Connection connection = <Connection>member
        if connection.state == WIRE_CLOSING:  # the rest of its last answer is being sent
            return connection.took_at if self.busy or connection.took_at <= connection.reactor.wheel.now - PLACE_GRACE_MS else -1
        return connection.session.inactive_since(self.busy) if connection.state == WIRE_OPEN else -1

    cdef int preempt(self, object member) except -1:
        return (<Connection>member).session.preempt()
