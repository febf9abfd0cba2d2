/* h2_guard.c - counts, and compares. */
#include "h2_guard.h"

#include <string.h>

#define FRAME_HEAD 9u /* RFC 9113 4.1 */

void ef_h2_guard_begin(ef_h2_guard *guard, uint32_t head_limit, int64_t now_ms) {
    memset(guard, 0, sizeof(*guard));
    guard->most_continuations = head_limit / EF_H2_FRAME + EF_H2_CONTINUATIONS;
    guard->resets.at = guard->refused.at = guard->empty.at = guard->progress = now_ms;
    guard->left = EF_H2_PREFACE;
}

void ef_h2_guard_begin_backend(ef_h2_guard *guard, uint32_t head_limit, int64_t now_ms) {
    ef_h2_guard_begin(guard, head_limit, now_ms);
    guard->left = 0;
    guard->is_backend = 1;
}

/* One more into a bucket that leaks; in thousandths, so that looking often loses nothing. 0: it is full. */
static int put(ef_h2_bucket *bucket, uint32_t most, uint32_t rate, int64_t now_ms) {
    const int64_t passed = now_ms - bucket->at;
    if (passed > 0) {
        const uint64_t leaked = (uint64_t)passed * rate;
        bucket->level = leaked >= bucket->level ? 0 : bucket->level - (uint32_t)leaked;
        bucket->at = now_ms;
    }
    if (bucket->level > (most - 1) * 1000u) return 0;
    bucket->level += 1000u;
    return 1;
}

int ef_h2_guard_reset(ef_h2_guard *guard, int64_t now_ms) {
    const uint32_t most = guard->is_backend ? EF_H2_CANCELS : EF_H2_RESETS;
    const uint32_t rate = guard->is_backend ? EF_H2_CANCELS_RATE : EF_H2_RESETS_RATE;
    return put(&guard->resets, most, rate, now_ms) ? EF_H2_CALM : EF_H2_B_RESETS;
}

int ef_h2_guard_refuse(ef_h2_guard *guard, int64_t now_ms) {
    return put(&guard->refused, EF_H2_REFUSED, EF_H2_REFUSED_RATE, now_ms) ? EF_H2_CALM : EF_H2_B_REFUSED;
}

int ef_h2_guard_stream(ef_h2_guard *guard, int64_t now_ms) {
    guard->streams++;
    guard->progress = now_ms;
    return EF_H2_CALM;
}

void ef_h2_guard_padding(ef_h2_guard *guard, size_t bytes) {
    guard->payload -= bytes < guard->payload ? bytes : guard->payload;
}

static int check_block(ef_h2_guard *guard, unsigned type, size_t length) {
    if (type == EF_H2_F_HEADERS) guard->block = 0;
    if (type != EF_H2_F_CONTINUATION) return EF_H2_CALM;
    return length == 0 || ++guard->block > guard->most_continuations ? EF_H2_B_CONTINUATIONS : EF_H2_CALM;
}

static int check_ack(ef_h2_guard *guard, unsigned type, unsigned flags, size_t length) {
    if ((type != EF_H2_F_SETTINGS && type != EF_H2_F_PING) || flags & EF_H2_FLAG_ACK) return EF_H2_CALM;
    if (type == EF_H2_F_SETTINGS && length > 6u * EF_H2_SETTINGS) return EF_H2_B_SETTINGS;
    return ++guard->acks > EF_H2_ACKS ? EF_H2_B_ACKS : EF_H2_CALM;
}

static int check_update(ef_h2_guard *guard, unsigned type) {
    if (type != EF_H2_F_WINDOW_UPDATE) return EF_H2_CALM;
    const uint64_t most = EF_H2_UPDATES_FREE + 2 * guard->streams + EF_H2_UPDATES * guard->sent_data;
    return ++guard->updates > most ? EF_H2_B_UPDATES : EF_H2_CALM;
}

