# Check options: what an HTTP authorization service is asked with and how its answer is read, where the policy differs from the defaults.

cdef class CheckOptions:
    cdef:
        bytes method            # of the check; b"": the request's
        unsigned method_id      # EF_M_* of it
        bytes host              # of the check; b"": the request's
        bint original           # X-Original-* describe the request, not X-Forwarded-*
        bytes lines             # fixed lines of the check
        frozenset names         # of these, in lower case
        frozenset denied        # statuses that deny, others are failures; None: all below 500
        HeaderNames to_denied   # of a denial, for its client; None: all, and the body
        HeaderNames to_client   # of an answer that passes, for the client; None: nothing
        bint always             # ... whatever the status of the response
        CheckPath path          # in place of the service's path; None: it has no variables
        SignIn sign_in          # None: 401 stays 401

    cdef int write(self, Out *out, RuleAuthFlow flow, bint whole) except -1
    cdef bytes denial_lines(self, const uint8_t *base, ef_head *head)
    cdef AuthEdits edits(self, const uint8_t *base, ef_head *head)
