# Credential extractor: finds a credential in header lines, cookies and query parameters of a request (ir.CredentialExtractors).
#
# In: a request before admission. Out: the credential, in clear, for the check; the same request without it, for its backend. It also
# redacts the credential in what logs and spans keep of the request, for every outcome. Two places with different credentials count as none:
# it is unknown which one a backend would use.
# Source: RFC 6265 4.2.1 (cookies), RFC 6750 2 (bearer tokens; parameters are percent-decoded, "+" is itself).

cdef int cover(Exchange ex, const uint8_t *base, const uint8_t *value, size_t n) except -1:
    """No log line and no span shows these bytes of the head."""
    cdef size_t at = value - base
    if at + n <= ex.raw.size:
        memset(ex.raw.data + at, c"*", n)
    return 0


cdef bint follows_prefix(bytes prefix, const uint8_t **value, size_t *n) noexcept:
    """Leave the prefix of a credential out, and spaces around what is left; False: it has another one."""
    cdef size_t skip = PyBytes_GET_SIZE(prefix)
    if n[0] < skip or strncasecmp(<const char *>value[0], PyBytes_AS_STRING(prefix), skip) != 0:
        return False
    value[0] += skip
    n[0] -= skip
    while n[0] and value[0][0] == c" ":
        value[0] += 1
        n[0] -= 1
    while n[0] and value[0][n[0] - 1] == c" ":
        n[0] -= 1
    return True


cdef class CredentialExtractor:
    def __init__(self, spec):
        self.headers = [
            (name.lower().encode(), HeaderNames((name,)), prefix.lower().encode()) for name, prefix in spec.headers
        ]
        self.cookies = [name.encode() for name in spec.cookies]
        self.params = [name.encode() for name in spec.params]

    cdef bytes find(self, const CredentialSource *at, Exchange covered):
        """None: there is none. All places are looked at; `several` says that they differ. `covered`: whose log shows none of them from here
        on, which is all that is done; None: that is done."""
        self.several = False
        cdef bytes found = self.in_headers(at, covered, None)
        if self.cookies:
            found = self.in_cookies(at, covered, found)
        if self.params and at.query != NULL:
            found = self.in_params(at, covered, found)
        return found

    cdef bytes take(self, bytes found, bytes value):
        if found is not None and found != value:
            self.several = True
        return value if found is None else found

    cdef bytes in_headers(self, const CredentialSource *at, Exchange covered, bytes found):
        cdef const ef_span *span
        cdef const uint8_t *value
        cdef HeaderNames names
        cdef bytes prefix
        cdef size_t n
        cdef uint32_t i
        for _, names, prefix in self.headers:
            for i in range(at.n_spans):
                span = &at.spans[i]
                if span.flags & at.drop_flags or not names.has(at.base + span.name_off, span.name_len):
                    continue
                value = at.base + span.val_off
                n = span.val_len
                if covered is not None:
                    cover(covered, at.base, value, n)
                elif follows_prefix(prefix, &value, &n):
                    found = self.take(found, value[:n])
        return found

    cdef bint find_single(self, const CredentialSource *at, const uint8_t **value, size_t *n) except -1:
        """Where it lies, when a header line has it and nothing else can; False: `find` it."""
        cdef const ef_span *span
        cdef HeaderNames names
        cdef bytes prefix
        cdef bint found = False
        cdef uint32_t i
        if self.cookies or (self.params and at.query != NULL):
            return False
        for _, names, prefix in self.headers:
            for i in range(at.n_spans):
                span = &at.spans[i]
                if span.flags & at.drop_flags or not names.has(at.base + span.name_off, span.name_len):
                    continue
                if found:
                    return False
                value[0], n[0] = at.base + span.val_off, span.val_len
                found = follows_prefix(prefix, value, n)
        return found

    cdef bytes in_cookies(self, const CredentialSource *at, Exchange covered, bytes found):
        cdef ef_request request
        cdef const uint8_t *value = NULL
        cdef size_t n = 0
        cdef uint64_t place
        cdef bytes name
        memset(&request, 0, sizeof(request))
        request.base, request.spans, request.n_spans = at.base, at.spans, at.n_spans
        for name in self.cookies:
            place = 0
            while ef_request_cookie(&request, <const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), &place, &value, &n):
                if covered is not None:
                    cover(covered, at.base, value, n)
                else:
                    found = self.take(found, value[:n].strip(b'"'))
        return found

    cdef bytes in_params(self, const CredentialSource *at, Exchange covered, bytes found):
        cdef bytes query = at.query[:at.query_len], one, name, value
        cdef size_t begin = 0, n
        for one in query.split(b"&"):
            name, _, value = one.partition(b"=")
            if unquote_to_bytes(name) in self.params:
                n = PyBytes_GET_SIZE(value)
                if covered is not None:
                    covered.secret_query = True
                    cover(covered, at.base, at.query + begin + PyBytes_GET_SIZE(one) - n, n)
                else:
                    found = self.take(found, unquote_to_bytes(value))
            begin += PyBytes_GET_SIZE(one) + 1
        return found

    cdef int strip(self, RuleAuthFlow flow) except -1:
        """Take it out of cookies and of the query; the client's header lines of these names are among those that are hidden (Proof.sets)."""
        cdef Routed *at = &flow.at
        cdef HeaderNames names
        cdef bytes query, one
        cdef list kept
        for _, names, _ in self.headers:
            drop_filter_lines(flow, names)
        if self.cookies:
            strip_cookies(flow, self.cookies)
        if self.params and at.query != NULL:
            query = at.query[:at.query_len]
            kept = [one for one in query.split(b"&") if unquote_to_bytes(one.partition(b"=")[0]) not in self.params]
            flow.query = b"&".join(kept)
            at.query = <const uint8_t *>PyBytes_AS_STRING(flow.query) if flow.query else NULL
            at.query_len = PyBytes_GET_SIZE(flow.query)
            flow.request.query = at.query
            flow.request.query_len = at.query_len
        return 0


