# Tables: listeners, virtual hosts, fragments and clusters of one worker, by name, in the arena.
#
# In: sets of changes from the agent (put and del of named resources).
# Out: PortTables to match on, Rules and Clusters that are resolved at first use. A set is applied at once, between two requests. A refused
# change leaves the old version in place. Afterwards nothing here reads what was replaced.

_decode_rule = msgspec.msgpack.Decoder(ir.Rule).decode
_decode_cluster = msgspec.msgpack.Decoder(ir.Cluster).decode
_decode_policy = msgspec.msgpack.Decoder(ir.PolicyUnit).decode
_decode_listener = msgspec.msgpack.Decoder(ir.Listener).decode
_re2_options = re2.Options()
_re2_options.log_errors = False
_re2_bytes = re2.Options()
_re2_bytes.log_errors = False
_re2_bytes.encoding = re2.Options.Encoding.LATIN1


cdef inline uint64_t hash_name(bytes name) noexcept:
    return ef_hash64(SEED, <const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), 0)


cdef bint has_check(traffic) noexcept:
    return traffic is not None and traffic.check is not None


cdef class Tables:
    def __cinit__(self, Engine engine, arena):
        cdef Py_buffer view
        self.engine = engine
        self.view = memoryview(arena)
        PyObject_GetBuffer(self.view, &view, PyBUF_SIMPLE)
        self.arena = <const uint8_t *>view.buf
        self.arena_size = view.len
        PyBuffer_Release(&view)  # the memoryview keeps the mapping
        self.version = ""
        self.listeners = {}
        self.ports = WeakValueDictionary()
        self.by_port = {}
        self.clusters = {}
        self.retired = WeakValueDictionary()
        self.policies = {}
        self.absent = WeakValueDictionary()
        self.treated, self.treatments = {}, {}
        self.policy_epoch = 1  # nobody has learnt anything yet
        self.roots = {}
        self.regexes = {}
        self.timeout_lines = {}
        self.plain_backends = {}
        if ef_map_init(&self.cluster_places, 64) < 0 or ef_map_init(&self.fragment_places, 16) < 0:
            raise MemoryError

    def __dealloc__(self):
        ef_map_free(&self.cluster_places)
        ef_map_free(&self.fragment_places)

    def apply(self, changes, str version):
        """Take a set of changes at once, between two requests.

        changes: (op "put" or "del", type, name, offset, length). Returns the refused ones as (type, name, error); what they would
        have replaced stays. Afterwards nothing here reads blobs that were replaced or removed.
        """
        cdef list refused = []
        cdef dict hosts = {}  # virtual host -> its changes: a host and its fragments change together or not at all
        cdef bint rearrange = False
        for change in changes:
            op, kind, name, offset, length = change
            try:
                if kind == "cluster":
                    self._change_cluster(op, name, offset, length)
                elif kind == "policy":
                    self._change_policy(op, name, offset, length)
                elif kind == "virtual_host":
                    hosts.setdefault(name, []).append(change)
                elif kind == "fragment":
                    hosts.setdefault(name.rpartition("#")[0], []).append(change)
                elif kind == "stream_route":
                    self.engine.stream_tables.change_route(op, name, offset, length)
                elif kind == "listener":
                    self._change_listener(op, name, offset, length)
                    rearrange = True
                else:
                    raise ValueError(f"unknown resource type {kind!r}")
            except (ValueError, OSError, msgspec.MsgspecError) as error:
                refused.append((kind, name, str(error)))
        for host, group in hosts.items():
            try:
                self._change_host(host, group)
            except ValueError as error:
                refused.extend((kind, name, str(error)) for op, kind, name, _, _ in group if op == "put")
        if rearrange:
            self._arrange_ports()
        if len(self.regexes) > 4096:
            self.regexes.clear()
        if len(self.timeout_lines) > 4096:
            self.timeout_lines.clear()
        if len(self.treatments) > 4096:
            self.treatments.clear()
        self.version = version
        self.engine.prober.wake()
        self.engine.count(G_APPLIES)
        self.engine.count_n(G_RESOURCES_REFUSED, len(refused))
        return refused

    cdef int stop_idle(self) except -1:
        """Nobody uses a connection again."""
        cdef Cluster cluster
        for cluster in list(self.clusters.values()):
            for endpoint in cluster.endpoints + cluster.draining:
                (<Endpoint>endpoint).stop_idle()
        return 0

    def _change_cluster(self, str op, str name, uint64_t offset, uint64_t length):
        cdef uint64_t hashed = hash_name(name.encode())
        cdef uint64_t old
        cdef Cluster live = self.living(name)
        if op == "del":
            ef_map_del(&self.cluster_places, hashed, &old)
            self.plain_backends.pop(name, None)
            self.treated_epoch += self.treated.pop(name, None) is not None
            if live is not None:
                live.update(None)
                del self.clusters[name]
                self.retired[name] = live  # rules and connections may still hold it, and it may come back
            return
        if length >= 1 << 24:
            raise ValueError("the cluster is larger than 16 MiB")
        data = self.at(offset, length)[:length]
        spec = _decode_cluster(data)
        if spec.name != name:
            raise ValueError("the record belongs to another cluster")
        if live is None and any([endpoint.hostname for endpoint in spec.endpoints]):
            live = self.clusters[name] = Cluster(self.engine, name)  # names are resolved before the first request asks
        if live is not None:
            live.update(spec)
        if self.treated.get(name, ()) != spec.treatments:
            if spec.treatments:
                self.treated[name] = self.treatments.setdefault(spec.treatments, spec.treatments)
            else:
                del self.treated[name]
            self.treated_epoch += 1
        if ef_map_put(&self.cluster_places, hashed, offset << 24 | length, &old) < 0:
            raise MemoryError

    def _change_policy(self, str op, str name, uint64_t offset, uint64_t length):
        cdef Policy policy
        spec = None
        if op == "put":
            spec = _decode_policy(self.at(offset, length)[:length])
            if spec.name != name:
                raise ValueError("the record belongs to another policy")
        policy = self.policy(name)
        had = has_check(policy.traffic)
        before = policy.places if name in self.policies else None
        policy.update(spec)
        if spec is not None:
            self.engine.policies.count_extractors(policy.places, 1)
        self.engine.policies.count_extractors(before, -1)
        self.checks += <int>has_check(policy.traffic) - <int>had
        self.policy_epoch += 1
        if spec is not None:
            self.policies[name] = policy
            self.absent.pop(name, None)
        else:
            self.policies.pop(name, None)
            self.absent[name] = policy  # rules that still hold it stay closed, and it may come back

    def _change_host(self, str name, list group):
        """Take the changes of one virtual host and its fragments, or raise and leave everything as it was."""
        cdef ListenerTable table
        cdef Host *before
        cdef Host *host
        cdef dict staged = {}  # fragment -> place, 0: gone
        cdef uint64_t old
        cdef bint gone = False
        place = self.roots.get(name)
        listener, _, hostname = name.rpartition("/")
        key = hostname.encode()
        table = self.listeners.get(listener)
        for op, kind, item, offset, length in group:
            if op == "del":
                if kind == "virtual_host":
                    gone = True
                else:
                    staged[item] = 0
                continue
            error = ef_table_check(self.at(offset, length), length)
            if error < 0:
                raise ValueError(f"not a table of this format (error {error})")
            if length >= 1 << 24:
                raise ValueError("the table is larger than 16 MiB")
            if kind == "virtual_host":
                place = (offset, length)
            else:
                staged[item] = offset << 24 | length
        if gone:
            if table is not None:
                table.remove(key)
            self.roots.pop(name, None)
        elif place is not None:
            if table is None:
                table = self.listeners[listener] = ListenerTable(listener)
            before = table.find(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
            host = self.make_host(name, place[0], place[1], staged, before)
            table.put(key, host)
            if host.vhost.n_fragments > 1:
                self.roots[name] = place
            else:
                self.roots.pop(name, None)
        elif any(staged.values()):
            raise ValueError("the virtual host of the fragment is missing")
        for item, at in staged.items():
            if at:
                if ef_map_put(&self.fragment_places, hash_name(item.encode()), at, &old) < 0:
                    raise MemoryError
            else:
                ef_map_del(&self.fragment_places, hash_name(item.encode()), &old)

    cdef Host *make_host(self, str name, uint64_t offset, uint64_t length, dict staged, Host *before) except NULL:
        cdef const ef_blob *root = <const ef_blob *>self.at(offset, length)
        cdef const ef_blob *part
        cdef const ef_blob **fragments = NULL
        cdef Host *host
        cdef uint64_t place
        cdef uint32_t i, n = ef_blob_fragments(root)
        cdef size_t key_len
        cdef const uint8_t *own = ef_blob_key(root, &key_len)
        if own[:key_len] != name.encode():
            raise ValueError("the table belongs to another virtual host")
        hostname = name.rpartition("/")[2].encode()
        if len(hostname) > 255:
            raise ValueError("the hostname is longer than 255 bytes")
        host = <Host *>calloc(1, sizeof(Host) + len(hostname))
        if host == NULL:
            raise MemoryError
        host.name_len = <uint32_t>len(hostname)
        memcpy(host_name(host), PyBytes_AS_STRING(hostname), host.name_len)
        host.vhost.root = root
        host.vhost.n_fragments = n
        host.n_rules = ef_blob_rules(root)
        ef_single_path_read(root, &host.single)
        if n > 1:
            fragments = <const ef_blob **>calloc(n, sizeof(ef_blob *))
            host.vhost.fragments = fragments
            host.n_part_rules = <uint32_t *>calloc(n, sizeof(uint32_t))
            if fragments == NULL or host.n_part_rules == NULL:
                host_free(host)
                raise MemoryError
            for i in range(n):
                item = f"{name}#{i}"
                place = 0
                if item in staged:
                    place = staged[item]
                else:
                    ef_map_get(&self.fragment_places, hash_name(item.encode()), &place)
                if place == 0:
                    continue
                part = <const ef_blob *>self.at(place >> 24, place & 0xFFFFFF)
                own = ef_blob_key(part, &key_len)
                if (
                    ef_blob_fragments(part) != n or ef_blob_fragment_index(part) != i
                    or own[:key_len] != item.encode()
                ):
                    host_free(host)
                    raise ValueError(f"fragment {i} belongs to another cut of this virtual host")
                fragments[i] = part
                host.n_part_rules[i] = ef_blob_rules(part)
        if before != NULL and before.vhost.root == root:  # rules that were resolved stay resolved
            host.rule = before.rule
            host.rules = before.rules
            before.rule = NULL
            before.rules = NULL
            if before.parts != NULL and before.vhost.n_fragments == n:
                host.parts = <PyObject ***>calloc(n, sizeof(PyObject **))
                if host.parts != NULL:
                    for i in range(n):
                        if before.vhost.fragments[i] == fragments[i]:
                            host.parts[i] = before.parts[i]
                            before.parts[i] = NULL
        return host

    def _change_listener(self, str op, str name, uint64_t offset, uint64_t length):
        cdef ListenerTable table = self.listeners.get(name)
        spec = _decode_listener(self.at(offset, length)[:length]) if op == "put" else None
        if self.engine.stream_tables.change_listener(op, name, spec) or op == "del":
            self.listeners.pop(name, None)
            if table is not None:
                table.clear()  # an exchange in flight may keep the listener, never its tables
            return
        settings = HttpSettings(spec.http)
        if table is None:
            table = self.listeners[name] = ListenerTable(name)
        table.take(self.engine, spec, settings)

    def _arrange_ports(self):
        cdef ListenerTable table
        cdef dict by_port = {}
        https = {}
        for name in sorted(self.listeners):
            table = self.listeners[name]
            if table.spec is not None:
                key = table.spec.port, table.spec.addresses
                by_port.setdefault(key, []).append(table)
                if table.spec.tls is not None:
                    https.setdefault(key, []).append(table.hostname)
        self.by_port = by_port
        self.engine.stream_tables.arrange(https, by_port)
        for port in list(self.ports.values()):
            self.arrange_port(port)

    cdef int arrange_port(self, PortTable port) except -1:
        """Take the listeners at its addresses, also if these are part of others now."""
        key = self.engine.stream_tables.covering_key(port.key)
        port.arrange(self.by_port.get(key, []), self.engine.stream_tables.hostnames(key))
        return 0

    cdef const uint8_t *at(self, uint64_t offset, uint64_t length) except NULL:
        if offset > self.arena_size or length > self.arena_size - offset:
            raise ValueError("the resource lies outside the arena")
        return self.arena + offset

    cdef Cluster cluster(self, str name):
        """The live cluster of a name; one without endpoints when the table has none."""
        cdef Cluster cluster = self.living(name)
        cdef uint64_t place
        if cluster is not None:
            return cluster
        cluster = self.clusters[name] = Cluster(self.engine, name)
        if ef_map_get(&self.cluster_places, hash_name(name.encode()), &place):
            try:
                spec = _decode_cluster(self.at(place >> 24, place & 0xFFFFFF)[:place & 0xFFFFFF])
                if spec.name == name:
                    cluster.update(spec)
            except (ValueError, OSError, msgspec.MsgspecError) as error:
                _log.error("cluster %s cannot be used: %s", name, error)
        return cluster

    cdef Cluster living(self, str name):
        """The object of a name that somebody uses, or None: there is never a second one."""
        cdef Cluster cluster = self.clusters.get(name)
        if cluster is None:
            cluster = self.retired.pop(name, None)
            if cluster is not None:
                self.clusters[name] = cluster
        return cluster

    cdef Policy policy(self, str name):
        """The one object of a name; a closed unit when the table has none."""
        policy = self.policies.get(name)
        if policy is None:
            policy = self.absent.get(name)
        if policy is None:
            policy = self.absent[name] = self.engine.policies.make_policy(name)
        return policy

    cdef Rule resolve_rule(self, const ef_hit *hit, HttpSettings settings):
        cdef size_t length
        cdef const uint8_t *payload = ef_blob_rule(hit.blob, hit.rule, &length)
        return Rule(self.engine, _decode_rule(payload[:length]), settings)

    cdef bytes timeout_line(self, int64_t ms):
        """What tells a backend how long it may take (spec 4); one object for each time, and b"" when it may take forever."""
        line = self.timeout_lines.get(ms)
        if line is None:
            line = self.timeout_lines[ms] = b"x-edge-expected-rq-timeout-ms: %d\r\n" % ms if ms else b""
        return line

    cdef object regex(self, bytes pattern):
        compiled = self.regexes.get(pattern)
        if compiled is None:
            compiled = self.regexes[pattern] = re2.compile(pattern, _re2_options)
        return compiled

    cdef object byte_regex(self, bytes pattern):
        """An expression over bytes: one that is not UTF-8 must not get a request past its limit."""
        compiled = self.regexes.get((pattern,))
        if compiled is None:
            compiled = self.regexes[(pattern,)] = re2.compile(pattern, _re2_bytes)
        return compiled

    cdef PortTable port(self, tuple key):
        """The table of a listener port; empty until a listener has come. It lives as long as an acceptor or a connection has it."""
        cdef PortTable table = self.ports.get(key)
        if table is None:
            table = self.ports[key] = PortTable(self.engine, key)
            self.arrange_port(table)
        return table

    def dump(self, bint hosts):
        cdef ListenerTable table
        return [
            {
                "name": table.name,
                "port": table.spec.port if table.spec is not None else None,
                "hostname": table.hostname.decode(),
                "virtual_hosts": [
                    {"name": name, "rules": rules, "fragments": fragments}
                    for name, rules, fragments in table.virtual_hosts()
                ] if hosts else <object>table.hosts.used,
            }
            for table in self.listeners.values()
        ]
