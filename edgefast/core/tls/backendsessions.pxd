# Backend sessions: TLS sessions of backends, for the next connection to each.

cdef class BackendSession:
    cdef:
        void *session
        int64_t verified_at     # ms of the wheel: the full handshake that it goes back to


cdef class BackendSessions:
    cdef:
        object kept             # OrderedDict by use: (serial of the context, name, host, port) -> BackendSession

    cdef BackendSession find(self, tuple key, int64_t now)
    cdef int keep(self, tuple key, void *session, int64_t verified_at) except -1
    cdef int forget(self, tuple key) except -1
