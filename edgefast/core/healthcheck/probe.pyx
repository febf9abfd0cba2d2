# Probe: checks one endpoint repeatedly: a request of HTTP, a call of grpc.health.v1, a connection (probedial.pyx).
#
# In: a check, its endpoint; answers, or timeouts. Out: the endpoint's state by this check, after the threshold of equal results in a row.
# As in Envoy, an HTTP answer that is neither healthy nor retriable is enough by itself, and so is the first result. A result without
# information about the endpoint is retried once, and then does not count. Such are a reused connection that was closed, a refused stream,
# no free descriptor here. Its connections are separate from requests: bounds and settings of rules do not apply, and its results eject no
# endpoint. Sources: BackendTrafficPolicy healthCheck.active; github.com/grpc/grpc doc/health-checking.md.

cdef bytes _GRPC_CHECK = b"/grpc.health.v1.Health/Check"


cdef class Probe(UpstreamUser):
    def __dealloc__(self):
        out_free(&self.head)
        out_free(&self.none)

    cdef int open(self, Watch watch, Endpoint about, Endpoint target) except -1:
        cdef int64_t now = watch.engine.wheel.now
        cdef object spec = watch.check.spec
        self.engine = watch.engine
        self.probing = True
        self.watch, self.about, self.target = watch, about, target
        self.record = checked_record(self.engine.health, watch.cluster, about, watch.check)
        prober_of(self.engine).count(1)
        self.next_at = now
        if spec.jitter:
            self.next_at += <int64_t>(ef_random(self.engine.random) % <uint64_t>(spec.jitter + 1))
        return self.engine.wheel.arm(self, self.next_at)

    cdef int on_deadline(self, int64_t now) except -1:
        if self.over:
            return 0
        if not self.asking:
            return prober_of(self.engine).enter(self)
        self.detach()
        what = "the expected answer did not arrive" if self.watch.check.spec.expects else "no answer"
        return self.fail(f"{what} within {self.watch.check.spec.timeout} ms")

    # --- the question ------------------------------------------------------------------------------------------------

    cdef int start(self) except -1:
        self.asking, self.again = True, False
        self.engine.count(G_HEALTH_CHECKS)
        self.engine.wheel.arm(self, self.engine.wheel.now + <int64_t>self.watch.check.spec.timeout)
        return self.ask()

    cdef int ask(self) except -1:
        cdef Cluster asked = self.watch.asked
        cdef Outbound up
        self.good = self.fatal = False
        self.answer = bytearray()
        self.taken = 0
        self.status = 0
        self.why = None
        self.grpc_status = -1
        self.ticket += 1
        self.settings = self.watch.settings if prober_of(self.engine).probes <= PROBES_KEPT else self.watch.brief
        if self.target is None or not self.target.is_regular():
            return self.fail("its address was removed")
        if self.watch.check.spec.kind == "tcp":
            self.dial = ProbeDial.__new__(ProbeDial)
            return self.dial.ask(self)
        up = checkout(asked, self, self.target)
        if up is not None:
            return asked.give(self, up)
        if self.target.coming is not None:
            return self.target.coming.queue.join(self)
        if not may_connect(asked, self, self.target):
            return self.rest()  # its cluster has become smaller: it is gone soon
        return asked.dial(self, self.target)

    cdef int ask_again(self) except -1:
        """What came of it says nothing of the endpoint; a second time that says nothing of it either."""
        if self.again:
            return self.rest()
        self.again = True
        if self.target is not None:
            self.target.stop_idle()
        return self.ask()

    cdef int on_up_ready(self, Outbound up) except -1:
        cdef object spec = self.watch.check.spec
        cdef bytes service, message = b""
        cdef iovec piece
        if spec.kind == "grpc":
            if not up.is_http2:
                self.watch.asked.done(self.target)
                up.stop(True)
                return self.fail("it uses HTTP/1.1, but a gRPC health check needs HTTP/2 (set appProtocol of its port, or TLS)", True)
            service = spec.service.encode()
            if service:  # field 1, a string
                message = b"\x0a%b%b" % (pb_length(len(service)), service)
            message = b"\0%b%b" % (len(message).to_bytes(4, "big"), message)
        else:
            message = spec.sends
        self.up = up
        self.write_head(len(message))
        up.begin(self, EF_M_POST if spec.kind == "grpc" else probe_method(spec.method), False, len(message), None, spec.kind == "grpc")
        piece.iov_base = PyBytes_AS_STRING(message)
        piece.iov_len = PyBytes_GET_SIZE(message)
        return up.write(&self.head, &piece, 1 if message else 0, len(message), True, &self.none)

    cdef int write_head(self, size_t n) except -1:
        """The head as one of our own clients would have sent it."""
        cdef object spec = self.watch.check.spec
        cdef bytes host = spec.host.encode() or authority_at(self.watch.cluster, self.target)
        cdef bytes text
        if spec.kind == "grpc":
            text = b"POST %b HTTP/1.1\r\nhost: %b\r\ncontent-type: application/grpc\r\ngrpc-timeout: %dm\r\n" % (_GRPC_CHECK, host, spec.timeout)
        else:
            text = b"%b %b HTTP/1.1\r\nhost: %b\r\n" % (spec.method.encode(), spec.path.encode(), host)
            if spec.method in ("POST", "PUT"):  # whose body says how long it is, also where there is none (RFC 9110 8.6)
                text += b"content-length: %d\r\n" % n
        text += b"user-agent: edgefast-health\r\n"
        self.head.size = 0
        out_reserve(&self.head, PyBytes_GET_SIZE(text))
        out_bytes(&self.head, text)
        return 0

    # --- the answer --------------------------------------------------------------------------------------------------

    cdef int on_up_failed(self, UpFailure why) except -1:
        self.up = None
        if not self.asking:
            return 0
        return self.ask_again() if why == UP_OTHERWISE else self.fail("no connection")

    cdef int on_response_head(self, const uint8_t *base, ef_head *head) except -1:
        cdef object spec = self.watch.check.spec
        cdef uint16_t i
        self.status = head.response_status
        if spec.kind == "grpc":
            self.good = head.response_status == 200 and head.grpc == EF_GRPC
            for i in range(head.n_spans):
                if is_named(base, &head.spans[i], HASH_GRPC_STATUS, "grpc-status", 11):
                    self.grpc_status = ef_grpc_status(base + head.spans[i].val_off, head.spans[i].val_len)
            return 0
        self.good = head.response_status in spec.statuses
        self.fatal = not self.good and head.response_status not in spec.counted
        return 0

    cdef int on_response_body(self, const uint8_t *data, size_t n) except -1:
        cdef size_t room
        if not self.asking:
            return 0
        room = PROBE_ANSWER - <size_t>len(self.answer)
        if room and (self.watch.check.spec.expects or self.watch.check.spec.kind == "grpc"):
            self.answer += data[:min(n, room)]
        self.taken += n
        return 0

    cdef int on_response_flush(self) except -1:
        if self.asking and self.taken > PROBE_ANSWER:  # nobody reads all of that: what is known is enough
            self.detach()
            return self.conclude(self.is_well(), self.fatal)
        return 0

    cdef int on_response_trailers(self, const uint8_t *lines, size_t n) except -1:
        cdef ef_span span
        cdef size_t at = 0
        while at < n:
            at = ef_trailer_next(lines, n, at, &span)
            if at == 0:
                break
            if is_named(lines, &span, HASH_GRPC_STATUS, "grpc-status", 11):
                self.grpc_status = ef_grpc_status(lines + span.val_off, span.val_len)
        return 0

    cdef int on_response_end(self) except -1:
        self.up = None
        return self.conclude(self.is_well(), self.fatal) if self.asking else 0

    cdef int on_up_lost(self, int why) except -1:
        cdef Outbound up = self.up
        self.up = None
        if not self.asking:
            return 0
        if why == LOST_RESET and up is not None and not up.got_bytes and (up.served or (up.unprocessed and up.is_http2)):
            return self.ask_again()
        return self.fail("its connection ended before its answer")

    cdef bint is_well(self) except -1:
        """By an answer that is here."""
        cdef object spec = self.watch.check.spec
        if spec.kind == "grpc":
            return self.good and self.grpc_status == GRPC_OK and is_serving(bytes(self.answer))
        return self.good and (not spec.expects or spec.expects in self.answer)

    cdef str report_answer(self):
        """Of one that is not well."""
        if self.watch.check.spec.kind != "grpc":
            return "its answer does not match the expected one" if self.good else f"it answered {self.status}"
        if self.grpc_status < 0:
            return f"it answered {self.status} without a grpc-status"
        return f"it answered {self.status} and grpc-status {self.grpc_status}, not SERVING"

    # --- what follows ------------------------------------------------------------------------------------------------

    cdef int conclude(self, bint good, bint fatal) except -1:
        """It has answered, or has not."""
        try:
            if not good:
                self.engine.count(G_HEALTH_CHECKS_FAILED)
            self.note(good, fatal)
        finally:
            self.rest()
        return 0

    cdef int fail(self, str why, bint fatal=False) except -1:
        """Without an answer, or by what nobody asked for."""
        self.why = why
        return self.conclude(False, fatal)

    cdef int note(self, bint good, bint fatal) except -1:
        cdef object spec = self.watch.check.spec
        cdef uint64_t state = self.record.at.until_ms
        self.goods = self.goods + 1 if good else 0
        self.fails = 0 if good else self.fails + 1
        if good and (state == UNKNOWN or state == TRUSTED or (state == ILL and self.goods >= <uint32_t>spec.healthy)):
            return self.put(WELL)
        if not good and (state == UNKNOWN or state == TRUSTED or (state == WELL and (fatal or self.fails >= <uint32_t>spec.unhealthy))):
            return self.put(ILL)
        return 0

    cdef int put(self, Wellness state) except -1:
        """For all workers to see."""
        cdef str address = self.about.text.decode(), name = self.watch.cluster.name
        cdef uint64_t before = self.record.at.until_ms
        cdef bint known = before == ILL or before == WELL
        if state == WELL and before != TRUSTED:
            self.record.at.ejected_ms = self.engine.wheel.now  # it was out: also for who did not look meanwhile
        ef_health_put(self.watch.cluster.record.at, self.record.at, state)
        if state == ILL:
            self.engine.count(G_HEALTH_CHECKS_ILL)
            why = self.why or self.report_answer()
            return prober_of(self.engine).report(f"{address} of {name} fails its health check ({why}); rules with this check send it no requests")
        return prober_of(self.engine).report(f"{address} of {name} passes its health check again") if known else 0

    cdef int rest(self) except -1:
        """Until it is asked again: a tenth sooner or later, so that not all are at once."""
        cdef int64_t interval = self.watch.check.spec.interval, part = interval // 10
        if not self.asking:
            return 0
        self.asking = False
        prober_of(self.engine).leave()
        if self.over:
            return 0
        self.next_at = self.engine.wheel.now + interval - part + <int64_t>(ef_random(self.engine.random) % <uint64_t>(2 * part + 1))
        return self.engine.wheel.arm(self, self.next_at)

    cdef int detach(self) except -1:
        """Of whatever is under way."""
        cdef Outbound up = self.up
        self.ticket += 1
        self.stop_waiting()
        self.up = None
        if up is not None:
            up.drop(CUT_TIMEOUT)
        if self.dial is not None:
            self.dial.call_off()
        if self.session is not None:
            self.session.leave()
        return 0

    cdef int stop(self) except -1:
        """Nobody wants to know any more. What it has found out stays in its record for an heir."""
        if self.over:
            return 0
        self.over = True
        prober_of(self.engine).count(-1)
        self.engine.wheel.disarm(self)
        self.detach()
        self.rest()
        self.watch = self.about = self.target = None
        return 0


