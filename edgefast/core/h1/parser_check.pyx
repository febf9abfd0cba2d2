# Parser check: httptools (llhttp) parses the same message as the scan and must agree where it ends.
#
# Request smuggling needs two parsers that disagree, so a disagreement ends the connection. The parser gets exactly one message and has no
# header or body callback: a body costs it only a subtraction. It cannot frame answers to HEAD, bodies that end with the connection, and
# upgrades by itself. Of these it gets only the head, and is then discarded.
#
# A connection often repeats its header fields. It keeps a keyed hash of the last head on which both parsers agreed, and a head with the
# same hash skips the second parser. Chunked bodies, upgrades and bodies without a length never skip it.

cdef uint8_t HEAD_SEED[EF_SIPHASH_SEED]  # keyed: a client cannot make two heads with one hash
memcpy(HEAD_SEED, PyBytes_AS_STRING(os.urandom(EF_SIPHASH_SEED)), EF_SIPHASH_SEED)
cdef uint64_t METHOD_MIX = 0x9E3779B97F4A7C15u  # odd: each method changes the hash

cdef uint64_t hash_request(const uint8_t *data, size_t n, const ef_head *head) noexcept:
    """A hash of what frames a request: its method, version and fields. 0: the second parser has to read it.

    The target takes no part: the scan lets no byte into a target in origin form that ends it for any parser.
    """
    cdef size_t end = head.target_off + head.target_len
    if (
        head.method == EF_M_UNKNOWN or head.method_off != 0 or head.body == EF_BODY_CHUNKED
        or head.target_len == 0 or data[head.target_off] != c"/" or head.absolute_scheme
    ):
        return 0
    return ef_siphash13(HEAD_SEED, data + end, n - end) ^ METHOD_MIX * head.method


cdef uint64_t hash_response(const uint8_t *data, size_t n, const ef_head *head, bint no_body) noexcept:
    """A hash of a whole response head. 0: the second parser has to read it. no_body: it answers HEAD."""
    if no_body or head.body == EF_BODY_CHUNKED or head.body == EF_BODY_EOF:
        return 0
    return ef_siphash13(HEAD_SEED, data, n)


cdef object new_window():
    """A view of whatever memory ParserCheck.show names next, valid during one call: spares a memoryview for every read."""
    return PyMemoryView_FromMemory(<char *>HTTP_1_1, 1, PyBUF_READ)


cdef class ParserCheck:
    def __init__(self, object window, bint request):
        self.window = window
        self.request = request
        self.parser = HttpRequestParser(self) if request else HttpResponseParser(self)
        # What follows a last message is never shown to it; that it goes on all the same lets it read the next connection's.
        self.parser.set_dangerous_leniencies(lenient_keep_alive=True)
        self.feed = self.parser.feed_data
        self.should_keep_alive = self.parser.should_keep_alive
        self.get_word = self.parser.get_method if request else self.parser.get_status_code
        self.get_version = self.parser.get_http_version

    def on_message_complete(self):
        self.complete = True
        if self.in_head:
            self.keep_alive = self.should_keep_alive()  # llhttp forgets it when this returns

    cdef int show(self, const uint8_t *data, size_t n) except -1:
        """The parser reads these bytes, or raises what it has against them."""
        cdef Py_buffer *view = PyMemoryView_GET_BUFFER(self.window)
        view.buf = <void *>data
        view.len = view.shape[0] = n
        self.feed(self.window)
        return 0

    cdef void detach(self) noexcept:
        """Not to be used again: the parser holds our bound method, so the circle is opened here and not by the collector."""
        self.parser = self.feed = self.should_keep_alive = self.get_word = self.get_version = None

    cdef int head(self, const uint8_t *data, size_t n, const ef_head *head, bint no_body) except -1:
        """Read a head. 1: agrees and can go on with the body (or the message is complete). 2: agrees, but the parser cannot
        frame what follows: do not use it again. 0: disagrees."""
        cdef bint upgraded = False
        self.complete = False
        self.in_head = True
        try:
            self.show(data, n)
        except HttpParserUpgrade:
            upgraded = True
        except HttpParserError:
            return 0
        self.in_head = False
        if self.request:
            method = self.get_word()
            if (
                <uint32_t>PyBytes_GET_SIZE(method) != head.method_len
                or memcmp(PyBytes_AS_STRING(method), data + head.method_off, head.method_len) != 0
                or self.get_version() != ("1.1" if head.version_minor else "1.0")
            ):
                return 0
        else:
            if <int>self.get_word() != head.response_status:
                return 0
        if upgraded or no_body or head.body == EF_BODY_EOF:
            return 2
        if not self.complete:
            self.keep_alive = self.should_keep_alive()
        if head.keep_alive and not self.keep_alive:  # the other way round is our scan being stricter, which is safe
            return 0
        if self.complete != (head.body == EF_BODY_NONE):
            return 0
        return 1

    cdef int chunks(self, const uint8_t *data, size_t n, const ef_chunk *chunk) except -1:
        """Read bytes of a chunked body as they came. 0: the parser refuses them. 2: agrees up to the trailers; it takes those for
        headers, so it has no say any more and must not be used again."""
        if self.body(data, n):
            return 2 if ef_chunk_in_trailers(chunk) else 1
        return 2 if ef_chunk_in_trailers(chunk) else 0

    cdef int body(self, const uint8_t *data, size_t n) except -1:
        """Read body bytes as they came. 0: the parser refuses them."""
        try:
            self.show(data, n)
        except HttpParserError:
            return 0
        return 1


cdef ParserCheck request_parser_check(Engine engine):
    cdef ParserCheck parser_check = engine.idle_request_check
    if parser_check is not None:
        engine.idle_request_check = None
        return parser_check
    return ParserCheck(engine.window, True)


cdef ParserCheck response_parser_check(Engine engine):
    cdef ParserCheck parser_check = engine.idle_response_check
    if parser_check is not None:
        engine.idle_response_check = None
        return parser_check
    return ParserCheck(engine.window, False)


cdef void release_parser_check(Engine engine, ParserCheck parser_check) noexcept:
    """Its message is over and the parser is as new: the next one may use it."""
    if parser_check is None:
        return
    if parser_check.request and engine.idle_request_check is None:
        engine.idle_request_check = parser_check
    elif not parser_check.request and engine.idle_response_check is None:
        engine.idle_response_check = parser_check
    else:
        parser_check.detach()


cdef void drop_parser_check(ParserCheck parser_check) noexcept:
    if parser_check is not None:
        parser_check.detach()
