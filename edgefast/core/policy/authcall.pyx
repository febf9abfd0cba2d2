# Auth call: sends a request's check to an authorization service and waits for the answer.
#
# In: a request's head as its backend would get it, and its whole body where the service requires it.
# Out: one AuthDecision, for all requests with the same check, or for one request alone. The decision is an answer that is complete and
# within AUTH_ANSWER, or a failure. It uses a connection of the service's cluster, within the bounds of that cluster, and has its own
# deadline; it ends with its last waiter.
# Must never admit a request by a partial answer, or by one with a denying head, and never give one client the answer for another.

cdef int write_question(Out *out, RuleAuthFlow flow, AuthService service, HeaderNames names, HeaderNames own) except -1:
    """What is asked, less what is different each time: request line, Host, the client's lines of these names, those that say of what request
    it is, and the proxy's lines about its client: those of the names in `own`, None: all."""
    cdef Exchange ex = flow.ex
    cdef Routed *at = &flow.at
    cdef ef_head *head = at.head
    cdef CheckOptions options = service.options
    cdef bytes lines = b"", path = service.path_override
    if options is not None and options.path is not None:
        path = options.path.expand(ex, at)
    if own is None or own.lengths:
        lines = ex.down.peer.own_lines if ex.received is None else <bytes>forwarded_lines(ex)[0]
        if own is not None:
            lines = lines_of(lines, own)
    lines += certificate_lines(ex)
    out.size = 0
    out_reserve(
        out,
        3 * head.head_len + 2 * at.path_len + 512 + PyBytes_GET_SIZE(service.path) + PyBytes_GET_SIZE(path)
        + PyBytes_GET_SIZE(flow.lines) + PyBytes_GET_SIZE(lines),
    )
    if options is not None and options.method:
        out_bytes(out, options.method)
    else:
        out_raw(out, at.base + head.method_off, head.method_len)
    out_raw(out, <const char *>b" ", 1)
    if path:
        out_bytes(out, path)
    else:
        out_bytes(out, service.path)
        if at.path[0] == c"/":
            put_target(out, at)
        else:  # "*"
            out_raw(out, <const char *>b"/", 1)
    out_raw(out, <const char *>b" HTTP/1.1\r\nhost: ", 17)
    if options is not None and options.host:
        out_reserve(out, PyBytes_GET_SIZE(options.host) + 3 * head.head_len + at.path_len + PyBytes_GET_SIZE(flow.lines) + 512)
        out_bytes(out, options.host)
    else:
        out_raw(out, at.base + head.authority_off, head.authority_len)
    out_raw(out, <const char *>b"\r\n", 2)
    put_body(out, flow, names)
    if options is not None:
        options.write(out, flow, own is None)
        out_reserve(out, 2 * head.head_len + at.path_len + PyBytes_GET_SIZE(lines) + 256)
        if options.original:
            out_bytes(out, lines)
            return 0
    out_raw(out, <const char *>b"x-forwarded-method: ", 20)
    out_raw(out, at.base + head.method_off, head.method_len)
    out_raw(out, <const char *>b"\r\nx-forwarded-host: ", 20)
    out_raw(out, at.base + head.authority_off, head.authority_len)
    out_raw(out, <const char *>b"\r\nx-forwarded-uri: ", 19)
    put_target(out, at)
    out_raw(out, <const char *>b"\r\n", 2)
    out_bytes(out, lines)
    return 0


cdef bytes lines_of(bytes lines, HeaderNames names):
    """Those of these names."""
    cdef bytes line, name
    cdef list kept = []
    for line in lines.splitlines(True):
        name = line.partition(b":")[0]
        if names.has(<const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name)):
            kept.append(line)
    return b"".join(kept)


cdef void put_target(Out *out, Routed *at) noexcept:
    out_raw(out, at.path, at.path_len)
    if at.query != NULL:
        out_raw(out, <const char *>b"?", 1)
        out_raw(out, at.query, at.query_len)


