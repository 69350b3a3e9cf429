/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of a join, its answer and a renewal; the first byte selects. A decodable message
 * encodes, and decodes again to the same. A join that is decoded has a node's name, features and
 * resources that the rest of belay can take.
 */
#include "base/mem.h"
#include "base/wire/wire.h"
#include "fuzz/check.h"
#include "job/hosts.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_features(const char *set)
{
    char copy[FEATURES_TEXT_MAX] = "", name[FEATURE_MAX];
    size_t pos = 0, length = 0;
    for (; features_next(set, &pos, name); length += strlen(name) + 1) {
        assert(!features_has(copy, name));
        assert(features_add(copy, sizeof(copy), name));
    }
    assert(!set[pos] || str_eq(set + pos, ",")); /* all of it are names */
    assert(strlen(set) <= length + 1);
}

static void wire_join_check(const struct wire_join *m)
{
    struct counts counts;
    int64_t n = 0;
    assert(str_is_name(m->host, sizeof(m->host) - 1));
    assert(hosts_check(m->host, &n, NULL) == 0 && n == 1 && hosts_has(m->host, m->host));
    check_features(m->features);
    assert(counts_parse(m->resources, &counts, NULL) == 0);
}

static void wire_joined_check(const struct wire_joined *m)
{
    (void)m;
}

static void wire_renew_check(const struct wire_renew *m)
{
    (void)m;
}

#define ROUND_TRIP(type)                                                                           \
    static void type##_round_trip(const char *p, size_t n)                                         \
    {                                                                                              \
        struct type *m = mem_alloc(sizeof(*m)), *back = mem_alloc(sizeof(*back));                  \
        struct buf first = {0}, second = {0};                                                      \
        struct err e = {0};                                                                        \
        memset(m, CHECK_PATTERN, sizeof(*m));                                                      \
        int rc = type##_decode(p, n, m, &e);                                                       \
        if (rc == 0) {                                                                             \
            type##_check(m);                                                                       \
            type##_encode(m, &first);                                                              \
            rc = type##_decode(first.data, first.len, back, &e);                                   \
            assert(rc == 0);                                                                       \
            type##_encode(back, &second);                                                          \
            assert(str_eq(first.data, second.data));                                               \
        } else {                                                                                   \
            check_error(rc, &e);                                                                   \
            check_untouched(m, sizeof(*m));                                                        \
        }                                                                                          \
        buf_deinit(&first);                                                                        \
        buf_deinit(&second);                                                                       \
        free(m);                                                                                   \
        free(back);                                                                                \
    }

ROUND_TRIP(wire_join)
ROUND_TRIP(wire_joined)
ROUND_TRIP(wire_renew)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *p = (const char *)data + 1;
    if (data[0] == 'j')
        wire_join_round_trip(p, size - 1);
    else if (data[0] == 'd')
        wire_joined_round_trip(p, size - 1);
    else
        wire_renew_round_trip(p, size - 1);
    return 0;
}
