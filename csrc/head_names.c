/* head_names.c - header names and methods to numbers and back: a switch on the length, then one comparison or few.
 *
 * In: bytes of a token. Out: enum ef_header_id (case-insensitive), enum ef_method (case-sensitive, RFC 9110 9.1), hashes.
 */
#include <string.h>

#include "internal/charset.h"
#include "internal/head_scan.h"
#include "internal/name.h"

/* The name equals the lower-case literal of its length. Only for checked tokens: among those, setting bit 5 maps to a
 * lower-case letter, a digit or '-' exactly the bytes meant. The length is a constant, so this is one to four word compares. */
#define IS(literal) (same_name(name, literal, sizeof(literal) - 1))

static inline int same_name(const uint8_t *name, const char *literal, size_t len) {
    const uint64_t bit5 = 0x2020202020202020u;
    uint64_t a;
    uint64_t b;
    size_t i = 0;
    for (; i + 8 <= len; i += 8) {
        memcpy(&a, name + i, 8);
        memcpy(&b, literal + i, 8);
        if ((a | bit5) != b) return 0;
    }
    if (i == len) return 1;
    if (len >= 8) { /* the rest by a word that overlaps */
        memcpy(&a, name + len - 8, 8);
        memcpy(&b, literal + len - 8, 8);
        return (a | bit5) == b;
    }
    for (; i < len; i++)
        if ((name[i] | 0x20) != (uint8_t)literal[i]) return 0;
    return 1;
}

/* What backends take for a proxy's word about a request: who sent it, to which host, path and scheme. x-forwarded-for and
 * x-forwarded-proto have numbers of their own. */
static int is_forwarding(const uint8_t *name, size_t len) {
    switch (len) {
    case 9:
        return IS("forwarded") || IS("x-real-ip");
    case 13:
        if (IS("x-rewrite-url")) return 1;
        break;
    case 14:
        if (IS("x-original-url") || IS("x-original-uri")) return 1;
        break;
    case 15:
        if (IS("x-original-host")) return 1;
        break;
    default:
        break;
    }
    return len > 12 && IS("x-forwarded-");
}

unsigned ef_header_lookup(const uint8_t *name, size_t len) {
    switch (len) {
    case 2:
        return IS("te") ? EF_H_TE : EF_H_OTHER;
    case 3:
        return IS("via") ? EF_H_VIA : EF_H_OTHER;
    case 4:
        return IS("host") ? EF_H_HOST : IS("date") ? EF_H_DATE : EF_H_OTHER;
    case 6:
        return IS("origin") ? EF_H_ORIGIN : IS("server") ? EF_H_SERVER : IS("expect") ? EF_H_EXPECT : EF_H_OTHER;
    case 7:
        if (IS("upgrade")) return EF_H_UPGRADE;
        if (IS("trailer")) return EF_H_TRAILER;
        break;
    case 10:
        if (IS("connection")) return EF_H_CONNECTION;
        if (IS("keep-alive")) return EF_H_KEEP_ALIVE;
        break;
    case 12:
        if (IS("content-type")) return EF_H_CONTENT_TYPE;
        if (IS("x-request-id")) return EF_H_X_REQUEST_ID;
        break;
    case 14:
        if (IS("content-length")) return EF_H_CONTENT_LENGTH;
        if (IS("http2-settings")) return EF_H_HTTP2_SETTINGS;
        break;
    case 15:
        if (IS("x-forwarded-for")) return EF_H_X_FORWARDED_FOR;
        break;
    case 16:
        if (IS("proxy-connection")) return EF_H_PROXY_CONNECTION;
        break;
    case 17:
        if (IS("transfer-encoding")) return EF_H_TRANSFER_ENCODING;
        if (IS("x-forwarded-proto")) return EF_H_X_FORWARDED_PROTO;
        break;
    case 18:
        if (IS("proxy-authenticate")) return EF_H_PROXY_AUTHENTICATE;
        break;
    case 29:
        if (IS("access-control-request-method")) return EF_H_ACCESS_CONTROL_REQUEST_METHOD;
        break;
    default:
        break;
    }
    if ((name[0] | 0x20) != 'x' && (name[0] | 0x20) != 'f') return EF_H_OTHER;
    if (len >= 7 && IS("x-edge-")) return EF_H_X_EDGE;
    return is_forwarding(name, len) ? EF_H_FORWARDING : EF_H_OTHER;
}

uint32_t ef_name_hash(const uint8_t *name, size_t len) { return ef_name_hash_of(name, len); }

static const char *const method_names[EF_M_COUNT] = {
    [EF_M_UNKNOWN] = "",
    [EF_M_ACL] = "ACL",
    [EF_M_BIND] = "BIND",
    [EF_M_CHECKOUT] = "CHECKOUT",
    [EF_M_CONNECT] = "CONNECT",
    [EF_M_COPY] = "COPY",
    [EF_M_DELETE] = "DELETE",
    [EF_M_GET] = "GET",
    [EF_M_HEAD] = "HEAD",
    [EF_M_LINK] = "LINK",
    [EF_M_LOCK] = "LOCK",
    [EF_M_MSEARCH] = "M-SEARCH",
    [EF_M_MERGE] = "MERGE",
    [EF_M_MKACTIVITY] = "MKACTIVITY",
    [EF_M_MKCALENDAR] = "MKCALENDAR",
    [EF_M_MKCOL] = "MKCOL",
    [EF_M_MOVE] = "MOVE",
    [EF_M_NOTIFY] = "NOTIFY",
    [EF_M_OPTIONS] = "OPTIONS",
    [EF_M_PATCH] = "PATCH",
    [EF_M_POST] = "POST",
    [EF_M_PROPFIND] = "PROPFIND",
    [EF_M_PROPPATCH] = "PROPPATCH",
    [EF_M_PURGE] = "PURGE",
    [EF_M_PUT] = "PUT",
    [EF_M_QUERY] = "QUERY",
    [EF_M_REBIND] = "REBIND",
    [EF_M_REPORT] = "REPORT",
    [EF_M_SEARCH] = "SEARCH",
    [EF_M_SOURCE] = "SOURCE",
    [EF_M_SUBSCRIBE] = "SUBSCRIBE",
    [EF_M_TRACE] = "TRACE",
    [EF_M_UNBIND] = "UNBIND",
    [EF_M_UNLINK] = "UNLINK",
    [EF_M_UNLOCK] = "UNLOCK",
    [EF_M_UNSUBSCRIBE] = "UNSUBSCRIBE",
};

const char *ef_method_name(unsigned method) { return method < EF_M_COUNT ? method_names[method] : ""; }

/* Nearly all requests are one of five; the rest is searched for, 36 comparisons of a length at most. */
unsigned ef_method_lookup(const uint8_t *name, size_t len) {
    switch (len) {
    case 3:
        if (memcmp(name, "GET", 3) == 0) return EF_M_GET;
        if (memcmp(name, "PUT", 3) == 0) return EF_M_PUT;
        break;
    case 4:
        if (memcmp(name, "POST", 4) == 0) return EF_M_POST;
        if (memcmp(name, "HEAD", 4) == 0) return EF_M_HEAD;
        break;
    case 6:
        if (memcmp(name, "DELETE", 6) == 0) return EF_M_DELETE;
        break;
    default:
        break;
    }
    for (unsigned i = 1; i < EF_M_COUNT; i++)
        if (strlen(method_names[i]) == len && memcmp(method_names[i], name, len) == 0) return i;
    return EF_M_UNKNOWN;
}