cdef int put_body(Out *out, RuleAuthFlow flow, HeaderNames names) except -1:
    """Lines of these names that the backend would get, as they came; of those that services set, what the ones before said."""
    cdef Routed *at = &flow.at
    cdef const ef_span *span
    cdef uint16_t i
    cdef bytes said = service_lines(flow)
    cdef size_t n = PyBytes_GET_SIZE(said), place = 0, after
    cdef const uint8_t *lines = <const uint8_t *>PyBytes_AS_STRING(said)
    cdef ef_span own
    for i in range(at.head.n_spans + at.hidden):
        span = &at.head.spans[i]
        if span.flags & flow.ex.settings.drop_flags or not names.has(at.base + span.name_off, span.name_len):
            continue
        if i >= at.head.n_spans and flow.was_set(at.base + span.name_off, span.name_len):
            continue
        out_raw(out, at.base + span.name_off, span.line_end - span.name_off)
    while place < n:
        after = ef_trailer_next(lines, n, place, &own)
        if after == 0:
            break
        if names.has(lines + own.name_off, own.name_len):
            out_raw(out, lines + place, after - place)
        place = after
    return 0


cdef frozenset _NOT_PASSED_ON = frozenset((  # of a denial, beside what is hop-by-hop
    b"content-length", b"connection", b"transfer-encoding", b"date", b"server", b"trailer", b"upgrade", b"keep-alive",
))


cdef bytes lines_for_backend(AuthService service, const uint8_t *base, ef_head *head):
    """Of an answer that lets a request pass: all lines that it may set, in their order."""
    cdef list lines = []
    cdef const ef_span *span
    cdef uint16_t i
    for i in range(head.n_spans):
        span = &head.spans[i]
        if not span.flags & (EF_SPAN_HOP | EF_SPAN_NOMINATED) and service.sets.has(base + span.name_off, span.name_len):
            lines.append(b"%b: %b\r\n" % (
                base[span.name_off:span.name_off + span.name_len], base[span.val_off:span.val_off + span.val_len]
            ))
    return b"".join(lines)


cdef bytes lines_for_client(const uint8_t *base, ef_head *head):
    """Of a denial: all but framing and what is of one connection; what its body is comes first (type_line)."""
    cdef list lines = []
    cdef const ef_span *span
    cdef uint16_t i
    for i in range(head.n_spans):
        span = &head.spans[i]
        if span.flags & (EF_SPAN_HOP | EF_SPAN_NOMINATED) or span.id == EF_H_X_EDGE:
            continue
        name = base[span.name_off:span.name_off + span.name_len].lower()
        if name in _NOT_PASSED_ON:
            continue
        line = b"%b: %b\r\n" % (name, base[span.val_off:span.val_off + span.val_len])
        if name == b"content-type":
            lines.insert(0, line)
        else:
            lines.append(line)
    return b"".join(lines)


cdef bint sets_cookie(const uint8_t *base, ef_head *head) noexcept:
    cdef uint16_t i
    for i in range(head.n_spans):
        if head.spans[i].name_len == 10 and strncasecmp(<const char *>base + head.spans[i].name_off, b"set-cookie", 10) == 0:
            return True
    return False


cdef int take_sent_id(RuleAuthFlow flow) except -1:
    """The request's id, which its client may have brought."""
    cdef Exchange ex = flow.ex
    cdef ef_head *head = flow.at.head
    cdef const ef_span *request_id = NULL
    cdef uint16_t i
    cdef bint internal = ex.down.peer.internal if ex.received is None else <bint>forwarded_lines(ex)[1]
    for i in range(head.n_spans):
        if head.spans[i].id == EF_H_X_REQUEST_ID:
            request_id = &head.spans[i]
    return take_request_id(ex, flow.at.base, request_id, internal)


