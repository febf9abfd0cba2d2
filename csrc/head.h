/* head.h - scan of an HTTP/1.1 message head into spans, resumable, with the framing policy of the product.
 *
 * Idea: the first control byte of a valid line is the CR of its CRLF, so one search finds the line's end and proves that
 * nothing hostile precedes it. `ef_head_scan_*` is called with ALL bytes of the message received so far (the buffer may
 * move, its content may not change, `limits` neither); it continues at the byte where it stopped, so a head that arrives
 * byte by byte costs linear time, and a fault is reported with the first byte that proves it. However the bytes arrive,
 * the outcome is the same. No copy: spans are offsets into the caller's buffer.
 *
 *   GET /a?b HTTP/1.1\r\n  Host: x\r\n  Accept:  y \r\n  \r\n
 *   ^method ^target        ^name  ^value (OWS trimmed)    ^ head_len counts up to and with this line
 *
 * Returns: > 0  length of the head in bytes, all fields valid
 *          EF_NEED_MORE (-2)  no fault yet, call again with more bytes
 *          EF_BAD (-1)        head->error says what is wrong; head->status what to answer (400 414 431 501 505 426 405 417)
 * After > 0 or EF_BAD the head must be reset before it is used again; after EF_BAD only error and status are defined.
 * Memory: caller's. No malloc, no system call, no global state. Reads only [buf, buf+len).
 * Cost: about one load per byte (SIMD line search with a scalar twin, chosen at compile time, both tested); a request of
 * 300 bytes and 8 headers takes 130-200 ns (csrc/bench/bench_head.c).
 *
 * Policy (RFC 9112, RFC 9110; table in docs/reference/http1.md), for requests:
 *   lines       CRLF only; no obs-fold; token names; no control bytes but HTAB in values; 0x80-0xff allowed in values only
 *   limits      checked while bytes arrive: the request line (414), the head and the number of lines (431)
 *   version     HTTP/1.1; 1.0 by setting, else 426, but 400 when it has Transfer-Encoding; no version (0.9) or 0.x: 400;
 *               others: 505
 *   HTTP/1.0    Expect, Upgrade and TE are ignored (RFC 9110 10.1.1, 7.8; TE came with 1.1). keep_alive only with Connection:
 *               keep-alive, and only if the request's end is certain: GET, HEAD or a Content-Length (RFC 1945 8.3). Host may be
 *               missing if the target is absolute, or by setting: ef_head_add_host()
 *   method      unknown token 501; CONNECT and TRACE 405 whatever the target
 *   target      origin-form; "*" for OPTIONS only; absolute-form (http, https) without userinfo and only when its authority
 *               equals Host (bytes, ignoring ASCII case: "a" is not "a:80"); never '#', space, <> or 0x80-0xff. By setting
 *               '|' in path and query, and {}^\"` in the query: browsers send them raw (WHATWG URL, query state)
 *   Host        exactly one: unreserved characters of RFC 3986 (a DNS name, an IPv4 address) or a bracketed IPv6 address,
 *               with an optional ":port" of 1-5 digits <= 65535. Percent-encoding, sub-delims and an empty port are refused,
 *               and so is an empty label. One dot at the end is the root (RFC 3986 3.2.2): host_len leaves it out
 *   lengths     at most one Content-Length, digits without sign or leading zero, < 2^63; at most one Transfer-Encoding, only
 *               "chunked" (501 when chunked is the last of several well-formed codings); never both
 *   names       '_' by setting. Under Allow and Drop, a name that becomes a header of enum ef_header_id when '_' is read as
 *               '-' (as CGI and WSGI servers do) is marked EF_SPAN_HOP: it is never forwarded
 *   Connection  at most EF_MAX_CONNECTION_NAMES nominations (431). Anything may be nominated, Authorization and Cookie too
 *               (RFC 9110 7.6.1 and Envoy; nginx ignores nominations), but never Host, Content-Length, X-Forwarded-*,
 *               X-Request-Id, X-Edge-*: a client could hide where a request comes from
 *   Upgrade     to any form of HTTP/2 (h2c, h2*, HTTP) is dropped: upgrade = 0
 *   Expect      "100-continue"; anything else 417; ignored without a body
 * Responses: see ef_head_scan_response.
 */
