# Sessions: a request that says which endpoint it was served by goes there again (ir.SessionPersistence; GEP-1619).
#
# In: a request, once its rule is known. Out: its backend and endpoint as its session says it, else as weights and balance do; the line that
# tells its client of its session, with the answer of the endpoint. A session is all in its value, which no table holds and every worker
# of every replica reads alike: a version, what its endpoint is called (upstream/identities.pyx), when it ends, when it ends if it rests.
# It comes before the weights of a rule, as GEP-1619 says it. Who writes one of his own gets an endpoint of the rule that he could have been
# given by chance, for as long as that is one: so nothing in it is secret or signed.
# Must never: send a request elsewhere than to an endpoint of its rule's backends, or look at more than so many values.

cdef enum:
    SESSION_SIZE = 41       # "1", 16 digits of the identity, 12 of each time; lower case
    SESSION_LOOKS = 8       # values of its name that are looked at: paths within paths have one each
    SESSION_SKEW_MS = 60000     # clocks of replicas may differ by so much
    SESSION_PATH_MOST = 1024    # RFC 6265bis 5.6: longer attributes are ignored

cdef bytes _HEX = b"0123456789abcdef"


cdef bint read_digits(const uint8_t *text, int n, uint64_t *value) noexcept:
    cdef int i
    cdef uint8_t c
    value[0] = 0
    for i in range(n):
        c = text[i]
        if c"0" <= c <= c"9":
            value[0] = value[0] << 4 | <uint64_t>(c - c"0")
        elif c"a" <= c <= c"f":
            value[0] = value[0] << 4 | <uint64_t>(c - c"a" + 10)
        else:
            return False
    return True


cdef void write_digits(uint8_t *text, int n, uint64_t value) noexcept:
    cdef const uint8_t *digits = <const uint8_t *>PyBytes_AS_STRING(_HEX)
    while n:
        n -= 1
        text[n] = digits[value & 15]
        value >>= 4


cdef bytes session_value(uint64_t identity, int64_t until, int64_t idle_until):
    cdef uint8_t text[SESSION_SIZE]
    text[0] = c"1"
    write_digits(text + 1, 16, identity)
    write_digits(text + 17, 12, <uint64_t>until)
    write_digits(text + 29, 12, <uint64_t>idle_until)
    return text[:SESSION_SIZE]


cdef bint holds_until(int64_t until, int64_t most, int64_t now) noexcept:
    """most: ms that it lasts as is said now; 0: without end. What was given for longer than that ends, too."""
    if until == 0:
        return most == 0
    return now < until and (most == 0 or until <= now + most + SESSION_SKEW_MS)


cdef Backend choose_backend(Exchange ex, Routed *at, const ef_hit *hit):
    """The backend of a request; None: all weights are 0."""
    if ex.rule.traffic is None or ex.rule.traffic.session is None:
        return ex.rule.choose()
    return ex.rule.traffic.session.choose(ex, at, hit)


