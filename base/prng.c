/* SPDX-License-Identifier: Apache-2.0
 *
 * xoshiro256** 1.0 and SplitMix64 (Blackman and Vigna, public domain, https://prng.di.unimi.it/).
 * The sequence for a seed is part of the meaning of recorded simulations: it must never change.
 */
#include "base/prng.h"

#include "base/str.h"
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/random.h>

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static uint64_t splitmix64(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void prng_init(struct prng *p, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        p->s[i] = splitmix64(&seed);
}

uint64_t prng_u64(struct prng *p)
{
    uint64_t *s = p->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t prng_below(struct prng *p, uint64_t n)
{
    assert(n > 0);
    /* Values below 2^64 mod n would make small remainders more likely: draw again. */
    uint64_t skip = -n % n, x;
    do
        x = prng_u64(p);
    while (x < skip);
    return x % n;
}

int64_t prng_range(struct prng *p, int64_t min, int64_t max)
{
    assert(min <= max);
    uint64_t span = (uint64_t)max - (uint64_t)min + 1; /* 0 means all 2^64 */
    uint64_t offset = span ? prng_below(p, span) : prng_u64(p);
    return (int64_t)((uint64_t)min + offset);
}

double prng_unit(struct prng *p)
{
    return (double)(prng_u64(p) >> 11) * 0x1p-53;
}

bool prng_chance(struct prng *p, double probability)
{
    return prng_unit(p) < probability;
}

double prng_exponential(struct prng *p, double mean)
{
    /* u = (k + 0.5) / 2^52 is strictly between 0 and 1: its logarithm is finite and below 0. */
    double u = ((double)(prng_u64(p) >> 12) + 0.5) * 0x1p-52;
    return -mean * log(u);
}

int64_t prng_backoff_ms(struct prng *p, int tries, int64_t base_ms, int64_t cap_ms)
{
    assert(tries >= 0 && base_ms >= 0 && cap_ms >= 0);
    int64_t high = base_ms;
    for (int i = 0; i < tries && high > 0 && high < cap_ms; i++)
        high = high > INT64_MAX / 2 ? INT64_MAX : high * 2;
    if (high > cap_ms)
        high = cap_ms;
    int64_t low = base_ms / 2 < high ? base_ms / 2 : high;
    return prng_range(p, low, high);
}

void random_bytes(void *p, size_t n)
{
    char *at = p;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort();
        at += got;
        n -= (size_t)got;
    }
}

void random_hex(size_t n, char *out)
{
    /* random_bytes fills 32 bytes at a time, so that a small stack buffer suffices */
    for (unsigned char piece[32]; n > 0;) {
        size_t some = n < sizeof(piece) ? n : sizeof(piece);
        random_bytes(piece, some);
        str_hex(piece, some, out);
        out += 2 * some;
        n -= some;
    }
    *out = 0;
}
