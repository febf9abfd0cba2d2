# Certificate headers: request headers about the certificate that a client has shown.
#
# In: a request and the certificate of its connection, the settings (EdgeProxy spec.headers). Out: lines for backends and authorization
# services: x-forwarded-client-cert in the format of Envoy, ssl-client-verify and its relatives as nginx writes them. A connection has the
# lines made once. A listener that asks for no certificate has none.
# Must never: let a line of a client through under one of the names, in any spelling that a backend may read as it, except an
# x-forwarded-client-cert that the mode keeps. Such lines are gone before matches, limits and authorization.

_XFCC = "x-forwarded-client-cert"
_NGINX = ("ssl-client-verify", "ssl-client-subject-dn", "ssl-client-issuer-dn", "ssl-client-cert")
cdef dict _MODES = {
    "": CERT_KEEP, "sanitize": CERT_SANITIZE, "forward": CERT_FORWARD, "append": CERT_APPEND, "set": CERT_SET, "always": CERT_ALWAYS,
}
cdef frozenset _QUOTED = frozenset(b",;=\"\\")


cdef CertificateHeaders make_certificate_headers(spec):
    """None: there are none. spec: ir.ForwardedHeaders."""
    cdef CertificateHeaders made
    cdef list names = [one for one in _NGINX if one in spec.names]
    if not names and not spec.client_cert:
        return None
    made = CertificateHeaders.__new__(CertificateHeaders)
    made.mode = <CertificateMode>_MODES[spec.client_cert]
    made.subject = "subject" in spec.client_cert_details
    made.uri = "uri" in spec.client_cert_details
    made.dns = "dns" in spec.client_cert_details
    made.cert = "cert" in spec.client_cert_details
    made.verify_line = _NGINX[0] in names
    made.subject_line = _NGINX[1] in names
    made.issuer_line = _NGINX[2] in names
    made.cert_line = _NGINX[3] in names
    made.names = HeaderNames(names)
    made.forwarded = HeaderNames([_XFCC])
    return made


cdef class CertificateHeaders:
    cdef int take(self, Exchange ex, const uint8_t *base, ef_head *head) except -1:
        """Take the client's lines out of the head; ex.forwarded_cert: x-forwarded-client-cert, where an element is appended to it."""
        cdef ClientCertificate shown = ex.down.peer.certificate
        cdef bint verified = shown is not None and shown.verified
        cdef bint keeps = self.mode == CERT_ALWAYS or (verified and self.mode == CERT_FORWARD)
        cdef ef_span *span
        cdef const uint8_t *name
        cdef uint16_t i, kept = 0
        cdef bytes value
        for i in range(head.n_spans):
            span = &head.spans[i]
            name = base + span.name_off
            if self.names.covers(name, span.name_len):
                continue
            if self.mode != CERT_KEEP and self.forwarded.covers(name, span.name_len):
                if not self.forwarded.has(name, span.name_len):
                    continue
                if verified and self.mode == CERT_APPEND:
                    value = base[span.val_off:span.val_off + span.val_len]
                    if value:
                        ex.forwarded_cert = value if ex.forwarded_cert is None else ex.forwarded_cert + b"," + value
                if not keeps:
                    continue
                span.id = EF_H_OTHER  # the rules of trusted peers do not remove it
            if kept != i:
                head.spans[kept] = head.spans[i]
            kept += 1
        head.n_spans = kept
        return 0

    cdef bytes lines(self, Exchange ex):
        cdef Peer peer = ex.down.peer
        cdef bytes element
        if peer.certificate is None:
            return b""
        if peer.certificate_headers is not self:
            peer.certificate_element = self.element(peer.certificate)
            peer.certificate_lines = self.own_lines(peer.certificate)
            peer.certificate_headers = self
        element = peer.certificate_element
        if not element:
            return peer.certificate_lines
        if ex.forwarded_cert is not None:
            element = ex.forwarded_cert + b"," + element
        return b"x-forwarded-client-cert: %b\r\n%b" % (element, peer.certificate_lines)

    cdef bytes element(self, ClientCertificate shown):
        """This proxy's element of x-forwarded-client-cert; b"": none."""
        cdef list parts
        if not shown.verified or (self.mode != CERT_APPEND and self.mode != CERT_SET):
            return b""
        parts = [b"Hash=" + sha256(shown.der).hexdigest().encode()]
        if self.cert:
            parts.append(b"Cert=\"%b\"" % escape_pem(shown.der))
        if self.subject:
            parts.append(b"Subject=\"%b\"" % shown.subject)  # its text has each quote escaped
        if self.uri:
            parts += [b"URI=" + escape_name(one) for one in shown.uris]
        if self.dns:
            parts += [b"DNS=" + escape_name(one) for one in shown.dns]
        return b";".join(parts)

    cdef bytes own_lines(self, ClientCertificate shown):
        cdef bytes made = b""
        if self.verify_line:
            made += b"ssl-client-verify: %b\r\n" % shown.result
        if shown.der is None:
            return made
        if self.subject_line:
            made += b"ssl-client-subject-dn: %b\r\n" % shown.subject
        if self.issuer_line:
            made += b"ssl-client-issuer-dn: %b\r\n" % shown.issuer
        if self.cert_line:
            made += b"ssl-client-cert: %b\r\n" % escape_pem(shown.der)
        return made


cdef bytes certificate_lines(Exchange ex):
    """Lines of a request about the certificate of its client."""
    cdef ForwardedHeaders about = ex.settings.forwarded
    return b"" if about is None or about.certificate is None else about.certificate.lines(ex)


cdef bytes escape_pem(bytes der):
    """PEM, percent-encoded: letters, digits and "-" stay, as in encodeURIComponent."""
    cdef bytes text = b64encode(der)
    cdef list lines = [text[at:at + 64] for at in range(0, len(text), 64)]
    cdef bytes pem = b"\n".join([b"-----BEGIN CERTIFICATE-----", *lines, b"-----END CERTIFICATE-----", b""])
    return (
        pem.replace(b" ", b"%20").replace(b"\n", b"%0A").replace(b"+", b"%2B").replace(b"/", b"%2F").replace(b"=", b"%3D")
    )


cdef bytes escape_name(bytes text):
    """A name of printable ASCII. One with a separator is quoted: a name must never read as another element."""
    if _QUOTED.isdisjoint(text):
        return text
    return b"\"%b\"" % text.replace(b"\\", b"\\\\").replace(b"\"", b"\\\"")
