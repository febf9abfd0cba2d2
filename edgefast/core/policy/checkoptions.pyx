# Check options: the settings of an HTTP authorization check that only some policies have (ir.ExtAuth; SecurityPolicy extAuth.http).
#
# In: ir.ExtAuth, a request to check, the answer of the service. Out: lines of the check; lines of the answer for clients.
# Must never: send two headers of one name where the service would take the client's.

# Statuses of responses that get headers of the service with headersToClientOn: SuccessAndRedirect (add_header of nginx).
cdef frozenset _ADDED_TO = frozenset((200, 201, 204, 206, 301, 302, 303, 304, 307, 308))
cdef tuple _ORIGINAL = (
    "x-original-url", "x-original-method", "x-original-uri", "x-real-ip", "x-scheme", "x-auth-request-redirect",
)
cdef dict _METHODS = {
    "GET": EF_M_GET, "HEAD": EF_M_HEAD, "POST": EF_M_POST, "PUT": EF_M_PUT, "PATCH": EF_M_PATCH, "DELETE": EF_M_DELETE,
    "OPTIONS": EF_M_OPTIONS,
}


cdef CheckOptions make_options(spec):
    """None: the check has no settings of this kind. spec: ir.ExtAuth."""
    cdef CheckOptions made = CheckOptions.__new__(CheckOptions)
    if spec.grpc or not (
        spec.method or spec.host or spec.original or spec.fixed or spec.denied is not None or spec.to_denied is not None
        or spec.to_client or spec.sign_in or spec.path_template
    ):
        return None
    made.method = spec.method.encode()
    made.method_id = _METHODS[spec.method] if spec.method else EF_M_GET
    made.host = spec.host.encode()
    made.original = spec.original
    made.lines = b"".join([b"%b: %b\r\n" % (name.encode(), value.encode()) for name, value in spec.fixed])
    made.names = frozenset([name.lower() for name, _ in spec.fixed])
    made.denied = frozenset(spec.denied) if spec.denied is not None else None
    made.to_denied = names_but(spec.to_denied, _NEVER_TO_CLIENT) if spec.to_denied is not None else None
    made.to_client = names_but(spec.to_client, _NEVER_TO_CLIENT) if spec.to_client else None
    made.always = spec.to_client_always
    made.path = CheckPath(spec.path_template) if spec.path_template else None
    made.sign_in = SignIn(spec.sign_in) if spec.sign_in else None
    return made


cdef frozenset _NEVER_TO_CLIENT = frozenset([name.decode() for name in _NOT_PASSED_ON]) | {"te", "expect", "http2-settings", "proxy-connection"}


cdef class CheckOptions:
    cdef int write(self, Out *out, RuleAuthFlow flow, bint whole) except -1:
        """Write the lines that describe the request in the check, and fixed lines. Not `whole`: for a key, which has the client's address by name only."""
        cdef Exchange ex = flow.ex
        cdef Routed *at = &flow.at
        cdef ef_head *head = at.head
        cdef bytes scheme = b"https" if ex.https else b"http"
        cdef bytes target, authority, lines = self.lines
        if self.original:
            target = original_target(at.base, head, at.query, at.query_len)
            authority = at.base[head.authority_off:head.authority_off + head.authority_len]
            lines += b"x-original-url: %b://%b%b\r\nx-original-method: %b\r\nx-original-uri: %b\r\nx-scheme: %b\r\n" % (
                scheme, authority, target, at.base[head.method_off:head.method_off + head.method_len], target, scheme,
            )
            if "x-auth-request-redirect" not in self.names:
                lines += b"x-auth-request-redirect: %b\r\n" % target
            if whole:
                lines += b"x-real-ip: %b\r\n" % ex.client
        out_reserve(out, PyBytes_GET_SIZE(lines))
        out_bytes(out, lines)
        return 0

    cdef bytes denial_lines(self, const uint8_t *base, ef_head *head):
        """For the client of a request that is denied; to_denied is there. The redirect to a sign-in page has the cookies of the service."""
        cdef bytes lines = lines_named(base, head, self.to_denied)
        if self.to_client is not None and (self.always or (self.sign_in is not None and head.response_status == 401)):
            lines += lines_beside(lines_named(base, head, self.to_client), lines)
        return lines

    cdef AuthEdits edits(self, const uint8_t *base, ef_head *head):
        """For the response to a request that passes; None: nothing."""
        cdef AuthEdits made
        cdef bytes lines = lines_named(base, head, self.to_client) if self.to_client is not None else b""
        if not lines:
            return None
        made = AuthEdits.__new__(AuthEdits)
        made.request = []
        made.answer = [(line.partition(b":")[0], ACTION_APPEND, line) for line in lines.splitlines(True)]
        made.on = None if self.always else _ADDED_TO
        made.size = PyBytes_GET_SIZE(lines)
        return made


cdef bytes lines_named(const uint8_t *base, ef_head *head, HeaderNames names):
    """Lines of a head with these names, names in lower case."""
    cdef list lines = []
    cdef const ef_span *span
    cdef uint16_t i
    for i in range(head.n_spans):
        span = &head.spans[i]
        if not span.flags & (EF_SPAN_HOP | EF_SPAN_NOMINATED) and names.has(base + span.name_off, span.name_len):
            lines.append(b"%b: %b\r\n" % (
                base[span.name_off:span.name_off + span.name_len].lower(), base[span.val_off:span.val_off + span.val_len]
            ))
    return b"".join(lines)
