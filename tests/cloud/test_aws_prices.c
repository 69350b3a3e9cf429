/* SPDX-License-Identifier: Apache-2.0
 *
 * How the aws driver gets prices: from EC2, and from the price list and placement scores, without
 * which it continues.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "aws_rig.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/sigv4.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST "http://127.0.0.1:4567/"

static int setup(void **state)
{
    aws_rig_setup(state);
    ((struct aws_rig *)*state)->options.prices_url = LIST;
    return 0;
}

/* Runs until the prices are reported, or the request has failed. */
static void ask(struct aws_rig *g, const char *region, const char *const *types, size_t n_types,
    enum err_kind expected)
{
    g->got = (struct outcome){0};
    g->driver->ops->prices(g->driver, region, types, n_types, outcome_prices, &g->got);
    assert_int_equal(g->got.completions, 0);
    while (g->got.completions == 0)
        assert_true(vtimers_run_next(&g->vt));
    if (g->got.e.kind != expected)
        fail_msg("expected %s, got %s: %s", err_kind_name(expected), err_kind_name(g->got.e.kind),
            g->got.e.text);
}

static const struct cloud_price *price(
    const struct aws_rig *g, const char *zone, enum cloud_market market)
{
    for (size_t i = 0; i < g->got.n; i++)
        if (str_eq(g->got.prices[i].zone, zone) && g->got.prices[i].market == market)
            return &g->got.prices[i];
    return NULL;
}

static const char *body_of(const struct aws_rig *g, size_t i)
{
    return buf_str(&g->http.requests[i].body);
}

static const char *const one[] = {"g6.xlarge"};
static const char *const three[] = {"g6.xlarge", "g5.xlarge", "g6e.xlarge"};
static const char *const backwards[] = {"g6e.xlarge", "g6.xlarge", "g5.xlarge"};
#define DENIED_EC2                                                                                 \
    "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not authorized "  \
    "to perform "                                                                                  \
    "this operation.</Message></Error></Errors></Response>"
#define DENIED_LIST                                                                                \
    "{\"__type\":\"AccessDeniedException\",\"Message\":\"not authorized to perform: "              \
    "pricing:GetProducts\"}"
#define THROTTLED_LIST "{\"__type\":\"ThrottlingException\",\"Message\":\"Rate exceeded\"}"
#define NO_LIST "{\"FormatVersion\":\"aws_v1\",\"PriceList\":[]}"

static void add_spot(struct aws_rig *g)
{
    fake_http_add_file(&g->http, 200, "spot_prices_2.xml");
}

/* A server's check: everything is taken from the received request. */
static void assert_signed_for_the_list(
    struct aws_rig *g, size_t i, const char *host, const char *token)
{
    char *authorization = fake_http_header(&g->http, i, "Authorization");
    char hash[SIGV4_HEX_MAX], expected[SIGV4_HEX_MAX];
    char *timestamp = fake_http_header(&g->http, i, "X-Amz-Date");
    const struct buf *body = &g->http.requests[i].body;
    struct sigv4_claim claim;
    struct err e;
    sigv4_sha256_hex(buf_str(body), body->len, hash);
    assert_int_equal(sigv4_parse_authorization(authorization, &claim, &e), 0);
    assert_string_equal(claim.service, "pricing");
    assert_string_equal(claim.region, "us-east-1");
    assert_string_equal(claim.signed_headers,
        token ? "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
              : "content-type;host;x-amz-date;x-amz-target");
    struct http_header headers[] = {{"content-type", "application/x-amz-json-1.1"}, {"host", host},
        {"x-amz-date", timestamp}, {"x-amz-target", "AWSPriceListService.GetProducts"},
        {"x-amz-security-token", token}};
    struct sigv4_request r = {"POST", "/", headers, token ? 5 : 4, hash};
    struct sigv4_scope scope = {timestamp, "us-east-1", "pricing"};
    assert_int_equal(sigv4_signature(&r, &scope, SECRET, claim.signed_headers, expected, &e), 0);
    assert_string_equal(claim.signature, expected);
    free(authorization);
    free(timestamp);
}

