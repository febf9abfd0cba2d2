# Listener filters: apply to every request of a listener before it is routed, even if no rule matches it.
#
# In: a request with a known listener, the units of its filters (ir.Listener.filters).
# Out: the same request on its way to a rule (Exchange.seek), with the header lines of services. Rules may match on these lines, but never
# on a Host of a service. Or its answer: a denial, or 500 where a unit is broken or missing. Filters run in their order; the first that
# refuses ends them.
# Source: Gateway API Listener.filters, GEP-5224. Must never let a request reach a rule before all of them have answered.

cdef class ListenerFilterChain:
    def __init__(self, Engine engine, names):
        self.policies = [engine.tables.policy(name) for name in names]

    cdef PolicyResult filter(self, Exchange ex, Routed *at, ef_request *request) except *:
        """Afterwards it is answered, waits, or goes on."""
        cdef PortTable port = ex.down.peer.port
        cdef RuleAuthFlow flow
        cdef AuthService service
        cdef LivePolicy policy
        cdef Rule rule
        cdef ef_hit hit
        ex.since = ex.engine.wheel.now
        ex.idle_timeout = ex.settings.stream_idle_timeout
        if ex.raw.size:  # nor does a log show a credential of a request that comes to no rule
            rule = port.match(ex.listener, at.base + at.head.host_off, at.head.host_len, request, &hit)
            if rule is not None and rule.policy_chain is not None:
                rule.policy_chain.redact(ex, at.base, at.head, at.query, at.query_len)
        port.near_host = NULL  # the table may be another one when they have spoken
        flow = ListenerAuthFlow.__new__(ListenerAuthFlow)
        flow.services = []
        ex.sets = []
        for policy in self.policies:
            service = policy.service
            if policy.status or service is None:
                policy.refuse(ex, policy.status or 500, None, F_INVALID)
                return ANSWERED
            flow.services.append(service)
            ex.sets.append(service.sets)
            if service.body and ex.body.expected and (flow.most == 0 or service.body < flow.most):
                flow.most = service.body
        strip_headers(ex.sets, at, request)
        flow.ex = ex
        flow.policies = self.policies
        flow.at = at[0]
        flow.request = request[0]
        flow.lines = b""
        return flow.begin()


cdef class ListenerAuthFlow(RuleAuthFlow):
    cdef int admit(self) except -1:
        """All have spoken: with what they said it is routed."""
        cdef ListenerAuthFlow held = self  # its exchange may have been all that held it
        cdef Exchange ex = self.ex
        self.at.given = self.at.head.head_len
        if self.lines:
            self.keep(self.lines)
            ex.filter_lines = self.lines
        self.at.hidden = 0  # what clients say in their words' place nobody hears
        if ex.auth_result is not None and ex.body.trailers.size:
            ex.auth_result.drop_trailers(&ex.body.trailers)
        if self.lent:
            units_of(ex.engine).auth_bodies.give_back(self)
            ex.body.shown = True
        ex.auth = self.ex = None
        ex.body.enter(BODY_HELD)
        ex.route(&held.at, &held.request)
        if ex.finished or ex.auth is not None:
            return 0
        if ex.body.done:
            ex.bound_answer()
        return 0 if ex.down.handing else ex.allow_body()  # it was waited for