cdef class CredentialNames:
    """All places where policies of a table read credentials: logs hide them for a request that reaches no rule.

    All policies of all tenants share these names, so what a request costs here must not grow with their number: each line, cookie and
    parameter is looked up once. Of a query or of cookies with more than COVERED_PARTS parts, the log shows nothing at all."""

    def __cinit__(self):
        self.headers, self.cookies, self.params = {}, {}, {}

    cdef int count(self, list places, int by) except -1:
        """Add places of a policy (1), or take them away (-1); None: it has none."""
        cdef CredentialExtractor one
        if places is None:
            return 0
        for one in places:
            for name, _, _ in one.headers:
                count_name(self.headers, name, by)
            for name in one.cookies:
                count_name(self.cookies, name, by)
            for name in one.params:
                count_name(self.params, name, by)
        return 0

    cdef bint any(self) noexcept:
        return len(self.headers) + len(self.cookies) + len(self.params) > 0

    cdef int cover(self, Exchange ex, const CredentialSource *at) except -1:
        """No log line and no span shows what the request carries in one of these places."""
        cdef const ef_span *span
        cdef Py_ssize_t left = COVERED_PARTS
        cdef uint32_t i
        for i in range(at.n_spans):
            span = &at.spans[i]
            if self.headers and at.base[span.name_off:span.name_off + span.name_len].lower() in self.headers:
                cover(ex, at.base, at.base + span.val_off, span.val_len)
            elif self.cookies and _COOKIE.has(at.base + span.name_off, span.name_len):
                left = self.cover_parts(ex, at.base, at.base + span.val_off, span.val_len, b";", left)
        if self.params and at.query != NULL:
            self.cover_parts(ex, at.base, at.query, at.query_len, b"&", COVERED_PARTS)
        return 0

    cdef Py_ssize_t cover_parts(
        self, Exchange ex, const uint8_t *base, const uint8_t *text, size_t size, bytes sign, Py_ssize_t left
    ) except -2:
        """Cookies (";") or parameters ("&"). Returns how many more parts may be looked at; -1: there were too many, and all of it is covered."""
        cdef bytes whole = text[:size], one, name, value
        cdef bint query = sign == b"&"
        cdef size_t begin = 0, n
        if left >= 0:
            left = max(left - 1 - whole.count(sign), <Py_ssize_t>-1)
        if left < 0:
            ex.secret_query |= query
            cover(ex, base, text, size)
            return left
        for one in whole.split(sign):
            name, _, value = one.partition(b"=")
            if unquote_to_bytes(name) in self.params if query else name.strip(b" \t") in self.cookies:
                ex.secret_query |= query
                n = PyBytes_GET_SIZE(value if query else value.lstrip(b" \t"))
                cover(ex, base, text + begin + PyBytes_GET_SIZE(one) - n, n)
            begin += PyBytes_GET_SIZE(one) + 1
        return left


