/* route_pred.c - header and query predicates, and the values that regular expressions are matched against. See route.h.
 *
 * Nothing is copied for exact predicates: repeated header lines are compared piece by piece with "," between them, query
 * values are percent-decoded while they are compared. A run of candidates that all look at the same name (the usual shape:
 * one path, many tenants) finds it in the request once.
 */
#include "internal/route_pred.h"

#define NOT_FOUND UINT32_MAX

/* --- headers ------------------------------------------------------------------------------------------------------ */

static inline uint8_t lower(uint8_t c) { return (uint8_t)(c - 'A') < 26 ? (uint8_t)(c | 0x20) : c; }

static int name_equal(const uint8_t *sent, const uint8_t *lower_name, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (lower(sent[i]) != lower_name[i]) return 0;
    }
    return 1;
}

static uint32_t next_span(const ef_request *r, uint32_t from, uint32_t hash, const uint8_t *name, size_t len) {
    for (uint32_t i = from; i < r->n_spans; i++) {
        const ef_span *span = r->spans + i;
        if (span->name_hash == hash && span->name_len == len && name_equal(r->base + span->name_off, name, len))
            return i;
    }
    return NOT_FOUND;
}

/* The value made of all lines of that name, joined with ",", is `want`. */
static int joined_equal(const ef_request *r, uint32_t first, const ef_pred *pred, const uint8_t *name,
                        const uint8_t *want) {
    size_t at = 0;
    for (uint32_t i = first; i != NOT_FOUND; i = next_span(r, i + 1, pred->name_hash, name, pred->name_len)) {
        const ef_span *span = r->spans + i;
        if (i != first && (at == pred->value_len || want[at++] != ',')) return 0;
        if (span->val_len > pred->value_len - at) return 0;
        if (!ef_bytes_equal(r->base + span->val_off, want + at, span->val_len)) return 0;
        at += span->val_len;
    }
    return at == pred->value_len;
}

/* --- cookies ------------------------------------------------------------------------------------------------------ */

static inline int is_blank(uint8_t c) { return c == ' ' || c == '\t'; }

/* One piece between ';': is it a cookie of that name? Its value then. */
static int read_cookie(const uint8_t *at, const uint8_t *end, const uint8_t *name, size_t name_len,
                       const uint8_t **value, size_t *len) {
    while (at < end && is_blank(*at))
        at++;
    while (at < end && is_blank(end[-1]))
        end--;
    const uint8_t *eq = at < end ? memchr(at, '=', (size_t)(end - at)) : NULL;
    if (eq == NULL) return 0;
    const uint8_t *stop = eq;
    while (stop > at && is_blank(stop[-1]))
        stop--;
    if ((size_t)(stop - at) != name_len || !ef_bytes_equal(at, name, name_len)) return 0;
    for (eq++; eq < end && is_blank(*eq);)
        eq++;
    *value = eq;
    *len = (size_t)(end - eq);
    return 1;
}

int ef_request_cookie(const ef_request *request, const uint8_t *name, size_t name_len, uint64_t *at,
                      const uint8_t **value, size_t *len) {
    static const uint8_t header[] = "cookie";
    const uint32_t hash = ef_name_hash(header, sizeof header - 1);
    uint32_t line = (uint32_t)(*at >> 32),
             from = (uint32_t)*at; /* from: bytes of the line's value that were looked at */
    for (; (line = next_span(request, line, hash, header, sizeof header - 1)) != NOT_FOUND; line++, from = 0) {
        const ef_span *span = request->spans + line;
        const uint8_t *begin = request->base + span->val_off, *end = begin + span->val_len;
        while (from < span->val_len) {
            const uint8_t *piece = begin + from, *stop = memchr(piece, ';', (size_t)(end - piece));
            if (stop == NULL) stop = end;
            from = (uint32_t)(stop - begin) + 1;
            if (!read_cookie(piece, stop, name, name_len, value, len)) continue;
            *at = (uint64_t)line << 32 | from;
            return 1;
        }
    }
    *at = (uint64_t)request->n_spans << 32;
    return 0;
}

