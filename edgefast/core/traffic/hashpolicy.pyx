# Hash policy: the key by which requests find the same endpoint again (ir.HashPolicy; csrc/pick.h has the choice).
#
# In: a request on its way to a backend, after its policies. Out: its key, and the cookie for a client without one. A request without the
# hashed parts has no key. The key is the same in every worker, on every machine, after every restart. A client that knows the hashed value
# can compute the endpoint: the key is no secret and decides nothing else.
# Must never read more of a request than its head.

cdef uint64_t hash_same(bytes value) noexcept:
    """The same in every process."""
    return ef_pick_key(<const uint8_t *>PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))


cdef class HashPolicy:
    def __init__(self, spec):
        """spec: ir.HashPolicy, of which one field is set."""
        self.source = spec.source
        self.headers = [HeaderNames((name,)) for name in spec.headers]
        self.params = [name.encode() for name in spec.params]
        self.parts = [
            (one.kind, HeaderNames((one.name,)) if one.kind == "header" else one.name.encode()) for one in spec.parts
        ]
        if spec.cookie is not None:
            self.cookie = spec.cookie.name.encode()
            if spec.cookie.ttl is not None:
                age = "; Max-Age=%d" % spec.cookie.ttl if spec.cookie.ttl else ""
                self.new_cookies = ("%s%s\r\n" % (age, spec.cookie.attributes)).encode()

    cdef int read(self, Exchange ex, const uint8_t *base, const ef_head *head, const uint8_t *query, size_t query_len) except -1:
        """Note the key of a request, and the line with its client's new cookie."""
        cdef bytes value = None
        cdef list found
        if self.parts:
            value = self.in_parts(ex, base, head, query, query_len)
        elif self.source:
            value = ex.client
        elif self.cookie is not None:
            value = self.in_cookies(self.cookie, base, head)
            if value is None and self.new_cookies is not None:
                value = self.make_cookie(ex)
        else:
            found = self.in_headers(self.headers, base, head, ex.settings.drop_flags) if self.headers else self.in_params(
                self.params, query, query_len
            )
            value = b"\0".join(found) if found else None
        if value is not None:
            ex.balance = BY_KEY
            ex.hash_key = hash_same(value)
        return 0

    cdef bytes in_parts(self, Exchange ex, const uint8_t *base, const ef_head *head, const uint8_t *query, size_t query_len):
        """All parts in the order of the policy; one that is not there takes its place with nothing. None: none is there."""
        cdef list out = [], found
        cdef bytes value
        cdef str kind
        cdef bint some = False
        for kind, named in self.parts:
            value = None
            if kind == "source":
                value = ex.client
            elif kind == "host":
                value = base[head.host_off:head.host_off + head.host_len].lower()
            elif kind == "target":
                value = base[head.target_off:head.target_off + head.target_len]
            elif kind == "path":
                value = base[head.target_off:head.target_off + head.path_len]
            elif kind == "query":
                value = query[:query_len] if query != NULL else None
            elif kind == "cookie":
                value = self.in_cookies(named, base, head)
            else:
                found = self.in_headers([named], base, head, ex.settings.drop_flags) if kind == "header" else self.in_params(
                    [named], query, query_len
                )
                value = b"\0".join(found) if found else None
            some = some or value is not None
            out.append(value or b"")
        return b"\0".join(out) if some else None

    cdef list in_headers(self, list headers, const uint8_t *base, const ef_head *head, uint8_t drop_flags):
        """Of each name, in the order of the policy, its lines in theirs; a name that is not there takes its place with nothing. What goes no
        further (`drop_flags`) is not there."""
        cdef const ef_span *span
        cdef HeaderNames names
        cdef list found = []
        cdef bint some = False
        cdef uint16_t i
        for names in headers:
            for i in range(head.n_spans):
                span = &head.spans[i]
                if not span.flags & drop_flags and names.has(base + span.name_off, span.name_len):
                    found.append(base[span.val_off:span.val_off + span.val_len])
                    some = True
            found.append(b"")
        return found if some else None

    cdef list in_params(self, list params, const uint8_t *query, size_t query_len):
        """Of each name the first value, percent-decoded; "+" is itself."""
        cdef dict found = {}
        cdef bytes one, name, value
        if query == NULL:
            return None
        for one in query[:query_len].split(b"&"):
            name, _, value = one.partition(b"=")
            if b"%" in name:
                name = unquote_to_bytes(name)
            if name in params and name not in found:
                found[name] = unquote_to_bytes(value)
        return [found.get(name, b"") for name in params] if found else None

    cdef bytes in_cookies(self, bytes name, const uint8_t *base, const ef_head *head):
        """The first that is not empty."""
        cdef CookieLook look
        cdef const uint8_t *value = NULL
        cdef size_t n = 0
        begin_cookies(&look, base, head)
        while next_cookie(&look, name, &value, &n):
            if n:
                return value[:n]
        return None

    cdef bytes make_cookie(self, Exchange ex):
        """For a client that has none: any value does, this request is the first that goes where it says."""
        cdef bytes value = b"%016x" % ef_random(ex.engine.random)
        ex.new_cookies = cookie_line(self.cookie, value, self.new_cookies)
        return value
