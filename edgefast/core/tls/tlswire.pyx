# TLS wire: TLS on a descriptor, for both sides.
#
# In: the calls of Connection; of a server, the source of a name's context; of a client, its context and the requested name.
# Out: bytes of the session. The library gets a client's bytes when its whole ClientHello is there (csrc/hello.h). The handshake therefore
# begins with the context of its name: versions, certificates and client verification are that context's alone. Both must have read the same
# name.

cdef class TlsWire(TlsClientWire):
    def __dealloc__(self):
        ef_tls_free(&self.tls)

    cdef int backend_failure(self) noexcept:
        return ef_tls_backend_failure(&self.tls)

    cdef int forget_session(self) except -1:
        return self.handshakes.sessions.forget(self.backend)

    cdef int open(self, int fd) noexcept:
        cdef int result = 1
        cdef int64_t began
        if not (self.handshakes.may_dial() if self.is_client else self.handshakes.may_step()):
            return WIRE_AGAIN
        began = monotonic_ns()
        if self.tls.ssl == NULL:
            result = self.greet(fd)
            if self.passes:
                self.handshakes.steps -= 1  # nothing was asked of the library
                return result
        if result == 1:
            result = ef_tls_handshake(&self.tls)
        if not self.is_client:
            self.handshakes.spent_ns += monotonic_ns() - began
        if result == 1 and not self.is_client and not ef_tls_has_name(
            &self.tls, PyBytes_AS_STRING(self.name) if self.name is not None else NULL,
            PyBytes_GET_SIZE(self.name) if self.name is not None else 0,
        ):
            self.tls.failure = EF_TLS_F_PROTOCOL
            result = WIRE_LOST
        if self.is_client and result == 1:
            if not ef_tls_resumed(&self.tls):
                self.verified_at = self.handshakes.engine.wheel.now
            self.keep_session()
        self.reading = EPOLLOUT if self.tls.held and result != 1 else EPOLLIN  # what is held afterwards is the connection's to send
        return <int>self.settle(result)

    cdef int greet(self, int fd) noexcept:
        """Up to the point where the library takes over. 1: it can."""
        cdef ef_hello hello
        cdef int result
        cdef uint8_t alert = ALERT_INTERNAL_ERROR
        cdef int why = EF_TLS_F_LOCAL
        if self.is_client:
            return self.connect(fd)
        result = self.read_preamble(fd) if self.preamble else 1
        if result == 1:
            result = ef_tls_hello(&self.tls, fd, &hello)
        if result != 1:
            if result == WIRE_AGAIN:
                self.handshakes.steps -= 1  # nothing was asked of the library
                return self.await_more(fd)
            return result
        try:
            if self.streams is None or self.find_tcp_proxy(&hello):
                self.context = self.find(&hello)
            if self.passes:
                return 1
            if self.context is None:
                if self.streams is not None:  # as for what is passed on: the API's suite takes a reset, and no alert, for a refusal
                    self.tls.failure = EF_TLS_F_NAME
                    return WIRE_LOST
                alert = ALERT_UNRECOGNIZED_NAME
                why = EF_TLS_F_NAME
            elif self.handshakes.make_room(self.handshakes.shaking, self.shaking_most):
                self.handshakes.begin(self, self.tcp_proxy.listener.hello_timeout if self.tcp_proxy is not None else self.http_ms)
                result = ef_tls_accept(
                    &self.tls, self.context.context, self.context.rule, <const uint8_t *>PyBytes_AS_STRING(self.context.scope),
                    PyBytes_GET_SIZE(self.context.scope),
                )
                return 1 if result == 0 else result
            else:
                why = EF_TLS_F_LIMIT
        except BaseException as error:
            try:
                self.handshakes.report(error)
            except BaseException:
                pass  # who cannot be told is refused all the same
        return ef_tls_refuse(&self.tls, fd, alert, why)

    cdef bint find_tcp_proxy(self, const ef_hello *hello) except -1:
        """Whose name it is: the most specific hostname of all listeners of the port decides. False: nobody's, or nobody opens it."""
        cdef bytes name = (<const char *>hello.name)[:hello.name_len]
        cdef StreamListener listener
        cdef StreamRule rule
        found = self.streams.find(name)
        if found is OF_HTTPS:
            return True
        if found is None:
            return False
        listener = <StreamListener>found
        rule = listener.find(name)
        if rule is None:
            return False
        self.tcp_proxy = TcpProxy.__new__(TcpProxy, self.handshakes.engine, listener)
        self.tcp_proxy.rule = rule
        self.tcp_proxy.sni = name or None
        self.passes = listener.passes
        self.tcp_proxy.port = None if self.passes else self.streams.key
        if self.passes and hello.alpn_len:
            self.tcp_proxy.alpn = (<const char *>hello.alpn)[:hello.alpn_len]
        return not self.passes

    cdef int connect(self, int fd) noexcept:
        """1: the library has begun, with a session of the backend's if there is one."""
        cdef BackendSession kept
        cdef int result = ef_tls_connect(&self.tls, fd, self.context.context, PyBytes_AS_STRING(self.name), self.is_address)
        if result != 0:
            return result
        self.verified_at = self.handshakes.engine.wheel.now
        try:
            kept = self.handshakes.sessions.find(self.backend, self.verified_at)
            if kept is not None and ef_tls_offer_session(&self.tls, kept.session):
                self.verified_at = kept.verified_at
        except BaseException:
            pass  # a full handshake
        return 1

    cdef int keep_session(self) noexcept:
        """Of a backend that is verified: some come with the handshake, others behind it."""
        cdef void *session = ef_tls_take_session(&self.tls)
        if session == NULL:
            return 0
        try:
            self.handshakes.sessions.keep(self.backend, session, self.verified_at)
        except BaseException:
            pass  # the next handshake is a full one
        return 0

    cdef int read_preamble(self, int fd) noexcept:
        """What a load balancer says before the hello. 1: it has, or need not; who must and does not hears nothing."""
        cdef int result = ef_tls_preamble(&self.tls, fd, PROXY_V2_MAX)
        if result != 1:
            return result
        try:
            result = self.believe()
        except BaseException:
            result = WIRE_LOST
        if result == WIRE_LOST:
            self.handshakes.engine.count(G_PROXY_PROTOCOL_REFUSED)
            self.tls.failure = EF_TLS_F_PROTOCOL
        return result

    cdef int believe(self) except -3:
        length, address, port = parse_preamble((<const char *>self.tls.early)[:self.tls.early_len])
        if is_preamble_refused(length, self.preamble, self.trusted):
            return WIRE_LOST
        if length == PREAMBLE_MORE:
            return WIRE_AGAIN
        self.preamble = 0
        if length == PREAMBLE_ABSENT:
            return 1
        ef_tls_skip(&self.tls, length)
        self.client = address
        self.client_port = port
        return 1

    cdef int await_more(self, int fd) noexcept:
        """Its hello is not whole yet."""
        try:
            if self.handshakes.weigh(self):
                return WIRE_AGAIN
        except BaseException:
            pass
        return ef_tls_refuse(&self.tls, fd, ALERT_INTERNAL_ERROR, EF_TLS_F_LIMIT)

    cdef TlsContext find(self, const ef_hello *hello):
        if hello.name_len == 0:
            return self.choose("")
        self.name = (<const char *>hello.name)[:hello.name_len]
        try:
            return self.choose(self.name.decode("ascii"))
        except UnicodeDecodeError:
            return None

    cdef ssize_t settle(self, ssize_t result) noexcept:
        self.held = self.tls.held
        self.error = self.tls.error
        return result

    cdef ssize_t read(self, int fd, uint8_t *to, size_t room) noexcept:
        cdef ssize_t n = ef_tls_read(&self.tls, to, room)
        if self.tls.session != NULL:
            self.keep_session()
        self.more = ef_tls_pending(&self.tls)
        return self.settle(n)

    cdef ssize_t write(self, int fd, const iovec *iov, int n, size_t total) noexcept:
        cdef ssize_t taken = ef_tls_write(&self.tls, iov, n, total, self.last)
        self.last = self.tls.gather
        return self.settle(taken)

    cdef int end(self, int fd) noexcept:
        return <int>self.settle(ef_tls_end(&self.tls, self.last))

    cdef bytes sni(self):
        return None if self.is_client else self.name

    cdef bytes claimed(self, int *port):
        port[0] = self.client_port
        return self.client

    cdef void describe(self, WireFacts *facts) noexcept:
        cdef const uint8_t *protocol = NULL
        facts.version = ef_tls_version(&self.tls)
        facts.cipher = ef_tls_cipher(&self.tls)
        facts.group = ef_tls_group(&self.tls)
        facts.resumed = ef_tls_resumed(&self.tls)
        facts.alpn_h2 = ef_tls_protocol(&self.tls, &protocol) == 2 and memcmp(protocol, b"h2", 2) == 0

    cdef ClientCertificate client_certificate(self):
        cdef const char *distrust
        cdef ClientCertificate found
        if self.context is None or not self.context.asks:
            return None
        distrust = ef_tls_client_distrust(&self.tls)
        if distrust != NULL and distrust[0] == 0:
            found = make_certificate(b"NONE")
        else:
            found = self.read_certificate(b"SUCCESS" if distrust == NULL else b"FAILED:" + <bytes>distrust)
        found.authorities = self.context.authorities
        return found

    cdef ClientCertificate read_certificate(self, bytes result):
        """One that is too large for headers counts as one that is not trusted."""
        cdef ClientCertificate found = make_certificate(result)
        cdef bytes names
        cdef Py_ssize_t at = 0, n
        found.der = self.read_part(EF_TLS_CLIENT_DER)
        found.subject = self.read_part(EF_TLS_CLIENT_SUBJECT)
        found.issuer = self.read_part(EF_TLS_CLIENT_ISSUER)
        names = self.read_part(EF_TLS_CLIENT_NAMES)
        if found.der is None or found.subject is None or found.issuer is None or names is None:
            return make_certificate(b"FAILED:certificate is too large")
        while at < PyBytes_GET_SIZE(names):
            n = names[at + 1] << 8 | names[at + 2]
            (found.dns if names[at] == c"D" else found.uris).append(names[at + 3:at + 3 + n])
            at += 3 + n
        found.verified = result == b"SUCCESS"
        found.only_issuer = ef_tls_client_only_issuer(&self.tls)
        return found

    cdef bytes read_part(self, int part):
        cdef uint8_t text[EF_TLS_CLIENT]
        cdef ssize_t n = ef_tls_client_part(&self.tls, part, text, EF_TLS_CLIENT)
        return None if n < 0 else text[:n]


cdef ClientCertificate make_certificate(bytes result):
    cdef ClientCertificate made = ClientCertificate.__new__(ClientCertificate)
    made.result = result
    made.uris, made.dns = [], []
    return made


cdef TlsWire make_client_wire(Handshakes handshakes, TlsContext context, bytes name, str host, int port):
    """What a connection to a backend at this address goes through, which has to be `name`."""
    cdef TlsWire wire = TlsWire.__new__(TlsWire)
    cdef uint8_t address[INET_SIZE]
    wire.handshakes = handshakes
    wire.context = context
    wire.name = name
    wire.backend = (context.serial, name, host, port)
    wire.is_client = True
    wire.reading = EPOLLOUT  # it speaks first
    wire.is_address = inet_read_bytes(name, address)
    return wire
