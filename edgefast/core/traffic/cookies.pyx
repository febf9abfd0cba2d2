# Cookies: the cookies of one name in a request.
#
# In: a head, a name. Out: their values in their order, one at a time. Must never read more of a request than its head.

cdef void begin_cookies(CookieLook *look, const uint8_t *base, const ef_head *head) noexcept:
    memset(look, 0, sizeof(CookieLook))
    look.request.base, look.request.spans, look.request.n_spans = base, <ef_span *>&head.spans[0], head.n_spans


cdef bint next_cookie(CookieLook *look, bytes name, const uint8_t **value, size_t *n) noexcept:
    return ef_request_cookie(
        &look.request, <const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), &look.place, value, n
    ) != 0


cdef bytes cookie_line(bytes name, bytes value, bytes rest):
    """rest: its attributes and the end of the line."""
    return b"set-cookie: %b=%b%b" % (name, value, rest)
