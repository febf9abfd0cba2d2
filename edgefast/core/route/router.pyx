# Router: port -> listener -> virtual host -> rule, on tables in the arena.
#
# In: Host, a normalised request (ef_request). Out: a Rule and the hit, or None. The most specific listener of the port owns the request
# (listener isolation). Inside it exact hostnames come before wildcards, longer wildcards before shorter ones, those before "no hostname". A
# miss in one virtual host goes on to the next. Rules are resolved at their first hit and kept per blob: a table swap costs nothing per
# rule, and memory follows use.

cdef void rules_free(PyObject **rules, uint32_t n) noexcept:
    cdef uint32_t i
    if rules == NULL:
        return
    for i in range(n):
        Py_XDECREF(rules[i])
    free(rules)


cdef void host_forget_rules(Host *host) noexcept:
    """Let go of all resolved rules; the next hit resolves again. Reads no blob: they may be gone."""
    cdef uint32_t i
    Py_XDECREF(host.rule)
    host.rule = NULL
    rules_free(host.rules, host.n_rules)
    host.rules = NULL
    if host.parts != NULL:
        for i in range(host.vhost.n_fragments):
            rules_free(host.parts[i], host.n_part_rules[i])
        free(host.parts)
        host.parts = NULL


cdef inline char *host_name(const Host *host) noexcept:
    return <char *>host + sizeof(Host)


cdef inline bint host_is(const Host *host, const uint8_t *name, size_t n) noexcept:
    return host.name_len == n and strncasecmp(host_name(host), <const char *>name, n) == 0


cdef void host_free(Host *host) noexcept:
    if host == NULL:
        return
    host_forget_rules(host)
    free(<void *>host.vhost.fragments)
    free(host.n_part_rules)
    free(host)


cdef class ListenerTable:
    def __cinit__(self, str name):
        self.name = name
        self.hostname = b"*"
        if ef_map_init(&self.hosts, 16) < 0:
            raise MemoryError

    def __dealloc__(self):
        self.clear()
        ef_map_free(&self.hosts)

    cdef void clear(self) noexcept:
        """No virtual host any more."""
        cdef size_t cursor = 0
        cdef uint64_t key, value
        while ef_map_next(&self.hosts, &cursor, &key, &value):
            host_free(<Host *><size_t>value)
        ef_map_free(&self.hosts)
        ef_map_init(&self.hosts, 16)
        self.has_any = self.has_wildcards = False

    def take(self, Engine engine, spec, HttpSettings settings):
        cdef size_t cursor = 0
        cdef uint64_t key, value
        log = spec.access_log
        program = engine.observer.make_format(log) if log.text or log.members or log.fields else None
        if self.spec is not None and self.spec.http != spec.http:  # resolved rules hold what was made of the old settings
            while ef_map_next(&self.hosts, &cursor, &key, &value):
                host_forget_rules(<Host *><size_t>value)
        self.spec = spec
        self.hostname = spec.hostname.lower().encode()
        self.settings = settings
        self.log_off = log.off
        self.log_sampling = log.sampling
        self.log_min_status = log.min_status
        self.log_min_ms = log.min_duration
        self.log_program = program
        self.client_check = make_client_check(spec.tls.client_rule) if spec.tls is not None else None
        self.filters = engine.policies.make_filters(spec.filters) if spec.filters else None
        self.traces = spec.tracing is not None
        self.trace_share = spec.tracing.sampling if self.traces else 0.0

    cdef Host *find(self, const uint8_t *host, size_t n) noexcept:
        """The virtual host that was put under exactly this name (any case), or NULL."""
        cdef uint64_t value
        cdef Host *found
        if not ef_map_get(&self.hosts, ef_hash64(SEED, host, n, 1), &value):
            return NULL
        found = <Host *><size_t>value
        return found if host_is(found, host, n) else NULL

    cdef int put(self, bytes hostname, Host *host) except -1:
        cdef uint64_t old = 0
        cdef const uint8_t *name = <const uint8_t *>PyBytes_AS_STRING(hostname)
        cdef int result = ef_map_put(
            &self.hosts, ef_hash64(SEED, name, PyBytes_GET_SIZE(hostname), 1), <uint64_t><size_t>host, &old
        )
        if result < 0:
            raise MemoryError
        if result == 1:
            host_free(<Host *><size_t>old)
        if hostname == b"*":
            self.has_any = True
        elif hostname.startswith(b"*."):
            self.has_wildcards = True
        return 0

    cdef int remove(self, bytes hostname) except -1:
        cdef uint64_t old = 0
        cdef const uint8_t *name = <const uint8_t *>PyBytes_AS_STRING(hostname)
        if ef_map_del(&self.hosts, ef_hash64(SEED, name, PyBytes_GET_SIZE(hostname), 1), &old):
            host_free(<Host *><size_t>old)
        if hostname == b"*":
            self.has_any = False
        return 0

    def virtual_hosts(self):
        cdef size_t cursor = 0
        cdef uint64_t key, value
        cdef Host *host
        cdef list names = []
        while ef_map_next(&self.hosts, &cursor, &key, &value):
            host = <Host *><size_t>value
            names.append((f"{self.name}/{host_name(host)[:host.name_len].decode()}", host.n_rules, host.vhost.n_fragments))
        names.sort()
        return names


