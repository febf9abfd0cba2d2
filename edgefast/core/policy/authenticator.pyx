# Authenticator: API keys and basic auth, in order before authorization services (ir.ApiKeyAuth, ir.BasicAuth); tokens.pyx has JWTs.
#
# In: a request before admission. Out: the client, for log and backend, or 401: no credential, a wrong one, or two that differ. A password
# check for an unknown name takes as long as for a known one.
# Must never keep or show a credential: a verified one is kept as a digest under a key that dies with the worker.

cdef bytes user_line(bytes name, bytes user):
    return b"%b: %b\r\n" % (name, user)


cdef bytes forward_name(str name):
    """Of the header that says who the client is. Raises ValueError where it would be somebody else's to say."""
    low = name.lower()
    if low.replace("_", "-") in _NEVER_SET or low.startswith("x-edge-"):
        raise ValueError(f"{name} does not authenticate a client")
    return low.encode()


cdef class Authenticator:
    cdef bint knows(self, Exchange ex, Routed *at, ef_request *request, LivePolicy policy, void **memory) except *:
        """The client of a request is known. Its head may be a copy afterwards, which the caller frees (`memory`). False: `authenticate` decides."""
        return False

    cdef ProofResult authenticate(self, RuleAuthFlow flow, LivePolicy policy) except *:
        raise NotImplementedError

    cdef list all_places(self):
        """Where requests carry their credentials: no log line and no span shows these."""
        return [self.places]

    cdef ProofResult accept(self, RuleAuthFlow flow, bytes user) except *:
        flow.ex.user = json_encode(user.decode("utf-8", "replace"))
        if self.forward:
            flow.lines += user_line(self.forward, user)
        return PROVEN

    cdef ProofResult deny(self, RuleAuthFlow flow, LivePolicy policy, bytes word) except *:
        """The word is for the log (policy_rule)."""
        cdef AnyGroup group = group_of(flow, policy)
        if group is not None:
            if group.defers(policy, word, self.challenge):
                return PASSED_OVER
            refuse_client(flow, group.refuser, group.word, group.challenge)
            return REFUSED
        refuse_client(flow, policy, word, self.challenge)
        return REFUSED


# Why nobody is let in, in JSON: what is all that a log says of a key or a password. A name that nobody has is no other word.
cdef bytes _NO_PROOF = b'"missing"', _MANY_PROOFS = b'"several"', _BAD_PROOF = b'"malformed"', _WRONG_PROOF = b'"wrong"'


cdef class ApiKeys(Authenticator):
    def __init__(self, spec):
        """spec: ir.ApiKeyAuth."""
        self.places = CredentialExtractor(spec.places)
        self.clients = {digest: client.encode() for digest, client in spec.clients}
        self.forward = forward_name(spec.forward_header)
        self.sanitize = spec.sanitize
        names = [name.lower() for name, _ in spec.places.headers] if spec.sanitize else []
        if spec.forward_header:
            names.append(spec.forward_header.lower())
        self.sets = HeaderNames(dict.fromkeys(names)) if names else None
        self.challenge = b'www-authenticate: ApiKey realm="gateway"\r\n'

    cdef ProofResult authenticate(self, RuleAuthFlow flow, LivePolicy policy) except *:
        cdef CredentialSource at = carried_by(&flow.at, flow.ex)
        cdef bytes key = self.places.find(&at, None), client = None
        if key is None or self.places.several:
            return self.deny(flow, policy, _MANY_PROOFS if self.places.several else _NO_PROOF)
        client = self.clients.get(sha256(key).digest())
        if client is None:
            return self.deny(flow, policy, _WRONG_PROOF)
        if self.sanitize:
            self.places.strip(flow)
        return self.accept(flow, client)


cdef object _BASIC = ir.CredentialExtractors(headers=(("authorization", "Basic "),))


cdef class Passwords(Authenticator):
    def __init__(self, Engine engine, spec):
        """spec: ir.BasicAuth."""
        self.engine = engine
        self.places = CredentialExtractor(_BASIC)
        self.users = {name.encode(): kept.encode() for name, kept in spec.users}
        self.decoys = find_decoys(self.users.values())
        self.forward = forward_name(spec.forward_header)
        self.sets = HeaderNames((spec.forward_header,)) if spec.forward_header else None
        self.challenge = b'www-authenticate: Basic realm="gateway", charset="UTF-8"\r\n'

    cdef ProofResult authenticate(self, RuleAuthFlow flow, LivePolicy policy) except *:
        cdef CredentialSource at
        cdef bytes given, pair, user, password, kept, proof
        cdef object proven = flow.proven
        if proven is not None:  # by the thread, of this pair
            flow.proven = None
            return self.accept(flow, proven) if proven else self.deny(flow, policy, _WRONG_PROOF)
        if flow.unproven:
            flow.unproven = False
            policy.refuse(flow.ex, 503, None, F_OVERFLOW, b"retry-after: 1\r\n")
            return REFUSED
        at = carried_by(&flow.at, flow.ex)
        given = self.places.find(&at, None)
        if given is None or self.places.several:
            return self.deny(flow, policy, _MANY_PROOFS if self.places.several else _NO_PROOF)
        pair = read_pair(given)
        if pair is None:
            return self.deny(flow, policy, _BAD_PROOF)
        user, _, password = pair.partition(b":")
        kept = self.users.get(user)
        if self.decoys and not (kept is not None and is_quick(kept) and verify(kept, password)):
            if kept is not None and is_quick(kept):  # a wrong password: it takes the time of the other hashes too
                kept = None
            proof = units_of(self.engine).passwords.digest(kept or self.decoys[0], pair)
            if kept is not None and units_of(self.engine).passwords.knows(proof):
                return self.accept(flow, user)
            if flow.ex.down.handing and flow.ex.down.defers:  # a request that is taken back in the same read costs no time
                return DEFERRED
            flow.job = units_of(self.engine).passwords.submit(
                kept or b"", password, flow.ex.origin() or b"", flow, user if kept is not None else b"", proof, self.decoys
            )
            if flow.job is None:  # others wait already, or too many of this client's
                policy.refuse(flow.ex, 503, None, F_OVERFLOW, b"retry-after: 1\r\n")
                return REFUSED
            return UNDECIDED
        if verify(kept or _NOBODY, password) and kept is not None:
            return self.accept(flow, user)
        return self.deny(flow, policy, _WRONG_PROOF)


cdef bytes _NOBODY = b"{SHA}" + b64encode(bytes(20))


cdef bytes read_pair(bytes value):
    """Of what stands behind "Basic " (RFC 7617 2); None: there is none."""
    if value is None or PyBytes_GET_SIZE(value) > 4 * PASSWORD_PAIR // 3 + 4:
        return None
    try:
        pair = a2b_base64(value, strict_mode=True)
    except ValueError:
        return None
    return pair if b":" in pair else None
