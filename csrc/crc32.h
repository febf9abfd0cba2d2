/* crc32.h - CRC-32 as zlib has it (IEEE 802.3, reflected): the hash tag of a counter's key in Redis. Other machines, other
 * versions and the Python side (rate_limit/tags.py) must find the same counter, so this can never be another function. */
#ifndef EF_CRC32_H
#define EF_CRC32_H
#include <stddef.h>
#include <stdint.h>
uint32_t ef_crc32(const uint8_t *data, size_t len);
#endif
