# Check: one batch of checks for the store, and its arguments in a call to Redis.
#
# In: the limiter's keys and numbers. Out: the arguments of many checks in one piece (rate_limit/script.py has the format). A check is one
# counter; requests of one turn on the same counter are in it in the order of their arrival.
# Must never: send a call or read a reply.

cdef class Check:
    def pack(self, list checks):
        """The names and then the terms of `checks`, as a call to Redis wants them (rate_limit/script.py pack_words)."""
        cdef Check check
        cdef Py_ssize_t size = 0, length
        cdef bytes words
        cdef char *to
        cdef uint32_t tag
        for check in checks:
            length = PyBytes_GET_SIZE(check.key) + NAME_HEAD
            size += 1 + count_digits(length) + 2 + length + 2 + TERM_WORDS
        words = PyBytes_FromStringAndSize(NULL, size)
        to = PyBytes_AS_STRING(words)
        for check in checks:
            length = PyBytes_GET_SIZE(check.key)
            tag = ef_crc32(<const uint8_t *>PyBytes_AS_STRING(check.key), length) & 63
            to[0] = b"$"
            to = write_number(to + 1, length + NAME_HEAD)
            memcpy(to, b"\r\nef:{..}:", 2 + NAME_HEAD)
            to[6] = HEX[tag >> 4]
            to[7] = HEX[tag & 15]
            memcpy(to + 2 + NAME_HEAD, PyBytes_AS_STRING(check.key), length)
            to += 2 + NAME_HEAD + length
            memcpy(to, b"\r\n", 2)
            to += 2
        for check in checks:
            memcpy(to, b"$11\r\n", 5)
            write_term(to + 5, check)
            memcpy(to + 16, b"\r\n", 2)
            to += TERM_WORDS
        assert to - PyBytes_AS_STRING(words) == size
        return words


cdef const char *HEX = b"0123456789abcdef"


cdef int count_digits(Py_ssize_t number) noexcept:
    cdef int count = 1
    while number >= 10:
        number //= 10
        count += 1
    return count


cdef char *write_number(char *to, Py_ssize_t number) noexcept:
    cdef int count = count_digits(number), i
    for i in range(count - 1, -1, -1):
        to[i] = <char>(48 + number % 10)
        number //= 10
    return to + count


cdef void write_term(char *to, Check check) noexcept:
    """n, limit, unit, sliding: "<I2I4I4I1" of window.lua."""
    cdef uint16_t n = <uint16_t>check.n
    memcpy(to, &n, 2)
    memcpy(to + 2, &check.limit, 4)
    memcpy(to + 6, &check.unit, 4)
    to[10] = <char>check.sliding


cdef class Batch:
    pass
