# Fault: injected faults of admitted requests: a delay, or an answer instead of the backend's (ir.Fault).
#
# In: an admitted request, before its limits. Out: the same, at once or later, or its end. A delayed request holds a copy of its head and
# the buffered body that every request may hold. A worker delays at most FAULT_DELAYS at a time; beyond that no request is delayed. The
# request's timeout includes the delay.
# Must never affect a request twice.

cdef class InjectedFault:
    def __init__(self, spec):
        """spec: ir.Fault."""
        self.delay = min(spec.delay, FAULT_DELAY_MS)
        self.delay_share = spec.delay_share if spec.delay > 0 else 0
        self.status = spec.status
        self.grpc_status = spec.grpc_status if spec.grpc_status is not None else -1
        self.abort_share = spec.abort_share

    cdef bint inject(self, Exchange ex, Routed *at, const ef_request *request) except -1:
        """False: the request goes on."""
        cdef Engine engine = ex.engine
        cdef RuleAuthFlow flow
        cdef bint waits = self.delay_share and ef_random(engine.random) % 1000000 < self.delay_share
        cdef bint aborts = self.refuses(ex) and ef_random(engine.random) % 1000000 < self.abort_share
        ex.faulted = True
        if not waits or engine.delayed >= FAULT_DELAYS:
            if aborts:
                self.refuse(ex)
            return aborts
        ex.flags |= F_DELAYED
        engine.count(G_FAULTS_DELAYED)
        engine.delayed += 1
        flow = RuleAuthFlow.__new__(RuleAuthFlow)
        flow.ex = ex
        flow.at = at[0]
        flow.request = request[0]
        flow.services = []
        flow.lines = b""
        flow.fault = self
        flow.aborts = aborts
        ex.auth = flow
        ex.body.replayable = True
        flow.wait(AUTH_DELAY_WAIT)
        flow.until = engine.wheel.now + self.delay
        ex.ask_at = flow.until
        ex.body.enter(BODY_GATHERING)  # AUTH_TIMER comes when it is over
        ex.rearm()
        return True

    cdef bint refuses(self, Exchange ex) noexcept:
        """There is an answer for such a request."""
        return self.abort_share and (self.status != 0 or (ex.grpc and self.grpc_status >= 0))

    cdef int refuse(self, Exchange ex) except -1:
        ex.engine.count(G_FAULTS_ABORTED)
        if not ex.grpc or self.grpc_status < 0:
            return ex.answer(self.status, b"", F_FAULT)
        ex.flags |= F_FAULT
        ex.grpc_status = self.grpc_status
        own = b"content-type: application/grpc\r\ngrpc-status: %d\r\ngrpc-message: fault injection\r\n" % self.grpc_status
        return respond_grpc(ex, self.status or 503, own, ex.cors_lines or b"")