#ifndef EF_HEAD_H
#define EF_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "limits.h"

#define EF_BAD       (-1)
#define EF_NEED_MORE (-2)

/* Header names that the proxy treats specially. Everything else is EF_H_OTHER. Order is alphabetical. */
enum ef_header_id {
    EF_H_OTHER = 0,
    EF_H_CONNECTION,
    EF_H_CONTENT_LENGTH,
    EF_H_CONTENT_TYPE, /* kept; named because of gRPC */
    EF_H_DATE,
    EF_H_EXPECT,
    EF_H_HOST,
    EF_H_HTTP2_SETTINGS,
    EF_H_KEEP_ALIVE,
    EF_H_ORIGIN,
    EF_H_PROXY_AUTHENTICATE, /* kept; named because of RFC 9110 11.7 */
    EF_H_PROXY_CONNECTION,
    EF_H_SERVER,
    EF_H_TE,
    EF_H_TRAILER,
    EF_H_TRANSFER_ENCODING,
    EF_H_UPGRADE,
    EF_H_VIA,
    EF_H_X_EDGE, /* any name that starts with "x-edge-" */
    EF_H_X_FORWARDED_FOR,
    EF_H_X_FORWARDED_PROTO,
    EF_H_X_REQUEST_ID,
    EF_H_ACCESS_CONTROL_REQUEST_METHOD,
    EF_H_FORWARDING, /* what a proxy before this one says of a request, see ef_header_lookup */
    EF_H_COUNT
};

/* Bits of ef_span.flags.
 * HOP        hop-by-hop by name (RFC 9110 7.6.1): Connection, HTTP2-Settings, Keep-Alive, Proxy-Connection, TE, Trailer,
 *            Transfer-Encoding, Upgrade; and what `names` above says. Never forwarded.
 * NOMINATED  named in Connection: never forwarded
 * UNDERSCORE the name holds '_'; in requests only when the setting is Allow or Drop, and Drop sets HOP too */
#define EF_SPAN_HOP        1u
#define EF_SPAN_NOMINATED  2u
#define EF_SPAN_UNDERSCORE 4u

/* A header line: the raw line is [name_off, line_end) with its CRLF. 24 bytes. */
typedef struct ef_span {
    uint32_t name_off;
    uint32_t val_off;
    uint32_t val_len;   /* OWS trimmed */
    uint32_t line_end;  /* offset one past the line's CRLF; the next line starts there */
    uint32_t name_hash; /* ef_name_hash of the lower-cased name */
    uint16_t name_len;
    uint8_t id;    /* enum ef_header_id */
    uint8_t flags; /* EF_SPAN_* */
} ef_span;
_Static_assert(sizeof(ef_span) == 24, "ef_span layout");

enum ef_body_kind {
    EF_BODY_NONE = 0,   /* no body bytes follow */
    EF_BODY_LENGTH = 1, /* content_length bytes follow (> 0) */
    EF_BODY_CHUNKED = 2,
    EF_BODY_EOF = 3, /* responses only: until the connection closes */
};

/* Methods that httptools (llhttp) knows in a request; the order is ours, alphabetical. 0 is unknown. */
enum ef_method {
    EF_M_UNKNOWN = 0,
    EF_M_ACL,
    EF_M_BIND,
    EF_M_CHECKOUT,
    EF_M_CONNECT,
    EF_M_COPY,
    EF_M_DELETE,
    EF_M_GET,
    EF_M_HEAD,
    EF_M_LINK,
    EF_M_LOCK,
    EF_M_MSEARCH,
    EF_M_MERGE,
    EF_M_MKACTIVITY,
    EF_M_MKCALENDAR,
    EF_M_MKCOL,
    EF_M_MOVE,
    EF_M_NOTIFY,
    EF_M_OPTIONS,
    EF_M_PATCH,
    EF_M_POST,
    EF_M_PROPFIND,
    EF_M_PROPPATCH,
    EF_M_PURGE,
    EF_M_PUT,
    EF_M_QUERY,
    EF_M_REBIND,
    EF_M_REPORT,
    EF_M_SEARCH,
    EF_M_SOURCE,
    EF_M_SUBSCRIBE,
    EF_M_TRACE,
    EF_M_UNBIND,
    EF_M_UNLINK,
    EF_M_UNLOCK,
    EF_M_UNSUBSCRIBE,
    EF_M_COUNT
};

