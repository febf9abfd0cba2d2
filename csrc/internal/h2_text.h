/* h2_text.h - what the files of h2_text share: h2_text.c writes the text, h2_fields.c says what a field may be.
 *
 * Convention: 0 done, or EF_BAD after ef_h2_refuse().
 */
#ifndef EF_INTERNAL_H2_TEXT_H
#define EF_INTERNAL_H2_TEXT_H
#include "../h2_text.h"

/* In the order of ef_h2_text.pseudo_off. */
enum ef_h2_pseudo { EF_H2_METHOD = 0, EF_H2_SCHEME, EF_H2_PATH, EF_H2_AUTHORITY, EF_H2_PROTOCOL, EF_H2_STATUS };

/* Bits of ef_h2_text.seen; the lowest EF_H2_PSEUDO: that pseudo field. */
#define EF_H2_SEEN(pseudo)        (1u << (pseudo))
#define EF_H2_SEEN_FIELD          (1u << 8) /* the first line is written */
#define EF_H2_SEEN_HOST           (1u << 9)
#define EF_H2_SEEN_CONTENT_LENGTH (1u << 10)
#define EF_H2_SEEN_COOKIE         (1u << 11)

/* Sets error and status (0: malformed), unless there is an error already; returns EF_BAD. */
int ef_h2_refuse(ef_h2_text *text, enum ef_h2_error error, int status);

/* Number of a pseudo field that this kind of message may have, or -1. */
int ef_h2_pseudo_lookup(enum ef_h2_kind kind, const uint8_t *name, size_t len);

/* The pseudo fields are complete: do they make a message? */
int ef_h2_check_pseudo(ef_h2_text *text);

/* A field that is no pseudo field: 0 it may stand here; 1 it may, and is written already; EF_BAD. */
int ef_h2_check_field(ef_h2_text *text, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len);

static inline const uint8_t *ef_h2_pseudo_value(const ef_h2_text *text, enum ef_h2_pseudo which) {
    return text->buf + text->room + text->pseudo_off[which];
}
#endif
