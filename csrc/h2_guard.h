/* h2_guard.h - what a peer may cost on one HTTP/2 connection beyond the requests that it makes.
 *
 * Idea: each thing that is cheap to send and dear to take has a budget. Bytes are told here before anything is done about them;
 * the first that is over its budget names the breach, and the connection ends with ENHANCE_YOUR_CALM. What is bounded does
 * not depend on the library that reads the frames.
 *
 *   RESETS         streams reset by the client, or by us for its sake: a bucket of EF_H2_RESETS, EF_H2_RESETS_RATE more each
 *                  second (CVE-2023-44487 rapid reset, CVE-2025-8671 made you reset)
 *   CONTINUATIONS  frames of one block, none of them empty (CVE-2024-27316 and its kin)
 *   SETTINGS       entries of one frame
 *   ACKS           answers to SETTINGS and PING that the client does not read (CVE-2019-9512, -9515)
 *   OVERHEAD       empty frames, priorities, padding, unknown frames: bytes received against those of heads and bodies,
 *                  both ways (CVE-2019-9511, -9513, -9518); frames with a separate budget do not count.
 *                  DATA frames without a byte of body that end no stream: a bucket of EF_H2_EMPTY, EF_H2_EMPTY_RATE more
 *                  each second
 *   UPDATES        WINDOW_UPDATE frames per DATA frame that we sent (CVE-2019-9511)
 *   REFUSED        streams that we refused because there were too many: a bucket of EF_H2_REFUSED, EF_H2_REFUSED_RATE more
 *                  each second
 *
 * Priorities order nothing, so the library reads no PRIORITY frames, and forgets streams as they close. What is a connection error all the
 * same is found here, and `error` says so: a PRIORITY frame of no stream, or of one that depends on itself (RFC 9113 6.3, RFC 7540
 * 5.3.1: PROTOCOL_ERROR); DATA or HEADERS on one of the last EF_H2_ENDED_LAST streams behind its end or reset (RFC 9113 5.1: STREAM_CLOSED).
 *
 * Returns: EF_H2_CALM, or the breach. Memory: the caller's; no clock of its own, no malloc. Cost: a few adds per frame.
 */
#ifndef EF_H2_GUARD_H
#define EF_H2_GUARD_H

#include <stddef.h>
#include <stdint.h>

#include "limits.h"

enum ef_h2_breach {
    EF_H2_CALM = 0,
    EF_H2_B_RESETS,
    EF_H2_B_CONTINUATIONS,
    EF_H2_B_SETTINGS,
    EF_H2_B_ACKS,
    EF_H2_B_OVERHEAD,
    EF_H2_B_UPDATES,
    EF_H2_B_REFUSED,
    EF_H2_B_HEAD,   /* ef_h2_text_field said EF_H2_CLOSE */
    EF_H2_B_STALL,  /* nothing moved for too long */
    EF_H2_B_MEMORY, /* it held most of what a worker may hold for slow clients */
    EF_H2_B_COUNT
};

#define EF_H2_PROTOCOL_ERROR 1u /* RFC 9113 7 */
#define EF_H2_STREAM_CLOSED  5u
#define EF_H2_ENDED_LAST     512u

/* Frame types of RFC 9113 6 that have a budget of their own. */
enum ef_h2_frame {
    EF_H2_F_DATA = 0,
    EF_H2_F_HEADERS = 1,
    EF_H2_F_PRIORITY = 2,
    EF_H2_F_RST_STREAM = 3,
    EF_H2_F_SETTINGS = 4,
    EF_H2_F_PUSH_PROMISE = 5,
    EF_H2_F_PING = 6,
    EF_H2_F_GOAWAY = 7,
    EF_H2_F_WINDOW_UPDATE = 8,
    EF_H2_F_CONTINUATION = 9
};
#define EF_H2_FLAG_ACK    1u
#define EF_H2_FLAG_END    1u
#define EF_H2_FLAG_PADDED 8u

/* What leaks with time. */
typedef struct ef_h2_bucket {
    int64_t at;     /* ms: its last look */
    uint32_t level; /* in thousandths */
    uint32_t reserved_;
} ef_h2_bucket;

typedef struct ef_h2_guard {
    uint64_t received; /* bytes of frames, with their heads */
    uint64_t payload;  /* of those, of header blocks and bodies */
    uint64_t sent;     /* bytes of header blocks and bodies that we sent: who takes them has to speak now and then */
    uint64_t updates, sent_data, streams;
    ef_h2_bucket resets, refused, empty;
    int64_t progress; /* ms: when something last moved that a request is about */
    uint32_t acks;    /* owed */
    uint32_t block;   /* CONTINUATION frames of the block that is being read */
    uint32_t most_continuations;
    uint32_t left;    /* bytes of the frame, or of the client's preface, until the next frame's head */
    uint8_t got;      /* bytes of `head` */
    uint8_t head[13]; /* of a frame: its head, then how much padding it has, or what stream a priority depends on */
    uint8_t is_backend;
    uint8_t error;   /* of RFC 9113 7: a frame is a connection error that the library passes over; 0: none */
    uint32_t opened; /* of the client's streams: the largest number, halved, and 1 */
    uint8_t ended[EF_H2_ENDED_LAST / 8]; /* of the last ones, a bit each: the client has ended it, or reset it */
} ef_h2_guard;

#define EF_H2_PREFACE 24u /* bytes that a client sends first (RFC 9113 3.4) */

/* head_limit: bytes that a head may have. */
void ef_h2_guard_begin(ef_h2_guard *guard, uint32_t head_limit, int64_t now_ms);

/* The same of a backend: it sends no preface, and can reset no more streams than we open. */
void ef_h2_guard_begin_backend(ef_h2_guard *guard, uint32_t head_limit, int64_t now_ms);

/* All that the client sends, from its preface on, in any pieces: tells ef_h2_guard_frame, _padding and _reset of each frame. After a
 * breach nothing more is to be fed. */
int ef_h2_guard_feed(ef_h2_guard *guard, const uint8_t *data, size_t len, int64_t now_ms);

/* The same, up to the head of the frame that is the most-th HEADERS: *len becomes what was fed. The rest is to be fed later. */
int ef_h2_guard_feed_some(ef_h2_guard *guard, const uint8_t *data, size_t *len, unsigned most, int64_t now_ms);

/* A frame's head has come: its length, type and flags, `padding` not known yet. */
int ef_h2_guard_frame(ef_h2_guard *guard, unsigned type, unsigned flags, size_t length, int64_t now_ms);

int ef_h2_guard_stream(ef_h2_guard *guard, int64_t now_ms); /* a request begins */
int ef_h2_guard_reset(ef_h2_guard *guard,
                      int64_t now_ms); /* a stream was reset, whoever did it; of a backend's: by us */
int ef_h2_guard_refuse(ef_h2_guard *guard, int64_t now_ms); /* a stream was refused */
void ef_h2_guard_padding(ef_h2_guard *guard, size_t bytes); /* of these, so many were no body */
void ef_h2_guard_sent(ef_h2_guard *guard, unsigned type, unsigned flags, size_t length, int64_t now_ms);

/* Nothing of a request moved, either way, for so long. */
int ef_h2_guard_idle(const ef_h2_guard *guard, int64_t now_ms, int64_t most_ms);

const char *ef_h2_breach_name(int breach); /* metric label and log word; never NULL */

#endif