/* Why a head was refused. ef_head_error_text() gives the short text/plain reason; names are metric labels. */
enum ef_head_error {
    EF_E_NONE = 0,
    EF_E_LINE,
    EF_E_BARE_LF,
    EF_E_METHOD,
    EF_E_UNKNOWN_METHOD,
    EF_E_REFUSED_METHOD,
    EF_E_TARGET,
    EF_E_VERSION,
    EF_E_HTTP09,
    EF_E_HTTP10,
    EF_E_VERSION_UNSUPPORTED,
    EF_E_LINE_TOO_LONG,
    EF_E_HEAD_TOO_LARGE,
    EF_E_TOO_MANY_HEADERS,
    EF_E_NAME,
    EF_E_VALUE,
    EF_E_FOLD,
    EF_E_UNDERSCORE,
    EF_E_NO_HOST,
    EF_E_MANY_HOSTS,
    EF_E_HOST,
    EF_E_AUTHORITY,
    EF_E_CONTENT_LENGTH,
    EF_E_MANY_CONTENT_LENGTHS,
    EF_E_TRANSFER_ENCODING,
    EF_E_CODING_UNKNOWN,
    EF_E_BOTH_LENGTHS,
    EF_E_EXPECT,
    EF_E_STATUS,
    EF_E_COUNT
};

enum ef_underscore { EF_UNDERSCORE_REJECT = 0, EF_UNDERSCORE_ALLOW = 1, EF_UNDERSCORE_DROP = 2 };
enum ef_raw { EF_RAW_REJECT = 0, EF_RAW_ALLOW = 1 };
/* HTTP/1.0 requests: 426; accepted with a Host or an absolute target; accepted without either, too. */
enum ef_http10 { EF_HTTP10_REJECT = 0, EF_HTTP10_WITH_HOST = 1, EF_HTTP10_ALLOW = 2 };

/* Bits of ef_head.notes: rare properties of a request's target or Host; other requests skip the work for them. */
#define EF_NOTE_PARAMETERS 1u /* the path has a ';' */
#define EF_NOTE_RAW        2u /* the path has a '|': ef_path_encode_raw() comes before ef_path_normalize() */
#define EF_NOTE_HOST_DOT   4u /* Host has a dot behind its name: ef_head_drop_host_dot() */

typedef struct ef_head_limits {
    uint32_t head;       /* bytes of the whole head: 431 */
    uint32_t line;       /* bytes of the request line without its CRLF: 414 */
    uint32_t count;      /* header lines, <= EF_MAX_HEADERS: 431 */
    uint32_t underscore; /* enum ef_underscore */
    uint32_t raw;        /* enum ef_raw: raw characters in the target; 400 */
    uint32_t http10;     /* enum ef_http10, of requests */
} ef_head_limits;

