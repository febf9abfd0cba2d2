/* hello.h - the first flight of a TLS client, looked at before any TLS library sees it: is it whole, and which name does it ask for?
 *
 * Feed all bytes of a connection so far, from the first one; each call begins anew and keeps nothing:
 *   > 0           the ClientHello is whole (in one record or several) and so many bytes long with its record headers; *hello is set
 *   EF_NEED_MORE  no fault so far; hello->need bytes are the least that can change that, so that nobody looks at each byte
 *   EF_BAD        no TLS, or none that anybody would answer: hello->alert is what to say (RFC 8446 6)
 * A handshake costs its server 50 KiB and a third of a millisecond, so it begins when its client has sent what it has to. Only the
 * framing, the name and the protocols are looked at; what a library refuses for other reasons is its business. Never reads outside the input;
 * costs a step per record and extension. Limits: EF_MAX_HELLO, EF_MAX_HELLO_RECORDS.
 */
#ifndef EF_HELLO_H
#define EF_HELLO_H
#include <stddef.h>
#include <stdint.h>

#define EF_HELLO_NAME 256 /* room for a name; the longest has 255 bytes */
#define EF_HELLO_ALPN 255 /* ... and for a protocol's */

typedef struct ef_hello {
    uint32_t need;    /* EF_NEED_MORE: bytes in all */
    uint8_t alert;    /* EF_BAD: TLS alert description */
    uint8_t name_len; /* 0: it asks for no name */
    uint8_t
        name[EF_HELLO_NAME]; /* server_name in lower case, without a final dot, empty labels and NUL; else unchecked */
    uint8_t alpn_len;        /* 0: it offers no protocol, or several */
    uint8_t alpn[EF_HELLO_ALPN]; /* the only one that it offers (RFC 7301), byte for byte */
} ef_hello;

int32_t ef_hello_scan(const uint8_t *data, size_t len, ef_hello *hello);

#endif
