# Auth call: one call of an authorization service, for one request or for many with the same check.

cdef class AuthCall(UpstreamUser):
    cdef:
        AuthService service
        Cluster cluster
        dict flows             # RuleAuthFlow -> us, who waits for it, and since when
        RuleAuthFlow shown        # whose request it is; None: it waits no more
        RuleAuthFlow notified         # the same, while anybody waits: whose trace the service was told
        bytes spoken            # protocol of the last try; None: there was none
        bytes key               # under which others may join; None: nobody may
        bytes source            # origin() of who asked first
        Out head
        Out trailers            # none, ever: connections ask for them
        Out answer              # body of the answer, for a client that is denied
        unsigned method
        uint64_t announced      # bytes of the request's body that go with it
        bint shows              # the request's body goes with it
        uint32_t tries
        AuthOutcome outcome     # as the answer's head has it
        int status
        bytes lines             # as AuthDecision has them
        AuthEdits edits         # the same of the response to a request that passes; None: nothing
        bint bodiless           # its client does not get the body of a denial
        bint lasting            # the answer may be believed for a while
        size_t size             # bytes of the answer's body
        uint8_t span_id[8]      # of the call in its first asker's trace: what the service is told
        bint over

    cdef int open(self, RuleAuthFlow flow) except -1
    cdef int write_head(self, RuleAuthFlow flow) except -1
    cdef int record(self, RuleAuthFlow flow, AuthOutcome outcome, bytes error) except -1
    cdef int put_id(self, Exchange ex) except -1
    cdef int write_body(self) except -1
    cdef int join(self, RuleAuthFlow flow) except -1
    cdef int leave(self, RuleAuthFlow flow) except -1
    cdef int ask(self) except -1
    cdef int fail(self, Cut why) except -1
    cdef int reported_status(self) noexcept
    cdef int64_t flows_since(self, RuleAuthFlow flow) except -1
    cdef bint is_for_all(self, AuthDecision decision) noexcept
    cdef int settle(self, AuthDecision decision, Cut why) except -1