static void the_price_list_is_requested_once_a_day_and_reported_every_time(void **state)
{
    struct aws_rig *g = *state;
    setenv("AWS_SESSION_TOKEN", "SESSION", 1);
    aws_rig_create(g);
    unsetenv("AWS_SESSION_TOKEN");
    add_spot(g);
    fake_http_add_file(&g->http, 200, "get_products_1.json");
    fake_http_add_file(&g->http, 200, "get_products_2.json");
    ask(g, "eu-west-1", one, 1, ERR_NONE); /* the file is about us-east-1: nothing matches */
    assert_null(price(g, "", CLOUD_ON_DEMAND));
    assert_int_equal(g->http.n_requests, 3);
    assert_string_equal(g->http.requests[0].url, ENDPOINT);
    assert_string_equal(g->http.requests[1].url, LIST);
    assert_string_equal(g->http.requests[2].url, LIST);
    assert_true(fake_http_sent(&g->http, 1, "X-Amz-Target: AWSPriceListService.GetProducts"));
    assert_true(fake_http_sent(&g->http, 1, "Content-Type: application/x-amz-json-1.1"));
    assert_true(str_ends(body_of(g, 2), ",\"NextToken\":\"Zm9sbG93/+==:abc\\\"\"}"));
    assert_signed_for_the_list(g, 1, "127.0.0.1:4567", "SESSION");
    assert_signed_for_the_list(g, 2, "127.0.0.1:4567", "SESSION");

    add_spot(g);
    fake_http_add_file(&g->http, 200, "get_products_1.json");
    fake_http_add_file(&g->http, 200, "get_products_2.json");
    ask(g, "us-east-1", one, 1, ERR_NONE);
    assert_int_equal(g->got.n, 3);
    assert_int_equal(price(g, "", CLOUD_ON_DEMAND)->uusd_h, 804800);
    assert_int_equal(price(g, "us-east-1a", CLOUD_SPOT)->uusd_h, 421500);

    add_spot(g);
    vtimers_advance(&g->vt, DAY_MS - 1000);
    ask(g, "us-east-1", one, 1, ERR_NONE);
    assert_int_equal(price(g, "", CLOUD_ON_DEMAND)->uusd_h, 804800);
    assert_int_equal(g->http.n_requests, 7);

    add_spot(g);
    fake_http_add(&g->http, 200, NO_LIST); /* known prices stay */
    vtimers_advance(&g->vt, 2000);
    ask(g, "us-east-1", one, 1, ERR_NONE);
    assert_int_equal(price(g, "", CLOUD_ON_DEMAND)->uusd_h, 804800);
    assert_int_equal(g->http.n_requests, 9);
    assert_int_equal(g->warnings, 0);
}

static void keys_go_to_no_price_list_that_is_not_named_with_the_endpoint(void **state)
{
    static const struct {
        const char *endpoint, *list, *region, *asked; /* NULL if not requested */
    } cases[] = {
        {ENDPOINT, NULL, "us-east-1", NULL},
        {NULL, NULL, "eu-west-1", "https://api.pricing.us-east-1.amazonaws.com/"},
        {NULL, NULL, "cn-north-1", NULL},
        {NULL, NULL, "us-gov-west-1", NULL},
        {NULL, NULL, "us-iso-east-1", NULL},
        {NULL, NULL, "eusc-de-east-1", NULL},
        {NULL, LIST, "cn-north-1", LIST},
        {ENDPOINT, LIST, "us-east-1", LIST},
    };
    struct aws_rig *g = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t before = g->http.n_requests;
        g->options.endpoint_url = cases[i].endpoint;
        g->options.prices_url = cases[i].list;
        aws_rig_create(g);
        add_spot(g);
        if (cases[i].asked)
            fake_http_add(&g->http, 200, NO_LIST);
        ask(g, cases[i].region, one, 1, ERR_NONE);
        assert_int_equal(g->http.n_requests - before, cases[i].asked ? 2 : 1);
        if (cases[i].asked)
            assert_string_equal(g->http.requests[before + 1].url, cases[i].asked);
        g->driver->ops->destroy(g->driver);
        g->driver = NULL;
    }
}

