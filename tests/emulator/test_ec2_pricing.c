/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's price list: its answers to the driver, and to slightly wrong requests.
 */
#include "emulator/ec2/pricing.h"
#include "base/json.h"
#include "base/str.h"
#include "cloud/aws/pricing.h"
#include "tests/emulator/world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGET "AWSPriceListService.GetProducts"

static void call(struct world *w, const char *target, const char *type, const char *body,
    struct ec2_reply *ret_reply)
{
    const struct ec2_pricing_request q = {target, type, body, strlen(body)};
    ec2_pricing_call(&w->region, &q, ret_reply);
}

static void start(struct world *w)
{
    world_init(w);
    world_start(w);
    for (size_t i = 0; i < w->region.market.n_pools; i++)
        w->region.market.pools[i].price_uusd_h[CLOUD_ON_DEMAND] = i ? 7 : 804800;
}

static void the_driver_reads_the_price_of_a_type(void **state)
{
    struct world w;
    struct buf body = {0};
    struct ec2_reply reply;
    struct cloud_prices l = {0};
    char page[PRICING_PAGE_TOKEN_MAX + 1];
    struct err e;
    (void)state;
    start(&w);
    pricing_build_get_products("us-east-1", TYPE, &body);
    call(&w, PRICING_TARGET, PRICING_CONTENT_TYPE, buf_str(&body), &reply);
    assert_int_equal(reply.status, 200);
    /* it passes the filters, but is not the price */
    assert_non_null(strstr(buf_str(&reply.body), "CapacityBlock"));
    if (pricing_parse_products(
            buf_str(&reply.body), reply.body.len, "us-east-1", TYPE, &l, page, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.list[0].uusd_h, 804800);
    assert_int_equal(l.list[0].since.ms, START_MS);
    assert_string_equal(page, "");
    buf_deinit(&reply.body);
    cloud_prices_deinit(&l);
    buf_deinit(&body);
    world_stop(&w);
}

/* All products of a type, one per page. */
static void pages_end_and_miss_nothing(void **state)
{
    struct world w;
    struct ec2_reply reply;
    struct buf body = {0};
    int pages = 0;
    json_t *root;
    struct err e;
    (void)state;
    start(&w);
    buf_adds(&body,
        "{\"ServiceCode\":\"AmazonEC2\",\"MaxResults\":1,\"Filters\":[{\"Type\":\"TERM_MATCH\","
        "\"Field\":\"instanceType\",\"Value\":\"g5.xlarge\"}]}");
    size_t len = body.len;
    for (bool more = true; more; pages++) {
        call(&w, TARGET, EC2_PRICING_CONTENT_TYPE, buf_str(&body), &reply);
        assert_int_equal(reply.status, 200);
        assert_int_equal(
            json_parse(buf_str(&reply.body), reply.body.len, reply.body.len, &root, &e), 0);
        assert_int_equal(json_array_size(json_object_get(root, "PriceList")), 1);
        const char *token = json_string_value(json_object_get(root, "NextToken"));
        more = token != NULL;
        buf_truncate(&body, len);
        if (more)
            pricing_add_page(token, &body);
        json_decref(root);
        buf_deinit(&reply.body);
    }
    assert_int_equal(pages, 7);
    buf_deinit(&body);
    world_stop(&w);
}

static void requests_that_are_wrong_are_refused_by_name(void **state)
{
#define ASK "{\"ServiceCode\":\"AmazonEC2\""
    static const struct {
        const char *target, *type, *body, *code;
    } cases[] = {
        {TARGET, EC2_PRICING_CONTENT_TYPE, "", "SerializationException"},
        {TARGET, EC2_PRICING_CONTENT_TYPE, "Action=GetProducts", "SerializationException"},
        {TARGET, EC2_PRICING_CONTENT_TYPE, "[]", "InvalidParameterException"},
        {TARGET, EC2_PRICING_CONTENT_TYPE, "{}", "InvalidParameterException"},
        {TARGET, EC2_PRICING_CONTENT_TYPE, "{\"ServiceCode\":\"AmazonS3\"}",
            "InvalidParameterException"},
        {TARGET, EC2_PRICING_CONTENT_TYPE, ASK ",\"FormatVersion\":\"aws_v2\"}",
            "InvalidParameterException"},
        {TARGET, EC2_PRICING_CONTENT_TYPE, ASK ",\"MaxResults\":101}", "InvalidParameterException"},
        {TARGET, EC2_PRICING_CONTENT_TYPE, ASK ",\"MaxResults\":0}", "InvalidParameterException"},
        {TARGET, EC2_PRICING_CONTENT_TYPE, ASK ",\"MaxResult\":1}", "InvalidParameterException"},
        {TARGET, EC2_PRICING_CONTENT_TYPE, ASK ",\"NextToken\":\"b\"}",
            "InvalidNextTokenException"},
        {TARGET, EC2_PRICING_CONTENT_TYPE, ASK ",\"NextToken\":\"YWZ0ZXI6LTE=\"}",
            "InvalidNextTokenException"},
        {TARGET, EC2_PRICING_CONTENT_TYPE, ASK ",\"Filters\":[{}]}", "InvalidParameterException"},
        {TARGET, EC2_PRICING_CONTENT_TYPE,
            ASK ",\"Filters\":[{\"Type\":\"ANY_OF\",\"Field\":\"tenancy\",\"Value\":\"Shared\"}]}",
            "InvalidParameterException"},
        {TARGET, "application/json", ASK "}", "UnknownOperationException"},
        {TARGET, NULL, ASK "}", "UnknownOperationException"},
        {"AWSPriceListService.DescribeServices", EC2_PRICING_CONTENT_TYPE, ASK "}",
            "UnknownOperationException"},
    };
    struct world w;
    (void)state;
    start(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ec2_reply reply;
        call(&w, cases[i].target, cases[i].type, cases[i].body, &reply);
        assert_int_equal(reply.status, 400);
        if (!str_eq(reply.code, cases[i].code))
            fail_msg("%zu: expected %s, got %s", i, cases[i].code, buf_str(&reply.body));
        buf_deinit(&reply.body);
    }
    world_stop(&w);
}

static void the_driver_knows_our_refusals(void **state)
{
    static const struct {
        const char *code, *shown;
        enum err_kind kind;
    } codes[] = {
        {"AccessDeniedException", "AccessDeniedException", ERR_DENIED},
        {"UnauthorizedOperation", "AccessDeniedException", ERR_DENIED},
        {"AuthFailure", "UnrecognizedClientException", ERR_DENIED},
        {"SignatureDoesNotMatch", "InvalidSignatureException", ERR_DENIED},
        {"ExpiredTokenException", "ExpiredTokenException", ERR_DENIED},
        {"MissingAuthenticationTokenException", "MissingAuthenticationTokenException", ERR_DENIED},
        {"IncompleteSignatureException", "IncompleteSignatureException", ERR_DENIED},
        {"ThrottlingException", "ThrottlingException", ERR_THROTTLED},
        {"RequestLimitExceeded", "ThrottlingException", ERR_THROTTLED},
        {"InternalError", "InternalErrorException", ERR_UNAVAILABLE},
        {"SomethingElse", "SomethingElse", ERR_CONFIG},
    };
    struct world w;
    (void)state;
    start(&w);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        struct ec2_reply reply = {0};
        struct err e;
        ec2_pricing_error(&w.region, codes[i].code, NULL, &reply);
        assert_string_equal(reply.code, codes[i].shown);
        if (pricing_parse_error(reply.status, buf_str(&reply.body), reply.body.len, &e) !=
            (int)codes[i].kind)
            fail_msg("%s: %s", codes[i].code, e.text);
        buf_deinit(&reply.body);
    }
    world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_reads_the_price_of_a_type),
        cmocka_unit_test(pages_end_and_miss_nothing),
        cmocka_unit_test(requests_that_are_wrong_are_refused_by_name),
        cmocka_unit_test(the_driver_knows_our_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
