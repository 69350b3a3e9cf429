/* SPDX-License-Identifier: Apache-2.0
 *
 * FNV-1a, 64 bits: the same on all machines and in all versions. It does not withstand anyone who
 * wants collisions.
 */
#ifndef BELAY_BASE_HASH_H
#define BELAY_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_INIT UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)

/* Continues from h, which is HASH_INIT at first. */
static inline uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
    const unsigned char *in = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ in[i]) * HASH_PRIME;
    return h;
}

/* Of the text without its NUL. */
static inline uint64_t hash_text(const char *s)
{
    uint64_t h = HASH_INIT;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * HASH_PRIME;
    return h;
}

#endif
