# gRPC: status codes, and answers of the proxy to gRPC requests.

cdef enum:
    GRPC_OK = 0
    GRPC_CANCELLED = 1
    GRPC_UNKNOWN = 2
    GRPC_DEADLINE_EXCEEDED = 4
    GRPC_PERMISSION_DENIED = 7
    GRPC_RESOURCE_EXHAUSTED = 8
    GRPC_UNIMPLEMENTED = 12
    GRPC_INTERNAL = 13
    GRPC_UNAVAILABLE = 14
    GRPC_DATA_LOSS = 15
    GRPC_UNAUTHENTICATED = 16

cdef frozenset GRPC_OWN_LINES       # names of header lines that the proxy sets in its own gRPC answers

cdef int bound_by_client(Exchange ex, const uint8_t *base, ef_head *head) except -1

cdef bytes grpc_message(bytes text)

cdef bytes grpc_name(int status)

cdef int grpc_status_of(int status) noexcept

cdef int http_status_of(Exchange ex, int status) noexcept

cdef int respond_grpc(Exchange ex, int status, bytes own, bytes lines) except -1
