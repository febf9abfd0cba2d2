# Decision: what the rate limits of a rule decide on a request, and answers of the proxy that wait for it.
#
# In: the LimitDecision of an exchange, an answer of the proxy. Out: the answer, at once or when the last limit has decided; 429 or 500 where
# a limit refuses; otherwise the body goes to the backend.
# Must never: answer for a rule before its limits have counted the request.

cdef int reply(Exchange ex, int status, bytes lines, uint32_t flag) except -1:
    """Send an answer of the proxy after the rate limits admitted the request."""
    cdef LimitDecision decision = ex.decision
    if decision is None or decision.left == 0:
        return ex.answer(status, lines, flag)
    decision.held_status, decision.held_lines, decision.held_flag = status, lines, flag
    return 0


cdef int reply_direct(Exchange ex) except -1:
    """Send the answer of the rule (HTTPRouteFilter directResponse) after the rate limits admitted the request."""
    cdef DirectAnswer direct_answer = ex.rule.direct
    if ex.decision is not None and ex.decision.left:
        ex.decision.held_status = direct_answer.status
        return 0
    ex.status = direct_answer.status
    ex.bytes_out = PyBytes_GET_SIZE(direct_answer.body) if ex.method != EF_M_HEAD else 0
    return ex.respond(direct_answer.status, direct_answer.lines + limit_lines(ex) + (ex.cors_lines or b""), direct_answer.body)


cdef int end_decision(Exchange ex) except -1:
    """All limits have decided: answer, or send the body."""
    cdef LimitDecision decision = ex.decision
    if ex.overridden:  # it was answered meanwhile, and an error service writes the answer
        return 0
    if decision.over:
        return ex.answer(decision.limit.status, b"x-edge-ratelimited: true\r\n", F_LIMITED)
    if decision.failed:
        return ex.answer(500, b"", F_LIMIT_ERROR)
    if decision.held_status:
        return reply_direct(ex) if decision.held_lines is None else ex.answer(decision.held_status, decision.held_lines, decision.held_flag)
    return ex.body.start(ex)


cdef bytes limit_lines(Exchange ex):
    """Return the header lines that show the client its limits; the access log gets a flag where the store failed."""
    if ex.decision is None or ex.decision.left:
        return b""
    if ex.decision.passed_blind:
        ex.flags |= F_LIMIT_ERROR
    return ex.decision.lines(ex.settings)
