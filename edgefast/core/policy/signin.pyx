# Sign-in: redirects a client without a valid credential to a sign-in page, in place of 401 (SecurityPolicy extAuth.http.signIn).
#
# In: the template of the address (ir.ExtAuth.sign_in), a request that is refused with 401. Out: 302 with its Location, and the lines of
# the refusal. Text of the request in the Location is what the head scan allows in a target and in a Host.
# Must never: redirect a gRPC call, which gets its status.

cdef object _VARIABLE = re.compile(r"\{([A-Za-z]+)\}")
# As set_escape_uri of nginx' module set-misc: these bytes, letters and digits stay.
cdef frozenset _STAY = frozenset(b"-_.~!*'()@$,|`ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


cdef bytes escape_target(bytes text):
    """As a value in a query."""
    return b"".join([b"%c" % c if c in _STAY else b"%%%02X" % c for c in text])


cdef class SignIn:
    def __init__(self, str template):
        found = _VARIABLE.split(template)
        self.parts = [part if i % 2 else part.encode() for i, part in enumerate(found)]

    cdef bytes line(self, Exchange ex, Routed *at):
        """Its Location."""
        cdef bytes target = original_target(at.base, at.head, at.query, at.query_len)
        values = {
            "authority": at.base[at.head.authority_off:at.head.authority_off + at.head.authority_len],
            "clientAddress": ex.client,
            "escapedTarget": escape_target(target),
            "host": at.base[at.head.host_off:at.head.host_off + at.head.host_len].lower(),
            "scheme": b"https" if ex.https else b"http",
            "target": target,
        }
        return b"location: %b\r\n" % b"".join([part if isinstance(part, bytes) else values[part] for part in self.parts])


cdef int refuse_client(RuleAuthFlow flow, LivePolicy policy, bytes word, bytes challenge) except -1:
    """A client without a valid credential: 401, or the redirect to its sign-in page. `word`: for the log."""
    cdef SignIn sign_in = sign_in_of(flow)
    if sign_in is None:
        return policy.refuse(flow.ex, 401, word, F_DENIED, challenge)
    return policy.refuse(flow.ex, 302, word, F_DENIED, sign_in.line(flow.ex, &flow.at) + challenge)


cdef SignIn sign_in_of(RuleAuthFlow flow):
    """Where clients without a credential go; None: they get 401."""
    cdef AuthService service
    if flow.ex.grpc:
        return None
    for service in flow.services:
        if service.options is not None and service.options.sign_in is not None:
            return service.options.sign_in
    return None