static int cookie_holds(const ef_request *r, const ef_blob *blob, const ef_pred *pred) {
    const uint8_t *name = ef_at(blob, pred->name_off) + EF_COOKIE_LEN, *want = ef_at(blob, pred->value_off), *value;
    const size_t name_len = pred->name_len - EF_COOKIE_LEN;
    uint64_t at = 0;
    size_t len;
    while (ef_request_cookie(r, name, name_len, &at, &value, &len)) {
        if (pred->is_regex) return 1; /* present: the caller decides */
        if (len == pred->value_len && ef_bytes_equal(value, want, len)) return 1;
    }
    return 0;
}

static int header_holds(ef_route *it, const ef_blob *blob, const ef_pred *pred) {
    const ef_request *r = it->request;
    const uint8_t *name = ef_at(blob, pred->name_off);
    if (pred->is_cookie) return cookie_holds(r, blob, pred);
    if (it->header_name != name ||
        it->header_name_len != pred->name_len) { /* an empty name starts where another does */
        it->header_name = name;
        it->header_name_len = pred->name_len;
        it->header_first = next_span(r, 0, pred->name_hash, name, pred->name_len);
        it->header_count = 0;
        if (it->header_first != NOT_FOUND) {
            const uint32_t next = next_span(r, it->header_first + 1, pred->name_hash, name, pred->name_len);
            it->header_count = next == NOT_FOUND ? 1 : 2;
        }
    }
    if (it->header_count == 0) return 0;
    if (pred->is_regex) return 1; /* present: the caller decides */
    const uint8_t *want = ef_at(blob, pred->value_off);
    if (it->header_count > 1) return joined_equal(r, it->header_first, pred, name, want);
    const ef_span *span = r->spans + it->header_first;
    return span->val_len == pred->value_len && ef_bytes_equal(r->base + span->val_off, want, pred->value_len);
}

int ef_request_header(const ef_request *request, const uint8_t *name, size_t name_len, uint8_t *scratch, size_t cap,
                      const uint8_t **value, size_t *len) {
    const uint32_t hash = ef_name_hash(name, name_len);
    const uint32_t first = next_span(request, 0, hash, name, name_len);
    if (first == NOT_FOUND) return 0;
    uint32_t next = next_span(request, first + 1, hash, name, name_len);
    *value = request->base + request->spans[first].val_off;
    *len = request->spans[first].val_len;
    if (next == NOT_FOUND) return 1;
    size_t at = *len;
    if (at > cap) return -1;
    memcpy(scratch, *value, at);
    for (; next != NOT_FOUND; next = next_span(request, next + 1, hash, name, name_len)) {
        const ef_span *span = request->spans + next;
        if (at == cap || span->val_len > cap - at - 1) return -1;
        scratch[at++] = ',';
        memcpy(scratch + at, request->base + span->val_off, span->val_len);
        at += span->val_len;
    }
    *value = scratch;
    *len = at;
    return 1;
}

/* --- query parameters --------------------------------------------------------------------------------------------- */

static int hex(uint8_t c) {
    if ((uint8_t)(c - '0') < 10) return c - '0';
    const uint8_t letter = (uint8_t)((c | 0x20) - 'a');
    return letter < 6 ? letter + 10 : -1;
}

/* One decoded byte; *at moves on. "+" is a space, a malformed escape stands for itself (as ef_query_decode has it). */
static uint8_t decode_byte(const uint8_t *in, size_t len, size_t *at) {
    const uint8_t c = in[(*at)++];
    if (c == '+') return ' ';
    if (c != '%' || len - *at < 2) return c;
    const int high = hex(in[*at]), low = hex(in[*at + 1]);
    if (high < 0 || low < 0) return c;
    *at += 2;
    return (uint8_t)(high << 4 | low);
}

