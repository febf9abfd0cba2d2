# Override: replaces answers by their status (ir.ResponseOverride).
#
# In: an answer of the proxy, or the head of a backend's. Out: the answer of the first override with its status. The backend's body is not
# forwarded: a body with a small declared length is read to its end, which keeps the connection; any other is cut off. gRPC calls keep their
# answers: their status is elsewhere. Must never replace an answer twice, or a part of one.

cdef class Override:
    def __init__(self, spec):
        self.statuses = list(spec.statuses)
        self.status = spec.status
        self.body = spec.body
        self.lines = b"content-type: %b\r\n" % spec.content_type.encode() if spec.content_type and spec.body else b""
        if spec.location:
            self.lines = b"location: %b\r\n" % spec.location.encode()

    cdef bint covers(self, int status) noexcept:
        cdef int first, last
        for first, last in self.statuses:
            if first <= status <= last:
                return True
        return False


cdef class Overrides:
    def __init__(self, specs):
        """specs: of ir.ResponseOverride."""
        self.ones = [Override(one) for one in specs]

    cdef Override find(self, int status):
        cdef Override one
        for one in self.ones:
            if one.covers(status):
                return one
        return None


cdef frozenset _REPLACED = BODY_HEADERS | {b"location"}


cdef Override override_of(Exchange ex, int status):
    """What is answered in place of an answer of that status; None: that one is."""
    cdef Traffic traffic = ex.rule.traffic if ex.rule is not None else None
    if traffic is None or traffic.overrides is None or ex.grpc or ex.overridden:
        return None
    return traffic.overrides.find(status)


cdef int respond_override(Exchange ex, Override found, int status, bytes lines) except -1:
    """`lines`: of the answer that it is in place of; what its body was is none of them any more."""
    cdef bytes body = found.body
    cdef int sent_status = found.status or status
    ex.overridden = True
    if sent_status == 204 or sent_status == 205 or sent_status == 304:
        body = b""
    ex.status = sent_status
    ex.bytes_out = PyBytes_GET_SIZE(body) if ex.method != EF_M_HEAD else 0
    return ex.respond(sent_status, found.lines + lines_but(lines, _REPLACED), body)


cdef bint override_backend(Exchange ex, ef_head *head) except -1:
    """Of an answer of a backend whose head is here; True: its client gets another one, now or when its body has been read."""
    cdef Override found = override_of(ex, head.response_status)
    if found is None or ex.up.tunnel or head.response_status < 200:
        return False
    ex.override = found
    ex.status = head.response_status
    return True


cdef int end_override(Exchange ex) except -1:
    """The backend is done with, or let go."""
    cdef Override found = ex.override
    ex.override = None
    ex.drop_upstream(CUT_CANCEL)
    return respond_override(ex, found, ex.status, (ex.cors_lines or b"") + ex.limit_lines())
