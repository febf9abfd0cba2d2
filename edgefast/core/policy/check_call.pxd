# Check call: one call of a gRPC authorization service.

cdef class CheckCall(AuthCall):
    cdef:
        Out question            # the message, but for the request's body, which is its end
        int grpc_status         # -1: none has come

    cdef AuthDecision read_answer(self)
