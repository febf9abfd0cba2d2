/* head_line.c - the first line of a message: method SP target SP version, or version SP status SP reason (RFC 9112 3, 4).
 *
 * In: a line without its CRLF, free of control bytes but HTAB. Out: method, version, status in ef_head. Exactly one space
 * between the parts: an HTAB or a second space is where parsers disagree, so it is refused.
 */
#include <string.h>

#include "internal/charset.h"
#include "internal/head_scan.h"

#define VERSION_LEN 8u /* "HTTP/1.1" */

/* "HTTP/" DIGIT "." DIGIT as major * 10 + minor, or -1. Case-sensitive (RFC 9112 2.3). */
static int parse_version(const uint8_t *version) {
    if (memcmp(version, "HTTP/", 5) != 0 || version[6] != '.') return -1;
    if (!ef_is(version[5], EF_CLASS_DIGIT) || !ef_is(version[7], EF_CLASS_DIGIT)) return -1;
    return (version[5] - '0') * 10 + (version[7] - '0');
}

static int check_request_version(ef_head *head, const uint8_t *buf, size_t at, size_t end) {
    const int version = end - at == VERSION_LEN ? parse_version(buf + at) : -1;
    if (version == 11) {
        head->version_minor = 1;
        return 0;
    }
    if (version == 10) { /* judged once the headers are known: Transfer-Encoding makes it a 400 */
        head->seen_flags |= EF_SEEN_HTTP10;
        return 0;
    }
    return ef_head_refuse(head, version < 10 ? EF_E_VERSION : EF_E_VERSION_UNSUPPORTED);
}

int ef_head_parse_request_line(ef_head *head, const uint8_t *buf, size_t at, size_t end, uint32_t raw) {
    size_t method_end = at;
    while (method_end < end && ef_token_lower[buf[method_end]])
        method_end++;
    if (method_end == at) return ef_head_refuse(head, EF_E_METHOD);
    if (method_end == end) return ef_head_refuse(head, EF_E_LINE);
    if (buf[method_end] != ' ') return ef_head_refuse(head, EF_E_METHOD);

    const size_t target = method_end + 1;
    const uint8_t *space = memchr(buf + target, ' ', end - target);
    if (space == NULL) return ef_head_refuse(head, target < end ? EF_E_HTTP09 : EF_E_LINE);
    const size_t target_end = (size_t)(space - buf);
    if (target_end == target) return ef_head_refuse(head, EF_E_LINE);

    const int rc = check_request_version(head, buf, target_end + 1, end);
    if (rc != 0) return rc;

    head->method_off = (uint32_t)at;
    head->method_len = (uint32_t)(method_end - at);
    head->method = (uint8_t)ef_method_lookup(buf + at, method_end - at);
    if (head->method == EF_M_UNKNOWN) return ef_head_refuse(head, EF_E_UNKNOWN_METHOD);
    if (head->method == EF_M_CONNECT || head->method == EF_M_TRACE) return ef_head_refuse(head, EF_E_REFUSED_METHOD);
    return ef_head_parse_target(head, buf, target, target_end, raw);
}

int ef_head_parse_status_line(ef_head *head, const uint8_t *buf, size_t at, size_t end) {
    if (end - at < VERSION_LEN + 4) return ef_head_refuse(head, EF_E_STATUS);
    const int version = parse_version(buf + at);
    if (version != 10 && version != 11) return ef_head_refuse(head, EF_E_VERSION);
    head->version_minor = (uint16_t)(version - 10);
    if (version == 10) head->seen_flags |= EF_SEEN_HTTP10;

    const uint8_t *code = buf + at + VERSION_LEN + 1;
    const int digits =
        ef_is(code[0], EF_CLASS_DIGIT) && ef_is(code[1], EF_CLASS_DIGIT) && ef_is(code[2], EF_CLASS_DIGIT);
    if (code[-1] != ' ' || !digits || code[0] == '0') return ef_head_refuse(head, EF_E_STATUS);
    /* The reason phrase may be empty, and so may the space before it be missing (RFC 9112 4 wants it, servers forget). */
    if (end - at > VERSION_LEN + 4 && code[3] != ' ') return ef_head_refuse(head, EF_E_STATUS);
    head->response_status = (uint16_t)((code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0'));
    return 0;
}
