# Policy units: what the policies of one worker share.

cdef class PolicyUnits(PolicyHooks):
    cdef:
        Engine engine
        AuthCache auth_cache
        AuthBodyBuffer auth_bodies
        CredentialNames names       # where the policies of the table look for credentials
        object make_token_verifier  # makes `tokens`; None: this class does
        object tokens               # TokenVerifier; None: no policy has asked for it
        object login_services       # login_flow.LoginServices; None: no policy with oidc can be served
        object is_signed
        object passwords            # passwords.py: slow hashes, on a thread
        uint32_t error_calls        # of error services, in progress

    cdef object get_token_verifier(self)


cdef inline PolicyUnits units_of(Engine engine):
    return <PolicyUnits>engine.policies
