# Logins: OIDC authentication of a client by its session cookies (ir.Oidc); login_flow.py decides about all but known sessions.
#
# In: a request before admission. Out: the client, its claims for rules and, as header lines, for its backend; or its answer: a redirect to
# the provider or back from it, 401 for what is no navigation, 503 without the provider. The backend gets none of the cookies.
# Must never show a cookie, a code or a token, or let a request pass without a session.

# Cookies of a client that one request may show: those of its session, and of logins in progress.
cdef enum:
    SHOWN_COOKIES = 32
    STATE_ID = 20           # characters of a login's id (edgefast/auth/oidc/login_state.py)

cdef dict _LOGIN_FLAGS = {401: F_DENIED, 403: F_DENIED, 400: F_DENIED, 500: F_AUTH_ERROR, 503: F_AUTH_ERROR}
# Redirects and pages of a browser that logs in or out: the log has no refusal.
cdef frozenset _LOGIN_STEPS = frozenset(("login", "logout", "state"))
cdef bytes _NO_SESSION = b'www-authenticate: Bearer realm="gateway"\r\n'


cdef inline bint is_path_text(const Routed *at, bytes text) noexcept:
    return at.path_len == <size_t>PyBytes_GET_SIZE(text) and memcmp(at.path, PyBytes_AS_STRING(text), at.path_len) == 0


cdef inline bint is_ows(uint8_t sign) noexcept:
    return sign == c" " or sign == c"\t"


cdef bint drops_cookies(const Routed *at, Exchange ex) noexcept:
    """A line of cookies goes no further, because Connection names it (RFC 9110 7.6.1)."""
    cdef const ef_span *span
    cdef uint16_t i
    for i in range(at.head.n_spans):
        span = &at.head.spans[i]
        if span.flags & ex.settings.drop_flags and _COOKIE.covers(at.base + span.name_off, span.name_len):
            return True
    return False


cdef bytes login_page(str location):
    """A page that goes on by itself. Cookies with SameSite=Strict are sent from here on, but not along redirects from another site."""
    return b'<!doctype html><meta http-equiv="refresh" content="0;url=%b"><title>Signed in</title>\n' % escape_html(location).encode()


