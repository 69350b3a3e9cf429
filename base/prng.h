/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded random numbers for decisions that must be repeatable (jitter, simulation, tests):
 * xoshiro256** seeded by SplitMix64 (Blackman and Vigna, 2018). A seed gives the same sequence in
 * every version. Not for secrets: those come from the operating system.
 */
#ifndef BELAY_BASE_PRNG_H
#define BELAY_BASE_PRNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prng {
    uint64_t s[4];
};

void prng_init(struct prng *p, uint64_t seed);
uint64_t prng_u64(struct prng *p);
uint64_t prng_below(struct prng *p, uint64_t n);              /* 0 .. n-1, unbiased; n > 0 */
int64_t prng_range(struct prng *p, int64_t min, int64_t max); /* both ends included */
double prng_unit(struct prng *p);                             /* [0, 1) */
bool prng_chance(struct prng *p, double probability);         /* 0: never, 1: always */
double prng_exponential(struct prng *p, double mean);         /* > 0; mean > 0 */

/* Full-jitter exponential backoff: uniform in [base/2, min(cap, base * 2^tries)]; tries counts from
 * 0. base_ms, cap_ms >= 0; a cap below base/2 is the delay. */
int64_t prng_backoff_ms(struct prng *p, int tries, int64_t base_ms, int64_t cap_ms);

/* n bytes from the operating system (getrandom), for tokens and keys; aborts if it has none. */
void random_bytes(void *p, size_t n);
/* 2n hex digits of random_bytes; out has 2n + 1 bytes. */
void random_hex(size_t n, char *out);

#endif
