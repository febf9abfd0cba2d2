# Auth cache: cached answers of authorization services (ir.AuthCache).
#
# In: digests of check requests, and their decisions. Out: the same, until their time is over or the cache is full. The key of the digests
# is the service's own and ends with it. A client therefore cannot aim at an entry. A change of the unit removes its answers. Entries
# without a recent hit are evicted first; a hit does not extend their time. Denials have their own part: unauthorized clients can cause any
# number of them, and must not evict the entries of known clients.
# Must never keep an error, a body, or a line for one client (Set-Cookie).

cdef AuthDecision make_decision(AuthOutcome outcome, int status=0, bytes lines=b"", bytes body=b"", AuthEdits edits=None):
    cdef AuthDecision decision = AuthDecision.__new__(AuthDecision)
    decision.outcome = outcome
    decision.status = status
    decision.lines = lines
    decision.body = body
    decision.edits = edits
    return decision


cdef AuthDecision AUTH_FAILURE = make_decision(AUTH_FAILS)


cdef inline size_t cost_of(AuthDecision decision) noexcept:
    cdef size_t edits = decision.edits.cost() if decision.edits is not None else 0
    return AUTH_CACHE_ENTRY + <size_t>PyBytes_GET_SIZE(decision.lines) + edits


cdef class AuthAnswers:
    """Those of one kind."""

    def __cinit__(self, size_t limit):
        self.entries = OrderedDict()
        self.limit = limit

    cdef int keep(self, bytes key, AuthDecision decision) except -1:
        self.entries[key] = decision
        self.size += cost_of(decision)
        while self.size > self.limit:
            self.drop(next(iter(self.entries)))
        return 0

    cdef int drop(self, bytes key) except -1:
        cdef AuthDecision old = self.entries.pop(key, None)
        if old is not None:
            self.size -= cost_of(old)
        return 0


cdef class AuthCache:
    def __cinit__(self):
        self.passes = AuthAnswers(AUTH_CACHE_LIMIT - AUTH_CACHE_DENIALS)
        self.denials = AuthAnswers(AUTH_CACHE_DENIALS)

    def __dealloc__(self):
        out_free(&self.question)

    cdef AuthDecision find(self, bytes key, int64_t now):
        """What was said of it, if that is still believed."""
        cdef AuthAnswers among = self.passes
        cdef AuthDecision decision = among.entries.get(key)
        if decision is None:
            among = self.denials
            decision = among.entries.get(key)
        if decision is None:
            return None
        if decision.until <= now:
            among.drop(key)
            return None
        among.entries.move_to_end(key)
        return decision

    cdef int keep(self, bytes key, AuthDecision decision, int64_t until) except -1:
        self.passes.drop(key)
        self.denials.drop(key)
        if cost_of(decision) > AUTH_CACHE_ENTRY + AUTH_CACHE_LINES:
            return 0
        decision.until = until
        return (self.passes if decision.outcome == AUTH_PASSES else self.denials).keep(key, decision)
