/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's price list: requests, one per line, to a region with two pools. For any request
 * the reply is JSON; for a successful one the driver's parser gives the market's price.
 */
#include "emulator/ec2/pricing.h"
#include "base/json.h"
#include "cloud/aws/pricing.h"
#include "fuzz/check.h"
#include "fuzz/emulated.h"
#include <stdint.h>

#define CALLS_MAX 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_prices(const struct ec2_reply *reply)
{
    struct cloud_prices l = {0};
    char page[PRICING_PAGE_TOKEN_MAX + 1];
    struct err e;
    int rc = pricing_parse_products(
        buf_str(&reply->body), reply->body.len, "us-east-1", "g6.xlarge", &l, page, &e);
    assert(rc == 0 && l.n <= 1 && (l.n == 0 || l.list[0].uusd_h == 500000));
    (void)rc;
    cloud_prices_deinit(&l);
}

static void call(struct region *r, const char *body, size_t n)
{
    const struct ec2_pricing_request q = {PRICING_TARGET, PRICING_CONTENT_TYPE, body, n};
    struct ec2_reply reply;
    struct err e;
    json_t *root;
    ec2_pricing_call(r, &q, &reply);
    assert(reply.status == 200 || reply.status == 400);
    int rc = json_parse(buf_str(&reply.body), reply.body.len, reply.body.len, &root, &e);
    assert(rc == 0);
    json_decref(root);
    if (reply.status == 200) {
        check_prices(&reply);
    } else {
        rc = pricing_parse_error(reply.status, buf_str(&reply.body), reply.body.len, &e);
        check_error(rc, &e);
    }
    buf_deinit(&reply.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct region r;
    struct journal journal = {0};
    const char *at = (const char *)data, *end = at + size;
    emulated_start(&r, &journal);
    for (int i = 0; i < CALLS_MAX && at < end; i++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        call(&r, at, (size_t)(stop - at));
        at = stop + 1;
    }
    region_deinit(&r);
    journal_deinit(&journal);
    return 0;
}
