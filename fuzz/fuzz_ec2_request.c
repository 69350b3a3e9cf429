/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's EC2 API: calls, one per line, to a region with two pools. For any request the
 * reply is XML with a status that EC2 uses, and no more instances run than there is capacity for.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/ec2/ec2.h"
#include "cloud/xml.h"
#include <assert.h>
#include <stdint.h>
#include <string.h>

#define CALLS_MAX 20
#define NOON_MS 1787400000000
#define CAPACITY 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void start(struct region *r, const struct region_options *o, struct journal *journal)
{
    struct market_pool *pools = mem_array(2, sizeof(*pools));
    for (int i = 0; i < 2; i++) {
        STR_COPY(pools[i].zone, i ? "us-east-1b" : "us-east-1a");
        STR_COPY(pools[i].type, "g6.xlarge");
        pools[i].capacity[CLOUD_SPOT] = pools[i].capacity[CLOUD_ON_DEMAND] = CAPACITY;
        pools[i].price_uusd_h[CLOUD_SPOT] = pools[i].price_uusd_h[CLOUD_ON_DEMAND] = 500000;
    }
    region_init(r, o, journal, pools, 2, NULL, NULL, (struct wall){NOON_MS});
}

static void check(const struct region *r, const struct ec2_reply *reply)
{
    struct xml x;
    struct err e;
    assert(reply->status >= 200 && reply->status <= 503);
    int rc = xml_open(&x, buf_str(&reply->body), reply->body.len, &e);
    assert(rc == 0);
    (void)rc;
    xml_close(&x);
    for (size_t i = 0; i < r->market.n_pools; i++)
        assert(r->market.pools[i].in_use[CLOUD_SPOT] <= CAPACITY &&
               r->market.pools[i].in_use[CLOUD_ON_DEMAND] <= CAPACITY);
}

static void call(
    struct region *r, struct ec2_store *store, const char *text, size_t n, struct wall now)
{
    const struct ec2_account account = {.store = store};
    struct form form = {0};
    struct ec2_reply reply = {0};
    struct err e;
    if (form_parse(text, n, &form, &e) == 0)
        ec2_api_call(r, &account, &form, now, &reply);
    else
        ec2_api_error(r, "MalformedQueryString", e.text, &reply);
    check(r, &reply);
    buf_deinit(&reply.body);
    form_deinit(&form);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct region_options options = {.name = "us-east-1",
        .account = "111122223333",
        .seed = 1,
        .boot_delay_ms = 1000,
        .notice_ms = 2000};
    struct region r;
    struct journal journal = {0};
    struct ec2_store store = {0};
    struct wall now = {NOON_MS};
    const char *at = (const char *)data, *end = at + size;
    log_set_level(LOG_ERROR);
    start(&r, &options, &journal);
    for (int i = 0; i < CALLS_MAX && at < end; i++, now.ms += 700) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        call(&r, &store, at, (size_t)(stop - at), now);
        at = stop + 1;
    }
    ec2_store_deinit(&store);
    region_deinit(&r);
    journal_deinit(&journal);
    return 0;
}