static int decoded_equal(const uint8_t *in, size_t len, const uint8_t *want, size_t want_len) {
    if (len < want_len || len / 3 > want_len) return 0; /* decoding shrinks, to a third at most */
    size_t at = 0, n = 0;
    while (at < len) {
        if (n == want_len || decode_byte(in, len, &at) != want[n]) return 0;
        n++;
    }
    return n == want_len;
}

/* The first parameter of that name: its value, still encoded, or NULL. A parameter without "=" has an empty value. */
static const uint8_t *find_param(const ef_request *r, const uint8_t *name, size_t name_len, size_t *len) {
    const uint8_t *at = r->query, *end = at + r->query_len;
    while (at < end) {
        const uint8_t *amp = memchr(at, '&', (size_t)(end - at));
        if (amp == NULL) amp = end;
        const uint8_t *eq = memchr(at, '=', (size_t)(amp - at));
        if (eq == NULL) eq = amp;
        if (amp != at && decoded_equal(at, (size_t)(eq - at), name, name_len)) {
            const uint8_t *value = eq < amp ? eq + 1 : amp;
            *len = (size_t)(amp - value);
            return value;
        }
        at = amp + 1;
    }
    return NULL;
}

static int query_holds(ef_route *it, const ef_blob *blob, const ef_pred *pred) {
    const uint8_t *name = ef_at(blob, pred->name_off);
    if (it->query_name != name || it->query_name_len != pred->name_len) {
        it->query_name = name;
        it->query_name_len = pred->name_len;
        it->query_value = find_param(it->request, name, pred->name_len, &it->query_value_len);
    }
    if (it->query_value == NULL) return 0;
    if (pred->is_regex) return 1;
    return decoded_equal(it->query_value, it->query_value_len, ef_at(blob, pred->value_off), pred->value_len);
}

int ef_request_query(const ef_request *request, const uint8_t *name, size_t name_len, uint8_t *scratch, size_t cap,
                     const uint8_t **value, size_t *len) {
    size_t raw_len;
    const uint8_t *raw = find_param(request, name, name_len, &raw_len);
    if (raw == NULL) return 0;
    size_t at = 0, n = 0;
    while (at < raw_len && raw[at] != '%' && raw[at] != '+')
        at++;
    if (at == raw_len) {
        *value = raw;
        *len = raw_len;
        return 1;
    }
    for (at = 0; at < raw_len; n++) {
        if (n == cap) return -1;
        scratch[n] = decode_byte(raw, raw_len, &at);
    }
    *value = scratch;
    *len = n;
    return 1;
}

/* --- of a candidate ----------------------------------------------------------------------------------------------- */

int ef_preds_hold(ef_route *it, const ef_blob *blob, const ef_cand *cand) {
    const ef_pred *pred = ef_preds(blob) + cand->pred;
    for (const ef_pred *end = pred + cand->n_headers; pred < end; pred++) {
        if (!header_holds(it, blob, pred)) return 0;
    }
    for (const ef_pred *end = pred + cand->n_query; pred < end; pred++) {
        if (!query_holds(it, blob, pred)) return 0;
    }
    return 1;
}

int ef_route_pred(const ef_hit *hit, uint32_t i, ef_regex_pred *out) {
    const ef_cand *cand = (const ef_cand *)(const void *)ef_at(hit->blob, hit->where);
    const ef_pred *preds = ef_preds(hit->blob) + cand->pred;
    const uint32_t n = (uint32_t)cand->n_headers + cand->n_query;
    for (uint32_t k = 0; k < n; k++) {
        const ef_pred *pred = preds + k;
        if (!pred->is_regex || i-- != 0) continue;
        const size_t before = pred->is_cookie ? EF_COOKIE_LEN : 0;
        out->name = ef_at(hit->blob, pred->name_off) + before;
        out->name_len = pred->name_len - before;
        out->pattern = ef_at(hit->blob, pred->value_off);
        out->pattern_len = pred->value_len;
        out->is_query = k >= cand->n_headers;
        out->is_cookie = pred->is_cookie;
        return 0;
    }
    return -1;
}
