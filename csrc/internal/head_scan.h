/* head_scan.h - what the files of the head scan share: head.c drives, one file per concept does the checking.
 *
 *   head.c ──> head_line.c ──> head_target.c         request line, status line
 *         ├──> head_fields.c ──> head_framing.c      one header line; lengths, Connection, Upgrade, Expect
 *         │            └───────> head_authority.c    Host
 *         └──> head_framing.c                        what the whole head means, once it is complete
 *   head_names.c, head_list.c, head_errors.c         names to numbers, comma lists, texts
 *
 * Convention: 0 done, or EF_BAD after ef_head_refuse(). All offsets are into `buf`; a line is [at, end) without CRLF.
 */
#ifndef EF_INTERNAL_HEAD_SCAN_H
#define EF_INTERNAL_HEAD_SCAN_H
#include <stddef.h>
#include <stdint.h>

#include "../head.h"

/* Bits of ef_head.seen_flags. */
#define EF_SEEN_LINE            (1u << 0) /* request or status line parsed */
#define EF_SEEN_EMPTY_LINE      (1u << 1) /* the one empty line that may precede a request */
#define EF_SEEN_RESPONSE        (1u << 2) /* this is a response: every fault is a 502 */
#define EF_SEEN_HTTP10          (1u << 3)
#define EF_SEEN_HOST            (1u << 4)
#define EF_SEEN_CONTENT_LENGTH  (1u << 5)
#define EF_SEEN_TRANSFER        (1u << 6)
#define EF_SEEN_CODING_UNKNOWN  (1u << 7)
#define EF_SEEN_CLOSE           (1u << 8)  /* Connection: close, or Proxy-Connection: close */
#define EF_SEEN_KEEP_ALIVE      (1u << 9)  /* Connection: keep-alive; of responses in Proxy-Connection, too */
#define EF_SEEN_CONNECT_UPGRADE (1u << 10) /* Connection: upgrade */
#define EF_SEEN_UPGRADE         (1u << 11) /* a non-empty Upgrade */
#define EF_SEEN_UPGRADE_HTTP2   (1u << 12)
#define EF_SEEN_EXPECT_CONTINUE (1u << 13)
#define EF_SEEN_EXPECT_OTHER    (1u << 14)
#define EF_SEEN_NOMINATION      (1u << 15) /* Connection names something else */

/* Sets error and status; returns EF_BAD. */
int ef_head_refuse(ef_head *head, enum ef_head_error error);

int ef_head_parse_request_line(ef_head *head, const uint8_t *buf, size_t at, size_t end, uint32_t raw);
int ef_head_parse_status_line(ef_head *head, const uint8_t *buf, size_t at, size_t end);
int ef_head_parse_target(ef_head *head, const uint8_t *buf, size_t at, size_t end, uint32_t raw);
int ef_head_parse_host(ef_head *head, const uint8_t *buf, size_t at, size_t end);

/* One header line; line_end is the offset behind its CRLF. Appends a span. */
int ef_head_parse_field(ef_head *head, const uint8_t *buf, size_t at, size_t end, uint32_t underscore);

/* Headers that decide about lengths and the connection. `span` is complete but for its flags. */
int ef_head_parse_content_length(ef_head *head, const uint8_t *value, size_t len);
int ef_head_parse_transfer_encoding(ef_head *head, const uint8_t *value, size_t len);
void ef_head_parse_connection(ef_head *head, const uint8_t *value, size_t len, int is_proxy_connection);
void ef_head_parse_upgrade(ef_head *head, const uint8_t *value, size_t len);
void ef_head_parse_expect(ef_head *head, const uint8_t *value, size_t len);

/* The complete head: body, keep_alive, upgrade, expectations, nominations. */
int ef_head_decide_request(ef_head *head, const uint8_t *buf, uint32_t http10);
int ef_head_decide_response(ef_head *head, const uint8_t *buf, unsigned request_method);

/* Number of a header name whose token syntax was checked (any case). */
unsigned ef_header_lookup(const uint8_t *name, size_t len);

/* Next element of a comma list from *at on, OWS trimmed, empty ones included: 1 and [*start, *end), or 0 behind the last. */
int ef_list_next(const uint8_t *value, size_t len, size_t *at, size_t *start, size_t *end);

static inline int ef_is_ows(uint8_t byte) { return byte == ' ' || byte == '\t'; }
#endif
