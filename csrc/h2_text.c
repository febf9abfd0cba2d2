/* h2_text.c - writes the canonical HTTP/1.1 text of an HTTP/2 message, and proves it with the scan.
 *
 * In: fields that h2_fields.c let pass. Out: bytes in the caller's buffer. Must never write behind `room`, nor a line whose
 * parts were not checked.
 */
#include "h2_text.h"

#include <string.h>

#include "internal/h2_text.h"

int ef_h2_refuse(ef_h2_text *text, enum ef_h2_error error, int status) {
    if (text->error == EF_H2_E_NONE) {
        text->error = (int32_t)error;
        text->status = status;
    }
    return EF_BAD;
}

static uint32_t part_room(const ef_head_limits *limits) {
    return limits->head < EF_MAX_HEAD ? limits->head : EF_MAX_HEAD;
}

size_t ef_h2_text_room(const ef_head_limits *limits) { return 2 * (size_t)part_room(limits); }

void ef_h2_text_begin(ef_h2_text *text, enum ef_h2_kind kind, int is_tls, const ef_head_limits *limits, uint8_t *buf) {
    memset(text, 0, sizeof(*text));
    text->buf = buf;
    text->room = part_room(limits);
    text->kind = (uint8_t)kind;
    text->is_tls = is_tls != 0;
    if (kind == EF_H2_TRAILERS) text->seen = EF_H2_SEEN_FIELD; /* there is no first line */
}

/* The limits leave room for all that is written (h2_text.h): this is what holds if that is ever wrong. */
static int put(ef_h2_text *text, const void *data, size_t len) {
    if (len > text->room - text->len) return ef_h2_refuse(text, EF_H2_E_TOO_LARGE, 431);
    if (len > 0) memcpy(text->buf + text->len, data, len);
    text->len += (uint32_t)len;
    return 0;
}

static int hold(ef_h2_text *text, const void *data, size_t len) {
    if (len > text->room - text->held) return ef_h2_refuse(text, EF_H2_E_TOO_LARGE, 431);
    if (len > 0) memcpy(text->buf + text->room + text->held, data, len);
    text->held += (uint32_t)len;
    return 0;
}

static int put_literal(ef_h2_text *text, const char *literal) { return put(text, literal, strlen(literal)); }

static int put_pseudo(ef_h2_text *text, enum ef_h2_pseudo which) {
    return put(text, ef_h2_pseudo_value(text, which), text->pseudo_len[which]);
}

static int put_line(ef_h2_text *text, const void *name, size_t name_len, const void *value, size_t value_len) {
    if (put(text, name, name_len) != 0 || put(text, ": ", 2) != 0 || put(text, value, value_len) != 0) return EF_BAD;
    text->lines++;
    return put(text, "\r\n", 2);
}

/* The first line, and Host. What was held is written with it. */
static int put_first_line(ef_h2_text *text, const ef_head_limits *limits) {
    text->seen |= EF_H2_SEEN_FIELD;
    if (ef_h2_check_pseudo(text) != 0) return EF_BAD;
    if (text->kind == EF_H2_RESPONSE) {
        if (put_literal(text, "HTTP/1.1 ") != 0 || put_pseudo(text, EF_H2_STATUS) != 0) return EF_BAD;
        text->held = 0;
        return put_literal(text, " \r\n");
    }
    if (text->is_tunnel ? put_literal(text, "GET") : put_pseudo(text, EF_H2_METHOD)) return EF_BAD;
    if (put_literal(text, " ") != 0 || put_pseudo(text, EF_H2_PATH) != 0) return EF_BAD;
    if (put_literal(text, " HTTP/1.1") != 0) return EF_BAD;
    if (text->len > limits->line) return ef_h2_refuse(text, EF_H2_E_TOO_LARGE, 414);
    if (put_literal(text, "\r\n") != 0) return EF_BAD;
    if (text->seen & EF_H2_SEEN(EF_H2_AUTHORITY)) {
        const uint8_t *authority = ef_h2_pseudo_value(text, EF_H2_AUTHORITY);
        const uint32_t len = text->pseudo_len[EF_H2_AUTHORITY];
        text->host_off = text->len + 6;
        text->host_len = len;
        for (uint32_t i = 0; i < len; i++) /* no byte that could end the line; the scan wants far less than these */
            if (authority[i] <= ' ' || authority[i] >= 0x7f) return ef_h2_refuse(text, EF_H2_E_HOST, 400);
        if (put_line(text, "host", 4, authority, len) != 0) return EF_BAD;
    }
    text->held = 0;
    return 0;
}

