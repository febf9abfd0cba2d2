# Backend sessions: resumes a backend's TLS session with the next connection, which then costs both sides less.
#
# In: sessions of connections to a verified backend. Out: one for the same backend and verification rules. The key is context (authorities,
# names, client certificate), requested name, and address. A rebuilt context has another serial, so a change is verified again. A backend
# that resumes shows no certificate. It has to again BACKEND_SESSION_MS after it last did, or when that one has expired, however often its
# session was renewed. A ticket may be used more than once (RFC 8446 C.4): an observer that could link two connections by it already can by
# the address.

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
