/* h2_lines.h - a finished HTTP/1.1 head, or trailers, to the fields of an HTTP/2 message.
 *
 * Idea: the other way round than h2_text: a head that the proxy has written is HTTP/1.1 text; this cuts it into names and
 * values without a copy. Names are lower-cased where they stand.
 *
 *   HTTP/1.1 200 OK\r\n  Server: edgefast\r\n  Connection: close\r\n  \r\n
 *   :status 200, server edgefast
 *
 * Returns: >= 0     pairs written, pointing into the text and into constants
 *          EF_BAD   no such head, or more fields than `room`
 * Memory: the caller's. No malloc, no global state. Reads and writes only [text, text + len).
 * Cost: one search per line and a table load per byte of a name.
 *
 * Left out: Connection and what it means (Keep-Alive, Proxy-Connection, Transfer-Encoding, Upgrade, HTTP2-Settings, TE but for
 * "trailers"); of a tunnel's head as well Sec-WebSocket-Key and -Accept and any length (RFC 8441 5.1). What Connection
 * nominates is not known here: whoever wrote the head left it out. The reason phrase has no place in HTTP/2.
 */
#ifndef EF_H2_LINES_H
#define EF_H2_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "head.h"

/* Laid out as nghttp2_nv, so that an array of them can be handed on. */
typedef struct ef_h2_pair {
    uint8_t *name, *value;
    size_t name_len, value_len;
    uint8_t flags; /* EF_H2_PAIR_VARIES, or 0 */
} ef_h2_pair;
_Static_assert(sizeof(ef_h2_pair) == 4 * sizeof(void *) + sizeof(void *), "ef_h2_pair layout");

/* Another value in each message: NGHTTP2_NV_FLAG_NO_INDEX. A table of fields that were sent before would be of nothing else soon, and who
 * looks for one of them looks at all of them. */
#define EF_H2_PAIR_VARIES 1u

#define EF_H2_PSEUDO_PAIRS 5u /* pairs of a head besides its lines, the most */

/* "HTTP/1.1 200 OK" and its lines; the empty line at the end may be missing. A tunnel's 101 becomes 200. */
int ef_h2_lines_response(uint8_t *text, size_t len, int is_tunnel, ef_h2_pair *pairs, size_t room);

/* "GET /a HTTP/1.1" and its lines: Host becomes :authority. A tunnel's GET becomes CONNECT with :protocol "websocket". */
int ef_h2_lines_request(uint8_t *text, size_t len, int is_tls, int is_tunnel, ef_h2_pair *pairs, size_t room);

/* Lines alone. */
int ef_h2_lines_trailers(uint8_t *text, size_t len, ef_h2_pair *pairs, size_t room);

#endif
