# Check call: a call of a gRPC authorization service: envoy.service.auth.v3.Authorization/Check, on a stream of HTTP/2.
#
# In: a waiting request. Out: as of every call (authcall.pyx), one AuthDecision. Admission needs a complete answer: status 200, the type of
# gRPC, one message, whole and not compressed, and grpc-status 0 behind it. Anything else is no answer. A denial is valid as soon as it can
# be read, whatever follows. Must never take a part of a message for an admission.
# Source: github.com/grpc/grpc doc/PROTOCOL-HTTP2.md.

cdef bytes authority_of(Cluster cluster):
    """What a service is called: as its certificate says, else by its object's name."""
    if cluster is None:
        return b"-"
    if cluster.sni:
        return cluster.sni.encode()
    parts = cluster.name.split("/")  # "service/namespace/name/port/h2"
    return f"{parts[2]}.{parts[1]}".encode() if len(parts) > 2 else cluster.name.encode()


cdef bint is_lasting(CheckAnswer said) noexcept:
    """It is for whoever asks the same: nothing in it is one client's alone."""
    if said.denies() and said.status and said.status != 401 and said.status != 403:
        return False
    for name, _, _ in said.headers if said.denies() else said.added:
        if name == b"set-cookie":
            return False
    return True


cdef class CheckCall(AuthCall):
    def __dealloc__(self):
        out_free(&self.question)

    # --- the question ----------------------------------------------------------------------------------------------

    cdef int write_head(self, RuleAuthFlow flow) except -1:
        cdef Exchange ex = flow.ex
        cdef Out *out = &self.head
        cdef bytes authority = authority_of(self.cluster)
        self.grpc_status = -1
        self.method = EF_M_POST
        take_sent_id(flow)
        write_check(&self.question, flow, self.service, self.shows)
        out_reserve(out, 512 + PyBytes_GET_SIZE(authority))
        out_raw(out, <const char *>b"POST ", 5)
        out_bytes(out, CHECK_PATH)
        out_raw(out, <const char *>b" HTTP/1.1\r\nhost: ", 17)
        out_bytes(out, authority)
        out_bytes(out, b"\r\ncontent-type: application/grpc\r\nuser-agent: edgefast\r\ngrpc-timeout: %dm\r\n" % self.service.timeout)
        self.put_id(ex)
        return 0

    cdef int write_body(self) except -1:
        """The message; a body that is shown is its end."""
        cdef RuleAuthFlow flow
        cdef iovec parts[2]
        cdef size_t total = self.question.size + self.announced
        if not self.up.is_http2:  # what the table says of its cluster and of the service is not one
            return self.fail(CUT_CANCEL)
        self.up.begin(self, self.method, False, total, None, True)
        parts[0].iov_base = self.question.data
        parts[0].iov_len = self.question.size
        if self.announced == 0:
            return self.up.write(&self.head, parts, 1, total, True, &self.trailers)
        flow = next(iter(self.flows))  # as of every call with a body the only one
        parts[1].iov_base = flow.ex.body.kept.data
        parts[1].iov_len = self.announced
        return self.up.write(&self.head, parts, 2, total, True, &self.trailers)

    # --- the answer ------------------------------------------------------------------------------------------------

    cdef int on_response_head(self, const uint8_t *base, ef_head *head) except -1:
        if self.over:
            return 1
        if head.response_status != 200 or head.grpc != EF_GRPC:
            self.fail(CUT_CANCEL)
            return 1
        return 0  # a status that stands here has no message with it, and so lets nobody pass

    cdef int on_response_body(self, const uint8_t *data, size_t n) except -1:
        self.size += n
        if self.answer.size + n > CHECK_ANSWER:
            n = CHECK_ANSWER - self.answer.size
        out_reserve(&self.answer, n)
        out_raw(&self.answer, data, n)
        return 0

    cdef int on_response_flush(self) except -1:
        return self.fail(CUT_CANCEL) if self.size > CHECK_ANSWER else 0

    cdef int on_response_trailers(self, const uint8_t *lines, size_t n) except -1:
        cdef size_t at = 0
        cdef ef_span span
        cdef int said = 0
        while at < n:
            at = ef_trailer_next(lines, n, at, &span)
            if at == 0:
                break
            if is_named(lines, &span, HASH_GRPC_STATUS, "grpc-status", 11):
                said += 1
                self.grpc_status = ef_grpc_status(lines + span.val_off, span.val_len) if said == 1 else -1
        return 0

    cdef int on_response_end(self) except -1:
        cdef AuthDecision decision = self.read_answer()
        self.up = None
        if decision is None or (decision.outcome == AUTH_PASSES and self.grpc_status != GRPC_OK):
            decision = AUTH_FAILURE
        return self.settle(decision, CUT_CANCEL)

    cdef int fail(self, Cut why) except -1:
        """What came of an answer before it failed may be a denial."""
        cdef AuthDecision decision
        if self.over:
            return 0
        decision = self.read_answer()
        if decision is None or decision.outcome != AUTH_DENIES:
            return self.settle(AUTH_FAILURE, why)
        self.lasting = False
        return self.settle(decision, why)

    cdef int reported_status(self) noexcept:
        return self.grpc_status

    cdef AuthDecision read_answer(self):
        """Of what has come; None: it says neither yes nor no."""
        cdef const uint8_t *data = self.answer.data
        cdef size_t n, here = self.answer.size
        cdef CheckAnswer said
        cdef AuthEdits edits
        cdef bytes body
        cdef bint whole
        if here < 5 or data[0] != 0:  # it is compressed, and nobody said that it may be
            return None
        n = <size_t>data[1] << 24 | <size_t>data[2] << 16 | <size_t>data[3] << 8 | data[4]
        here -= 5
        whole = here >= n and self.size <= CHECK_ANSWER
        said = CheckAnswer.__new__(CheckAnswer)
        if not said.read(data + 5, n if n < here else here, whole):
            if not said.denies():
                return None
            whole = False  # it has said so before it went wrong
            said.headers = []
        self.status = said.status or (403 if said.denies() else 200)
        if said.denies():
            if not 200 <= self.status <= 599:
                self.status = 403
            self.lines = denial_lines(said)
            body = said.body
            if not whole or PyBytes_GET_SIZE(body) > AUTH_ANSWER:
                self.lines, body = lines_but(self.lines, BODY_HEADERS), b""
            if PyBytes_GET_SIZE(self.lines) > AUTH_ANSWER:
                self.lines = b""
            self.lasting = whole and is_lasting(said)
            return make_decision(AUTH_DENIES, self.status, self.lines, body)
        if not whole or here != n or not said.passes():  # behind a message there is none
            return None
        edits = make_edits(said)
        if edits is None or edits.size > AUTH_ANSWER:
            return None
        self.lasting = is_lasting(said)
        return make_decision(AUTH_PASSES, 200, b"", b"", edits)
