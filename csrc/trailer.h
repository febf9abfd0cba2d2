/* trailer.h - the fields behind a body, line by line, and which of them may go on (RFC 9110 6.5.1).
 *
 * In: whole lines "name: value" CRLF of checked bytes, as the chunked decoder or an HTTP/2 codec hands them over. Out: one span a
 * call, offsets from the first line. A recipient may put trailers among headers, so a field that is read before the body, or that
 * speaks of the message, its way, who sends it or what may be done with it, is marked EF_SPAN_HOP and must not go on.
 */
#ifndef EF_TRAILER_H
#define EF_TRAILER_H
#include "head.h"

/* Read the line at `at` < len. Returns the offset of the next one; 0: these are no such lines. */
size_t ef_trailer_next(const uint8_t *lines, size_t len, size_t at, ef_span *span);
#endif