static void the_price_list_must_be_https_or_this_machine(void **state)
{
    static const char *const wrong[] = {"", "http://api.pricing.us-east-1.amazonaws.com/",
        "https://h/path", "https://user@h/", "ftp://h/", NULL};
    struct aws_rig *g = *state;
    struct err e;
    for (size_t i = 0; wrong[i]; i++) {
        g->options.prices_url = wrong[i];
        assert_int_equal(aws_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
        assert_null(g->driver);
    }
}

static void a_denied_price_list_is_logged_once_and_requested_once_a_day(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    add_spot(g);
    fake_http_add(&g->http, 400, DENIED_LIST);
    ask(g, "us-east-1", one, 1, ERR_NONE);
    assert_int_equal(g->got.n, 2);
    assert_int_equal(g->warnings, 1);
    assert_non_null(strstr(g->last, "pricing:GetProducts"));
    for (int i = 0; i < 10; i++) {
        vtimers_advance(&g->vt, SECONDS_MS(300));
        add_spot(g);
        ask(g, "us-east-1", one, 1, ERR_NONE);
    }
    assert_int_equal(g->http.n_requests, 12);
    vtimers_advance(&g->vt, DAY_MS);
    add_spot(g);
    fake_http_add(&g->http, 400, DENIED_LIST);
    ask(g, "us-east-1", one, 1, ERR_NONE);
    assert_int_equal(g->http.n_requests, 14);
    assert_int_equal(g->warnings, 1);
    /* Until the permission is granted, and removed again. */
    vtimers_advance(&g->vt, DAY_MS);
    add_spot(g);
    fake_http_add_file(&g->http, 200, "get_products_2.json");
    ask(g, "us-east-1", one, 1, ERR_NONE);
    vtimers_advance(&g->vt, DAY_MS);
    add_spot(g);
    fake_http_add(&g->http, 400, DENIED_LIST);
    ask(g, "us-east-1", one, 1, ERR_NONE);
    assert_int_equal(g->warnings, 2);
}

/* After any other failure, too, the spot prices are reported; earlier results stay, and the rest is
 * requested later. */
static void a_list_that_fails_is_left_alone_for_longer_and_longer(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    add_spot(g);
    fake_http_add(&g->http, 200, NO_LIST); /* g5.xlarge */
    fake_http_add(&g->http, 400, THROTTLED_LIST);
    ask(g, "us-east-1", three, 2, ERR_NONE);
    assert_int_equal(g->got.n, 2);
    assert_int_equal(g->http.n_requests, 3);
    assert_non_null(strstr(body_of(g, 1), "\"g5.xlarge\""));
    assert_non_null(strstr(body_of(g, 2), "\"g6.xlarge\""));
    add_spot(g);
    vtimers_advance(&g->vt, SECONDS_MS(299));
    ask(g, "us-east-1", three, 2, ERR_NONE);
    assert_int_equal(g->http.n_requests, 4);
    add_spot(g);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    vtimers_advance(&g->vt, SECONDS_MS(302));
    ask(g, "us-east-1", three, 2, ERR_NONE);
    assert_int_equal(g->http.n_requests, 6);
    assert_non_null(strstr(body_of(g, 5), "\"g6.xlarge\"")); /* not the one already answered */
    add_spot(g);
    fake_http_add(&g->http, 200, "<html>captive portal</html>");
    vtimers_advance(&g->vt, SECONDS_MS(1200));
    ask(g, "us-east-1", three, 2, ERR_NONE);
    assert_int_equal(g->http.n_requests, 8);
    add_spot(g);
    fake_http_add_file(&g->http, 200, "get_products_1.json");
    fake_http_add_error(&g->http, ERR_IO); /* a partial list is discarded */
    vtimers_advance(&g->vt, SECONDS_MS(2400));
    ask(g, "us-east-1", three, 2, ERR_NONE);
    assert_int_equal(g->got.n, 2);
    add_spot(g);
    fake_http_add_file(&g->http, 200, "get_products_1.json");
    fake_http_add_file(&g->http, 200, "get_products_2.json");
    vtimers_advance(&g->vt, SECONDS_MS(4800));
    ask(g, "us-east-1", three, 2, ERR_NONE);
    assert_int_equal(g->got.n, 3);
    assert_int_equal(price(g, "", CLOUD_ON_DEMAND)->uusd_h, 804800);
    assert_int_equal(g->warnings, 0);
}

static void endless_pages_of_the_list_end(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    add_spot(g);
    for (int i = 0; i < 10; i++)
        fake_http_add(&g->http, 200, "{\"PriceList\":[],\"NextToken\":\"again\"}");
    ask(g, "us-east-1", one, 1, ERR_NONE);
    assert_int_equal(g->http.n_requests, 11);
    assert_int_equal(g->got.n, 2);
    assert_non_null(strstr(g->last, "pages"));
}

static void spot_prices_are_required(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    ask(g, "us-east-1", three, 3, ERR_TIMEOUT);
    fake_http_add(&g->http, 403, DENIED_EC2);
    ask(g, "us-east-1", three, 3, ERR_DENIED);
    fake_http_add(&g->http, 200, NO_LIST);
    ask(g, "us-east-1", three, 3, ERR_INVALID);
    assert_int_equal(g->http.n_requests, 3);
}

/* ---- scores with prices ---- */

static void scores_come_with_the_spot_prices_of_their_zone(void **state)
{
    struct aws_rig *g = *state;
    g->options.prices_url = NULL;
    aws_rig_create(g);
    add_spot(g);
    fake_http_add_file(&g->http, 200, "placement_scores.xml");
    ask(g, "us-east-1", three, 3, ERR_NONE);
    assert_int_equal(g->http.n_requests, 2);
    assert_string_equal(g->http.requests[1].url, ENDPOINT);
    assert_string_equal(body_of(g, 1), "Action=GetSpotPlacementScores&Version=2016-11-15&"
                                       "InstanceType.1=g5.xlarge&InstanceType.2=g6.xlarge"
                                       "&InstanceType.3=g6e.xlarge&TargetCapacity=1&"
                                       "TargetCapacityUnitType=units&SingleAvailabilityZone=true"
                                       "&RegionName.1=us-east-1");
    assert_int_equal(price(g, "us-east-1a", CLOUD_SPOT)->score, 9);
    /* not among those that EC2 returns */
    assert_int_equal(price(g, "us-east-1b", CLOUD_SPOT)->score, 0);
    /* The same question for any order of the offers. */
    add_spot(g);
    fake_http_add_file(&g->http, 200, "placement_scores.xml");
    ask(g, "us-east-1", backwards, 3, ERR_NONE);
    assert_string_equal(body_of(g, 3), body_of(g, 1));
}

static void two_types_are_not_scored(void **state)
{
    struct aws_rig *g = *state;
    g->options.prices_url = NULL;
    aws_rig_create(g);
    add_spot(g);
    ask(g, "us-east-1", three, 2, ERR_NONE);
    assert_int_equal(g->http.n_requests, 1);
    fake_http_add(&g->http, 200,
        "<DescribeSpotPriceHistoryResponse><spotPriceHistorySet/></"
        "DescribeSpotPriceHistoryResponse>");
    ask(g, "us-east-1", three, 3, ERR_NONE); /* nor for zones without a name */
    assert_int_equal(g->http.n_requests, 2);
}

static void prices_are_reported_without_scores(void **state)
{
    static const struct {
        int status; /* 0 = no answer */
        const char *body;
        int warnings;
    } cases[] = {
        {403, DENIED_EC2, 1},
        {400,
            "<Response><Errors><Error><Code>UnsupportedOperation</Code></Error></Errors></"
            "Response>",
            1},
        {400,
            "<Response><Errors><Error><Code>MaxConfigLimitExceeded</Code></Error></Errors></"
            "Response>",
            1},
        {503,
            "<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors></"
            "Response>",
            0},
        {200, SCORES(SCORE("use1-az6", "0")), 0},
        {200, "<html/>", 0},
        {0, NULL, 0},
    };
    struct aws_rig *g = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t before = g->http.n_requests;
        g->warnings = 0;
        aws_rig_create(g);
        add_spot(g);
        if (cases[i].status)
            fake_http_add(&g->http, cases[i].status, cases[i].body);
        else
            fake_http_add_error(&g->http, ERR_TIMEOUT);
        for (int k = 0; k < 3; k++)
            /* the list is requested all the same */
            fake_http_add_file(&g->http, 200, "get_products_2.json");
        ask(g, "us-east-1", three, 3, ERR_NONE);
        assert_int_equal(g->got.n, 2);
        assert_int_equal(price(g, "us-east-1a", CLOUD_SPOT)->score, 0);
        assert_int_equal(g->http.n_requests - before, 5);
        assert_int_equal(g->warnings, cases[i].warnings);
        add_spot(g);
        vtimers_advance(&g->vt, SECONDS_MS(299));
        ask(g, "us-east-1", three, 3, ERR_NONE);
        assert_int_equal(g->http.n_requests - before, 6);
        add_spot(g);
        if (cases[i].warnings == 0)
            fake_http_add_file(&g->http, 200, "placement_scores.xml");
        vtimers_advance(&g->vt, SECONDS_MS(302));
        ask(g, "us-east-1", three, 3, ERR_NONE);
        assert_int_equal(price(g, "us-east-1a", CLOUD_SPOT)->score, cases[i].warnings ? 0 : 9);
        assert_int_equal(g->warnings, cases[i].warnings);
        g->driver->ops->destroy(g->driver);
        g->driver = NULL;
    }
}

