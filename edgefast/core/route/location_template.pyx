# Location template: the Location of a redirect from parts of the request (HTTPRouteFilter redirect.location).
#
# In: the template, an expression, a routed request. Out: the Location without the request's query, or None: the expression finds nothing in
# the path, or the result is no Location: it is too long, contains a byte that no URL has, or begins with "//" where the template has one "/".
# Must never let a part of the request reach the name of the host, except its own Host.

cdef object _VARIABLE_OR_GROUP = re.compile(r"\{([A-Za-z]+)\}|\\([0-9])")


cdef class LocationTemplate:
    def __init__(self, Engine engine, str template, str pattern):
        cdef Py_ssize_t at = 0
        self.parts = []
        self.regex = engine.tables.byte_regex(pattern.encode()) if pattern else None
        for found in _VARIABLE_OR_GROUP.finditer(template):
            self.parts.append(template[at:found.start()].encode())
            self.parts.append(found[1] if found[1] is not None else int(found[2]))
            at = found.end()
        self.parts.append(template[at:].encode())
        self.relative = template.startswith("/")

    cdef bytes expand(self, Exchange ex, Routed *at):
        cdef bytes path = at.path[:at.path_len] if at.path[0] == c"/" else b"/", result
        cdef list made = []
        cdef uint8_t byte
        match = None
        if self.regex is not None:
            match = self.regex.search(path)
            if match is None:
                return None
        for part in self.parts:
            if isinstance(part, bytes):
                made.append(part)
            elif isinstance(part, int):
                made.append((match.group(part) or b"") if match is not None else b"")
            else:
                made.append(self.value(ex, at, path, part))
        result = b"".join(made)
        if PyBytes_GET_SIZE(result) > PATH_REWRITTEN or (self.relative and (result[1:2] == b"/" or result[1:2] == b"\\")):
            return None
        for byte in result:
            if byte <= 32 or byte >= 127:
                return None
        return result

    cdef bytes value(self, Exchange ex, Routed *at, bytes path, str name):
        cdef const uint8_t *query = NULL
        cdef bytes target
        if name == "host":
            return at.base[at.head.host_off:at.head.host_off + at.head.host_len].lower()
        if name == "authority":
            return at.base[at.head.authority_off:at.head.authority_off + at.head.authority_len]
        if name == "scheme":
            return b"https" if ex.https else b"http"
        if name == "path":
            return path
        if name == "query":
            return at.query[:at.query_len] if at.query != NULL and not ex.secret_query else b""
        if not ex.secret_query:  # a query with a credential is shown to nobody
            query = at.query
        target = original_target(at.base, at.head, query, at.query_len)
        return b"".join([b"%c" % c if c in _UNESCAPED else b"%%%02X" % c for c in target]) if name == "escapedTarget" else target


# As a value in a query: what RFC 3986 leaves unreserved.
cdef frozenset _UNESCAPED = frozenset(b"-_.~ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
