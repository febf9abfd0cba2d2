# Session policy: a request of a session goes to the endpoint that served it before (ir.SessionPersistence; GEP-1619 as of v1.7).
#
# In: a request, once its backend is chosen: a session does not change the choice by weights.
# Out: the endpoint of its session, else the one of the balancer; and the header line with the session, in the endpoint's answer. The value
# of a session is self-contained: no table holds it, and every worker of every replica can read it. It has a version, the endpoint's
# identity (upstream/identities.pyx), its expiry, and its idle expiry. A value has a few of them, the newest first: one for each backend
# that weights, or another rule of the name, have chosen for the client. A forged value gives an endpoint that chance could have given:
# nothing in it is secret or signed.
# Must never: send a request elsewhere than to an endpoint of its backend, or look at more than that bounded number of sessions.

cdef enum:
    SESSION_SIZE = 41       # "1", 16 digits of the identity, 12 of each time; lower case
    SESSION_KEPT = 4        # that one value has at most; "." is between them
    SESSION_LOOKS = 16      # that a request may bring
    SESSION_SKEW_MS = 60000     # clocks of replicas may differ by so much

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


cdef bytes write_session(const SessionToken *token):
    cdef uint8_t text[SESSION_SIZE]
    text[0] = c"1"
    write_digits(text + 1, 16, token.identity)
    write_digits(text + 17, 12, <uint64_t>token.until)
    write_digits(text + 29, 12, <uint64_t>token.idle_until)
    return text[:SESSION_SIZE]


cdef bint parse_session(const uint8_t *text, SessionToken *token) noexcept:
    """It is one, and not over by its own times: what other backends say of theirs is not known here."""
    cdef uint64_t until, idle_until
    cdef int64_t now
    if text[0] != c"1" or not (
        read_digits(text + 1, 16, &token.identity) and read_digits(text + 17, 12, &until) and read_digits(text + 29, 12, &idle_until)
    ):
        return False
    token.until, token.idle_until = <int64_t>until, <int64_t>idle_until
    if token.identity == 0:
        return False
    if until == 0 and idle_until == 0:
        return True
    now = wall_ms()
    return (until == 0 or now < token.until) and (idle_until == 0 or now < token.idle_until)


cdef bint holds_until(int64_t until, int64_t most, int64_t now) noexcept:
    """most: ms that it lasts as is said now; 0: without end. What was given for longer than that ends, too."""
    if until == 0:
        return most == 0
    return now < until and (most == 0 or until <= now + most + SESSION_SKEW_MS)


cdef dict _SAME_SITE = {
    "strict": b"; SameSite=Strict", "lax": b"; SameSite=Lax", "none": b"; SameSite=None", "none_if_supported": b"; SameSite=None",
    "unset": b"",
}


cdef bint rejects_none(const uint8_t *base, const ef_head *head):
    """Its client is a browser that rejects cookies with SameSite=None (ingress-nginx same_site.lua)."""
    cdef const ef_span *span
    cdef bytes agent
    cdef uint16_t i
    for i in range(head.n_spans):
        span = &head.spans[i]
        if span.name_hash == HASH_USER_AGENT and span.name_len == 10:
            agent = base[span.val_off:span.val_off + span.val_len]
            if b"Chrome/4" in agent or b"Chrome/5" in agent or b"Chrome/6" in agent:
                return True
            if b"CPU iPhone OS 12" in agent or b"iPad; CPU OS 12" in agent:
                return True
            return (
                b"Macintosh" in agent and b"Intel Mac OS X 10_14" in agent and b"Safari" in agent and b"Chrome" not in agent
            )
    return False


cdef Backend choose_backend(Exchange ex, Routed *at):
    """The backend of a session that comes before weights, else the one of the weights; None: all weights are 0."""
    cdef Traffic traffic = ex.rule.traffic
    cdef Backend found
    if traffic is not None and traffic.session is not None and traffic.session.first and ex.rule.n_backends > 1:
        found = traffic.session.find_backend(ex, at)
        if found is not None:
            return found
    return ex.rule.choose()


