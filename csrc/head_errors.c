/* head_errors.c - what each fault of a head is called and answered with (docs/reference/http1.md, "Answers").
 *
 * In: enum ef_head_error. Out: status, short reason for people, name for metric labels. A response's fault is a 502.
 */
#include "internal/head_scan.h"

typedef struct fault {
    int32_t status;
    const char *name;
    const char *text;
} fault;

static const fault faults[EF_E_COUNT] = {
    [EF_E_NONE] = {0, "none", "no fault"},
    [EF_E_LINE] = {400, "line", "malformed request line"},
    [EF_E_BARE_LF] = {400, "bare_lf", "line not ended by CRLF"},
    [EF_E_METHOD] = {400, "method", "malformed method"},
    [EF_E_UNKNOWN_METHOD] = {501, "unknown_method", "unknown method"},
    [EF_E_REFUSED_METHOD] = {405, "refused_method", "method not allowed"},
    [EF_E_TARGET] = {400, "target", "malformed request target"},
    [EF_E_VERSION] = {400, "version", "malformed HTTP version"},
    [EF_E_HTTP09] = {400, "http09", "HTTP/0.9 is not supported"},
    [EF_E_HTTP10] = {426, "http10", "HTTP/1.0 is not supported, use HTTP/1.1"},
    [EF_E_VERSION_UNSUPPORTED] = {505, "version_unsupported", "HTTP version not supported"},
    [EF_E_LINE_TOO_LONG] = {414, "line_too_long", "request line too long"},
    [EF_E_HEAD_TOO_LARGE] = {431, "head_too_large", "header section too large"},
    [EF_E_TOO_MANY_HEADERS] = {431, "too_many_headers", "too many headers"},
    [EF_E_NAME] = {400, "name", "malformed header name"},
    [EF_E_VALUE] = {400, "value", "control byte in a header value"},
    [EF_E_FOLD] = {400, "fold", "header line starts with a space"},
    [EF_E_UNDERSCORE] = {400, "underscore", "header name with an underscore"},
    [EF_E_NO_HOST] = {400, "no_host", "no Host header"},
    [EF_E_MANY_HOSTS] = {400, "many_hosts", "two Host headers"},
    [EF_E_HOST] = {400, "host", "malformed Host header"},
    [EF_E_AUTHORITY] = {400, "authority", "request target and Host differ"},
    [EF_E_CONTENT_LENGTH] = {400, "content_length", "malformed Content-Length header"},
    [EF_E_MANY_CONTENT_LENGTHS] = {400, "many_content_lengths", "two Content-Length headers"},
    [EF_E_TRANSFER_ENCODING] = {400, "transfer_encoding", "malformed Transfer-Encoding header"},
    [EF_E_CODING_UNKNOWN] = {501, "coding_unknown", "unknown transfer coding"},
    [EF_E_BOTH_LENGTHS] = {400, "both_lengths", "both Content-Length and Transfer-Encoding"},
    [EF_E_EXPECT] = {417, "expect", "unknown expectation"},
    [EF_E_STATUS] = {400, "status", "malformed status line"},
};

int ef_head_refuse(ef_head *head, enum ef_head_error error) {
    head->error = (int32_t)error;
    head->status = head->seen_flags & EF_SEEN_RESPONSE ? 502 : faults[error].status;
    return EF_BAD;
}

const char *ef_head_error_text(int error) {
    return error >= 0 && error < EF_E_COUNT ? faults[error].text : "unknown fault";
}

const char *ef_head_error_name(int error) { return error >= 0 && error < EF_E_COUNT ? faults[error].name : "unknown"; }