/* content: bytes of the frame that are no padding. */
static int check_content(ef_h2_guard *guard, unsigned type, unsigned flags, size_t content, int64_t now_ms) {
    if (type != EF_H2_F_DATA || content > 0 || flags & EF_H2_FLAG_END) return EF_H2_CALM;
    return put(&guard->empty, EF_H2_EMPTY, EF_H2_EMPTY_RATE, now_ms) ? EF_H2_CALM : EF_H2_B_OVERHEAD;
}

int ef_h2_guard_frame(ef_h2_guard *guard, unsigned type, unsigned flags, size_t length, int64_t now_ms) {
    if (type != EF_H2_F_WINDOW_UPDATE) guard->received += FRAME_HEAD + length; /* a long body brings many */
    if (type == EF_H2_F_DATA || type == EF_H2_F_HEADERS || type == EF_H2_F_CONTINUATION) guard->payload += length;
    if (type == EF_H2_F_DATA && length > 0) guard->progress = now_ms;
    int breach = check_block(guard, type, length);
    if (breach == EF_H2_CALM) breach = check_ack(guard, type, flags, length);
    if (breach == EF_H2_CALM) breach = check_update(guard, type);
    if (breach == EF_H2_CALM) breach = check_content(guard, type, flags, length, now_ms);
    if (breach == EF_H2_CALM && guard->received / EF_H2_OVERHEAD > guard->payload + guard->sent + EF_H2_OVERHEAD_FREE)
        breach = EF_H2_B_OVERHEAD;
    return breach;
}

/* Bytes of `head` that a frame needs before it is told: one more when it says how much padding it has, four when it is of a priority. */
static size_t head_needs(const ef_h2_guard *guard) {
    if (guard->got < FRAME_HEAD) return FRAME_HEAD;
    const unsigned type = guard->head[3];
    if (type == EF_H2_F_PRIORITY && memcmp(guard->head, "\0\0\5", 3) == 0) return FRAME_HEAD + 4u;
    const int is_padded = (type == EF_H2_F_DATA || type == EF_H2_F_HEADERS) && guard->head[4] & EF_H2_FLAG_PADDED;
    const int is_empty = guard->head[0] == 0 && guard->head[1] == 0 && guard->head[2] == 0;
    return FRAME_HEAD + (is_padded && !is_empty);
}

