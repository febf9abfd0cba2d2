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
#define EF_MAX_TRAILER_BYTES     (8u * 1024u)  /* kept until the message ends: a connection may hold so much more */
#define EF_MAX_TRAILERS          50u
#define EF_MAX_SEGMENTS          64u /* prefix probes per request path; deeper prefixes are refused by the compiler */
#define EF_MAX_BLOB              (1024u * 1024u * 1024u)
#define EF_MAX_HELLO \
    (32u * 1024u) /* bytes of a ClientHello: a ticket that carries a chain of certificates, and key shares */
#define EF_MAX_HELLO_RECORDS 64u   /* records that a ClientHello may come in; senders use one to three */
#define EF_MAX_FRAGMENTS     4096u /* fragments of one virtual host, a power of two */

/* HTTP/2: see docs/reference/http2.md for what each protects from. */
#define EF_H2_FIELD_COST 32u /* bytes that a field counts for besides its own (RFC 9113 6.5.2) */
#define EF_H2_FLOOD      4u  /* heads of so many times the limit are not even read to their end */
#define EF_H2_FRAME \
    16384u /* the largest frame that we take: SETTINGS_MAX_FRAME_SIZE's initial value (RFC 9113 6.5.2) */
#define EF_H2_CONTINUATIONS 8u    /* CONTINUATION frames of a block beyond those that a head of the limit needs */
#define EF_H2_RESETS        1000u /* streams reset, by the client or because of it, before they are counted in time */
#define EF_H2_RESETS_RATE   33u   /* ... and each second after that */
#define EF_H2_CANCELS       100u /* streams of a backend's connection that we reset before they are counted in time ... */
#define EF_H2_CANCELS_RATE  3u   /* ... so many more each second: servers end connections on 200 within 30 s */
#define EF_H2_REFUSED       100u /* streams of a connection that we refused, as it had too many, before ... */
#define EF_H2_REFUSED_RATE  3u   /* ... they are counted in time: so many more each second */
#define EF_H2_ACKS          100u /* answers to SETTINGS and PING that wait to be sent */
#define EF_H2_SETTINGS      32u  /* entries of a SETTINGS frame; RFC 9113 names six */
#define EF_H2_OVERHEAD      8u   /* bytes received are at most so many times those of heads and bodies ... */
#define EF_H2_OVERHEAD_FREE (1024u * 1024u) /* ... counted as so many more */
#define EF_H2_EMPTY         1000u           /* DATA frames without a byte of body that end no stream, before ... */
#define EF_H2_EMPTY_RATE    100u            /* ... they are counted in time: so many more each second */
#define EF_H2_UPDATES       10u             /* WINDOW_UPDATE frames per DATA frame that we sent ... */
#define EF_H2_UPDATES_FREE  200u            /* ... with so many more, and two for each stream */
#define EF_H2_STREAMS       10000 /* that a worker has open, 5 to 6 KiB each: each address as many as are free */
#define EF_H2_HELD \
    (32u * 1024u * \
     1024u) /* bytes of a worker for requests, and for answers that are not taken: each address as much as is free */
#define EF_H2_HELD_AFTER (28u * 1024u * 1024u) /* ... that are left when some had to give way */
#define EF_H2_SHARE      (256u * 1024u)        /* ... for which nobody is refused a stream */

#endif
