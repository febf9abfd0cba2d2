/* head_target.c - the request target (RFC 9112 3.2): origin-form, absolute-form, and "*" for OPTIONS.
 *
 * In: the bytes between the two spaces of the request line. Out: target (origin-form), path_len, absolute_scheme,
 * authority of an absolute-form (compared with Host when that line comes). Percent-encoding is path.c's concern.
 */
#include "internal/charset.h"
#include "internal/head_scan.h"

/* Length of "http://" or "https://" at the start, 0 if there is none; sets the scheme's number. */
static size_t match_scheme(const uint8_t *text, size_t len, uint8_t *scheme) {
    if (len >= 7 && ef_equals_lower(text, "http://", 7)) {
        *scheme = 1;
        return 7;
    }
    if (len >= 8 && ef_equals_lower(text, "https://", 8)) {
        *scheme = 2;
        return 8;
    }
    return 0;
}

int ef_head_parse_target(ef_head *head, const uint8_t *buf, size_t at, size_t end, uint32_t raw) {
    if (buf[at] != '/') {
        if (buf[at] == '*' && end - at == 1 && head->method == EF_M_OPTIONS) {
            head->target_off = (uint32_t)at;
            head->target_len = head->path_len = 1;
            return 0;
        }
        const size_t scheme_len = match_scheme(buf + at, end - at, &head->absolute_scheme);
        if (scheme_len == 0) return ef_head_refuse(head, EF_E_TARGET);
        at += scheme_len;
        const size_t authority = at;
        while (at < end && buf[at] != '/' && buf[at] != '?') {
            if (buf[at] == '@') return ef_head_refuse(head, EF_E_AUTHORITY); /* userinfo: RFC 9110 4.2.4 */
            if (!ef_is(buf[at], EF_CLASS_PATH)) return ef_head_refuse(head, EF_E_TARGET);
            at++;
        }
        if (at == authority) return ef_head_refuse(head, EF_E_AUTHORITY);
        head->authority_off = (uint32_t)authority;
        head->authority_len = (uint32_t)(at - authority);
        head->target_empty_path = at == end || buf[at] == '?';
    }
    head->target_off = (uint32_t)at;
    head->target_len = (uint32_t)(end - at);
    const unsigned in_path = raw == EF_RAW_ALLOW ? EF_CLASS_PATH | EF_CLASS_RAW : EF_CLASS_PATH;
    const unsigned in_query = raw == EF_RAW_ALLOW ? EF_CLASS_QUERY | EF_CLASS_RAW | EF_CLASS_RAW_QUERY : EF_CLASS_QUERY;
    unsigned seen = 0;
    size_t i = at;
    for (; i < end && ef_is(buf[i], in_path); i++)
        seen |= ef_byte_class[buf[i]];
    head->path_len = (uint32_t)(i - at);
    if (seen & EF_CLASS_PARAMETER) head->notes |= EF_NOTE_PARAMETERS;
    if (seen & EF_CLASS_RAW) head->notes |= EF_NOTE_RAW;
    if (i < end && buf[i] == '?')
        while (i < end && ef_is(buf[i], in_query))
            i++;
    return i == end ? 0 : ef_head_refuse(head, EF_E_TARGET);
}
