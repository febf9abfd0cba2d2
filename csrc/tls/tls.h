/* tls.h - TLS on a non-blocking descriptor: everything that the engine asks of OpenSSL, AWS-LC or BoringSSL, in one place.
 *
 * Only the files of this folder include headers of the TLS library, so what differs between libraries is found here. Unlike the
 * leaves in csrc, these functions allocate and read and write descriptors; they never call back, block, log or keep key material.
 *
 * A context (ef_tls_context) is what connections of one kind share: certificates, trust, versions, protocols. It is set up once, by one
 * thread, before the first connection; whoever made it frees it after the last one. Setters return 0 or a negative ef_tls_unusable.
 *
 * A connection (ef_tls, in the caller's memory, zeroed) goes through these steps:
 *   server   (with the PROXY protocol) ef_tls_preamble until its end is among tls->early, and ef_tls_skip of what belongs to it
 *            ef_tls_hello until the client's hello is whole; ef_tls_accept with a context for its name, or ef_tls_refuse
 *   client   ef_tls_connect
 *   both     ef_tls_handshake until it is 1; ef_tls_read, ef_tls_write; ef_tls_end; ef_tls_free at any time
 * Until ef_tls_accept it costs what its client has sent and nothing of the library. Results: numbers of bytes, EF_TLS_AGAIN or
 * EF_TLS_LOST, which is for ever: tls->error is the descriptor's errno, or 0 and the peer's bytes are at fault (tls->failure).
 *
 * Bytes come through a BIO of our own, which is read ahead and takes what the descriptor does not (tls->held, sent before anything else),
 * so that a write of the library is never repeated; a last write is held for ef_tls_end, which sends both at once.
 * EF_TLS_HELD_MOST bounds that; a call reads EF_TLS_READ_MOST bytes more than it was asked for at most, whatever a peer
 * sends that is no data; a handshake has EF_TLS_HANDSHAKE_MOST bytes.
 *
 * Never done: renegotiation, compression, early data, a version before 1.2.
 */
#ifndef EF_TLS_H
#define EF_TLS_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "../hello.h"
#include "../ticket.h"

#define EF_TLS_AGAIN (-1)
#define EF_TLS_LOST  (-2)

#define EF_TLS_HELD_MOST (256u * 1024u) /* bytes held back: a flight with a long chain of certificates, or records */
#define EF_TLS_READ_MOST (32u * 1024u)  /* bytes of messages without data that one call goes through */
#define EF_TLS_HANDSHAKE_MOST \
    (256u * 1024u) /* bytes of a peer's handshake: twice the library's longest chain of certificates */
#define EF_TLS_SESSION_MOST \
    (24 *                   \
     3600) /* seconds from a full handshake, however often a session is renewed: two periods of keys; AWS-LC: 7 days */
#define EF_TLS_ALPN   64            /* bytes of all protocols that a context offers */
#define EF_TLS_SCOPE  32            /* bytes of a session's scope */
#define EF_TLS_CLIENT (16u * 1024u) /* bytes of one part of a client's certificate (ef_tls_client_part) */
#define EF_TLS_STAPLE (16u * 1024u) /* bytes of an OCSP response; translate/tls/staple.py takes no longer ones */

enum ef_tls_unusable {
    EF_TLS_MALFORMED = -1,
    EF_TLS_ENCRYPTED = -2, /* a private key with a passphrase */
    EF_TLS_MISMATCH = -3,  /* key and certificate do not belong together */
    EF_TLS_NO_MEMORY = -4,
    EF_TLS_UNSUPPORTED = -5, /* this library or its configuration will not */
};

enum ef_tls_verify {
    EF_TLS_ASK_NOBODY = 0,
    EF_TLS_ASK_ANY = 1,     /* ask for a certificate and let in whatever comes */
    EF_TLS_ASK_TRUSTED = 2, /* ... only who shows a trusted one */
};

enum ef_tls_failure {
    EF_TLS_F_NONE = 0,
    EF_TLS_F_PROTOCOL,    /* what came is not this protocol */
    EF_TLS_F_NAME,        /* nobody here has the name */
    EF_TLS_F_VERSION,     /* no version in common */
    EF_TLS_F_CIPHER,      /* no cipher suite, group or signature in common */
    EF_TLS_F_CERTIFICATE, /* the peer's certificate is not accepted, or not there */
    EF_TLS_F_ALERT,       /* the peer refuses */
    EF_TLS_F_CLOSED,      /* the peer left */
    EF_TLS_F_LIMIT,       /* too long */
    EF_TLS_F_LOCAL,       /* our side cannot */
    EF_TLS_F_COUNT
};

