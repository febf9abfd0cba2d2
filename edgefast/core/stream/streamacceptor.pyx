# Connections of a TCP port: from its queue to passages.

cdef class StreamAcceptor(Acceptor):
    cdef Session admit(self, const NetAddress *peer):
        cdef StreamListener listener = self.port.only
        cdef Passage passage
        if listener is None:
            self.engine.count(G_STREAM_REFUSED + REFUSED_ROUTE)
            return None
        passage = Passage.__new__(Passage, self.engine, listener)
        return passage.down

    cdef void on_turned_away(self) noexcept:
        self.engine.count(G_STREAM_REFUSED + REFUSED_LIMIT)

    cpdef int retire(self) except -1:
        """Stop, for good: the port is served otherwise. What has begun goes on, as tunnels of HTTP do."""
        return self.stop()
