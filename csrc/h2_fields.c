/* h2_fields.c - what a field of an HTTP/2 message may be (RFC 9113 8.2, 8.3; RFC 8441 4).
 *
 * In: names and values as HPACK decodes them. Out: 0, or a refusal. Whatever HTTP/1.1 could read as something else (a line's
 * end, a colon, a space, a second length) must be refused here; what is only unwise is left to the scan of the text.
 */
#include <string.h>

#include "internal/charset.h"
#include "internal/control.h"
#include "internal/h2_text.h"
#include "internal/head_scan.h"

static int equals(const uint8_t *value, size_t len, const char *lower) {
    return strlen(lower) == len && ef_equals_lower(value, lower, len);
}

static int is_name(const uint8_t *name, size_t len, const char *lower) {
    return strlen(lower) == len && memcmp(name, lower, len) == 0;
}

int ef_h2_pseudo_lookup(enum ef_h2_kind kind, const uint8_t *name, size_t len) {
    static const char *const names[EF_H2_PSEUDO] = {":method",    ":scheme",   ":path",
                                                    ":authority", ":protocol", ":status"};
    const int first = kind == EF_H2_REQUEST ? EF_H2_METHOD : kind == EF_H2_RESPONSE ? EF_H2_STATUS : EF_H2_PSEUDO;
    const int behind = kind == EF_H2_REQUEST ? EF_H2_STATUS : EF_H2_PSEUDO;
    for (int i = first; i < behind; i++)
        if (is_name(name, len, names[i])) return i;
    return -1;
}

/* --- pseudo fields -------------------------------------------------------------------------------------------------- */

static int check_method(ef_h2_text *text) {
    const uint8_t *method = ef_h2_pseudo_value(text, EF_H2_METHOD);
    const uint32_t len = text->pseudo_len[EF_H2_METHOD];
    if (len == 0) return ef_h2_refuse(text, EF_H2_E_METHOD, 0);
    for (uint32_t i = 0; i < len; i++)
        if (ef_token_lower[method[i]] == 0) return ef_h2_refuse(text, EF_H2_E_METHOD, 0);
    return 0;
}

/* Never an absolute form: that would name an authority a second time. */
static int check_path(ef_h2_text *text) {
    const uint8_t *path = ef_h2_pseudo_value(text, EF_H2_PATH);
    const uint32_t len = text->pseudo_len[EF_H2_PATH];
    if (len == 0 || (path[0] != '/' && !(path[0] == '*' && len == 1))) return ef_h2_refuse(text, EF_H2_E_PATH, 0);
    for (uint32_t i = 0; i < len; i++)
        if (!ef_is(path[i], EF_CLASS_PATH | EF_CLASS_QUERY | EF_CLASS_RAW |
                                EF_CLASS_RAW_QUERY)) /* the scan decides which of them */
            return ef_h2_refuse(text, EF_H2_E_PATH, 400);
    return 0;
}

static int check_status(ef_h2_text *text) {
    const uint8_t *status = ef_h2_pseudo_value(text, EF_H2_STATUS);
    if (!(text->seen & EF_H2_SEEN(EF_H2_STATUS))) return ef_h2_refuse(text, EF_H2_E_PSEUDO_MISSING, 0);
    if (text->pseudo_len[EF_H2_STATUS] != 3) return ef_h2_refuse(text, EF_H2_E_STATUS, 0);
    for (int i = 0; i < 3; i++)
        if (!ef_is(status[i], EF_CLASS_DIGIT)) return ef_h2_refuse(text, EF_H2_E_STATUS, 0);
    if (status[0] == '0' || memcmp(status, "101", 3) == 0) return ef_h2_refuse(text, EF_H2_E_STATUS, 0);
    return 0;
}

static int check_scheme(ef_h2_text *text) {
    const char *ours = text->is_tls ? "https" : "http";
    if (equals(ef_h2_pseudo_value(text, EF_H2_SCHEME), text->pseudo_len[EF_H2_SCHEME], ours)) return 0;
    return ef_h2_refuse(text, EF_H2_E_SCHEME, 400);
}