/* Why a handshake with a backend failed; edgefast/core/cells.py names them in this order. */
enum ef_tls_backend_failure {
    EF_TLS_B_EXPIRED = 0,   /* a certificate of the chain has expired */
    EF_TLS_B_NOT_YET_VALID, /* a certificate of the chain is not valid yet */
    EF_TLS_B_NAME,          /* the certificate is for other names */
    EF_TLS_B_UNKNOWN_CA,    /* no trusted authority signed the certificate */
    EF_TLS_B_CERTIFICATE,   /* the certificate is invalid for another reason */
    EF_TLS_B_PROTOCOL,      /* the answer is not TLS, or violates TLS */
    EF_TLS_B_VERSION,       /* no version in common */
    EF_TLS_B_CIPHER,        /* no cipher suite, group or signature in common */
    EF_TLS_B_REFUSED,       /* the backend sent an alert */
    EF_TLS_B_CLOSED,        /* the backend closed the connection */
    EF_TLS_B_LOCAL,         /* this side failed, or reached a limit */
    EF_TLS_B_COUNT
};

typedef struct ef_tls_context ef_tls_context;

typedef struct ef_tls {
    void *ssl;
    void *session; /* of a client: the newest that its peer gave, until ef_tls_take_session */
    ef_tls_context *context;
    ef_ticket_rule *rule; /* of a server: the scope's, the caller's memory; NULL: no tickets */
    uint8_t *early;       /* bytes that came before there was an ssl */
    uint8_t *out;         /* bytes that the descriptor has not taken */
    size_t held;          /* how many */
    size_t out_at, out_room;
    size_t budget;     /* bytes that may still be read in this call */
    uint32_t early_at; /* first of the early bytes that the library has not seen */
    uint32_t early_len;
    uint32_t need;   /* early bytes to wait for */
    uint32_t shaken; /* bytes of the handshake so far */
    int fd;
    int error;
    int distrust; /* of a server that accepts any certificate: the library's first error of the client's chain; 0: none */
    int distrust_more; /* ... another error than an unknown issuer was among them */
    uint8_t failure;   /* enum ef_tls_failure */
    uint8_t open, client, said_end, dead, eof;
    uint8_t more;   /* the next read needs no descriptor */
    uint8_t gather; /* what the library writes is held, whatever the descriptor would take */
} ef_tls;

ef_tls_context *ef_tls_context_new(int server);
void ef_tls_context_free(ef_tls_context *context);
int ef_tls_context_minimum(ef_tls_context *context, int version);                     /* 12 or 13 */
int ef_tls_context_alpn(ef_tls_context *context, const uint8_t *protocols, size_t n); /* each behind its length */
int ef_tls_context_pair(ef_tls_context *context, const char *chain, size_t chain_n, const char *key, size_t key_n);
int ef_tls_context_trust(ef_tls_context *context, const char *bundle, size_t n);
int ef_tls_context_trust_system(ef_tls_context *context);
int ef_tls_context_crls(ef_tls_context *context, const char *lists, size_t n); /* PEM; of all authorities of a chain */
void ef_tls_context_depth(ef_tls_context *context, int depth);   /* certificates between leaf and authority, at most */
void ef_tls_context_verify(ef_tls_context *context, int verify); /* enum ef_tls_verify; who asks resumes nothing */
/* Of a client: one of these names must be in the certificate, instead of the name it asks for. */
int ef_tls_context_san(ef_tls_context *context, int is_uri, const char *name, size_t n);
void ef_tls_context_keep_sessions(ef_tls_context *context);          /* of a client: ef_tls_take_session has some */
void ef_tls_context_lifetime(ef_tls_context *context, long seconds); /* of sessions */
const char *ef_tls_library(void);                                    /* its name and version, as it says them */
/* Of a server: tickets are made with keys of this ring, which is the caller's and outlives the context. Without one there are none. */
void ef_tls_context_tickets(ef_tls_context *context, const ef_ticket_ring *ring);
/* Of a server, after a pair: staple this response to it before `until` (seconds since 1970). */
int ef_tls_context_staple(ef_tls_context *context, const uint8_t *response, size_t n, uint64_t until);
/* What a scope of EF_TLS_SCOPE bytes means to tickets; give it to ef_tls_accept, ef_ticket_rule_wipe it in the end. */
void ef_tls_rule_init(ef_ticket_rule *rule, const uint8_t *scope);
const char *ef_tls_unusable_reason(void); /* the library's words for the last negative answer, until the next call */

