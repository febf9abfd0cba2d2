# Hashes: the seed of those of names from outside, and names of headers that are looked up without an id of their own (csrc/head.h).

cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")  # nobody outside can aim at a hash
cdef uint32_t HASH_USER_AGENT = ef_name_hash(<const uint8_t *>b"user-agent", 10)
cdef uint32_t HASH_REQUEST_ID = ef_name_hash(<const uint8_t *>b"x-request-id", 12)
cdef uint32_t HASH_FORWARDED_FOR = ef_name_hash(<const uint8_t *>b"x-forwarded-for", 15)
cdef uint32_t HASH_FORWARDED_PROTO = ef_name_hash(<const uint8_t *>b"x-forwarded-proto", 17)
cdef uint32_t HASH_WEBSOCKET_ACCEPT = ef_name_hash(<const uint8_t *>b"sec-websocket-accept", 20)
cdef uint32_t HASH_REQUEST_HEADERS = ef_name_hash(<const uint8_t *>b"access-control-request-headers", 30)
cdef uint32_t HASH_GRPC_STATUS = ef_name_hash(<const uint8_t *>b"grpc-status", 11)
cdef uint32_t HASH_GRPC_TIMEOUT = ef_name_hash(<const uint8_t *>b"grpc-timeout", 12)
