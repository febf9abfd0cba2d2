# Context: certificates, trust and rules of TLS connections, for one side.
#
# In: PEM, and the settings of a policy. Out: the context of a TlsWire. It is complete when made, and never changes. A session of one scope
# is resumed under no other: that separates the rules of ports and listeners (CVE-2025-23419).
# Must never print key material.

class TlsError(ValueError):
    """Key material or a rule that the TLS library will not take; the text names the mistake and quotes nothing."""


cdef uint64_t CONTEXTS = 0
cdef const ef_ticket_ring *TICKETS = NULL
cdef Py_buffer TICKETS_VIEW


def use_tickets(memory):
    """Make session tickets with the keys of this ring (csrc/ticket.h) in contexts that are made from now on. It stays mapped for as long as
    the process lives. Raises ValueError for what is no ring."""
    global TICKETS
    PyObject_GetBuffer(memory, &TICKETS_VIEW, PyBUF_SIMPLE)
    if ef_ticket_check(TICKETS_VIEW.buf, TICKETS_VIEW.len) != 0:
        PyBuffer_Release(&TICKETS_VIEW)
        raise ValueError("no session ticket keys")
    TICKETS = <const ef_ticket_ring *>TICKETS_VIEW.buf


cdef class TlsContext:
    """One side's settings.

    server: which side. minimum: "1.2" or "1.3". protocols: ALPN, best first. verify, of a server: "" asks for no certificate, "any" for one
    whatever it is, "trusted" for one that `trust` has issued. sans, of a client: (kind, name), one of which a backend's certificate must have
    instead of the name that it is asked for. verify, of a client: "any" accepts each certificate; without it a client verifies. lifetime: seconds of a session; with `verify` none is resumed.
    """

    def __init__(
        self, *, bint server, str minimum="1.2", protocols=("http/1.1",), str verify="", sans=(), long lifetime=7200
    ):
        cdef bytes wire = b"".join([bytes([len(name)]) + name.encode() for name in protocols])
        cdef bytes text
        global CONTEXTS
        CONTEXTS += 1
        self.serial = CONTEXTS
        self.server = server
        self.scope = b"edgefast"
        self.context = ef_tls_context_new(server)
        if self.context == NULL:
            raise MemoryError
        self.check(ef_tls_context_minimum(self.context, {"1.2": 12, "1.3": 13}[minimum]), "version")
        self.check(ef_tls_context_alpn(self.context, wire, len(wire)), "list of protocols")
        if server:
            self.asks = verify != ""
            ef_tls_context_verify(
                self.context, {"": EF_TLS_ASK_NOBODY, "any": EF_TLS_ASK_ANY, "trusted": EF_TLS_ASK_TRUSTED}[verify]
            )
        else:
            if verify:
                ef_tls_context_verify(self.context, {"any": EF_TLS_ASK_ANY}[verify])
            ef_tls_context_keep_sessions(self.context)
        ef_tls_context_lifetime(self.context, lifetime)
        if server and TICKETS != NULL:
            ef_tls_context_tickets(self.context, TICKETS)
        for kind, san in sans:
            text = san.encode()
            self.check(ef_tls_context_san(self.context, kind == "URI", text, len(text)), "name")

    def __dealloc__(self):
        if self.rule != NULL:
            ef_ticket_rule_wipe(self.rule)
            free(self.rule)
        if not self.shares:
            ef_tls_context_free(self.context)

    def add_pair(self, bytes certificate not None, bytes private_key not None):
        """Show this chain, the leaf first; one for each kind of key."""
        if b"-----BEGIN" not in certificate:
            raise TlsError("certificate is not PEM")
        if b"-----BEGIN" not in private_key:
            raise TlsError("private key is not PEM")
        self.check(
            ef_tls_context_pair(self.context, certificate, len(certificate), private_key, len(private_key)),
            "certificate or private key",
        )

    def staple(self, bytes response not None, uint64_t until):
        """Show this OCSP response (DER) beside the chain that was added last, before `until` (seconds since 1970)."""
        self.check(ef_tls_context_staple(self.context, response, len(response), until), "OCSP response")

    def trust(self, bytes bundle not None):
        """Believe what these authorities issue."""
        if ef_tls_context_trust(self.context, bundle, len(bundle)) < 0:
            raise TlsError("CA bundle is not a list of PEM certificates")

    def revoke(self, bytes lists not None):
        """Believe no certificate that these revocation lists (PEM) have, and none whose issuer has no valid list here."""
        if ef_tls_context_crls(self.context, lists, len(lists)) < 0:
            raise TlsError("revocation lists are not a list of PEM CRLs")

    def bound_depth(self, int depth):
        """Believe no chain with more certificates between the leaf and the authority."""
        ef_tls_context_depth(self.context, depth)

    def trust_system(self):
        """Believe what the system's authorities issue; files that are not there are passed over."""
        self.check(ef_tls_context_trust_system(self.context), "system's bundle")

    def within(self, bytes scope not None):
        """The same with sessions of a scope of their own, of 32 bytes at most; those of a scope of 32 resume at all workers and replicas."""
        cdef TlsContext made = TlsContext.__new__(TlsContext)
        if not 0 < len(scope) <= EF_TLS_SCOPE:
            raise ValueError("a scope must have 1 to 32 bytes")
        made.whole = self if self.whole is None else self.whole
        made.shares = True
        made.context = self.context
        made.server = self.server
        made.asks = self.asks
        made.authorities = self.authorities
        made.scope = scope
        if made.server and TICKETS != NULL and len(scope) == EF_TLS_SCOPE:
            made.rule = <ef_ticket_rule *>malloc(sizeof(ef_ticket_rule))
            if made.rule == NULL:
                raise MemoryError
            ef_tls_rule_init(made.rule, scope)
        return made

    cdef int check(self, int result, str what) except -1:
        if result == 0:
            return 0
        if result == EF_TLS_NO_MEMORY:
            raise MemoryError
        if result == EF_TLS_MISMATCH:
            raise TlsError("private key does not belong to the certificate")
        if result == EF_TLS_ENCRYPTED:
            raise TlsError("private key is encrypted; only unencrypted keys can be used")
        words = (<bytes>ef_tls_unusable_reason()).decode("ascii", "replace") or "malformed"
        raise TlsError(f"{what} is not usable ({words})")