int ef_h2_check_pseudo(ef_h2_text *text) {
    const uint32_t target = EF_H2_SEEN(EF_H2_SCHEME) | EF_H2_SEEN(EF_H2_PATH);
    const uint32_t authority = EF_H2_SEEN(EF_H2_AUTHORITY);
    if (text->kind == EF_H2_TRAILERS) return 0;
    if (text->kind == EF_H2_RESPONSE) return check_status(text);
    if (!(text->seen & EF_H2_SEEN(EF_H2_METHOD))) return ef_h2_refuse(text, EF_H2_E_PSEUDO_MISSING, 0);
    if (check_method(text) != 0) return EF_BAD;

    const int is_connect =
        text->pseudo_len[EF_H2_METHOD] == 7 && memcmp(ef_h2_pseudo_value(text, EF_H2_METHOD), "CONNECT", 7) == 0;
    if (text->seen & EF_H2_SEEN(EF_H2_PROTOCOL)) {
        if (!is_connect) return ef_h2_refuse(text, EF_H2_E_PROTOCOL, 0);
        if (!(text->seen & authority)) return ef_h2_refuse(text, EF_H2_E_PSEUDO_MISSING, 0);
    } else if (is_connect) { /* RFC 9113 8.5; the answer is 405, as in HTTP/1.1 */
        if (text->seen & target) return ef_h2_refuse(text, EF_H2_E_PSEUDO, 0);
        if (!(text->seen & authority)) return ef_h2_refuse(text, EF_H2_E_PSEUDO_MISSING, 0);
        return ef_h2_refuse(text, EF_H2_E_METHOD, 405);
    }
    if ((text->seen & target) != target) return ef_h2_refuse(text, EF_H2_E_PSEUDO_MISSING, 0);
    if (check_path(text) != 0 || check_scheme(text) != 0) return EF_BAD;
    if (!is_connect) return 0;
    if (!equals(ef_h2_pseudo_value(text, EF_H2_PROTOCOL), text->pseudo_len[EF_H2_PROTOCOL], "websocket"))
        return ef_h2_refuse(text, EF_H2_E_PROTOCOL, 501);
    text->is_tunnel = 1;
    return 0;
}

/* --- fields --------------------------------------------------------------------------------------------------------- */

static int check_host(ef_h2_text *text, const uint8_t *value, size_t len) {
    const uint8_t *host = text->buf + text->host_off;
    if (text->kind == EF_H2_RESPONSE) return 0;
    if (text->seen & EF_H2_SEEN_HOST) return ef_h2_refuse(text, EF_H2_E_HOST, 0);
    text->seen |= EF_H2_SEEN_HOST;
    if (!(text->seen & EF_H2_SEEN(EF_H2_AUTHORITY))) return 0;
    if (len != text->host_len) return ef_h2_refuse(text, EF_H2_E_HOST, 0);
    for (size_t i = 0; i < len; i++)
        if (ef_lower(value[i]) != ef_lower(host[i])) return ef_h2_refuse(text, EF_H2_E_HOST, 0);
    return 1;
}

static int is_tunnels_own(const uint8_t *name, size_t len) { return is_name(name, len, "sec-websocket-key"); }

int ef_h2_check_field(ef_h2_text *text, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len) {
    if (name_len == 0) return ef_h2_refuse(text, EF_H2_E_NAME, 0);
    for (size_t i = 0; i < name_len; i++)
        if (ef_token_lower[name[i]] == 0 || ef_token_lower[name[i]] != name[i])
            return ef_h2_refuse(text, EF_H2_E_NAME, 0);
    if (value_len > 0 && (ef_is_ows(value[0]) || ef_is_ows(value[value_len - 1])))
        return ef_h2_refuse(text, EF_H2_E_VALUE, 0);
    if (ef_find_control(value, 0, value_len) != value_len) return ef_h2_refuse(text, EF_H2_E_VALUE, 0);

    const int in_trailers = text->kind == EF_H2_TRAILERS;
    switch (ef_header_lookup(name, name_len)) {
    case EF_H_CONNECTION:
    case EF_H_KEEP_ALIVE:
    case EF_H_PROXY_CONNECTION:
    case EF_H_TRANSFER_ENCODING:
    case EF_H_UPGRADE:
        return ef_h2_refuse(text, EF_H2_E_CONNECTION, 0);
    case EF_H_HOST:
        return in_trailers ? ef_h2_refuse(text, EF_H2_E_TRAILER, 0) : check_host(text, value, value_len);
    case EF_H_CONTENT_LENGTH:
        if (in_trailers) return ef_h2_refuse(text, EF_H2_E_TRAILER, 0);
        if (text->is_tunnel) return ef_h2_refuse(text, EF_H2_E_CONTENT_LENGTH, 0); /* what follows is no body */
        if (text->seen & EF_H2_SEEN_CONTENT_LENGTH) return ef_h2_refuse(text, EF_H2_E_CONTENT_LENGTH, 0);
        text->seen |= EF_H2_SEEN_CONTENT_LENGTH;
        return 0;
    case EF_H_TE:
        if (in_trailers) return ef_h2_refuse(text, EF_H2_E_TRAILER, 0);
        return equals(value, value_len, "trailers") ? 0 : ef_h2_refuse(text, EF_H2_E_TE, 0);
    case EF_H_TRAILER:
        return in_trailers ? ef_h2_refuse(text, EF_H2_E_TRAILER, 0) : 0;
    default: /* the key of a tunnel is made by us: HTTP/2 has none (RFC 8441 5.1) */
        return text->is_tunnel && is_tunnels_own(name, name_len);
    }
}
