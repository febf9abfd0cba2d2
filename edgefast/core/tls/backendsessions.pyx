# TLS sessions of backends: what one has given goes back to it with the next connection, which costs both sides less then.
#
# In: sessions of connections whose backend has been verified. Out: one for a backend and the rules that it was verified by: context
# (authorities, names, client certificate), name that is asked for, address. A context that was made anew has another serial, so what
# changed is verified again. A backend that resumes shows no certificate: BACKEND_SESSION_MS after it did, or when that one has
# expired, it has to, however often its session was renewed. A ticket may be used more than once: who could tell from it that two
# connections have the same client (RFC 8446 C.4) knows that one by its address.

cdef class BackendSession:
    def __dealloc__(self):
        if self.session != NULL:
            ef_tls_session_free(self.session)


cdef class BackendSessions:
    def __cinit__(self):
        self.kept = OrderedDict()

    cdef BackendSession find(self, tuple key, int64_t now):
        cdef BackendSession found = self.kept.get(key)
        if found is None:
            return None
        if now - found.verified_at >= BACKEND_SESSION_MS or ef_tls_session_over(found.session):
            del self.kept[key]
            return None
        self.kept.move_to_end(key)
        return found

    cdef int keep(self, tuple key, void *session, int64_t verified_at) except -1:
        """The session is given away. Beyond BACKEND_SESSIONS the one goes that was not used for longest."""
        cdef BackendSession kept = BackendSession.__new__(BackendSession)
        kept.session = session
        kept.verified_at = verified_at
        self.kept[key] = kept
        self.kept.move_to_end(key)
        if len(self.kept) > BACKEND_SESSIONS:
            self.kept.popitem(last=False)
        return 0

    cdef int forget(self, tuple key) except -1:
        """It did not lead to a connection: the next one begins anew."""
        self.kept.pop(key, None)
        return 0
