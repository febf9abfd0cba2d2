# Request headers about a client's certificate (ir.ForwardedHeaders): x-forwarded-client-cert and those of nginx.

# What happens to x-forwarded-client-cert. One that the client sent stays where it is trusted (KEEP, of a peer in trustedCIDRs).
cdef enum CertificateMode:
    CERT_KEEP = 0           # no setting
    CERT_SANITIZE = 1       # removed
    CERT_FORWARD = 2        # kept on connections with a verified certificate
    CERT_APPEND = 3         # ... with an element of this proxy
    CERT_SET = 4            # replaced
    CERT_ALWAYS = 5         # kept


cdef class CertificateHeaders:
    cdef:
        CertificateMode mode
        bint subject, uri, dns, cert                # details of an element
        bint verify_line, subject_line, issuer_line, cert_line     # headers of nginx that are written
        HeaderNames names       # those that are never the client's
        HeaderNames forwarded   # x-forwarded-client-cert

    cdef int take(self, Exchange ex, const uint8_t *base, ef_head *head) except -1
    cdef bytes lines(self, Exchange ex)
    cdef bytes element(self, ClientCertificate shown)
    cdef bytes own_lines(self, ClientCertificate shown)

cdef bytes certificate_lines(Exchange ex)
