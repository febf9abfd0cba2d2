# Target: the path of a request in one normal form for matching, authorization and forwarding.
#
# In: a scanned head, the port's settings (EdgeProxy spec.http). Out: a path in normal form in an ef_request, or an answer.
# Source: csrc/path.h, docs/reference/http1.md "Requests".
# Must never: let a rule take a path that another rule matches without path parameters.

cdef enum:
    PARAMETERS_KEEP = 0
    PARAMETERS_STRIP = 1
    PARAMETERS_REJECT = 2


cdef bint refuse_path(Exchange ex) except -1:
    ex.engine.count(G_PATH_REFUSED)
    ex.down.refuse_more()
    ex.fail(400, F_INVALID)
    return False


cdef bint settle_path(
    Exchange ex, const uint8_t *base, ef_head *head, const uint8_t *query, size_t query_len, ef_request *request
) except -1:
    """The path to match and to forward, valid until the next request. False: the request is answered."""
    cdef Engine engine = ex.engine
    cdef const uint8_t *path = base + head.target_off
    cdef size_t size = head.path_len
    cdef bint strips = head.notes & EF_NOTE_PARAMETERS and ex.settings.path_parameters != PARAMETERS_KEEP
    cdef int result, escaped = 0
    cdef long encoded
    cdef bytes target
    if head.target_empty_path:
        path = <const uint8_t *>b"/"
        size = 1
    if head.notes & EF_NOTE_RAW:
        encoded = ef_path_encode_raw(path, size, engine.scratch, engine.scratch_size)
        path = engine.scratch
        size = engine.scratch_size + 1 if encoded < 0 else <size_t>encoded
    if size > engine.scratch_size:
        ex.answer(414, b"", 0)
        return False
    result = ef_path_normalize(path, size, engine.path, engine.scratch_size, &request.path_len, &escaped)
    if result < 0 or (strips and ex.settings.path_parameters == PARAMETERS_REJECT):
        return refuse_path(ex)
    if result == EF_PATH_WRITTEN:
        size = request.path_len
        path = engine.path
    elif strips or head.notes & EF_NOTE_RAW:
        memcpy(engine.path, path, size)
        path = engine.path
    if strips:
        size = ef_path_strip_parameters(engine.path, size, 0)
    if escaped and ex.settings.escaped_slashes != 1:
        if ex.settings.escaped_slashes == 2 or ef_path_unescape_slashes(path, size, engine.scratch, engine.scratch_size, &size) < 0:
            return refuse_path(ex)
        target = engine.scratch[:size]
        if query_len:
            target += b"?" + query[:query_len]
        ex.answer(
            307,
            b"location: %b://%b%b\r\n" % (
                b"https" if asks_https(ex, base, head) else b"http",
                base[head.authority_off:head.authority_off + head.authority_len],
                target,
            ),
            F_REDIRECT,
        )
        return False
    request.path = path
    request.path_len = size
    return True


cdef bint is_read_alike(Exchange ex, Routed *at, const ef_request *request, const ef_hit *hit) except -1:
    """Tell whether the rule of this hit also takes the path without its parameters, because some servers remove them. Parameters in the
    rule's own Exact or PathPrefix value are intended; a regular expression may match them by accident."""
    cdef Engine engine = ex.engine
    cdef size_t start = 0 if hit.kind == EF_PATH_REGEX else hit.prefix_len
    cdef ef_request bare = request[0]
    cdef ef_hit other
    cdef Rule rule
    cdef bytes path
    if memchr(request.path + start, c";", request.path_len - start) == NULL:
        return True
    memcpy(engine.scratch, request.path, request.path_len)
    path = engine.scratch[:ef_path_strip_parameters(engine.scratch, request.path_len, start)]
    bare.path = <const uint8_t *>PyBytes_AS_STRING(path)  # matching uses the scratch memory
    bare.path_len = PyBytes_GET_SIZE(path)
    rule = ex.down.peer.port.match(ex.listener, at.base + at.head.host_off, at.head.host_len, &bare, &other)
    return rule is not None and rule.index == ex.rule.index and rule.route == ex.rule.route
