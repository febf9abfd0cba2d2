# Error service: writes the answer in place of an error (ir.ErrorService; BackendTrafficPolicy responseOverride[].service).
#
# In: a request whose answer is replaced, the status and the lines of that answer. Out: the service's body, with the original status or the
# service's. Without a whole answer of at most ERROR_PAGE bytes in time, the plain error. The call goes to the service's cluster and meets no
# route, so that it has no override of its own; x-edge-error-call tells an edgefast behind it. A worker has at most ERROR_CALLS in progress.
# Must never send the service a body, a credential that its policy does not name, or a client's header of a name that edgefast writes.

# Of the client's: what would change the status or the length of the page, and what describes a body.
cdef frozenset _NOT_ASKED = _NEVER_SHOWN | frozenset((
    "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "content-type", "content-encoding",
    "proxy-authorization",
))
cdef tuple _ERROR_LINES = ("x-code", "x-format", "x-original-uri")
# Of the service's, where the client gets the original status.
cdef frozenset _OF_STATUS = frozenset((b"location", b"www-authenticate", b"retry-after"))


cdef class HttpErrorService(ErrorService):
    def __init__(self, Engine engine, spec):
        """spec: ir.ErrorService."""
        self.engine = engine
        self.cluster = spec.cluster
        self.path = spec.path.encode()
        self.host = spec.host.encode()
        if any([byte <= 32 or byte >= 127 for byte in self.path + self.host]):
            raise ValueError("the path or host of an error service is not valid")
        self.lines = b"".join([b"%b: %b\r\n" % (name.encode(), value.encode()) for name, value in spec.fixed])
        own = [*_ERROR_LINES, *[name for name, _ in spec.fixed]]
        if spec.all_headers:
            self.sends = OtherNames([*_NOT_ASKED, *own, "authorization"])
        else:
            self.sends = names_but([name for name in spec.headers if name.replace("_", "-") not in own], _NOT_ASKED)
        self.own_status = spec.own_status
        self.timeout = min(spec.timeout or ERROR_TIMEOUT_MOST, <int64_t>ERROR_TIMEOUT_MOST)

    cdef bint serve(self, Exchange ex, int status, bytes lines, bytes reason) except -1:
        cdef PolicyUnits units = units_of(self.engine)
        cdef ErrorFlow flow
        cdef ErrorCall call
        cdef Mirror mirror
        if ex.error_request is None:
            return False
        if units.error_calls >= ERROR_CALLS:
            self.engine.count(G_ERROR_CALLS_FAILED)
            return False
        # From here on nothing else may answer the request, or send it on.
        if ex.auth is not None:
            ex.auth.leave()
        if ex.joined_share is not None:
            ex.leave_share()
        if ex.place is not None:
            ex.complete()
        if ex.body.state == BODY_GATHERING:
            ex.body.enter(BODY_HELD)
        if ex.body.mirrors is not None and not ex.body.done:
            for mirror in ex.body.mirrors:
                mirror.stop()
            ex.body.mirrors = None
        ex.body.forget()
        ex.route_deadline = ex.idle_deadline = ex.ask_at = ex.send_deadline = ex.client_deadline = ex.long_at = ex.retry.deadline = 0
        self.engine.wheel.disarm(ex)
        flow = ErrorFlow.__new__(ErrorFlow)
        flow.ex = ex
        flow.status = status
        flow.lines = lines
        flow.reason = reason
        call = flow.call = ErrorCall.__new__(ErrorCall)
        call.flow = flow
        call.service = self
        ex.auth = flow
        units.error_calls += 1
        self.engine.count(G_ERROR_CALLS)
        call.open(ex)
        return True