cdef class SessionPolicy:
    def __init__(self, spec, route, rule):
        """spec: ir.SessionPersistence; route, rule: after whom one without a name is called."""
        name = spec.name or ir.name_session(route, rule)
        self.name = name.encode()
        self.header = HeaderNames((name,)) if spec.header else None
        self.absolute, self.idle = spec.absolute, spec.idle
        self.permanent = spec.permanent
        self.regex_path = spec.path.encode()

    cdef Backend choose(self, Exchange ex, Routed *at, const ef_hit *hit):
        """The backend of the endpoint that the request's session names, which its try is bound to then; else as weights say it."""
        cdef NamedSession found = NamedSession.__new__(NamedSession)
        found.policy = self
        if self.header is None:
            found.path = self.path_of(at, hit)
        ex.session = found
        if not self.read(ex, at, found):
            found.identity = 0
            return ex.rule.choose()
        return found.backend

    cdef bint read(self, Exchange ex, Routed *at, NamedSession found):
        """The first of its values that names an endpoint which is there, and takes requests."""
        cdef const ef_head *head = at.head
        cdef const ef_span *span
        cdef CookieLook look
        cdef const uint8_t *value = NULL
        cdef size_t n = 0
        cdef uint16_t i
        cdef int left = SESSION_LOOKS
        if self.header is None:
            begin_cookies(&look, at.base, head)
            while left and next_cookie(&look, self.name, &value, &n):
                left -= 1
                if self.parse(value, n, found) and self.bind(ex, found):
                    return True
            return False
        for i in range(head.n_spans):
            span = &head.spans[i]
            if span.flags & ex.settings.drop_flags or not self.header.has(at.base + span.name_off, span.name_len):
                continue
            if self.parse(at.base + span.val_off, span.val_len, found) and self.bind(ex, found):
                return True
            left -= 1
            if left == 0:
                return False
        return False

    cdef bint bind(self, Exchange ex, NamedSession found) except -1:
        """Bind the request to the endpoint, if one of the rule's backends has it, whatever that weighs."""
        cdef Backend backend
        cdef Endpoint endpoint
        cdef uint8_t heed
        cdef list backends = [ex.rule.only] if ex.rule.only is not None else ex.rule.backends
        if backends is None:
            return False
        for backend in backends:
            if backend.cluster is None:
                continue
            endpoint = named_endpoint(backend.cluster, found.identity)
            if endpoint is None:
                continue
            heed = HEED_EJECTED
            if ex.check is not None or ex.panic:
                heed = heeded(backend.cluster, ex.check, ex.panic)
            if takes_bound(backend.cluster, endpoint, heed):
                ex.bound = endpoint
                found.backend = backend
                return True
        return False

    cdef bint parse(self, const uint8_t *value, size_t n, NamedSession found) noexcept:
        """It is one, and not over."""
        cdef uint64_t until, idle_until
        cdef int64_t now
        if n != SESSION_SIZE or value[0] != c"1":
            return False
        if not (read_digits(value + 1, 16, &found.identity) and read_digits(value + 17, 12, &until) and read_digits(value + 29, 12, &idle_until)):
            return False
        found.until, found.idle_until = <int64_t>until, <int64_t>idle_until
        if until or idle_until or self.absolute or self.idle:
            now = wall_ms()
            return holds_until(found.until, self.absolute, now) and holds_until(found.idle_until, self.idle, now)
        return True

    cdef bytes path_of(self, Routed *at, const ef_hit *hit):
        """Path of the cookie: what has matched, as far as that can stand there (GEP-1619, Path)."""
        cdef size_t n = hit.prefix_len, i
        if hit.kind == EF_PATH_REGEX:
            return self.regex_path
        if n == 0 or at.path[0] != c"/":
            return b"/"
        if self.path is not None and <size_t>PyBytes_GET_SIZE(self.path) == n and memcmp(PyBytes_AS_STRING(self.path), at.path, n) == 0:
            return self.path
        for i in range(n):
            if i == SESSION_PATH_MOST or at.path[i] <= 0x20 or at.path[i] >= 0x7f or at.path[i] == c";":
                n = i
                while n > 1 and at.path[n - 1] != c"/":
                    n -= 1
                break
        self.path = at.path[:n] if n else b"/"
        return self.path

    # --- the answer ----------------------------------------------------------------------------------------------------------------------

    cdef int tell(self, Exchange ex) except -1:
        """Of an endpoint that answers: the line for its client, where there is something new to tell."""
        cdef NamedSession found = ex.session
        cdef uint64_t identity = identity_of(ex.endpoint)
        cdef int64_t now, until = 0, idle_until = 0
        cdef bytes line
        if identity == found.identity and self.idle == 0:
            return 0
        if ex.bound is not None and ex.bound is not ex.endpoint:
            return 0  # there was no connection to it: the session stays what it is
        now = wall_ms()
        if identity == found.identity:
            until = found.until
        elif self.absolute:
            until = now + self.absolute
        if self.idle:
            idle_until = now + self.idle
        line = self.line(ex, session_value(identity, until, idle_until), until - now)
        ex.handed = line if ex.handed is None else ex.handed + line
        return 0

    cdef bytes line(self, Exchange ex, bytes value, int64_t left):
        """left: ms until it ends, of one that ends."""
        cdef bytes rest
        if self.header is not None:
            return b"%b: %b\r\n" % (self.name, value)
        rest = b"; Path=%b%b; HttpOnly%b; SameSite=Strict\r\n" % (
            ex.session.path,
            b"; Max-Age=%d" % max((left + 999) // 1000, 1) if self.permanent else b"",
            b"; Secure" if ex.down.peer.tls else b"",
        )
        return cookie_line(self.name, value, rest)
