# Where requests go: endpoints by least request of two, ejected when they fail, with a pool of idle connections each.
#
# In: ir.Cluster (updated in place, so that health and pools survive a rollout). Out: a ready Upstream for an UpstreamUser, now or
# later, or one failure. Health belongs to the endpoint and is shared by all routes. Limits: connections per cluster and worker,
# waiting users per cluster and worker; nothing waits without a deadline (the user's own).

cdef class Endpoint(Timer):
    def __init__(self, Cluster cluster, str host, int port):
        self.cluster = cluster
        self.host = host
        self.port = port
        self.key = (host, port)
        self.idle = []
        if port == 0:
            text = "unix:" + host
        elif ":" in host:
            text = f"[{host}]:{port}"
        else:
            text = f"{host}:{port}"
        self.text = text.encode()
        self.log = json_encode(text)

    cdef int succeeded(self) except -1:
        self.failures = 0
        return 0

    cdef int failed(self) except -1:
        cdef int64_t span
        self.failures += 1
        if self.failures < EJECT_AFTER or self.index < 0 or self.cluster.load[self.index].ejected:
            return 0
        if (self.cluster.ejected + 1) * 2 > self.cluster.size:  # at most half of a set
            return 0
        if self.cluster.engine.wheel.now - self.ejected_at > 2 * EJECT_MAX_MS:
            self.ejections = 0  # old sins are forgiven
        self.ejected_at = self.cluster.engine.wheel.now
        self.failures = 0
        self.ejections += 1
        self.cluster.load[self.index].ejected = 1
        self.cluster.ejected += 1
        span = EJECT_MS * <int64_t>self.ejections
        if span > EJECT_MAX_MS:
            span = EJECT_MAX_MS
        self.cluster.engine.count(G_ENDPOINT_EJECTIONS)
        self.cluster.engine.wheel.arm(self, self.cluster.engine.wheel.now + span)
        return 0

    cdef int on_deadline(self, int64_t now) except -1:
        if self.index >= 0 and self.cluster.load[self.index].ejected:
            self.cluster.load[self.index].ejected = 0
            self.cluster.ejected -= 1
        return 0