cdef class Logins(Authenticator):
    def __init__(self, Engine engine, str unit, spec):
        """spec: ir.Oidc."""
        from edgefast.core.policy.login_flow import LoginFlow
        cdef PolicyUnits units = units_of(engine)
        if units.login_services is None:
            raise ValueError("this process has no keys for cookies")
        self.flow = LoginFlow(unit, spec, units.login_services, units.get_token_verifier())
        client = self.flow.client
        self.cache, self.cache_id, self.clock = self.flow.cache, self.flow.cache_id, self.flow.clock
        self.names = [one.encode() for one in client.session_names]
        self.state_prefix = client.state_name.encode() + b"-"
        self.callback_path, self.logout_path = spec.callback_path.encode(), spec.logout_path.encode()
        self.tokens_unit = unit.rpartition("#")[0] + "#jwt" if spec.pass_through else None
        headers = [forward_name(name).decode() for name, _ in spec.claim_headers]
        if spec.id_token_header:
            headers.append(forward_name(spec.id_token_header).decode())
        if spec.forward_access_token:
            headers.append("authorization")
        self.owns_authorization = "authorization" in headers
        self.sets = HeaderNames(dict.fromkeys(headers)) if headers else None
        self.challenge = _NO_SESSION
        self.places = CredentialExtractor(ir.CredentialExtractors(cookies=tuple(client.session_names), params=("code", "state")))

    cdef bint is_own_path(self, Routed *at) noexcept:
        return is_path_text(at, self.callback_path) or is_path_text(at, self.logout_path)

    cdef CachedToken look(self, Exchange ex, Routed *at):
        """The session of its cookies, if it was opened before; None: the flow decides."""
        cdef ef_request request
        cdef const uint8_t *value = NULL
        cdef const uint8_t *text
        cdef size_t n = 0
        cdef uint64_t place = 0
        cdef bytes name = <bytes>PyList_GET_ITEM(self.names, 0), sealed
        if self.is_own_path(at) or drops_cookies(at, ex):
            return None
        memset(&request, 0, sizeof(request))
        request.base, request.spans, request.n_spans = at.base, &at.head.spans[0], at.head.n_spans
        if not ef_request_cookie(&request, <const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), &place, &value, &n) or n < 2:
            return None
        if value[0] == c"1":
            return self.cache.look(self.cache_id, value + 1, n - 1, self.clock())
        sealed = self.sealed(value, n, &request)
        if sealed is None:
            return None
        text = <const uint8_t *>PyBytes_AS_STRING(sealed)
        return self.cache.look(self.cache_id, text, PyBytes_GET_SIZE(sealed), self.clock())

    cdef bytes sealed(self, const uint8_t *first, size_t n, const ef_request *request):
        """Return the joined values of several cookies; None: one is missing."""
        cdef const uint8_t *value = NULL
        cdef size_t size = 0
        cdef uint64_t place
        cdef Py_ssize_t i, count = first[0] - c"0"
        cdef list parts = [first[1:n]]
        cdef bytes name
        if not 2 <= count <= PyList_GET_SIZE(self.names):
            return None
        for i in range(1, count):
            name = <bytes>PyList_GET_ITEM(self.names, i)
            place = 0
            if not ef_request_cookie(request, <const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), &place, &value, &size):
                return None
            parts.append(value[:size])
        return b"".join(parts)

    cdef bint knows(self, Exchange ex, Routed *at, ef_request *request, LivePolicy policy, void **memory) except *:
        cdef CachedToken known = self.look(ex, at)
        cdef bytes others
        cdef ef_span *span
        cdef bint found = False
        cdef uint16_t i
        if known is None or not known.admits or ex.filter_lines is not None or at.given:
            return False
        others = self.other_cookies(ex, at, &found)
        note_token(ex, known.outcome, policy)
        if others or known.lines:
            copy_head(at, request, _COOKIE, others, known.lines, known.spans, memory)
        else:
            for i in range(at.head.n_spans):
                span = &at.head.spans[i]
                if _COOKIE.covers(at.base + span.name_off, span.name_len):
                    span.flags |= EF_SPAN_HOP
        return True

    cdef ProofResult authenticate(self, RuleAuthFlow flow, LivePolicy policy) except *:
        cdef Exchange ex = flow.ex
        cdef CachedToken known
        cdef object decision = flow.login_decision
        if decision is not None:
            flow.login_decision = None
            return self.settle(flow, policy, decision)
        if self.tokens_unit is not None and self.tokens_of(flow) is not None:
            flow.passed_login = self
            return PASSED_OVER
        known = self.look(ex, &flow.at)
        if known is not None:
            return self.admit(flow, policy, known.outcome)
        if ex.down.handing and ex.down.defers:  # a request that is taken back in the same read asks no provider
            return DEFERRED
        decision = self.flow.decide(self.read_request(flow), flow.settle_login, ex.origin() or b"")
        if not isinstance(decision, tuple):
            flow.login = decision
            return UNDECIDED
        return self.settle(flow, policy, decision)

    cdef ProofResult settle(self, RuleAuthFlow flow, LivePolicy policy, object decision) except *:
        cdef Exchange ex = flow.ex
        cdef ServiceAuthResponse auth_result
        outcome, reply, cookies = decision
        if outcome is None:
            self.answer(flow, policy, reply)
            return REFUSED
        if cookies:
            auth_result = ex.auth_result
            if auth_result is None:
                auth_result = ex.auth_result = ServiceAuthResponse.__new__(ServiceAuthResponse)
                auth_result.names = []
            if auth_result.answer is None:
                auth_result.answer = []
            for one in cookies:
                auth_result.answer.append((b"set-cookie", ACTION_APPEND, b"set-cookie: %b\r\n" % one.encode(), None))
            auth_result.answer.append((b"cache-control", ACTION_APPEND, b"cache-control: private\r\n", None))
        return self.admit(flow, policy, outcome)

    cdef ProofResult admit(self, RuleAuthFlow flow, LivePolicy policy, object outcome) except *:
        self.strip(flow)
        flow.lines += outcome.lines
        flow.passed_unit = self.tokens_unit
        note_token(flow.ex, outcome, policy)
        return PROVEN

    cdef int answer(self, RuleAuthFlow flow, LivePolicy policy, object reply) except -1:
        cdef Exchange ex = flow.ex
        cdef int status = reply.status
        cdef bytes lines, word = json_encode(reply.word)
        if reply.word == "logout":  # its location can have an ID token
            ex.secret_query = True
        lines = b"cache-control: no-store\r\n" + b"".join([b"set-cookie: %b\r\n" % one.encode() for one in reply.cookies])
        if status == 401:
            return policy.refuse(ex, 401, word, F_DENIED, lines + self.challenge)
        if reply.location and not reply.page:
            lines += b"location: %b\r\n" % reply.location.encode()
        if status == 503:
            lines += b"retry-after: 1\r\n"
        if reply.page:
            ex.status = 200
            ex.drop_upstream(CUT_CANCEL)
            page = login_page(reply.location)
            ex.bytes_out = PyBytes_GET_SIZE(page) if ex.method != EF_M_HEAD else 0
            return ex.respond(200, b"content-type: text/html; charset=utf-8\r\nreferrer-policy: no-referrer\r\n" + lines, page)
        if reply.word in _LOGIN_STEPS and status < 400:
            return ex.answer(status, lines, 0)
        return policy.refuse(ex, status, word, _LOGIN_FLAGS.get(status, F_DENIED), lines)

    cdef object read_request(self, RuleAuthFlow flow):
        """LoginRequest. Of several lines of one name the first counts, but for cookies; those of the session are read, and SHOWN_COOKIES
        others."""
        from edgefast.auth.oidc.login_client import LoginRequest
        cdef Exchange ex = flow.ex
        cdef Routed *at = &flow.at
        cdef CredentialSource carried = carried_by(at, ex)
        cdef const ef_span *span
        cdef dict headers = {}, cookies = {}
        cdef bytes name, piece, key, value
        cdef uint32_t i
        for i in range(carried.n_spans):
            span = &carried.spans[i]
            if span.flags & carried.drop_flags:
                continue
            name = carried.base[span.name_off:span.name_off + span.name_len].lower()
            value = carried.base[span.val_off:span.val_off + span.val_len]
            if name != b"cookie":
                headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
                continue
            for piece in value.split(b";"):
                key, _, value = piece.strip(b" \t").partition(b"=")
                if key not in self.names and (
                    len(cookies) >= SHOWN_COOKIES or not self.is_own_cookie(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
                ):
                    continue
                cookies.setdefault(key.decode("ascii"), value.strip(b'"').decode("latin-1"))
        authority = at.base[at.head.authority_off:at.head.authority_off + at.head.authority_len].decode("latin-1").lower()
        return LoginRequest(
            method=at.base[at.head.method_off:at.head.method_off + at.head.method_len].decode("latin-1"),
            origin=f"{'https' if ex.https else 'http'}://{authority}",
            path=at.path[:at.path_len].decode("latin-1"),
            query=at.query[:at.query_len].decode("latin-1") if at.query != NULL else "",
            target=original_target(at.base, at.head, at.query, at.query_len).decode("latin-1"),
            headers=headers,
            cookies=cookies,
            grpc=ex.grpc != 0,
        )

    cdef bint is_own_cookie(self, const uint8_t *name, size_t n) noexcept:
        """Only names that a LoginClient makes."""
        cdef size_t before = PyBytes_GET_SIZE(self.state_prefix), i
        cdef object one
        if n == before + STATE_ID and memcmp(name, PyBytes_AS_STRING(self.state_prefix), before) == 0:
            for i in range(before, n):
                if not (c"0" <= name[i] <= c"9" or c"a" <= name[i] <= c"f"):
                    return False
            return True
        for one in self.names:
            if <size_t>PyBytes_GET_SIZE(one) == n and memcmp(name, PyBytes_AS_STRING(one), n) == 0:
                return True
        return False

    cdef bytes other_cookies(self, Exchange ex, Routed *at, bint *found):
        """A line "cookie: value" CRLF with all cookies that are not this client's, b"": none is there; `found`: one is this client's."""
        cdef const ef_span *span
        cdef const uint8_t *piece
        cdef const uint8_t *end
        cdef const uint8_t *stop
        cdef const uint8_t *last
        cdef const uint8_t *sign
        cdef size_t room = 10, n = 8
        cdef bytes made
        cdef char *text
        cdef uint16_t i
        found[0] = False
        for i in range(at.head.n_spans):
            span = &at.head.spans[i]
            if _COOKIE.covers(at.base + span.name_off, span.name_len):
                room += 2 * span.val_len + 2  # "; " takes the place of ";"
        made = PyBytes_FromStringAndSize(NULL, room)
        text = PyBytes_AS_STRING(made)
        memcpy(text, <const char *>b"cookie: ", n)
        for i in range(at.head.n_spans):
            span = &at.head.spans[i]
            if span.flags & ex.settings.drop_flags or not _COOKIE.covers(at.base + span.name_off, span.name_len):
                continue
            piece, end = at.base + span.val_off, at.base + span.val_off + span.val_len
            while piece < end:
                stop = <const uint8_t *>memchr(piece, c";", end - piece)
                if stop == NULL:
                    stop = end
                last = stop
                while piece < last and is_ows(piece[0]):
                    piece += 1
                while piece < last and is_ows((last - 1)[0]):
                    last -= 1
                sign = <const uint8_t *>memchr(piece, c"=", last - piece)
                if sign == NULL:
                    sign = last
                while piece < sign and is_ows((sign - 1)[0]):
                    sign -= 1
                if self.is_own_cookie(piece, sign - piece):
                    found[0] = True
                elif piece < last:
                    if n > 8:
                        memcpy(text + n, <const char *>b"; ", 2)
                        n += 2
                    memcpy(text + n, piece, last - piece)
                    n += last - piece
                piece = stop + 1
        if n == 8:
            return b""
        memcpy(text + n, <const char *>b"\r\n", 2)
        return made[:n + 2]

    cdef int strip(self, RuleAuthFlow flow) except -1:
        """One line with all other cookies is in the place of those that hold one of these."""
        cdef bint found = False
        cdef bytes others = self.other_cookies(flow.ex, &flow.at, &found)
        if found:
            drop_lines(flow, _COOKIE)
            drop_filter_lines(flow, _COOKIE)
            flow.lines += others
        return 0

    # --- requests with a token -------------------------------------------------------------------------------------

    cdef Tokens tokens_of(self, RuleAuthFlow flow):
        """Who decides about a request with a token; None: it has none, or another policy's unit decides about tokens."""
        cdef CredentialSource at
        cdef LivePolicy policy
        cdef CredentialExtractor places
        cdef Py_ssize_t i
        for i in range(PyList_GET_SIZE(flow.proof_policies)):
            policy = flow.proof_policies[i]
            if policy.name == self.tokens_unit and isinstance(policy.proof, Tokens):
                at = carried_by(&flow.at, flow.ex)
                for places, _ in (<Tokens>policy.proof).groups:
                    if places.find(&at, None) is not None:
                        return <Tokens>policy.proof
        return None

    cdef int admit_token(self, RuleAuthFlow flow, bytes token) except -1:
        """A verified token is in place of a session. It goes on in Authorization where a session's would be set, and nothing else does."""
        cdef CredentialSource at = carried_by(&flow.at, flow.ex)
        cdef const ef_span *span
        cdef const uint8_t *value
        cdef size_t n
        cdef uint32_t i
        self.strip(flow)
        for i in range(at.n_spans if self.owns_authorization else 0):
            span = &at.spans[i]
            if span.flags & at.drop_flags or not _AUTHORIZATION.has(at.base + span.name_off, span.name_len):
                continue
            value, n = at.base + span.val_off, span.val_len
            if follows_prefix(b"bearer ", &value, &n) and value[:n] == token:
                flow.lines += b"authorization: Bearer %b\r\n" % token
                break
        return 0


cdef HeaderNames _AUTHORIZATION = HeaderNames(("authorization",))