cdef class ErrorFlow(AuthFlow):
    cdef int advance(self, AuthEvent event) except -1:
        return 0

    cdef int take_body(self, iovec *iov, int n, size_t total) except -1:
        """No service gets it. One that is too large is not read."""
        cdef Exchange ex = self.ex
        return ex.down.pause() if ex.body.limit and ex.body.received > ex.body.limit else 0

    cdef int leave(self) except -1:
        """The exchange is over."""
        cdef ErrorCall call = self.call
        self.ex.auth = None
        self.ex = self.call = None
        if call is not None:
            call.end(CUT_CANCEL)
        return 0

    cdef int answer(self, int status, bytes lines, bytes body) except -1:
        cdef Exchange ex = self.ex
        if status == 204 or status == 205 or status == 304:
            body = b""
        ex.status = status
        ex.bytes_out = PyBytes_GET_SIZE(body) if ex.method != EF_M_HEAD else 0
        ex.respond(status, lines, body)
        return 0

    cdef int answer_plain(self) except -1:
        cdef Exchange ex = self.ex  # which lets go of this when it ends
        ex.status = self.status
        ex.respond(self.status, self.lines, self.reason)
        return 0


cdef class ErrorCall(UpstreamUser):
    def __dealloc__(self):
        out_free(&self.head)
        out_free(&self.trailers)
        out_free(&self.answer)

    # --- the question ----------------------------------------------------------------------------------------------

    cdef int open(self, Exchange ex) except -1:
        self.engine = ex.engine
        self.settings = ex.settings
        self.source = ex.origin()
        self.lines = b""
        self.cluster = self.engine.tables.cluster(self.service.cluster)
        self.write_head(ex)
        self.engine.wheel.arm(self, self.engine.wheel.now + self.service.timeout)
        return self.cluster.acquire(self)

    cdef int write_head(self, Exchange ex) except -1:
        cdef HttpErrorService service = self.service
        cdef Out *out = &self.head
        cdef bytes text, target, path, query, authority, lines, accept = None, value
        cdef const uint8_t *data
        cdef size_t place = 0, after, n
        cdef ef_span span
        text, target, path, query, authority = ex.error_request
        data, n = <const uint8_t *>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)
        lines = ex.down.peer.own_lines if ex.received is None else <bytes>forwarded_lines(ex)[0]
        path = service.path or path
        out_reserve(
            out,
            n * 2 + len(target) + len(path) + (len(query) if query is not None else 0) + len(authority) + len(service.host) + len(lines)
            + len(service.lines) + 512,
        )
        out_raw(out, <const char *>b"GET ", 4)
        out_bytes(out, path)
        if query is not None:
            out_raw(out, <const char *>b"?", 1)
            out_bytes(out, query)
        out_raw(out, <const char *>b" HTTP/1.1\r\nhost: ", 17)
        out_bytes(out, service.host or authority)
        out_raw(out, <const char *>b"\r\n", 2)
        while place < n:
            after = ef_trailer_next(data, n, place, &span)
            if after == 0:
                break
            if span.name_len == 6 and strncasecmp(<const char *>data + span.name_off, b"accept", 6) == 0:
                value = data[span.val_off:span.val_off + span.val_len]
                accept = value if accept is None else accept + b", " + value
            if service.sends.has(data + span.name_off, span.name_len):
                out_raw(out, data + place, after - place)
            place = after
        out_bytes(out, lines)
        out_raw(out, <const char *>b"x-code: ", 8)
        out_number(out, self.flow.status)
        if accept:
            out_raw(out, <const char *>b"\r\nx-format: ", 12)
            out_bytes(out, accept)
        out_raw(out, <const char *>b"\r\nx-original-uri: ", 18)
        out_bytes(out, target)
        out_raw(out, <const char *>b"\r\nx-request-id: ", 16)
        out_raw(out, ex.request_id, ex.request_id_len)
        out_raw(out, <const char *>b"\r\nx-edge-error-call: true\r\n", 27)
        out_bytes(out, service.lines)
        return 0

    cdef bytes origin(self):
        return self.source

    # --- the service -----------------------------------------------------------------------------------------------

    cdef int on_up_ready(self, Outbound up) except -1:
        self.up = up
        self.tries += 1
        self.note_tried()
        up.begin(self, EF_M_GET, False, 0, None, False)
        return up.write(&self.head, NULL, 0, 0, True, &self.trailers)

    cdef int on_up_failed(self, UpFailure why) except -1:
        if why == UP_NO_ENDPOINT or why == UP_OVERFLOW:
            return self.fail(CUT_CANCEL)
        self.tries += 1
        self.note_tried()
        if self.tries < AUTH_TRIES and self.has_untried(self.cluster):
            return self.cluster.acquire(self)  # nothing was sent
        return self.fail(CUT_CANCEL)

    cdef int on_response_head(self, const uint8_t *base, ef_head *head) except -1:
        if self.flow is None:
            return 1
        self.status = head.response_status
        self.lines = lines_for_client(base, head)
        if (
            self.up.tunnel or PyBytes_GET_SIZE(self.lines) > AUTH_ANSWER
            or (head.body == EF_BODY_LENGTH and head.content_length > ERROR_PAGE)
        ):
            self.fail(CUT_CANCEL)
            return 1
        return 0

    cdef int on_response_body(self, const uint8_t *data, size_t n) except -1:
        if self.answer.size + n > ERROR_PAGE:
            self.status = 0  # on_response_flush ends it
            return 0
        out_reserve(&self.answer, n)
        out_raw(&self.answer, data, n)
        return 0

    cdef int on_response_flush(self) except -1:
        return self.fail(CUT_CANCEL) if self.status == 0 else 0

    cdef int on_response_end(self) except -1:
        cdef HttpErrorService service = self.service
        cdef ErrorFlow flow
        cdef bytes body = self.answer.data[:self.answer.size] if self.answer.size else b""
        cdef bytes lines = self.lines, own
        self.up = None
        if self.status == 0:
            return self.fail(CUT_CANCEL)
        flow = self.end(CUT_CANCEL)
        if flow is None:
            return 0
        if not service.own_status:
            lines = lines_but(lines, _OF_STATUS)
        if flow.ex.cors_lines is not None:
            lines = lines_but(lines, _CORS_OWN)
        own = lines_but(flow.lines, BODY_HEADERS | {b"location"})
        lines += lines_beside(own, lines)
        return flow.answer(self.status if service.own_status else flow.status, lines, body)

    cdef int on_up_lost(self, int why) except -1:
        cdef Outbound up = self.up
        self.up = None
        if why == LOST_RESET and not up.got_bytes and (up.unprocessed or up.served) and self.tries < AUTH_TRIES:
            return self.cluster.acquire(self)  # its connection was an old one
        self.endpoint.failed(None, False)
        return self.fail(CUT_CANCEL)

    cdef int on_deadline(self, int64_t now) except -1:
        if self.flow is None:
            return 0
        if self.up is not None:
            self.endpoint.failed(None, False)
        return self.fail(CUT_TIMEOUT)

    # --- ends ------------------------------------------------------------------------------------------------------

    cdef int fail(self, Cut why) except -1:
        """There is no page: the plain error."""
        cdef ErrorFlow flow = self.end(why)
        if flow is None:
            return 0
        self.engine.count(G_ERROR_CALLS_FAILED)
        return flow.answer_plain()

    cdef ErrorFlow end(self, Cut why):
        """Let go of the service. Returns who waited for it; None: nobody does."""
        cdef Outbound up = self.up
        cdef ErrorFlow flow = self.flow
        cdef PolicyUnits units = units_of(self.engine)
        if flow is None:
            return None
        self.flow = None
        units.error_calls -= 1
        self.stop_waiting()
        self.ticket += 1
        self.up = None
        self.engine.wheel.disarm(self)
        if up is not None:
            up.drop(why)
        flow.call = None
        return flow if flow.ex is not None else None