cdef int read_session(Exchange ex, Routed *at) except -1:
    """Of a request whose backend is chosen, and how it is treated there: who may be bound depends on what is heeded."""
    cdef SessionPolicy kept
    if ex.backend.cluster is None:
        return 0
    kept = ex.rule.traffic.session if ex.rule.traffic is not None else None
    if ex.backend.session is not None and (kept is None or not ex.rule.traffic.session_bound):
        kept = ex.backend.session
    return kept.read(ex, ex.backend.cluster, at) if kept is not None else 0


cdef class SessionPolicy:
    def __init__(self, spec, route, rule):
        """spec: ir.SessionPersistence; route, rule: after whom one without a name is called."""
        name = spec.name or ir.name_session(route, rule)
        self.name = name.encode()
        self.header = HeaderNames((name,)) if spec.header else None
        self.absolute, self.idle = spec.absolute, spec.idle
        self.permanent = spec.permanent
        self.place = b"; Path=%b" % spec.path.encode()
        if spec.domain:
            self.place += b"; Domain=%b" % spec.domain.encode()
        self.same_site = _SAME_SITE[spec.same_site]
        self.conditional = spec.same_site == "none_if_supported"
        self.secure, self.stays, self.first = spec.secure, spec.stays, spec.first

    cdef Backend find_backend(self, Exchange ex, Routed *at):
        """The backend of the rule, with a weight, that has the endpoint of the request's first session; None: none has one."""
        cdef const ef_head *head = at.head
        cdef const ef_span *span
        cdef CookieLook look
        cdef Backend found
        cdef const uint8_t *value = NULL
        cdef size_t n = 0
        cdef uint16_t i
        cdef int left = SESSION_LOOKS
        if self.header is None:
            begin_cookies(&look, at.base, head)
            while left > 0 and next_cookie(&look, self.name, &value, &n):
                found = self.in_value(ex, value, n, &left)
                if found is not None:
                    return found
            return None
        for i in range(head.n_spans):
            span = &head.spans[i]
            if left <= 0 or span.flags & ex.settings.drop_flags or not self.header.has(at.base + span.name_off, span.name_len):
                continue
            found = self.in_value(ex, at.base + span.val_off, span.val_len, &left)
            if found is not None:
                return found
        return None

    cdef Backend in_value(self, Exchange ex, const uint8_t *value, size_t n, int *left):
        """The same of one value; `left`: sessions that are looked at still."""
        cdef SessionToken token
        cdef Backend backend
        cdef uint32_t i
        cdef size_t at = 0
        if (n + 1) % (SESSION_SIZE + 1) or n == 0:
            left[0] -= 1
            return None
        while at < n and left[0] > 0 and (at == 0 or value[at - 1] == c"."):
            left[0] -= 1
            if parse_session(value + at, &token) and self.holds(&token):
                for i in range(ex.rule.n_backends):
                    backend = <Backend>PyList_GET_ITEM(ex.rule.backends, i)
                    if ex.rule.weights[i] and backend.cluster is not None and named_endpoint(backend.cluster, token.identity) is not None:
                        return backend
            at += SESSION_SIZE + 1
        return None

    cdef int read(self, Exchange ex, Cluster cluster, Routed *at) except -1:
        """Bind the request to the first endpoint of its backend that it names, and that takes requests."""
        cdef NamedSession found = NamedSession.__new__(NamedSession)
        cdef const ef_head *head = at.head
        cdef const ef_span *span
        cdef CookieLook look
        cdef const uint8_t *value = NULL
        cdef size_t n = 0
        cdef uint16_t i
        found.policy = self
        if self.conditional:
            found.rejects_none = rejects_none(at.base, head)
        found.left = SESSION_LOOKS
        ex.session = found
        if self.header is None:
            begin_cookies(&look, at.base, head)
            while found.left and next_cookie(&look, self.name, &value, &n):
                self.read_value(found, ex, cluster, value, n)
            return 0
        for i in range(head.n_spans):
            span = &head.spans[i]
            if span.flags & ex.settings.drop_flags or not self.header.has(at.base + span.name_off, span.name_len):
                continue
            self.read_value(found, ex, cluster, at.base + span.val_off, span.val_len)
            if found.left == 0:
                return 0
        return 0

    cdef int read_value(self, NamedSession found, Exchange ex, Cluster cluster, const uint8_t *value, size_t n) except -1:
        """Its sessions. A value that is not made of whole ones counts as one that holds nothing."""
        cdef SessionToken token
        cdef Endpoint endpoint
        cdef uint8_t health_mask
        cdef size_t at = 0
        if (n + 1) % (SESSION_SIZE + 1) or n == 0:
            found.left -= 1
            return 0
        while at < n and found.left:
            if at and value[at - 1] != c".":
                return 0
            found.left -= 1
            if parse_session(value + at, &token):
                endpoint = named_endpoint(cluster, token.identity)
                if endpoint is None:
                    if found.others is None:
                        found.others = []
                    if len(found.others) < SESSION_KEPT - 1:
                        found.others.append(value[at:at + SESSION_SIZE])
                elif found.own.identity == 0 and self.holds(&token):
                    health_mask = MASK_EJECTED
                    if ex.check is not None or ex.panic:
                        health_mask = effective_mask(cluster, ex.check, ex.panic)
                    if takes_bound(cluster, endpoint, health_mask):
                        ex.bound = endpoint
                        found.own = token
            at += SESSION_SIZE + 1
        return 0

    cdef bint holds(self, const SessionToken *token) noexcept:
        """It is not over, as is said now."""
        cdef int64_t now
        if token.until == 0 and token.idle_until == 0 and self.absolute == 0 and self.idle == 0:
            return True
        now = wall_ms()
        return holds_until(token.until, self.absolute, now) and holds_until(token.idle_until, self.idle, now)

    cdef int write_session(self, Exchange ex) except -1:
        """Of an endpoint that answers: the line for its client, where there is something new to tell."""
        cdef NamedSession found = ex.session
        cdef SessionToken token
        cdef int64_t now
        cdef bytes value, line
        token.identity = identity_of(ex.endpoint)
        if self.stays and found.own.identity != 0 and token.identity != found.own.identity:
            return 0  # its endpoint has failed, and may be well again
        token.until = token.idle_until = 0
        if token.identity == found.own.identity and self.idle == 0:
            return 0
        if ex.bound is not None and ex.bound is not ex.endpoint:
            return 0  # there was no connection to it: the session stays what it is
        now = wall_ms()
        if token.identity == found.own.identity:
            token.until = found.own.until
        elif self.absolute:
            token.until = now + self.absolute
        if self.idle:
            token.idle_until = now + self.idle
        value = write_session(&token)
        if found.others is not None:
            value = b".".join([value, *found.others])
        line = self.line(ex, value, token.until - now)
        ex.new_cookies = line if ex.new_cookies is None else ex.new_cookies + line
        return 0

    cdef bytes line(self, Exchange ex, bytes value, int64_t left):
        """left: ms until it ends, of one that ends."""
        cdef bytes rest
        cdef NamedSession found = ex.session
        if self.header is not None:
            return b"%b: %b\r\n" % (self.name, value)
        rest = b"%b%b; HttpOnly%b%b\r\n" % (
            self.place,
            b"; Max-Age=%d" % max((left + 999) // 1000, 1) if self.permanent else b"",
            b"; Secure" if ex.https or self.secure else b"",
            self.same_site if not found.rejects_none else b"",
        )
        return cookie_line(self.name, value, rest)
