# What Cython sees of csrc/tls. The header is the manual; the names here are its own.

cdef extern from "hello.h" nogil:
    ctypedef struct ef_hello:
        uint32_t need
        uint8_t alert
        uint8_t name_len
        uint8_t name[256]
        uint8_t alpn_len
        uint8_t alpn[255]

cdef extern from "tls/tls.h" nogil:
    enum:
        EF_TLS_AGAIN
        EF_TLS_LOST
        EF_TLS_SCOPE
        EF_TLS_MALFORMED
        EF_TLS_ENCRYPTED
        EF_TLS_MISMATCH
        EF_TLS_NO_MEMORY

    enum:
        EF_TLS_F_PROTOCOL
        EF_TLS_F_NAME
        EF_TLS_F_LIMIT
        EF_TLS_F_LOCAL
        EF_TLS_F_COUNT

    enum:
        EF_TLS_CLIENT
        EF_TLS_CLIENT_DER
        EF_TLS_CLIENT_SUBJECT
        EF_TLS_CLIENT_ISSUER
        EF_TLS_CLIENT_NAMES

    enum:
        EF_TLS_ASK_NOBODY
        EF_TLS_ASK_ANY
        EF_TLS_ASK_TRUSTED

    ctypedef struct ef_tls_context:
        pass

    ctypedef struct ef_tls:
        void *ssl
        void *session
        size_t held
        int error
        uint8_t *early
        uint32_t early_len
        uint8_t failure
        uint8_t open
        uint8_t gather

    ef_tls_context *ef_tls_context_new(int server)
    void ef_tls_context_free(ef_tls_context *context)
    int ef_tls_context_minimum(ef_tls_context *context, int version)
    int ef_tls_context_alpn(ef_tls_context *context, const uint8_t *protocols, size_t n)
    int ef_tls_context_pair(ef_tls_context *context, const char *chain, size_t chain_n, const char *key, size_t key_n)
    int ef_tls_context_trust(ef_tls_context *context, const char *bundle, size_t n)
    int ef_tls_context_trust_system(ef_tls_context *context)
    int ef_tls_context_crls(ef_tls_context *context, const char *lists, size_t n)
    void ef_tls_context_depth(ef_tls_context *context, int depth)
    int ef_tls_client_only_issuer(const ef_tls *tls)
    void ef_tls_context_verify(ef_tls_context *context, int verify)
    int ef_tls_context_san(ef_tls_context *context, int is_uri, const char *name, size_t n)
    void ef_tls_context_lifetime(ef_tls_context *context, long seconds)
    void ef_tls_context_keep_sessions(ef_tls_context *context)
    void ef_tls_context_tickets(ef_tls_context *context, const ef_ticket_ring *ring)
    int ef_tls_context_staple(ef_tls_context *context, const uint8_t *response, size_t n, uint64_t until)
    void ef_tls_rule_init(ef_ticket_rule *rule, const uint8_t *scope)
    const char *ef_tls_unusable_reason()
    const char *ef_tls_library()

    int ef_tls_preamble(ef_tls *tls, int fd, size_t most)
    void ef_tls_skip(ef_tls *tls, size_t n)
    int ef_tls_hello(ef_tls *tls, int fd, ef_hello *hello)
    int ef_tls_refuse(ef_tls *tls, int fd, uint8_t alert, int why)
    int ef_tls_accept(ef_tls *tls, ef_tls_context *context, ef_ticket_rule *rule, const uint8_t *scope, size_t n)
    int ef_tls_connect(ef_tls *tls, int fd, ef_tls_context *context, const char *name, int is_address)
    int ef_tls_handshake(ef_tls *tls)
    int ef_tls_backend_failure(const ef_tls *tls)
    int ef_tls_has_name(const ef_tls *tls, const char *name, size_t n)
    ssize_t ef_tls_read(ef_tls *tls, uint8_t *to, size_t room)
    int ef_tls_pending(const ef_tls *tls)
    ssize_t ef_tls_write(ef_tls *tls, const iovec *iov, int n, size_t total, int last)
    int ef_tls_end(ef_tls *tls, int more)
    void ef_tls_free(ef_tls *tls)
    void *ef_tls_take_session(ef_tls *tls)
    int ef_tls_offer_session(ef_tls *tls, void *session)
    int ef_tls_session_over(const void *session)
    void ef_tls_session_free(void *session)
    const char *ef_tls_version(const ef_tls *tls)
    const char *ef_tls_cipher(const ef_tls *tls)
    const char *ef_tls_group(const ef_tls *tls)
    int ef_tls_resumed(const ef_tls *tls)
    const char *ef_tls_client_distrust(const ef_tls *tls)
    ssize_t ef_tls_client_part(const ef_tls *tls, int part, uint8_t *to, size_t room)
    size_t ef_tls_protocol(const ef_tls *tls, const uint8_t **name)
