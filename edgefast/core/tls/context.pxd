# Context: the shared TLS state of connections of one kind.

cdef class TlsContext:
    cdef:
        ef_tls_context *context
        TlsContext whole        # whose context this is, under another scope; None: its own
        bint shares             # there is such a one, also when the garbage collector has cleared it
        ef_ticket_rule *rule    # of a server's scope: what its tickets are made with; NULL: it makes none
        bytes scope             # sessions are resumed within it
        readonly bint server
        bint asks               # a server: clients for their certificates
        public tuple authorities    # of a listener's rule for clients: name of its Secret, depth; None: there is no such rule
        uint64_t serial         # no other context of this process has or had it
        object __weakref__

    cdef int check(self, int result, str what) except -1
