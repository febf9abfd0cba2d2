# Client check: whether the certificate of a connection admits its requests to a listener.
#
# In: the rule of a listener (ir.ClientRule), the certificate of the connection. Out: 0, or the answer: 421 where the connection did not begin
# at this listener, or began under an earlier rule; 400 or a redirect for a certificate that is missing or not verified, 403 for its subject. The order is that of nginx
# (ssl_verify_client).
# Must never: admit a request by a certificate that the rules of another listener have verified.

cdef ClientCheck make_client_check(rule):
    cdef ClientCheck made
    if rule is None:
        return None
    made = ClientCheck.__new__(ClientCheck)
    made.authorities = (rule.ca, rule.depth)
    made.required = rule.mode == "required"
    made.any_issuer = rule.mode == "any_issuer"
    made.subject = re2.compile(rule.subject) if rule.subject else None
    made.page = b"location: %b\r\n" % rule.error_page.encode() if rule.error_page else None
    return made


cdef class ClientCheck:
    cdef bint refuse(self, Exchange ex) except -1:
        """Answer a request that does not pass; False: it passes."""
        cdef int status = self.check(ex)
        if status == 421:
            ex.engine.count(G_MISDIRECTED)
            ex.down.refuse_more()  # the next request meets the rule in a new handshake
            ex.answer(421, b"", F_MISDIRECTED)
        elif status:
            ex.answer(status, self.page if status == 302 else b"", F_DENIED)
        return status != 0

    cdef int check(self, Exchange ex) except -1:
        """The status of the answer; 0: the request passes."""
        cdef Peer peer = ex.down.peer
        cdef ClientCertificate shown = peer.certificate
        cdef bint absent
        if shown is None or (peer.sni is None and peer.port.find(b"", 0) is not ex.listener):
            return 421
        if shown.authorities != self.authorities:
            return 421
        absent = shown.result == b"NONE"
        if self.required and absent:
            return 302 if self.page is not None else 400
        if not (absent or shown.verified or (self.any_issuer and shown.only_issuer)):
            return 302 if self.page is not None else 400
        if self.subject is not None and self.subject.search(shown.subject or b"") is None:
            return 403
        return 0
