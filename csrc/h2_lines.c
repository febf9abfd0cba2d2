/* h2_lines.c - cuts lines into pairs.
 *
 * In: text that this proxy wrote from heads it had checked. Out: pairs. It must not trust that: what is no line is refused, or a
 * value could reach HPACK with a line's end in it.
 */
#include "h2_lines.h"

#include <string.h>

#include "internal/charset.h"
#include "internal/control.h"
#include "internal/head_scan.h"

typedef struct lines {
    uint8_t *text;
    size_t at, len;
    ef_h2_pair *pairs;
    size_t n, room;
    int is_tunnel;
} lines;

static int add(lines *it, const void *name, size_t name_len, const void *value, size_t value_len) {
    if (it->n == it->room) return EF_BAD;
    ef_h2_pair *pair = &it->pairs[it->n++];
    memset(pair, 0, sizeof(*pair));
    pair->name = (uint8_t *)(uintptr_t)name;
    pair->value = (uint8_t *)(uintptr_t)value;
    pair->name_len = name_len;
    pair->value_len = value_len;
    return 0;
}

static int add_pseudo(lines *it, const char *name, const void *value, size_t len) {
    return add(it, name, strlen(name), value, len);
}

/* The next line, without its CRLF: 1; 0 at the end of the text; EF_BAD. */
static int next_line(lines *it, size_t *start, size_t *end) {
    if (it->at == it->len) return 0;
    *start = it->at;
    *end = ef_find_control(it->text, it->at, it->len);
    if (it->len - *end < 2 || it->text[*end] != '\r' || it->text[*end + 1] != '\n') return EF_BAD;
    it->at = *end + 2;
    return 1;
}

/* What becomes of a line: EF_BAD, it is left out; else the flags of its pair. */
static int classify(const lines *it, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len) {
    switch (ef_header_lookup(name, name_len)) {
    case EF_H_CONNECTION:
    case EF_H_KEEP_ALIVE:
    case EF_H_PROXY_CONNECTION:
    case EF_H_TRANSFER_ENCODING:
    case EF_H_UPGRADE:
    case EF_H_HTTP2_SETTINGS:
        return EF_BAD;
    case EF_H_TE:
        return value_len == 8 && ef_equals_lower(value, "trailers", 8) ? 0 : EF_BAD;
    case EF_H_CONTENT_LENGTH:
        return it->is_tunnel ? EF_BAD : 0;
    case EF_H_X_REQUEST_ID:
        return (int)EF_H2_PAIR_VARIES;
    case EF_H_X_EDGE:
        return name_len == 28 && memcmp(name, "x-edge-upstream-service-time", 28) == 0 ? (int)EF_H2_PAIR_VARIES : 0;
    case EF_H_OTHER:
        break;
    default:
        return 0;
    }
    if (!it->is_tunnel) return 0;
    const int is_tunnels = (name_len == 17 && memcmp(name, "sec-websocket-key", 17) == 0) ||
                           (name_len == 20 && memcmp(name, "sec-websocket-accept", 20) == 0);
    return is_tunnels ? EF_BAD : 0;
}

/* One line, its name lower-cased; `authority`: where Host goes, or NULL when Host is a field like others. */
static int take_line(lines *it, size_t start, size_t end, ef_h2_pair *authority) {
    uint8_t *text = it->text;
    size_t colon = start;
    while (colon < end && ef_token_lower[text[colon]]) {
        text[colon] = ef_token_lower[text[colon]];
        colon++;
    }
    if (colon == start || colon == end || text[colon] != ':') return EF_BAD;
    size_t value = colon + 1;
    while (value < end && ef_is_ows(text[value]))
        value++;
    while (end > value && ef_is_ows(text[end - 1]))
        end--;
    const int flags = classify(it, text + start, colon - start, text + value, end - value);
    if (flags == EF_BAD) return 0;
    if (authority != NULL && colon - start == 4 && memcmp(text + start, "host", 4) == 0) {
        if (authority->value_len > 0 || end == value) return EF_BAD;
        authority->value = text + value;
        authority->value_len = end - value;
        return 0;
    }
    if (add(it, text + start, colon - start, text + value, end - value) != 0) return EF_BAD;
    it->pairs[it->n - 1].flags = (uint8_t)flags;
    return 0;
}

/* All further lines. Nothing may stand behind an empty one. */
static int take_lines(lines *it, ef_h2_pair *authority) {
    size_t start, end;
    int rc;
    while ((rc = next_line(it, &start, &end)) == 1) {
        if (start == end) return it->at == it->len ? (int)it->n : EF_BAD;
        if (take_line(it, start, end, authority) != 0) return EF_BAD;
    }
    return rc == 0 ? (int)it->n : EF_BAD;
}

int ef_h2_lines_response(uint8_t *text, size_t len, int is_tunnel, ef_h2_pair *pairs, size_t room) {
    lines it = {text, 0, len, pairs, 0, room, is_tunnel};
    size_t start, end;
    if (next_line(&it, &start, &end) != 1 || end < 12 || memcmp(text, "HTTP/1.", 7) != 0 || text[8] != ' ')
        return EF_BAD;
    for (size_t i = 9; i < 12; i++)
        if (!ef_is(text[i], EF_CLASS_DIGIT)) return EF_BAD;
    const int is_switch = memcmp(text + 9, "101", 3) == 0;
    if (is_switch && !is_tunnel) return EF_BAD; /* HTTP/2 has none (RFC 9113 8.6) */
    it.is_tunnel = is_switch;
    if (add_pseudo(&it, ":status", is_switch ? (const void *)"200" : text + 9, 3) != 0) return EF_BAD;
    return take_lines(&it, NULL);
}

int ef_h2_lines_request(uint8_t *text, size_t len, int is_tls, int is_tunnel, ef_h2_pair *pairs, size_t room) {
    static const char connect[] = "CONNECT";
    lines it = {text, 0, len, pairs, 0, room, is_tunnel};
    size_t start, end;
    if (next_line(&it, &start, &end) != 1) return EF_BAD;
    const uint8_t *space = memchr(text, ' ', end);
    if (space == NULL || space == text) return EF_BAD;
    const size_t path = (size_t)(space - text) + 1;
    const uint8_t *last = memchr(text + path, ' ', end - path);
    if (last == NULL || last == text + path) return EF_BAD;
    const size_t path_end = (size_t)(last - text);
    if (end - path_end != 9 || memcmp(last, " HTTP/1.1", 9) != 0) return EF_BAD;
    if (is_tunnel ? add_pseudo(&it, ":method", connect, 7) : add_pseudo(&it, ":method", text, path - 1)) return EF_BAD;
    if (add_pseudo(&it, ":scheme", is_tls ? "https" : "http", is_tls ? 5 : 4) != 0) return EF_BAD;
    if (add_pseudo(&it, ":path", text + path, path_end - path) != 0) return EF_BAD;
    if (add_pseudo(&it, ":authority", text, 0) != 0) return EF_BAD;
    ef_h2_pair *authority = &pairs[it.n - 1];
    if (is_tunnel && add_pseudo(&it, ":protocol", "websocket", 9) != 0) return EF_BAD;
    const int n = take_lines(&it, authority);
    return n < 0 || authority->value_len == 0 ? EF_BAD : n; /* the proxy has made sure of a Host */
}

int ef_h2_lines_trailers(uint8_t *text, size_t len, ef_h2_pair *pairs, size_t room) {
    lines it = {text, 0, len, pairs, 0, room, 0};
    return take_lines(&it, NULL);
}