cdef int count_name(dict names, bytes name, int by) except -1:
    """Add to the number of places that have it."""
    count = names.get(name, 0) + by
    if count:
        names[name] = count
    else:
        del names[name]
    return 0


cdef int cover_credentials(Exchange ex, list places, const CredentialSource *at) except -1:
    """No log line and no span shows what the request carries there."""
    cdef CredentialExtractor one
    for one in places:
        one.find(at, ex)
    return 0


cdef int cover_unrouted(Exchange ex) except -1:
    """The same for a request that is answered before a guard: the credentials of any policy of the table."""
    cdef CredentialSource at
    cdef const uint8_t *target = ex.raw.data + ex.target_off
    cdef const uint8_t *mark = <const uint8_t *>memchr(target, c"?", ex.target_len)
    memset(&at, 0, sizeof(at))
    at.base = ex.raw.data
    if ex.kept is not None:  # else no line of the head is logged
        at.spans = <const ef_span *>ex.kept.spans.data
        at.n_spans = <uint32_t>(ex.kept.spans.size // sizeof(ef_span))
    if mark != NULL:
        at.query = mark + 1
        at.query_len = ex.target_len - (mark + 1 - target)
    return units_of(ex.engine).names.cover(ex, &at)


cdef CredentialSource carried_by(const Routed *routed, Exchange ex) noexcept:
    """Also lines that services set: those are hidden from all but whoever judges them."""
    cdef CredentialSource at
    at.base, at.spans = routed.base, &routed.head.spans[0]
    at.n_spans = routed.head.n_spans + routed.hidden
    at.drop_flags = ex.settings.drop_flags
    at.query, at.query_len = routed.query, routed.query_len
    return at


cdef HeaderNames _COOKIE = HeaderNames(("cookie",))


cdef int strip_cookies(RuleAuthFlow flow, list names) except -1:
    """One line with the cookies of other names is in the place of all that hold one of these."""
    cdef Routed *at = &flow.at
    cdef const ef_span *span
    cdef list kept = []
    cdef bytes piece
    cdef bint found = False
    cdef uint16_t i
    for i in range(at.head.n_spans):
        span = &at.head.spans[i]
        if not _COOKIE.has(at.base + span.name_off, span.name_len):
            continue
        for piece in at.base[span.val_off:span.val_off + span.val_len].split(b";"):
            piece = piece.strip(b" \t")
            if piece.partition(b"=")[0].strip(b" \t") in names:
                found = True
            elif piece:
                kept.append(piece)
    if found:
        drop_lines(flow, _COOKIE)
        drop_filter_lines(flow, _COOKIE)
        if kept:
            flow.lines += b"cookie: %b\r\n" % b"; ".join(kept)
    return 0
