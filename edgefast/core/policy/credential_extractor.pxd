# Credential extractor: where a request carries a credential.

# Where it is looked for: a head, a query.
cdef struct CredentialSource:
    const uint8_t *base
    const ef_span *spans
    uint32_t n_spans
    uint32_t drop_flags         # of lines that go no further
    const uint8_t *query        # NULL: there is none
    size_t query_len


cdef class CredentialExtractor:
    cdef:
        list headers            # (name in lower case, HeaderNames of it, what stands before the credential or b"")
        list cookies            # names
        list params             # names
        bint several            # the credentials that were found last differ

    cdef bint find_single(self, const CredentialSource *at, const uint8_t **value, size_t *n) except -1
    cdef bytes find(self, const CredentialSource *at, Exchange covered)
    cdef bytes in_headers(self, const CredentialSource *at, Exchange covered, bytes found)
    cdef bytes in_cookies(self, const CredentialSource *at, Exchange covered, bytes found)
    cdef bytes in_params(self, const CredentialSource *at, Exchange covered, bytes found)
    cdef bytes take(self, bytes found, bytes value)
    cdef int strip(self, RuleAuthFlow flow) except -1


cdef enum:
    COVERED_PARTS = 64          # of a query, or of a request's cookies


cdef class CredentialNames:
    cdef:
        dict headers            # name in lower case -> how many Places have it
        dict cookies            # the same of names as written
        dict params

    cdef int count(self, list places, int by) except -1
    cdef bint any(self) noexcept
    cdef int cover(self, Exchange ex, const CredentialSource *at) except -1
    cdef Py_ssize_t cover_parts(
        self, Exchange ex, const uint8_t *base, const uint8_t *text, size_t size, bytes sign, Py_ssize_t left
    ) except -2
