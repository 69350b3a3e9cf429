/* SPDX-License-Identifier: Apache-2.0
 *
 * Bodies posted to the emulator's /events, one per line, for a region with running instances: the
 * result is valid JSON, no more instances run than there was capacity for, and the region's
 * accounts add up.
 */
#include "emulator/control.h"
#include "fuzz/check.h"
#include "fuzz/emulated.h"
#include <stdint.h>
#include <stdlib.h>

#define BODIES_MAX 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(json_t *v)
{
    char *text = json_dump_text(v);
    free(text);
    json_decref(v);
}

static void post(struct region *r, const char *text, size_t n, struct wall now)
{
    json_t *reply = NULL;
    struct err e = {0};
    int rc = control_events(&r, 1, text, n, now, &reply, &e);
    if (rc == 0) {
        assert(json_is_array(json_object_get(reply, "results")));
        check_json(reply);
    } else {
        check_error(rc, &e);
        assert(!reply);
    }
    check_json(control_state(&r, 1, now));
    for (size_t i = 0; i < r->market.n_pools; i++)
        for (int m = 0; m < 2; m++)
            assert(r->market.pools[i].in_use[m] >= 0 &&
                   r->market.pools[i].in_use[m] <= EMULATED_CAPACITY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct region r;
    struct journal journal = {0};
    struct wall now = {EMULATED_NOON_MS + 2000};
    const char *at = (const char *)data, *end = at + size;
    emulated_start(&r, &journal);
    emulated_launch(&r, CLOUD_SPOT, 2);
    emulated_launch(&r, CLOUD_ON_DEMAND, 1);
    for (int i = 0; i < BODIES_MAX && at < end; i++, now.ms += 700) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        post(&r, at, (size_t)(stop - at), now);
        at = stop + 1;
    }
    region_deinit(&r);
    journal_deinit(&journal);
    return 0;
}