cdef unsigned probe_method(str method) except 0:
    if method == "HEAD":
        return EF_M_HEAD
    if method == "OPTIONS":
        return EF_M_OPTIONS
    if method == "PUT":
        return EF_M_PUT
    return EF_M_POST if method == "POST" else EF_M_GET


cdef bytes authority_at(Cluster cluster, Endpoint target):
    """What an endpoint is called where nobody says it: as its cluster's certificate is, else its address."""
    return cluster.sni.encode() if cluster.sni else b"localhost" if target.port == 0 else target.text


cdef bytes pb_length(size_t n):
    """A varint below 2^14."""
    return bytes((n,)) if n < 128 else bytes((n & 127 | 128, n >> 7))


cdef bint is_serving(bytes answer) except -1:
    """One message, whole and not compressed: HealthCheckResponse with status (field 1) SERVING (1)."""
    cdef PbField field
    cdef int64_t at = 0
    cdef size_t n = PyBytes_GET_SIZE(answer)
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(answer)
    cdef bint serving = False
    if n < 5 or data[0] != 0 or int.from_bytes(answer[1:5], "big") != n - 5:
        return False
    data += 5
    n -= 5
    while <size_t>at < n:
        at = pb_next(data, n, <size_t>at, &field)
        if at < 0:
            return False
        if field.number == 1 and field.wire_type == 0:
            serving = field.value == 1
    return serving
