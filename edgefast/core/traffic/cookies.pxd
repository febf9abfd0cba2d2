# Cookies: the cookies of one name in a request.

cdef struct CookieLook:
    ef_request request
    uint64_t place

cdef void begin_cookies(CookieLook *look, const uint8_t *base, const ef_head *head) noexcept

cdef bint next_cookie(CookieLook *look, bytes name, const uint8_t **value, size_t *n) noexcept

cdef bytes cookie_line(bytes name, bytes value, bytes rest)