typedef struct ef_head {
    /* resume state: zero it (ef_head_reset) before the first call of a message */
    uint32_t line_start; /* first byte of the line not parsed yet */
    uint32_t searched;   /* no control byte in [line_start, searched) */
    uint32_t seen_flags; /* internal: which framing headers were seen */
    /* results */
    uint32_t head_len;
    int32_t error;  /* enum ef_head_error */
    int32_t status; /* what to answer: requests only; 502 for responses */
    uint32_t method_off, method_len;
    uint32_t target_off, target_len; /* path and query; "*" for OPTIONS *; may be empty: see target_empty_path */
    uint32_t path_len;               /* of target up to, without '?' */
    uint32_t host_off, host_len; /* host without port and final dot (IP literals with their brackets), case as sent; */
                                 /* host_len 0: HTTP/1.0 without Host, authority is that of an absolute target */
    uint32_t authority_off, authority_len; /* the whole Host value */
    uint32_t host_port;                    /* 0: none given */
    uint64_t content_length;               /* EF_BODY_LENGTH only, else 0 */
    uint16_t response_status;              /* responses: 100..999 */
    uint16_t n_spans;
    uint16_t version_minor;  /* 0 or 1 */
    uint8_t method;          /* enum ef_method */
    uint8_t body;            /* enum ef_body_kind */
    uint8_t keep_alive;      /* by version and Connection */
    uint8_t upgrade;         /* Connection: upgrade and a non-empty Upgrade (never h2c: that one is dropped) */
    uint8_t expect_continue; /* requests: Expect: 100-continue and a body announced */
    uint8_t has_date, has_server;
    uint8_t te_trailers;
    uint8_t has_connection_tokens; /* Connection names other headers: at least one span carries EF_SPAN_NOMINATED */
    uint8_t absolute_scheme;   /* requests: 0 no absolute-form, 1 "http://", 2 "https://": does it fit the listener? */
    uint8_t target_empty_path; /* "http://a" or "http://a?x": target is "" or "?x", path_len 0; put "/" before it */
    uint8_t nominates;         /* Connection names a field other than TE, which may also be one behind the body */
    uint8_t grpc;              /* enum ef_grpc_kind by Content-Type; of requests only with POST */
    uint8_t notes;             /* EF_NOTE_* */
    ef_span spans[EF_MAX_HEADERS];
} ef_head;

void ef_head_reset(ef_head *head); /* everything but the spans: those are written before n_spans counts them */

/* Scan a request head. See the top of the file. Leading empty lines: at most one CRLF is skipped (RFC 9112 2.2) and counts
 * into head_len. */
int ef_head_scan_request(ef_head *head, const ef_head_limits *limits, const uint8_t *buf, size_t len);

/* Remove the dot after Host's name from the bytes of an accepted request: "a.:80" becomes "a:80 ". Routing, matches,
 * logs, services and backends then read the same name. The length of the head and all other lines stay the same. */
void ef_head_drop_host_dot(ef_head *head, uint8_t *buf);

/* Bytes of a Host line without its value. */
#define EF_HOST_LINE 8u

/* Write an accepted head without Host (host_len 0) into `out`, with a Host line as its first: the authority of an absolute
 * target, else `host`. Room: head_len, the longer of authority_len and len, EF_HOST_LINE. Returns the length. The caller
 * scans the result, which every later reader takes for the head; method, version and target keep their offsets. */
size_t ef_head_add_host(const ef_head *head, const uint8_t *buf, const uint8_t *host, size_t len, uint8_t *out);

/* Scan a response head. `request_method` (enum ef_method) decides body framing (HEAD; RFC 9112 6.3). 1xx, 204, 304: no body.
 * A response with EF_BODY_EOF is never keep_alive, nor is a 1xx or 204 that announces a body. HTTP/1.0: keep_alive only with
 * Connection: keep-alive, no Transfer-Encoding. Any fault: EF_BAD with status 502. Header names with '_' are allowed in
 * responses; 101 sets upgrade. limits->line and limits->underscore are not used. */
int ef_head_scan_response(ef_head *head, const ef_head_limits *limits, const uint8_t *buf, size_t len,
                          unsigned request_method);

/* FNV-1a over the ASCII-lower-cased name, 32 bit. The same function the table compiler uses for header predicates. */
uint32_t ef_name_hash(const uint8_t *name, size_t len);

const char *ef_head_error_text(int error); /* "two Content-Length headers" ... never NULL */
const char *ef_head_error_name(int error); /* "many_content_lengths" ... metric label */
const char *ef_method_name(unsigned method);
unsigned ef_method_lookup(const uint8_t *name, size_t len); /* EF_M_UNKNOWN if not known */

/* Value of a comma list contains the token (given in lower case), ASCII case-insensitive (Connection, TE, Upgrade). */
int ef_list_has(const uint8_t *value, size_t len, const char *token);

#endif