static int take_pseudo(ef_h2_text *text, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len) {
    if (text->seen & EF_H2_SEEN_FIELD) return ef_h2_refuse(text, EF_H2_E_PSEUDO_LATE, 0);
    const int which = ef_h2_pseudo_lookup((enum ef_h2_kind)text->kind, name, name_len);
    if (which < 0) return ef_h2_refuse(text, EF_H2_E_PSEUDO, 0);
    if (text->seen & EF_H2_SEEN(which)) return ef_h2_refuse(text, EF_H2_E_PSEUDO_REPEATED, 0);
    text->seen |= EF_H2_SEEN(which);
    text->pseudo_off[which] = text->held;
    text->pseudo_len[which] = (uint32_t)value_len;
    if (which == EF_H2_AUTHORITY) text->count++; /* the line of Host */
    if (which == EF_H2_PROTOCOL) text->count += 3;
    return hold(text, value, value_len);
}

static int take_cookie(ef_h2_text *text, const uint8_t *value, size_t len) {
    text->seen |= EF_H2_SEEN_COOKIE;
    if (len == 0) return 0; /* no crumb: the line must not end in a space */
    if (text->held > 0 && hold(text, "; ", 2) != 0) return EF_BAD;
    return hold(text, value, len);
}

int ef_h2_text_field(ef_h2_text *text, const ef_head_limits *limits, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len) {
    const uint32_t most = limits->count < EF_MAX_HEADERS ? limits->count : EF_MAX_HEADERS;
    const int is_pseudo = name_len > 0 && name[0] == ':';
    text->cost += name_len + value_len + EF_H2_FIELD_COST;
    if (text->cost > (uint64_t)text->room * EF_H2_FLOOD) return EF_H2_CLOSE;
    if (text->error != EF_H2_E_NONE) return EF_BAD;
    if (!is_pseudo) text->count++;
    if (text->cost > text->room || text->count > most) return ef_h2_refuse(text, EF_H2_E_TOO_LARGE, 431);
    if (is_pseudo) {
        const int rc = take_pseudo(text, name, name_len, value, value_len);
        return rc != 0 || text->count <= most ? rc : ef_h2_refuse(text, EF_H2_E_TOO_LARGE, 431);
    }
    if (!(text->seen & EF_H2_SEEN_FIELD) && put_first_line(text, limits) != 0) return EF_BAD;
    const int rc = ef_h2_check_field(text, name, name_len, value, value_len);
    if (rc != 0) return rc < 0 ? rc : 0;
    if (text->kind == EF_H2_REQUEST && name_len == 6 && memcmp(name, "cookie", 6) == 0)
        return take_cookie(text, value, value_len);
    return put_line(text, name, name_len, value, value_len);
}

static int put_tunnel(ef_h2_text *text, const uint8_t *key) {
    if (put_line(text, "connection", 10, "upgrade", 7) != 0) return EF_BAD;
    if (put_line(text, "upgrade", 7, "websocket", 9) != 0) return EF_BAD;
    return key == NULL ? 0 : put_line(text, "sec-websocket-key", 17, key, 24);
}

/* How a body is framed in the text. Interim answers have none, and no END_STREAM either. */
static int put_framing(ef_h2_text *text, int ends) {
    if (ends || text->is_tunnel || text->seen & EF_H2_SEEN_CONTENT_LENGTH) return 0;
    if (text->kind == EF_H2_RESPONSE) {
        const uint8_t *status = text->buf + 9; /* behind "HTTP/1.1 " */
        if (status[0] == '1' || memcmp(status, "204", 3) == 0 || memcmp(status, "304", 3) == 0) return 0;
    }
    return put_line(text, "transfer-encoding", 17, "chunked", 7);
}

int ef_h2_text_end(ef_h2_text *text, const ef_head_limits *limits, const ef_h2_block *block, ef_head *head) {
    if (text->error != EF_H2_E_NONE) return EF_BAD;
    if (!(text->seen & EF_H2_SEEN_FIELD) && put_first_line(text, limits) != 0) return EF_BAD;
    if (text->is_tunnel && put_tunnel(text, block->key) != 0) return EF_BAD;
    if (text->seen & EF_H2_SEEN_COOKIE) {
        if (put_line(text, "cookie", 6, text->buf + text->room, text->held) != 0) return EF_BAD;
        text->held = 0;
    }
    if (text->kind == EF_H2_TRAILERS) return (int)text->len;
    if (put_framing(text, block->ends) != 0 || put(text, "\r\n", 2) != 0) return EF_BAD;

    ef_head_reset(head);
    const int is_response = text->kind == EF_H2_RESPONSE;
    const int length = is_response ? ef_head_scan_response(head, limits, text->buf, text->len, block->method)
                                   : ef_head_scan_request(head, limits, text->buf, text->len);
    if (length == EF_BAD) return ef_h2_refuse(text, EF_H2_E_HEAD, head->status);
    if (length != (int)text->len || head->n_spans != text->lines)
        return ef_h2_refuse(text, EF_H2_E_DISAGREE, is_response ? 502 : 400);
    if (!is_response && block->ends && head->body == EF_BODY_LENGTH)
        return ef_h2_refuse(text, EF_H2_E_CONTENT_LENGTH, 0);
    return length;
}