static void destroy_ends_an_optional_request_in_flight(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    g->driver->ops->prices(g->driver, "us-east-1", one, 1, outcome_prices, &g->got);
    add_spot(g);
    while (g->http.n_requests < 1)
        assert_true(vtimers_run_next(&g->vt));
    g->http.silent = true;
    while (g->http.n_requests < 2)
        assert_true(vtimers_run_next(&g->vt));
    g->driver->ops->destroy(g->driver);
    g->driver = NULL;
    assert_int_equal(g->got.completions, 1);
    assert_int_equal(g->got.e.kind, ERR_CANCELLED);
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->got.completions, 1);
    assert_int_equal(g->http.n_requests, 2);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, setup, aws_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(the_price_list_is_requested_once_a_day_and_reported_every_time),
        RIG(keys_go_to_no_price_list_that_is_not_named_with_the_endpoint),
        RIG(the_price_list_must_be_https_or_this_machine),
        RIG(a_denied_price_list_is_logged_once_and_requested_once_a_day),
        RIG(a_list_that_fails_is_left_alone_for_longer_and_longer),
        RIG(endless_pages_of_the_list_end),
        RIG(spot_prices_are_required),
        RIG(scores_come_with_the_spot_prices_of_their_zone),
        RIG(two_types_are_not_scored),
        RIG(prices_are_reported_without_scores),
        RIG(destroy_ends_an_optional_request_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
