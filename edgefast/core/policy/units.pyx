# Policy units: makes policies, chains and filters for the tables, and owns what the policies of one worker share.
#
# In: specs of the table. Out: objects that the fast path calls (hooks.pxd). A worker whose policies verify no tokens has no token verifier.

cdef class PolicyUnits(PolicyHooks):
    def __cinit__(self, Engine engine, make_token_verifier, login_services, passwords, is_signed):
        """make_token_verifier, login_services: as in Engine. passwords: computes slow hashes (passwords.py). is_signed: verifies a signature by the TLS library."""
        self.engine = engine
        self.auth_cache = AuthCache()
        self.auth_bodies = AuthBodyBuffer()
        self.names = CredentialNames()
        self.passwords = passwords
        self.is_signed = is_signed
        self.make_token_verifier = make_token_verifier
        self.login_services = login_services

    cdef Policy make_policy(self, str name):
        return LivePolicy(self.engine, name)

    cdef PolicyChain make_chain(self, object spec):
        return RulePolicyChain(self.engine, spec)

    cdef ListenerFilters make_filters(self, object names):
        return ListenerFilterChain(self.engine, names)

    cdef ConnectionPolicies make_connection_policies(self, object names):
        return ConnectionPolicyChain(self.engine, names)

    cdef Fault make_fault(self, object spec):
        return InjectedFault(spec)

    cdef ErrorService make_error_service(self, object spec):
        return HttpErrorService(self.engine, spec)

    cdef int count_extractors(self, list places, int by) except -1:
        return self.names.count(places, by)

    cdef bint has_extractors(self) noexcept:
        return self.names.any()

    cdef int cover_unrouted(self, Exchange ex) except -1:
        return cover_unrouted(ex)

    cdef object get_token_verifier(self):
        """Return the worker's token verifier, made at the first call."""
        if self.tokens is None:
            if self.make_token_verifier is None:
                from edgefast.core.policy.token_verification import TokenVerifier
                self.tokens = TokenVerifier(self.engine.loop, lambda source: None)
            else:
                self.tokens = self.make_token_verifier()
            self.tokens.is_signed_slow = self.is_signed
        return self.tokens

    def hold_passwords(self, passwords):
        """Compute slow hashes with this object from now on (passwords.py)."""
        self.passwords.close()
        self.passwords = passwords

    def close(self):
        self.passwords.close()
        if self.tokens is not None and self.make_token_verifier is None:
            self.tokens.close()

    @property
    def buffered_bytes(self):
        """Bytes lent to bodies that authorization services receive."""
        return self.auth_bodies.clients.count * <size_t>AUTH_BODY_PIECE