cdef class Cluster:
    def __cinit__(self, Engine engine, str name):
        self.engine = engine
        self.name = name
        self.log = json_encode(name)
        self.resolved = {}
        self.endpoints = []
        self.pending = deque()

    def __dealloc__(self):
        free(self.load)

    cdef int update(self, object spec) except -1:
        """Take a new ir.Cluster (or None: removed). Raises what is wrong with its TLS settings, then nothing has changed."""
        cdef Endpoint endpoint
        tls = spec.tls if spec is not None else None
        context = self.engine.upstream_ssl(tls) if tls is not None else None
        if context is not self.ssl or (tls.sni if tls is not None else None) != self.sni:
            for endpoint in self.endpoints:  # what was made with the old settings is not used again
                for up in list(endpoint.idle):
                    (<Upstream>up).shut(False)
                endpoint.idle.clear()
        self.ssl = context
        self.sni = tls.sni if tls is not None else None
        self.spec = spec
        if spec is not None:
            self.max_connections, self.max_pending = spec.max_connections, spec.max_pending
        self.rebuild()
        return 0

    cdef int rebuild(self) except -1:
        cdef Endpoint endpoint
        cdef ef_endpoint_load *load
        cdef dict before = {}
        cdef list now = []
        cdef set seen = set()
        for endpoint in self.endpoints:
            before[endpoint.key] = endpoint
        wanted = ()
        if self.spec is not None:
            wanted = self.spec.endpoints or self.spec.fallback
        addresses = []
        for item in wanted:
            if item.hostname:
                if item.hostname not in self.resolved:
                    self.resolved[item.hostname] = None
                    self.engine.resolver.watch(item.hostname, self._on_resolved)
                for address in self.resolved[item.hostname] or ():
                    addresses.append((address, item.port, item.weight))
            else:
                addresses.append((item.address, item.port, item.weight))
        hostnames = {item.hostname for item in wanted if item.hostname}
        for hostname in [name for name in self.resolved if name not in hostnames]:
            del self.resolved[hostname]
            self.engine.resolver.forget(hostname, self._on_resolved)
        load = <ef_endpoint_load *>calloc(len(addresses) + 1, sizeof(ef_endpoint_load))
        if load == NULL:
            raise MemoryError
        for address, port, weight in addresses:
            if (address, port) in seen:
                continue
            seen.add((address, port))
            endpoint = before.pop((address, port), None)
            if endpoint is None:
                endpoint = Endpoint(self, address, port)
                endpoint.index = -1
            if endpoint.index >= 0:
                load[len(now)] = self.load[endpoint.index]
            load[len(now)].weight = weight
            now.append(endpoint)
        for endpoint in before.values():
            if endpoint.index >= 0 and self.load[endpoint.index].ejected:
                self.ejected -= 1
            self.engine.wheel.disarm(endpoint)
            endpoint.index = -1
            for up in list(endpoint.idle):
                (<Upstream>up).shut(False)
            endpoint.idle.clear()
        for i, item in enumerate(now):
            (<Endpoint>item).index = i
        free(self.load)
        self.load = load
        self.endpoints = now
        self.size = <uint32_t>len(now)
        return self.serve_pending()

    def _on_resolved(self, hostname, addresses):
        """The resolver's answer: a tuple of addresses, () when the name has none. The last good answer is the resolver's care."""
        if hostname in self.resolved and self.resolved[hostname] != addresses:
            self.resolved[hostname] = addresses
            self.rebuild()

    cdef bint resolving(self):
        for addresses in self.resolved.values():
            if addresses is None:
                return True
        return False

    cdef Endpoint pick(self, uint64_t tried):
        cdef int i
        if self.size == 1:
            return <Endpoint>PyList_GET_ITEM(self.endpoints, 0)
        i = ef_pick_endpoint(self.load, self.size, tried, ef_random(self.engine.random))
        if i < 0:
            return None
        return <Endpoint>PyList_GET_ITEM(self.endpoints, i)

    cdef int acquire(self, UpstreamUser user, uint64_t tried) except -1:
        """Give the user a connection: on_up_ready or on_up_failed is called, now or later."""
        cdef Endpoint endpoint
        cdef Upstream up
        cdef Entry entry
        user.ticket += 1
        user.chosen = False
        if user.streams and user.place is None:
            entry = self.share().enter(user)
            if entry == SHARE_WAITS:
                return 0
            if entry == SHARE_FULL:
                self.engine.count(G_PENDING_REFUSED)
                return user.on_up_failed(UP_OVERFLOW)
        if self.size == 0:
            if self.resolving() and <uint32_t>len(self.pending) < self.max_pending:
                user.waiting = True
                self.pending.append((user, user.ticket))
                return 0
            return user.on_up_failed(UP_NO_ENDPOINT)
        endpoint = self.pick(tried)
        if endpoint is None:
            return user.on_up_failed(UP_NO_ENDPOINT)
        up = self.checkout(endpoint)
        if up is not None:
            self.load[endpoint.index].active += 1
            user.endpoint = endpoint
            user.chosen = True
            self.engine.count(G_UPSTREAM_REUSES)
            return user.on_up_ready(up)
        if self.connections >= self.max_connections:
            up = self.any_idle()  # of whichever endpoint: waiting beside an idle connection would be absurd
            if up is not None:
                self.load[up.endpoint.index].active += 1
                user.endpoint = up.endpoint
                user.chosen = True
                self.engine.count(G_UPSTREAM_REUSES)
                return user.on_up_ready(up)
            if <uint32_t>len(self.pending) >= self.max_pending:
                self.forget_gone()
            if <uint32_t>len(self.pending) >= self.max_pending:
                self.engine.count(G_PENDING_REFUSED)
                return user.on_up_failed(UP_OVERFLOW)
            user.waiting = True
            self.pending.append((user, user.ticket))
            return 0
        return self.dial(user, endpoint)

    cdef Upstream checkout(self, Endpoint endpoint):
        """A living idle connection of the endpoint, the one used last; None when it has none."""
        cdef Upstream up
        cdef uint8_t byte
        cdef ssize_t n
        while PyList_GET_SIZE(endpoint.idle):
            up = endpoint.idle.pop()
            if up.closed:
                continue
            if self.engine.wheel.now - up.idle_since > PEEK_AFTER_MS and up.fd >= 0:
                n = recv(up.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT)
                if n >= 0 or (errno != EAGAIN and errno != EINTR):
                    up.shut(True)
                    continue
            return up
        return None

    cdef Upstream any_idle(self):
        cdef Endpoint endpoint
        cdef Upstream up
        for endpoint in self.endpoints:
            if PyList_GET_SIZE(endpoint.idle) and not self.load[endpoint.index].ejected:
                up = self.checkout(endpoint)
                if up is not None:
                    return up
        return None

    cdef int dial(self, UpstreamUser user, Endpoint endpoint) except -1:
        user.waiting = True
        user.endpoint = endpoint
        user.chosen = True
        self.load[endpoint.index].active += 1
        self.connections += 1
        self.engine.spawn(self._dial(user, user.ticket, endpoint, user.settings.connect_timeout))
        return 0

    async def _dial(self, UpstreamUser user, uint32_t ticket, Endpoint endpoint, int64_t timeout):
        cdef Upstream up = Upstream(self.engine, endpoint)
        cdef UpFailure why = UP_CONNECT
        loop = self.engine.loop
        counted = False
        self.engine.count(G_UPSTREAM_CONNECTS)
        try:
            async with asyncio_timeout(timeout / 1000.0):
                if endpoint.port == 0:
                    await loop.create_unix_connection(
                        lambda: up, endpoint.host, ssl=up.ssl, server_hostname=up.sni
                    )
                else:
                    await loop.create_connection(
                        lambda: up, endpoint.host, endpoint.port, ssl=up.ssl, server_hostname=up.sni
                    )
            counted = True  # from here on connection_lost takes it back
        except CancelledError:
            self.done(endpoint)
            raise
        except TimeoutError:
            why = UP_CONNECT_TIMEOUT
        except SSLError:
            why = UP_TLS
        except (OSError, UnicodeError, ValueError):
            why = UP_CONNECT
        except Exception:
            _log.exception("a connection to %s could not be made", endpoint.text.decode())
            why = UP_CONNECT
        finally:
            if not counted and not up.attached:
                self.connections -= 1
        if up.attached and not up.closed and counted and not up.is_current():
            up.shut(True)
            self.done(endpoint)
            if user.waiting and user.ticket == ticket:
                user.waiting = False
                self.acquire(user, 0)
            return
        if up.attached and not up.closed and counted:
            if user.waiting and user.ticket == ticket:
                user.waiting = False
                user.on_up_ready(up)
            else:
                self.done(endpoint)
                up.park()
            return
        if up.attached and not up.closed:
            up.shut(True)
        self.engine.count(G_UPSTREAM_CONNECT_FAILURES)
        endpoint.failed()
        self.done(endpoint)
        if user.waiting and user.ticket == ticket:
            user.waiting = False
            user.on_up_failed(why)
        self.serve_pending()

    cdef int release(self, Upstream up) except -1:
        """A connection is free again: the longest waiting user gets it, else the pool."""
        cdef Endpoint endpoint = up.endpoint
        cdef UpstreamUser user
        if endpoint.index < 0 or up.closed:
            up.shut(False)
            return 0
        while self.pending:
            user, ticket = self.pending.popleft()
            if user.waiting and user.ticket == <uint32_t>ticket:
                user.waiting = False
                user.endpoint = endpoint
                user.chosen = True
                self.load[endpoint.index].active += 1
                user.on_up_ready(up)
                return 0
        endpoint.idle.append(up)
        return 0

    cdef int lost(self, Upstream up) except -1:
        self.connections -= 1
        if up.parked:
            up.parked = False
            try:
                up.endpoint.idle.remove(up)
            except ValueError:
                pass
        return self.serve_pending()

    cdef void done(self, Endpoint endpoint) noexcept:
        """A try on this endpoint has ended, however it did."""
        if endpoint.index >= 0 and self.load[endpoint.index].active > 0:
            self.load[endpoint.index].active -= 1

    cdef int forget_gone(self) except -1:
        """Users that stopped waiting still stand in the queue; make room of them."""
        cdef UpstreamUser user
        waiting = deque()
        for user, ticket in self.pending:
            if user.waiting and user.ticket == <uint32_t>ticket:
                waiting.append((user, ticket))
        self.pending = waiting
        return 0

    cdef BodyShare share(self):
        """The share of bodies, made when the first one comes; it goes with the last one."""
        if self.bodies is None:
            self.bodies = BodyShare(self.engine, self)
        return self.bodies

    cdef int serve_pending(self) except -1:
        cdef UpstreamUser user
        while self.pending and (self.size or not self.resolving()):
            if self.size and self.connections >= self.max_connections:
                return 0
            user, ticket = self.pending.popleft()
            if user.waiting and user.ticket == <uint32_t>ticket:
                user.waiting = False
                self.acquire(user, 0)
        return 0

    def dump(self):
        return {
            "name": self.name,
            "connections": self.connections,
            "pending": len(self.pending),
            "bodies": len(self.bodies.holders) if self.bodies is not None else 0,
            "bodies_waiting": len(self.bodies.waiting) if self.bodies is not None else 0,
            "endpoints": [
                {
                    "address": (<Endpoint>e).text.decode(),
                    "active": self.load[(<Endpoint>e).index].active,
                    "idle": len((<Endpoint>e).idle),
                    "healthy": not self.load[(<Endpoint>e).index].ejected,
                    "failures": (<Endpoint>e).failures,
                    "ejections": (<Endpoint>e).ejections,
                }
                for e in self.endpoints
            ],
        }
