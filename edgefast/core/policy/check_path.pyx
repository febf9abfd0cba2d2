# Check path: the path and query of a check, made of parts of the request (SecurityPolicy extAuth.http.pathTemplate).
#
# In: the template (ir.ExtAuth.path_template), a request. Out: the target of the check's request line. Bytes that a target cannot have are
# percent-encoded, so that every request has one.
# Must never: let text of the request end the request line.

cdef class CheckPath:
    def __init__(self, str template):
        found = _VARIABLE.split(template)
        self.parts = [part if i % 2 else part.encode() for i, part in enumerate(found)]

    cdef bytes expand(self, Exchange ex, Routed *at):
        cdef bytes target = original_target(at.base, at.head, at.query, at.query_len), made
        cdef uint8_t byte
        values = {
            "authority": at.base[at.head.authority_off:at.head.authority_off + at.head.authority_len],
            "escapedTarget": escape_target(target),
            "host": at.base[at.head.host_off:at.head.host_off + at.head.host_len].lower(),
            "method": at.base[at.head.method_off:at.head.method_off + at.head.method_len],
            "path": at.path[:at.path_len],
            "query": at.query[:at.query_len] if at.query != NULL else b"",
            "scheme": b"https" if ex.https else b"http",
            "target": target,
        }
        made = b"".join([part if isinstance(part, bytes) else values[part] for part in self.parts])
        for byte in made:
            if byte <= 32 or byte >= 127 or byte == c"#":
                return b"".join([b"%c" % c if 32 < c < 127 and c != 35 else b"%%%02X" % c for c in made])
        return made