/* The number of a stream, without the bit in front of it. */
static uint32_t stream_at(const uint8_t *at) {
    return (uint32_t)(at[0] & 0x7fu) << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* What the client says of a stream behind its end. One that is too old to be remembered, or was never opened, is the library's. */
static void look_at_end(ef_h2_guard *guard, unsigned type, unsigned flags, uint32_t stream) {
    const uint32_t index = stream >> 1;
    uint8_t *of = &guard->ended[index % EF_H2_ENDED_LAST / 8];
    const uint8_t bit = (uint8_t)(1u << index % 8);
    if (guard->is_backend || !(stream & 1u)) return;
    if (type != EF_H2_F_DATA && type != EF_H2_F_HEADERS && type != EF_H2_F_RST_STREAM) return;
    if (index >= guard->opened) {
        if (type != EF_H2_F_HEADERS) return;
        for (uint32_t n = 0; n < EF_H2_ENDED_LAST && guard->opened <= index - n; n++) {
            guard->ended[(index - n) % EF_H2_ENDED_LAST / 8] &= (uint8_t) ~(1u << (index - n) % 8);
            if (index == n) break;
        }
        guard->opened = index + 1;
    } else if (guard->opened - index > EF_H2_ENDED_LAST) {
        return;
    } else if (type != EF_H2_F_RST_STREAM && *of & bit) {
        guard->error = EF_H2_STREAM_CLOSED;
    }
    if (type == EF_H2_F_RST_STREAM || flags & EF_H2_FLAG_END) *of |= bit;
}

/* more: bytes of `head` behind the frame's. */
static int tell_frame(ef_h2_guard *guard, size_t more, int64_t now_ms) {
    const uint8_t *head = guard->head;
    const uint32_t length = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
    guard->got = 0;
    guard->left = length - (uint32_t)more;
    int breach = ef_h2_guard_frame(guard, head[3], head[4], length, now_ms);
    const uint32_t stream = stream_at(head + 5);
    look_at_end(guard, head[3], head[4], stream);
    if (head[3] == EF_H2_F_PRIORITY) {
        if (stream == 0 || (more && stream_at(head + FRAME_HEAD) == stream)) guard->error = EF_H2_PROTOCOL_ERROR;
    } else if (breach == EF_H2_CALM && more) {
        const size_t padding = head[FRAME_HEAD] + 1u;
        ef_h2_guard_padding(guard, padding < length ? padding : length);
        breach = check_content(guard, head[3], head[4], padding < length ? length - padding : 0, now_ms);
    }
    if (breach == EF_H2_CALM && head[3] == EF_H2_F_RST_STREAM && !guard->is_backend)
        breach = ef_h2_guard_reset(guard, now_ms);
    return breach;
}

int ef_h2_guard_feed(ef_h2_guard *guard, const uint8_t *data, size_t len, int64_t now_ms) {
    return ef_h2_guard_feed_some(guard, data, &len, ~0u, now_ms);
}

int ef_h2_guard_feed_some(ef_h2_guard *guard, const uint8_t *data, size_t *len, unsigned most, int64_t now_ms) {
    size_t at = 0;
    while (at < *len) {
        if (guard->left > 0) {
            const size_t here = *len - at < guard->left ? *len - at : guard->left;
            guard->left -= (uint32_t)here;
            at += here;
            continue;
        }
        guard->head[guard->got++] = data[at++];
        if (guard->got < FRAME_HEAD || guard->got < head_needs(guard)) continue;
        const int breach = tell_frame(guard, guard->got - FRAME_HEAD, now_ms);
        if (breach != EF_H2_CALM) return breach;
        if (guard->head[3] == EF_H2_F_HEADERS && --most == 0) *len = at;
    }
    return EF_H2_CALM;
}

void ef_h2_guard_sent(ef_h2_guard *guard, unsigned type, unsigned flags, size_t length, int64_t now_ms) {
    if ((type == EF_H2_F_SETTINGS || type == EF_H2_F_PING) && flags & EF_H2_FLAG_ACK && guard->acks > 0) guard->acks--;
    if (type == EF_H2_F_DATA) guard->sent_data++;
    if (type == EF_H2_F_DATA || type == EF_H2_F_HEADERS) guard->sent += length;
    if (type == EF_H2_F_HEADERS || (type == EF_H2_F_DATA && length > 0)) guard->progress = now_ms;
}

int ef_h2_guard_idle(const ef_h2_guard *guard, int64_t now_ms, int64_t most_ms) {
    return most_ms > 0 && now_ms - guard->progress >= most_ms ? EF_H2_B_STALL : EF_H2_CALM;
}

const char *ef_h2_breach_name(int breach) {
    static const char *const names[EF_H2_B_COUNT] = {
        [EF_H2_CALM] = "none",           [EF_H2_B_RESETS] = "resets",   [EF_H2_B_CONTINUATIONS] = "continuations",
        [EF_H2_B_SETTINGS] = "settings", [EF_H2_B_ACKS] = "acks",       [EF_H2_B_OVERHEAD] = "overhead",
        [EF_H2_B_UPDATES] = "updates",   [EF_H2_B_REFUSED] = "refused", [EF_H2_B_HEAD] = "head",
        [EF_H2_B_STALL] = "stall",       [EF_H2_B_MEMORY] = "memory",
    };
    return breach >= 0 && breach < EF_H2_B_COUNT ? names[breach] : "unknown";
}