cdef object handshake_of(tls):
    """What a listener asks of clients before their first request."""
    return None if tls is None else (tls.client_ca, tls.client_insecure_fallback, tls.min_version, tls.client_rule)


cdef class PortTable:
    def __cinit__(self, Engine engine, tuple key):
        self.engine = engine
        self.key = key
        self.number = key[0]
        self.listeners = []
        self.exact = {}
        self.wildcards = {}

    def arrange(self, listeners, elsewhere=()):
        """Take the listeners of this port, in the order of the table. elsewhere: hostnames that a listener of layer 4 has on it; no
        request of theirs is served by a less specific one."""
        cdef ListenerTable listener
        had = self.listeners
        self.listeners = listeners
        self.exact = {}
        self.wildcards = {}
        self.any = self.only = None
        for listener in listeners:
            if listener.hostname == b"*":
                if self.any is None:
                    self.any = listener
            elif listener.hostname.startswith(b"*."):
                self.wildcards.setdefault(listener.hostname[1:], listener)
            else:
                self.exact.setdefault(listener.hostname, listener)
        for hostname in elsewhere if listeners else ():
            listener = ListenerTable("-")
            listener.hostname = hostname
            listener.settings = (<ListenerTable>listeners[0]).settings
            listener.log_sampling = 1.0
            if hostname.startswith(b"*."):
                self.wildcards.setdefault(hostname[1:], listener)
            else:
                self.exact.setdefault(hostname, listener)
        if len(listeners) == 1 and self.any is not None and not elsewhere:
            self.only = self.any
        self.log_first = None
        self.log_off = True
        self.traces = any([(<ListenerTable>item).traces for item in listeners])
        self.log_wants_request = self.log_wants_answer = self.log_wants_address = self.log_wants_upstream = False
        for listener in listeners:
            if listener.log_off:
                continue
            self.log_off = False
            if self.log_first is None:
                self.log_first = listener
            if listener.log_program is not None:
                self.log_wants_request |= listener.log_program.wants_request
                self.log_wants_answer |= listener.log_program.wants_answer
                self.log_wants_address |= listener.log_program.wants_address
                self.log_wants_upstream |= listener.log_program.wants_upstream
        if listeners:
            self.settings = (<ListenerTable>listeners[0]).settings
            self.proxy_protocol = self.settings.proxy_protocol != 0
            self.shake = {handshake_of((<ListenerTable>item).spec.tls) for item in listeners}
        elif had:
            self.engine.release_idle(self, False)

    # A request to one of many hosts meets nothing in a cache: map slot, Host, blob and Rule are one miss after the other. So each is
    # asked for while the parsers are still at work on the request (measured: about 0.2 us a miss on a virtual machine).

    cdef void approach(self, const uint8_t *host, size_t n) noexcept:
        """First the slot of the map. Only for ports with one listener: with more, the owner has to be found first."""
        self.near_hash = 0
        self.near_host = NULL
        if self.only is not None:
            self.near_hash = ef_hash64(SEED, host, n, 1)
            ef_map_prefetch(&self.only.hosts, self.near_hash)

    cdef void approach_host(self) noexcept:
        """Then the Host, whose name is still to be compared."""
        cdef uint64_t value
        if self.near_hash and ef_map_get(&self.only.hosts, self.near_hash, &value):
            self.near_host = <Host *><size_t>value
            prefetch(&self.near_host.vhost)
            prefetch(<const char *>&self.near_host.vhost + 64)

    cdef void approach_table(self) noexcept:
        """Then the first lines of its table, unless it is one path, and the rule if there is but one."""
        cdef const char *root
        if self.near_host != NULL:
            if not self.near_host.single.holds:
                root = <const char *>self.near_host.vhost.root
                prefetch(root)
                prefetch(root + 128)  # a table of one path has two slots
                prefetch(root + 192)
            if self.near_host.rule != NULL:
                prefetch(self.near_host.rule)
                prefetch(<const char *>self.near_host.rule + 64)

    cdef ListenerTable find(self, const uint8_t *host, size_t n):
        """The listener that owns a host; None when the port has none for it."""
        cdef size_t i
        if self.only is not None:
            return self.only
        name = host[:n].lower()
        found = self.exact.get(name)
        if found is not None:
            return <ListenerTable>found
        if self.wildcards:
            for i in range(1, n):
                if host[i] == c".":
                    found = self.wildcards.get(name[i:])
                    if found is not None:
                        return <ListenerTable>found
        return self.any

    cdef Rule match(self, ListenerTable listener, const uint8_t *host, size_t n, const ef_request *request, ef_hit *hit):
        cdef Host *found
        cdef Rule rule
        cdef uint8_t name[260]
        cdef size_t i
        found = self.near_host
        self.near_host = NULL
        if found == NULL or not host_is(found, host, n):
            found = listener.find(host, n)
        if found != NULL:
            rule = self.match_host(listener, found, request, hit)
            if rule is not None:
                return rule
        if listener.has_wildcards and n <= 255:
            name[0] = c"*"
            for i in range(1, n):
                if host[i] == c".":
                    memcpy(name + 1, host + i, n - i)
                    found = listener.find(name, n - i + 1)
                    if found != NULL:
                        rule = self.match_host(listener, found, request, hit)
                        if rule is not None:
                            return rule
        if listener.has_any:
            found = listener.find(<const uint8_t *>b"*", 1)
            if found != NULL:
                return self.match_host(listener, found, request, hit)
        return None

    cdef Rule match_host(self, ListenerTable listener, Host *host, const ef_request *request, ef_hit *hit):
        cdef ef_route route
        cdef PyObject **rules
        cdef uint32_t part
        if host.single.holds:
            if not ef_single_path_match(&host.single, host.vhost.root, request, hit):
                return None
            if host.rule == NULL:
                self.resolve(listener, &host.rule, hit)
            return <Rule>host.rule
        ef_route_begin(&route, &host.vhost, request)
        while ef_route_next(&route, hit):
            if (hit.regex_path or hit.regex_preds) and not self.regexes_hold(request, hit):
                continue
            if hit.blob == host.vhost.root and host.n_rules == 1:
                rules = &host.rule
            elif hit.blob == host.vhost.root:
                if host.rules == NULL:
                    host.rules = <PyObject **>calloc(host.n_rules, sizeof(PyObject *))
                rules = host.rules
            else:
                part = ef_blob_fragment_index(hit.blob)
                if host.parts == NULL:
                    host.parts = <PyObject ***>calloc(host.vhost.n_fragments, sizeof(PyObject **))
                    if host.parts == NULL:
                        raise MemoryError
                if host.parts[part] == NULL:
                    host.parts[part] = <PyObject **>calloc(host.n_part_rules[part], sizeof(PyObject *))
                rules = host.parts[part]
            if rules == NULL:
                raise MemoryError
            if rules[hit.rule] == NULL:
                self.resolve(listener, &rules[hit.rule], hit)
            return <Rule>rules[hit.rule]
        return None

    cdef int resolve(self, ListenerTable listener, PyObject **place, const ef_hit *hit) except -1:
        """A rule that is hit for the first time, into its place."""
        rule = self.engine.tables.resolve_rule(hit, listener.settings)
        Py_INCREF(rule)
        place[0] = <PyObject *>rule
        return 0

    cdef bint regexes_hold(self, const ef_request *request, const ef_hit *hit) except -1:
        """Evaluate what the table leaves to RE2: the path pattern and the regex predicates of one candidate."""
        cdef ef_regex_pred pred
        cdef const uint8_t *pattern
        cdef const uint8_t *value
        cdef size_t length
        cdef uint32_t i
        cdef int found
        for i in range(hit.regex_preds):
            if ef_route_pred(hit, i, &pred) < 0:
                return False
            if pred.is_cookie:
                if not self.cookie_holds(request, &pred):
                    return False
                continue
            if pred.is_query:
                found = ef_request_query(request, pred.name, pred.name_len, self.engine.scratch, self.engine.scratch_size,
                                         &value, &length)
            else:
                found = ef_request_header(request, pred.name, pred.name_len, self.engine.scratch, self.engine.scratch_size,
                                          &value, &length)
            if found != 1:
                return False
            if not self.engine.tables.regex(pred.pattern[:pred.pattern_len]).fullmatch(value[:length]):
                return False
        if hit.regex_path:
            pattern = ef_blob_regex(hit.blob, hit.candidate, &length)
            if not self.engine.tables.regex(pattern[:length]).fullmatch(request.path[:request.path_len]):
                return False
        return True

    cdef bint cookie_holds(self, const ef_request *request, const ef_regex_pred *pred) except -1:
        """Some cookie of the name has a value that the pattern takes whole."""
        cdef const uint8_t *value
        cdef size_t length
        cdef uint64_t at = 0
        pattern = self.engine.tables.regex(pred.pattern[:pred.pattern_len])
        while ef_request_cookie(request, pred.name, pred.name_len, &at, &value, &length):
            if pattern.fullmatch(value[:length]):
                return True
        return False
