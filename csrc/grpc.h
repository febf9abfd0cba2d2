/* grpc.h - what a message says of itself where it is gRPC: its content type, how long its client waits.
 *
 * In: values of header lines, OWS trimmed, untrusted. Out: a kind, a time. Reads only [value, value + len).
 * Source: github.com/grpc/grpc doc/PROTOCOL-HTTP2.md (Content-Type, Timeout) and doc/PROTOCOL-WEB.md.
 */
#ifndef EF_GRPC_H
#define EF_GRPC_H
#include <stddef.h>
#include <stdint.h>

enum ef_grpc_kind {
    EF_GRPC_NONE = 0,
    EF_GRPC = 1,          /* application/grpc, alone, or with "+codec" or ";parameter" behind it */
    EF_GRPC_WEB = 2,      /* application/grpc-web, the same */
    EF_GRPC_WEB_TEXT = 3, /* application/grpc-web-text, the same: Base64 */
};

/* Digits that a grpc-timeout has at most. */
#define EF_GRPC_TIMEOUT_DIGITS 8

/* enum ef_grpc_kind of a Content-Type; media types have no case. */
unsigned ef_grpc_content_type(const uint8_t *value, size_t len);

/* grpc-timeout in milliseconds, rounded up: 1 to 8 digits and one of H M S m u n. -1: it is none. */
int64_t ef_grpc_timeout(const uint8_t *value, size_t len);

/* grpc-status: up to three digits without sign. -1: it is none. A status that gRPC does not have is what it is (0 to 999). */
int ef_grpc_status(const uint8_t *value, size_t len);

#endif
