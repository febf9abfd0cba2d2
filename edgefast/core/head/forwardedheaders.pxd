# Headers about the client besides x-forwarded-for and x-forwarded-proto (ir.ForwardedHeaders).

cdef class ForwardedHeaders:
    cdef:
        HeaderOps drops         # the client's lines that never reach a backend
        list of_proxy           # [HeaderNames]: no trailer has one of these names
        CertificateHeaders certificate  # None: no headers about certificates of clients
        bint real_ip, host, port, scheme, old_scheme, original_for, original_host, original_uri   # which ones are written
        bint overwrites         # x-forwarded-for is the client address alone
        bint keeps_ids, makes_ids   # x-request-id of every client; of none

    cdef int keep_host(self, Exchange ex, const uint8_t *base, ef_head *head) except -1
    cdef bint keeps_id(self, bint internal) noexcept
    cdef int write(
        self, Exchange ex, Out *out, const uint8_t *base, ef_head *head, const uint8_t *query, size_t query_len, HeaderOps ops
    ) except -1

cdef bytes original_target(const uint8_t *base, ef_head *head, const uint8_t *query, size_t query_len)
