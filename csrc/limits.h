/* limits.h - every size and count that input controls, with its reason.
 *
 * The defaults of settings (EdgeProxy spec.http) may be lowered or raised by users up to the hard ceilings here; the
 * ceilings exist so that fixed arrays and 16/32-bit offsets can never overflow.
 */
#ifndef EF_LIMITS_H
#define EF_LIMITS_H

#define EF_MAX_HEAD              (256u * 1024u) /* ceiling of a request or response head; offsets are 32 bit */
#define EF_MAX_HEADERS           128            /* ceiling of header lines per head: size of ef_head.spans */
#define EF_DEFAULT_REQUEST_HEAD  (32u * 1024u)
#define EF_DEFAULT_REQUEST_LINE  (8u * 1024u)
#define EF_DEFAULT_RESPONSE_HEAD (64u * 1024u)
#define EF_DEFAULT_HEADERS       100u
#define EF_MAX_NAME              0xffffu             /* bytes of a header name: ef_span.name_len has 16 bits */
#define EF_MAX_CONTENT_LENGTH    0x7fffffffffffffffu /* and chunk size: callers count in signed 64 bits */
#define EF_MAX_CONNECTION_NAMES  32u /* headers nominated in Connection; each is compared with every line (Envoy: 10) */
#define EF_MAX_HOST              255u          /* RFC 1035 2.3.4 */
#define EF_MAX_CHUNK_DIGITS      16u           /* 64-bit chunk sizes */
#define EF_MAX_CHUNK_EXT         (16u * 1024u) /* bytes of chunk extensions per body */
#define EF_MAX_TRAILER_BYTES     (8u * 1024u)  /* trailers are read and dropped */
#define EF_MAX_TRAILERS          50u
#define EF_MAX_SEGMENTS          64u /* prefix probes per request path; deeper prefixes are refused by the compiler */
#define EF_MAX_BLOB              (1024u * 1024u * 1024u)
#define EF_MAX_FRAGMENTS         4096u /* fragments of one virtual host, a power of two */

#endif
