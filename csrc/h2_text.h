/* h2_text.h - the fields of an HTTP/2 message, as HPACK decodes them, to the text of an HTTP/1.1 head, field by field.
 *
 * Idea: inside the proxy a head is HTTP/1.1 text and its spans, whatever it came in by. So a request of HTTP/2 is written
 * as the one canonical text that means the same, and that text is scanned like any other: limits, Host, target, lengths are
 * decided in one place. What could make two fields of one, or one message of two, is refused before anything is written; and
 * the scan must find exactly the bytes and the lines that were written, or the message is refused: no downgrade attack
 * without a head that both HPACK's rules and our own scan take for something that it is not.
 *
 *   :method GET, :scheme http, :path /a?b, :authority x, cookie a=1, accept y, cookie b=2
 *   GET /a?b HTTP/1.1\r\n  host: x\r\n  accept: y\r\n  cookie: a=1; b=2\r\n  \r\n
 *
 * Use: ef_h2_text_begin, ef_h2_text_field for each field of the block, ef_h2_text_end. A block that is refused is still to be
 * fed to its end (HPACK's state needs it): what follows is only counted.
 * Returns of _field: 0 go on; EF_BAD refused: text->error says why, text->status what to answer, 0: the message is malformed
 *                    (RFC 9113 8.1.1), its stream is to be reset; EF_H2_CLOSE: EF_H2_FLOOD times the limit, let go of the
 *                    connection. Of _end: the length of the text (of trailers: 0 if there are none), or EF_BAD.
 * Memory: the caller's, ef_h2_text_room() bytes. It may move between calls (set text->buf). No malloc, no global state.
 * Cost: two loads and a store per byte, and what the scan costs.
 *
 * Rules (RFC 9113 8; table in docs/reference/http2.md):
 *   pseudo fields  before all others, once each, none unknown; requests: :method, :scheme, :path; :authority or Host; CONNECT
 *                  has :authority alone, or with :protocol all of them (RFC 8441); responses: :status; trailers: none
 *   names          lower-case tokens
 *   values         no control bytes but HTAB; no space or HTAB at either end
 *   :scheme        the connection's, else 400
 *   :path          "/..." or "*"; further as in HTTP/1.1
 *   Host           once; equal to :authority (ASCII case aside) where there is one, and then not written again
 *   lengths        at most one Content-Length; none in a tunnel, of which nothing is a body
 *   connection     no Connection, Keep-Alive, Proxy-Connection, Transfer-Encoding, Upgrade; TE only "trailers"
 *   Cookie         crumbs become one line, "; " between them, the last of the head
 *   :protocol      "websocket": GET with Upgrade and, where the caller has one, Sec-WebSocket-Key; others 501
 *   limits         name + value + EF_H2_FIELD_COST of each field count for limits->head, each field and crumb for
 *                  limits->count: 431. The text is never longer, nor has it more lines.
 *   body           one without Content-Length is `transfer-encoding: chunked` in the text, as in HTTP/1.1; END_STREAM on the
 *                  head with a Content-Length other than 0 is malformed in requests
 *   trailers       as well: no Content-Length, Host, Trailer, TE
 */
#ifndef EF_H2_TEXT_H
#define EF_H2_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "head.h"

#define EF_H2_CLOSE (-3)

enum ef_h2_kind { EF_H2_REQUEST = 0, EF_H2_RESPONSE = 1, EF_H2_TRAILERS = 2 };

/* Why a message was refused; names are metric labels and log words. */
enum ef_h2_error {
    EF_H2_E_NONE = 0,
    EF_H2_E_PSEUDO, /* unknown, or of the other direction */
    EF_H2_E_PSEUDO_REPEATED,
    EF_H2_E_PSEUDO_LATE, /* behind a field, or in trailers */
    EF_H2_E_PSEUDO_MISSING,
    EF_H2_E_METHOD,
    EF_H2_E_SCHEME,
    EF_H2_E_PATH,
    EF_H2_E_PROTOCOL,
    EF_H2_E_STATUS,
    EF_H2_E_NAME,
    EF_H2_E_VALUE,
    EF_H2_E_CONNECTION, /* a field of HTTP/1.1's connection */
    EF_H2_E_TE,
    EF_H2_E_HOST,           /* is not :authority, or comes twice */
    EF_H2_E_CONTENT_LENGTH, /* comes twice, or is not that of the body */
    EF_H2_E_TRAILER,        /* may not stand in trailers */
    EF_H2_E_TOO_LARGE,
    EF_H2_E_HEAD,     /* the scan refused it: head->error */
    EF_H2_E_DISAGREE, /* the scan found something else than what was written */
    EF_H2_E_COUNT
};

#define EF_H2_PSEUDO 6 /* :method :scheme :path :authority :protocol :status */

typedef struct ef_h2_text {
    uint8_t *buf;  /* the text from 0 on; what waits to be written from `room` on */
    uint64_t cost; /* name + value + EF_H2_FIELD_COST of all fields */
    uint32_t room; /* bytes of either part */
    uint32_t len;  /* of the text so far */
    uint32_t held; /* bytes that wait: pseudo fields, then cookies */
    uint32_t lines;
    uint32_t count; /* fields, as limits->count counts them */
    uint32_t pseudo_off[EF_H2_PSEUDO], pseudo_len[EF_H2_PSEUDO];
    uint32_t host_off, host_len; /* of :authority in the text */
    uint32_t seen;               /* internal */
    int32_t error;               /* enum ef_h2_error */
    int32_t status;
    uint8_t kind; /* enum ef_h2_kind */
    uint8_t is_tls;
    uint8_t is_tunnel; /* extended CONNECT */
    uint8_t reserved_;
} ef_h2_text;

/* Bytes that `buf` must have. */
size_t ef_h2_text_room(const ef_head_limits *limits);

void ef_h2_text_begin(ef_h2_text *text, enum ef_h2_kind kind, int is_tls, const ef_head_limits *limits, uint8_t *buf);

int ef_h2_text_field(ef_h2_text *text, const ef_head_limits *limits, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len);

/* What is known of a message besides its fields. */
typedef struct ef_h2_block {
    const uint8_t *key; /* 24 characters for a tunnel's Sec-WebSocket-Key, or NULL */
    unsigned method;    /* of the request that a response answers, enum ef_method */
    int ends;           /* END_STREAM: nothing follows */
} ef_h2_block;

/* The block is complete. `head` is reset and scanned (not for trailers: NULL). */
int ef_h2_text_end(ef_h2_text *text, const ef_head_limits *limits, const ef_h2_block *block, ef_head *head);

const char *ef_h2_error_text(int error); /* never NULL */
const char *ef_h2_error_name(int error);

#endif