cdef class AuthCall(UpstreamUser):
    def __dealloc__(self):
        out_free(&self.head)
        out_free(&self.trailers)
        out_free(&self.answer)

    # --- the question ----------------------------------------------------------------------------------------------

    cdef int open(self, RuleAuthFlow flow) except -1:
        cdef Exchange ex = flow.ex
        cdef AuthService service = self.service
        self.engine = ex.engine
        self.settings = ex.settings
        self.method = ex.method if service.options is None or not service.options.method else service.options.method_id
        self.source = ex.origin()
        self.shows = service.body > 0 and ex.body.expected
        self.announced = ex.body.kept.size if self.shows else 0
        self.flows = {}
        self.shown = self.notified = flow
        self.join(flow)
        self.engine.count(G_AUTH_CALLS)
        self.cluster = service.choose()
        self.write_head(flow)
        self.engine.wheel.arm(self, self.engine.wheel.now + service.timeout)
        return self.ask() if self.cluster is not None else self.fail(CUT_CANCEL)

    cdef int write_head(self, RuleAuthFlow flow) except -1:
        cdef Out *out = &self.head
        write_question(out, flow, self.service, self.service.sends, None)
        take_sent_id(flow)
        self.put_id(flow.ex)
        if self.shows or self.method == EF_M_POST or self.method == EF_M_PUT or self.method == EF_M_PATCH:
            out_raw(out, <const char *>b"content-length: ", 16)
            out_number(out, self.announced)
            out_raw(out, <const char *>b"\r\n", 2)
        return 0

    cdef int record(self, RuleAuthFlow flow, AuthOutcome outcome, bytes error) except -1:
        """Add this call to the trace of a request that waited for it. error: why there is no answer; None: there is one."""
        return self.engine.observer.note_auth_call(
            flow.ex, self.span_id if flow is self.notified else NULL, self.cluster.name.encode() if self.cluster is not None else None,
            self.flows_since(flow), self.service.grpc, self.reported_status(), outcome, error,
            self.endpoint.text if self.endpoint is not None else None, self.spoken,
        )

    cdef int put_id(self, Exchange ex) except -1:
        """What request it is, in lines of the call's head: its id, and the call's span in its trace."""
        cdef Out *out = &self.head
        cdef Trace trace = ex.trace
        cdef uint64_t word
        out_reserve(out, 512)
        out_raw(out, <const char *>b"x-request-id: ", 14)
        out_raw(out, ex.request_id, ex.request_id_len)
        out_raw(out, <const char *>b"\r\n", 2)
        if trace is not None:
            word = ef_random(self.engine.random) | 1
            memcpy(self.span_id, &word, 8)
            out_raw(out, <const char *>b"traceparent: 00-", 16)
            put_hex(out, trace.trace_id, 16)
            out_raw(out, <const char *>b"-", 1)
            put_hex(out, self.span_id, 8)
            out_raw(out, <const char *>b"-", 1)
            put_hex(out, &trace.flags, 1)
            out_raw(out, <const char *>b"\r\n", 2)
        return 0

    cdef int join(self, RuleAuthFlow flow) except -1:
        """One more waits for it."""
        self.flows[flow] = self.engine.reactor.now_us()
        flow.call = self
        return 0

    cdef int leave(self, RuleAuthFlow flow) except -1:
        """One waits no more; with the last one it ends."""
        self.flows.pop(flow, None)
        flow.call = None
        if flow is self.shown:
            self.shown = None
        return 0 if self.flows else self.settle(AUTH_FAILURE, CUT_CANCEL)

    cdef int ask(self) except -1:
        return self.cluster.acquire(self)

    cdef bytes origin(self):
        return self.source

    # --- the service -----------------------------------------------------------------------------------------------

    cdef int on_up_ready(self, Outbound up) except -1:
        self.up = up
        self.spoken = up.protocol
        self.tries += 1
        self.note_tried()
        return self.write_body()

    cdef int write_body(self) except -1:
        """Head and body."""
        cdef Outbound up = self.up
        cdef RuleAuthFlow flow
        cdef iovec body
        up.begin(self, self.method, False, self.announced, None, False)
        if self.announced == 0:
            return up.write(&self.head, NULL, 0, 0, True, &self.trailers)
        flow = next(iter(self.flows))  # the only one: what is asked with a body nobody else asks
        body.iov_base = flow.ex.body.kept.data
        body.iov_len = self.announced
        return up.write(&self.head, &body, 1, self.announced, True, &self.trailers)

    cdef int on_up_failed(self, UpFailure why) except -1:
        if why == UP_NO_ENDPOINT or why == UP_OVERFLOW:
            return self.fail(CUT_CANCEL)
        self.tries += 1
        self.note_tried()
        if self.tries < AUTH_TRIES and self.has_untried(self.cluster):
            return self.ask()  # nothing was sent
        return self.fail(CUT_CANCEL)

    cdef int on_response_head(self, const uint8_t *base, ef_head *head) except -1:
        cdef AuthService service = self.service
        if self.over:
            return 1
        self.status = head.response_status
        if self.up.tunnel:
            self.fail(CUT_CANCEL)
            return 1
        if self.status in service.statuses:
            self.outcome = AUTH_PASSES
            self.lines = lines_for_backend(service, base, head)
            if service.options is not None:
                self.edits = service.options.edits(base, head)
        elif self.status >= 500 or (
            service.options is not None and service.options.denied is not None and self.status not in service.options.denied
        ):
            self.outcome = AUTH_FAILS
            return 0
        else:
            self.outcome = AUTH_DENIES
            if service.options is not None and service.options.to_denied is not None:
                self.lines = service.options.denial_lines(base, head)
                self.bodiless = True
            else:
                self.lines = lines_for_client(base, head)
        if PyBytes_GET_SIZE(self.lines) > AUTH_ANSWER:
            self.lines = b""
            self.fail(CUT_CANCEL)
            return 1
        if head.body == EF_BODY_LENGTH and head.content_length > AUTH_ANSWER:
            self.fail(CUT_CANCEL)
            return 1
        self.lasting = (self.outcome == AUTH_PASSES or self.status == 401 or self.status == 403) and not sets_cookie(base, head)
        return 0

    cdef int on_response_body(self, const uint8_t *data, size_t n) except -1:
        self.size += n
        if self.outcome == AUTH_DENIES and self.size <= AUTH_ANSWER and not self.bodiless:
            out_reserve(&self.answer, n)
            out_raw(&self.answer, data, n)
        return 0

    cdef int on_response_flush(self) except -1:
        return self.fail(CUT_CANCEL) if self.size > AUTH_ANSWER else 0

    cdef int on_response_end(self) except -1:
        self.up = None
        if self.outcome == AUTH_FAILS or self.size > AUTH_ANSWER:
            return self.fail(CUT_CANCEL)
        return self.settle(
            make_decision(self.outcome, self.status, self.lines, self.answer.data[:self.answer.size] if self.answer.size else b"", self.edits),
            CUT_CANCEL,
        )

    cdef int on_up_lost(self, int why) except -1:
        cdef Outbound up = self.up
        self.up = None
        if why == LOST_RESET and not up.got_bytes and (up.unprocessed or up.served) and self.tries < AUTH_TRIES:
            return self.ask()  # its connection was an old one; to ask twice is to ask
        self.endpoint.failed(None, False)
        return self.fail(CUT_CANCEL)

    cdef int on_deadline(self, int64_t now) except -1:
        if self.over:
            return 0
        if self.up is not None:
            self.endpoint.failed(None, False)
        return self.fail(CUT_TIMEOUT)

    # --- the verdict -----------------------------------------------------------------------------------------------

    cdef int fail(self, Cut why) except -1:
        """There is no whole answer. Whom its head denied is denied, whatever came of the rest: failOpen is for services that say nothing."""
        if self.outcome != AUTH_DENIES:
            return self.settle(AUTH_FAILURE, why)
        self.lasting = False
        return self.settle(make_decision(AUTH_DENIES, self.status, lines_but(self.lines, BODY_HEADERS)), why)

    cdef int reported_status(self) noexcept:
        """What it answered, for its span."""
        return self.status

    cdef int64_t flows_since(self, RuleAuthFlow flow) except -1:
        """Since when it waits."""
        return self.flows[flow]

    cdef bint is_for_all(self, AuthDecision decision) noexcept:
        """Nothing in it is for one client: what the cache would keep, and that there is no answer."""
        return decision.outcome == AUTH_FAILS or (self.lasting and not decision.body)

    cdef int settle(self, AuthDecision decision, Cut why) except -1:
        """It is over: whose request it is is told, and, where it is for all, the others who wait."""
        cdef Outbound up = self.up
        cdef RuleAuthFlow flow, shown = self.shown
        cdef Exchange ex
        cdef bint for_all = self.is_for_all(decision)
        cdef dict flows = self.flows
        cdef bytes failure = b"response_timeout" if why == CUT_TIMEOUT else b"no_answer"
        cdef AuthCall held = self  # those who wait may have been all that held it
        if self.over:
            return 0
        self.over = True
        self.stop_waiting()
        self.ticket += 1
        self.up = None
        self.shown = None
        self.engine.wheel.disarm(self)
        if self.key is not None:
            del self.service.calls[self.key]
            if for_all and decision.outcome != AUTH_FAILS:
                units_of(self.engine).auth_cache.keep(self.key, decision, self.engine.wheel.now + self.service.ttl)
        if up is not None:
            up.drop(why)
        for flow in list(flows):
            if flow.call is held:  # else it has left meanwhile
                ex = flow.ex  # which it lets go of when it enters
                try:
                    self.record(flow, decision.outcome, failure if decision.outcome == AUTH_FAILS else None)
                    if for_all or flow is shown:
                        flow.on_decision(decision)
                    else:
                        flow.ask_alone()
                except Exception:  # the others wait for it, too
                    _log.exception("external authorization: request failed after the service answered")
                    give_up(ex)
        self.flows = {}
        self.notified = None
        return 0