/* One read: 1 when there are more early bytes, of `most` in all, than before. */
int ef_tls_preamble(ef_tls *tls, int fd, size_t most);
void ef_tls_skip(ef_tls *tls, size_t n); /* the first n early bytes are not the hello's */
int ef_tls_hello(ef_tls *tls, int fd, ef_hello *hello);
int ef_tls_refuse(ef_tls *tls, int fd, uint8_t alert, int why);
/* rule: the scope's, for tickets, the caller's for as long as the connection lives; NULL: none are made or taken. */
int ef_tls_accept(ef_tls *tls, ef_tls_context *context, ef_ticket_rule *rule, const uint8_t *scope, size_t n);
int ef_tls_connect(ef_tls *tls, int fd, ef_tls_context *context, const char *name, int is_address);
int ef_tls_handshake(ef_tls *tls);
int ef_tls_has_name(const ef_tls *tls, const char *name, size_t n); /* the library has read the same one; n 0: none */
int ef_tls_backend_failure(const ef_tls *tls); /* of a client whose handshake failed; enum ef_tls_backend_failure */
ssize_t ef_tls_read(ef_tls *tls, uint8_t *to, size_t room);
int ef_tls_pending(const ef_tls *tls); /* after a read: the next one needs no descriptor */
/* last: ef_tls_end follows at once. One record's worth is held until then, if that much is left. */
ssize_t ef_tls_write(ef_tls *tls, const struct iovec *iov, int n, size_t total, int last);
/* more: shutdown(2) follows at once, and the descriptor waits for it, so that both share a segment. Never in front of close(2): of what waits
 * the kernel sends nothing when bytes have come that nobody has read. */
int ef_tls_end(ef_tls *tls, int more);
void ef_tls_free(ef_tls *tls);

/* Of a client: the session for a next connection, the caller's from here on; NULL: none came since the last call. Connections that are
 * open alone have one: its peer was verified. Offered before the handshake, to a peer that was verified by the same rules. */
void *ef_tls_take_session(ef_tls *tls);
int ef_tls_offer_session(ef_tls *tls, void *session); /* 0: it is not; the handshake is a full one */
int ef_tls_session_over(const void *session);         /* the peer's certificate has expired */
void ef_tls_session_free(void *session);

/* Of an open connection; texts live as long as the process. */
const char *ef_tls_version(const ef_tls *tls);
const char *ef_tls_cipher(const ef_tls *tls);
const char *ef_tls_group(const ef_tls *tls); /* "": this library does not tell */
int ef_tls_resumed(const ef_tls *tls);
size_t ef_tls_protocol(const ef_tls *tls, const uint8_t **name); /* of ALPN; 0: none */

/* Of an open connection of a server: why the client's certificate is not trusted, in the library's words; "": the client has
 * no certificate, or the context asks for no certificate; NULL: it is trusted. */
const char *ef_tls_client_distrust(const ef_tls *tls);
int ef_tls_client_only_issuer(
    const ef_tls *tls); /* it is not trusted because its issuer is unknown, and for nothing else */
enum ef_tls_client_part {
    EF_TLS_CLIENT_DER = 0,
    EF_TLS_CLIENT_SUBJECT = 1, /* distinguished names as text of RFC 2253, in ASCII */
    EF_TLS_CLIENT_ISSUER = 2,
    EF_TLS_CLIENT_NAMES =
        3, /* subjectAltNames in printable ASCII: "D" (DNS) or "U" (URI), two bytes of length, and the name, each */
};
/* A part of the client's certificate: its bytes, or -1: it is larger than `room`, or absent. */
ssize_t ef_tls_client_part(const ef_tls *tls, int part, uint8_t *to, size_t room);

#endif
