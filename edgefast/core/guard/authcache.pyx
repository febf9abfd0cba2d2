# Answers of authorisation services that are believed for a while (ir.AuthCache).
#
# In: digests of questions, of a key that each service has of its own and that ends with it, so that nobody can aim at one and what a
# service said is forgotten when its unit changes; verdicts on them. Out: the same, until their time is over or there are too many: those
# that nobody asked for go first, which gives none more time. Denials have a part of their own: strangers can bring about any number of
# them, and are not to make a service be asked again for those whom it knows. Must never keep an error, a body, or a line that is for one
# client (Set-Cookie).

cdef AuthVerdict make_verdict(AuthOutcome outcome, int status=0, bytes lines=b"", bytes body=b"", AuthEdits edits=None):
    cdef AuthVerdict verdict = AuthVerdict.__new__(AuthVerdict)
    verdict.outcome = outcome
    verdict.status = status
    verdict.lines = lines
    verdict.body = body
    verdict.edits = edits
    return verdict


cdef AuthVerdict AUTH_FAILURE = make_verdict(AUTH_FAILS)


cdef inline size_t cost_of(AuthVerdict verdict) noexcept:
    cdef size_t edits = verdict.edits.cost() if verdict.edits is not None else 0
    return AUTH_CACHE_ENTRY + <size_t>PyBytes_GET_SIZE(verdict.lines) + edits


cdef class AuthAnswers:
    """Those of one kind."""

    def __cinit__(self, size_t limit):
        self.entries = OrderedDict()
        self.limit = limit

    cdef int keep(self, bytes key, AuthVerdict verdict) except -1:
        self.entries[key] = verdict
        self.size += cost_of(verdict)
        while self.size > self.limit:
            self.drop(next(iter(self.entries)))
        return 0

    cdef int drop(self, bytes key) except -1:
        cdef AuthVerdict old = self.entries.pop(key, None)
        if old is not None:
            self.size -= cost_of(old)
        return 0


cdef class AuthCache:
    def __cinit__(self):
        self.passes = AuthAnswers(AUTH_CACHE_LIMIT - AUTH_CACHE_DENIALS)
        self.denials = AuthAnswers(AUTH_CACHE_DENIALS)

    def __dealloc__(self):
        out_free(&self.question)

    cdef AuthVerdict find(self, bytes key, int64_t now):
        """What was said of it, if that is still believed."""
        cdef AuthAnswers among = self.passes
        cdef AuthVerdict verdict = among.entries.get(key)
        if verdict is None:
            among = self.denials
            verdict = among.entries.get(key)
        if verdict is None:
            return None
        if verdict.until <= now:
            among.drop(key)
            return None
        among.entries.move_to_end(key)
        return verdict

    cdef int keep(self, bytes key, AuthVerdict verdict, int64_t until) except -1:
        self.passes.drop(key)
        self.denials.drop(key)
        if cost_of(verdict) > AUTH_CACHE_ENTRY + AUTH_CACHE_LINES:
            return 0
        verdict.until = until
        return (self.passes if verdict.outcome == AUTH_PASSES else self.denials).keep(key, verdict)
