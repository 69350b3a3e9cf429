/* SPDX-License-Identifier: Apache-2.0
 *
 * The aws driver's prices: the price list's replies, and the driver's use of three services, two of
 * which are optional.
 */
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/aws.h"
#include "cloud/aws/ec2.h"
#include "cloud/aws/pricing.h"
#include "cloud/aws/sigv4.h"
#include "fake_http.h"
#include "outcome.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOON_MS 1787400000000 /* 2026-08-22T12:00:00Z */
#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define ENDPOINT "http://127.0.0.1:4566/"
#define LIST "http://127.0.0.1:4567/"
#define DAY_MS SECONDS_MS(24 * 3600)

/* ---- replies of the price list ---- */

static int parse(const char *body, struct cloud_prices *list, char *page, struct err *e)
{
    return pricing_parse_products(body, strlen(body), "us-east-1", "g6.xlarge", list, page, e);
}

static void the_request_is_what_the_service_documents(void **state)
{
    static const struct {
        const char *field, *value;
    } expected[] = {{"regionCode", "us-east-1"}, {"instanceType", "g6.xlarge"},
        {"operatingSystem", "Linux"}, {"tenancy", "Shared"}, {"preInstalledSw", "NA"},
        {"capacitystatus", "Used"}};
    struct buf b = {0};
    struct err e;
    json_t *root;
    (void)state;
    pricing_build_get_products("us-east-1", "g6.xlarge", &b);
    pricing_add_page("a\"b\\c+/=", &b);
    assert_int_equal(json_parse(buf_str(&b), b.len, b.len, &root, &e), 0);
    assert_string_equal(json_string_value(json_object_get(root, "ServiceCode")), "AmazonEC2");
    assert_string_equal(json_string_value(json_object_get(root, "FormatVersion")), "aws_v1");
    assert_string_equal(json_string_value(json_object_get(root, "NextToken")), "a\"b\\c+/=");
    assert_int_equal(json_integer_value(json_object_get(root, "MaxResults")), 100);
    const json_t *filters = json_object_get(root, "Filters");
    assert_int_equal(json_array_size(filters), sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < json_array_size(filters); i++) {
        const json_t *f = json_array_get(filters, i);
        assert_string_equal(json_string_value(json_object_get(f, "Type")), "TERM_MATCH");
        assert_string_equal(json_string_value(json_object_get(f, "Field")), expected[i].field);
        assert_string_equal(json_string_value(json_object_get(f, "Value")), expected[i].value);
    }
    json_decref(root);
    buf_deinit(&b);
}

static void only_the_hour_of_a_shared_linux_machine_counts(void **state)
{
    char *one = fake_read_file("get_products_1.json"), *two = fake_read_file("get_products_2.json");
    char page[PRICING_PAGE_TOKEN_MAX + 1];
    struct cloud_prices l = {0};
    struct err e;
    struct wall since;
    (void)state;
    if (parse(one, &l, page, &e) != 0)
        fail_msg("%s", e.text);
    assert_string_equal(page, "Zm9sbG93/+==:abc\"");
    assert_int_equal(l.n, 1);
    assert_int_equal(l.list[0].uusd_h, 804800);
    assert_int_equal(l.list[0].market, CLOUD_ON_DEMAND);
    assert_string_equal(l.list[0].zone, "");
    assert_string_equal(l.list[0].type, "g6.xlarge");
    assert_int_equal(time_parse_iso("2026-05-01T00:00:00Z", &since, &e), 0);
    assert_true(l.list[0].since.ms == since.ms);
    /* capacity blocks, databases, nothing on-demand */
    assert_int_equal(parse(two, &l, page, &e), 0);
    assert_string_equal(page, "");
    assert_int_equal(l.n, 1);
    assert_int_equal(l.list[0].uusd_h, 804800);
    assert_int_equal(
        pricing_parse_products(one, strlen(one), "eu-west-1", "g6.xlarge", &l, page, &e), 0);
    assert_int_equal(
        pricing_parse_products(one, strlen(one), "us-east-1", "g6.2xlarge", &l, page, &e), 0);
    assert_int_equal(l.n, 1);
    cloud_prices_deinit(&l);
    free(one);
    free(two);
}

/* One product with these terms. */
static char *reply_with(const char *terms)
{
    char *text = mem_printf(
        "{\"product\":{\"attributes\":{\"instanceType\":\"g6.xlarge\",\"regionCode\":\"us-east-1\","
        "\"operatingSystem\":\"Linux\",\"tenancy\":\"Shared\",\"preInstalledSw\":\"NA\","
        "\"capacitystatus\":\"Used\"}},\"terms\":%s}",
        terms);
    json_t *list = json_array(), *root = json_object();
    json_array_append_new(list, json_text(text));
    json_object_set_new(root, "PriceList", list);
    char *body = json_dump_text(root);
    json_decref(root);
    free(text);
    return body;
}

#define TERM(since, dimensions)                                                                    \
    "{\"OnDemand\":{\"S.J\":{\"effectiveDate\":\"" since "\",\"priceDimensions\":" dimensions "}}" \
    "}"
#define HOUR(price) "{\"S.J.6\":{\"unit\":\"Hrs\",\"beginRange\":\"0\",\"pricePerUnit\":" price "}}"
#define SINCE "2026-05-01T00:00:00Z"

static void prices_of_another_kind_are_left_out(void **state)
{
    static const struct {
        const char *terms;
        int64_t uusd_h;
    } cases[] = {
        {TERM(SINCE, HOUR("{\"USD\":\"0.8048\"}")), 804800},
        {TERM(SINCE, "{\"S.J.6\":{\"unit\":\"Hrs\",\"pricePerUnit\":{\"USD\":\"2\"}}}"), 2000000},
        {TERM(SINCE, HOUR("{\"CNY\":\"5.68\"}")), 0},
        {TERM(SINCE, HOUR("{\"USD\":\"0.0000000000\"}")), 0},
        {TERM(SINCE, "{\"S.J.6\":{\"unit\":\"Quantity\",\"pricePerUnit\":{\"USD\":\"0.5\"}}}"), 0},
        {TERM(SINCE, "{\"S.J.6\":{\"unit\":\"Hrs\",\"beginRange\":\"750\",\"pricePerUnit\":{"
                     "\"USD\":\"0.5\"}}}"),
            0},
        {TERM(SINCE, "{}"), 0},
        {"{\"OnDemand\":{}}", 0},
        {"{}", 0},
        /* Two terms: the later one in force applies. */
        {"{\"OnDemand\":{\"S.J\":{\"effectiveDate\":\"2026-06-01T00:00:00Z\","
         "\"priceDimensions\":" HOUR(
             "{\"USD\":\"0.9\"}") "},\"S.K\":{\"effectiveDate\":\"2024-06-01T00:00:00Z\","
                                  "\"priceDimensions\":" HOUR("{\"USD\":\"0.1\"}") "}}}",
            900000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *body = reply_with(cases[i].terms), page[PRICING_PAGE_TOKEN_MAX + 1];
        struct cloud_prices l = {0};
        struct err e;
        if (parse(body, &l, page, &e) != 0)
            fail_msg("%zu: %s", i, e.text);
        assert_int_equal(l.n, cases[i].uusd_h ? 1 : 0);
        if (l.n > 0)
            assert_int_equal(l.list[0].uusd_h, cases[i].uusd_h);
        cloud_prices_deinit(&l);
        free(body);
    }
}

static void assert_refused(const char *body, const char *expected)
{
    char page[PRICING_PAGE_TOKEN_MAX + 1];
    struct cloud_prices l = {0};
    struct err e;
    assert_int_equal(parse(body, &l, page, &e), ERR_INVALID);
    if (!strstr(e.text, expected) || !str_starts(e.text, "the price list's reply: "))
        fail_msg("expected \"%s\" in \"%s\"", expected, e.text);
    assert_int_equal(l.n, 0);
    cloud_prices_deinit(&l);
}

static void what_is_no_price_list_is_refused(void **state)
{
    static const struct {
        const char *body, *expected;
    } whole[] = {
        {"", "JSON"},
        {"<html>", "JSON"},
        {"[]", "expected"},
        {"{}", "PriceList"},
        {"{\"PriceList\":{}}", "PriceList"},
        /* the document itself, not a text that contains it */
        {"{\"PriceList\":[{}]}", "PriceList[0]"},
        {"{\"PriceList\":[\"\"]}", "PriceList[0]"},
        {"{\"PriceList\":[\"{}\"]}", "product"},
        {"{\"PriceList\":[\"{\\\"product\\\":{}}\"]}", "attributes"},
        {"{\"PriceList\":[\"{\\\"product\\\":\"]}", "PriceList[0]"},
        {"{\"PriceList\":[],\"NextToken\":7}", "NextToken"},
        {"{\"PriceList\":[]}{}", "JSON"},
    };
    static const struct {
        const char *terms, *expected;
    } terms[] = {
        {"[]", "terms"},
        {"{\"OnDemand\":[]}", "OnDemand"},
        {"{\"OnDemand\":{\"S\":1}}", "terms.OnDemand"},
        {TERM("yesterday", "{}"), "effectiveDate"},
        {TERM(SINCE, "[]"), "priceDimensions"},
        {TERM(SINCE, "{\"S\":{\"unit\":\"Hrs\"}}"), "pricePerUnit"},
        {TERM(SINCE, "{\"S\":{\"pricePerUnit\":{}}}"), "unit"},
        {TERM(SINCE, HOUR("{\"USD\":0.8}")), "USD"},
        {TERM(SINCE, HOUR("{\"USD\":\"-1\"}")), "USD"},
        {TERM(SINCE, HOUR("{\"USD\":\"1e3\"}")), "USD"},
        {TERM(SINCE, HOUR("{\"USD\":\"99999999999999999999\"}")), "USD"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
        assert_refused(whole[i].body, whole[i].expected);
    for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
        char *body = reply_with(terms[i].terms);
        assert_refused(body, terms[i].expected);
        free(body);
    }
}

static void a_list_has_limits(void **state)
{
    struct buf b = {0};
    (void)state;
    buf_adds(&b, "{\"PriceList\":[");
    for (int i = 0; i <= PRICING_PAGE_SIZE; i++)
        buf_printf(&b, "%s\"{}\"", i ? "," : "");
    buf_adds(&b, "]}");
    assert_refused(buf_str(&b), "PriceList");
    buf_clear(&b);
    buf_adds(&b, "{\"PriceList\":[\"");
    memset(buf_reserve(&b, PRICING_PRODUCT_MAX + 1), ' ', PRICING_PRODUCT_MAX + 1);
    buf_commit(&b, PRICING_PRODUCT_MAX + 1);
    buf_adds(&b, "\"]}");
    assert_refused(buf_str(&b), "PriceList[0]");
    buf_clear(&b);
    buf_adds(&b, "{\"PriceList\":[],\"NextToken\":\"");
    for (int i = 0; i <= PRICING_PAGE_TOKEN_MAX; i++)
        buf_addc(&b, 'x');
    buf_adds(&b, "\"}");
    assert_refused(buf_str(&b), "NextToken");
    buf_deinit(&b);
}

static void refusals_are_told_apart_by_their_code(void **state)
{
    static const struct {
        int status;
        const char *body;
        enum err_kind kind;
        const char *text;
    } cases[] = {
        {400,
            "{\"__type\":\"AccessDeniedException\",\"Message\":\"User: arn:aws:iam::1:user/b is "
            "not authorized\"}",
            ERR_DENIED,
            "AccessDeniedException: User: arn:aws:iam::1:user/b is not authorized; to do: allow "
            "pricing:GetProducts"},
        {400,
            "{\"__type\":\"com.amazonaws.pricing#ThrottlingException\",\"message\":\"Rate "
            "exceeded\"}",
            ERR_THROTTLED, "refused: ThrottlingException: Rate exceeded"},
        {400,
            "{\"__type\":\"UnrecognizedClientException\",\"message\":\"The security token is "
            "invalid\"}",
            ERR_DENIED, "UnrecognizedClientException"},
        {400, "{\"__type\":\"InvalidParameterException\",\"Message\":\"Field\"}", ERR_CONFIG,
            "InvalidParameterException"},
        {500, "{\"__type\":\"InternalErrorException:http://internal.amazon.com/\"}",
            ERR_UNAVAILABLE, "refused: InternalErrorException"},
        {503, "", ERR_UNAVAILABLE, "HTTP 503 with an empty body"},
        {403, "<!DOCTYPE html><html>no</html>", ERR_DENIED, "an HTML page"},
        {429, "{}", ERR_THROTTLED, "HTTP 429 with no error of its own"},
        {302, "{\"__type\":7}", ERR_CONFIG, "HTTP 302"},
        {400, "{\"__type\":\"a b\\nc\"}", ERR_CONFIG, "HTTP 400"},
        {408, "x", ERR_TIMEOUT, "HTTP 408"},
    };
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            pricing_parse_error(cases[i].status, cases[i].body, strlen(cases[i].body), &e),
            cases[i].kind);
        if (!strstr(e.text, cases[i].text))
            fail_msg("expected \"%s\" in \"%s\"", cases[i].text, e.text);
    }
    static const char canonical[] =
        "{\"__type\":\"InvalidSignatureException\",\"message\":\"The Canonical String should have "
        "been 'POST x-amz-security-token:SESSION'\"}";
    assert_int_equal(pricing_parse_error(400, canonical, strlen(canonical), &e), ERR_DENIED);
    assert_null(strstr(e.text, "SESSION"));
}

/* ---- scores ---- */

static int parse_scores(const char *body, struct ec2_scores *s, struct err *e)
{
    char page[EC2_PAGE_TOKEN_MAX + 1];
    return ec2_parse_placement_scores(body, strlen(body), s, page, e);
}

#define SCORES(items)                                                                              \
    "<GetSpotPlacementScoresResponse><spotPlacementScoreSet>" items                                \
    "</spotPlacementScoreSet></GetSpotPlacementScoresResponse>"
#define SCORE(id, score)                                                                           \
    "<item><region>us-east-1</region><availabilityZoneId>" id "</availabilityZoneId><score>" score \
    "</score></item>"

static void scores_are_of_zones_by_id(void **state)
{
    static const char *const wrong[] = {"<html/>", "<GetSpotPlacementScoresResponse/>",
        SCORES(SCORE("", "3")), SCORES(SCORE("use1-az1", "0")), SCORES(SCORE("use1-az1", "11")),
        SCORES(SCORE("use1-az1", "9.5")), SCORES(SCORE("use1-az1", "")),
        SCORES("<item><region>us-east-1</region><score>3</score></item>")};
    char *body = fake_read_file("placement_scores.xml");
    struct ec2_scores s = {0};
    struct err e;
    (void)state;
    assert_int_equal(parse_scores(body, &s, &e), 0);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.list[0].zone_id, "use1-az6");
    assert_int_equal(s.list[0].score, 9);
    assert_int_equal(s.list[1].score, 3);
    free(body);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(parse_scores(wrong[i], &s, &e), ERR_INVALID);
    assert_int_equal(parse_scores(SCORES(""), &s, &e), 0);
    struct buf many = {0};
    buf_adds(&many, "<GetSpotPlacementScoresResponse><spotPlacementScoreSet>");
    for (int i = 0; i <= EC2_ZONES_MAX; i++)
        buf_printf(
            &many, "<item><availabilityZoneId>z%d</availabilityZoneId><score>1</score></item>", i);
    buf_adds(&many, "</spotPlacementScoreSet></GetSpotPlacementScoresResponse>");
    s.n = 0;
    assert_int_equal(parse_scores(buf_str(&many), &s, &e), ERR_INVALID);
    buf_deinit(&many);
}

/* ---- the driver ---- */

struct rig {
    struct vtimers vt;
    struct fake_http http;
    struct aws_options options;
    struct cloud_driver *driver;
    struct outcome got;
    int warnings;
    char last[2048];
};

static void on_line(void *ctx, enum log_level level, const char *line)
{
    struct rig *g = ctx;
    g->warnings += level >= LOG_WARN;
    STR_COPY(g->last, line);
}

static int setup(void **state)
{
    static const char *const names[] = {"AWS_SESSION_TOKEN", "AWS_PROFILE",
        "AWS_SHARED_CREDENTIALS_FILE", "AWS_EC2_METADATA_DISABLED"};
    struct rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, NOON_MS);
    fake_http_init(&g->http, &g->vt.timers);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    setenv("HOME", "/nonexistent", 1);
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
    log_set_sink(on_line, g);
    g->options = (struct aws_options){.machine = {.image = "ami-0a1b"},
        .endpoint_url = ENDPOINT,
        .prices_url = LIST,
        .http = &g->http.client,
        .timers = &g->vt.timers};
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    if (g->driver)
        g->driver->ops->destroy(g->driver);
    while (vtimers_run_next(&g->vt))
        ;
    log_set_sink(NULL, NULL);
    fake_http_deinit(&g->http);
    vtimers_deinit(&g->vt);
    free(g);
    return 0;
}

static void create(struct rig *g)
{
    struct err e;
    if (aws_driver_create(&g->options, &g->driver, &e) != 0)
        fail_msg("%s", e.text);
}

/* Runs until the prices are reported, or the request has failed. */
static void ask(struct rig *g, const char *region, const char *const *types, size_t n_types,
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
    const struct rig *g, const char *zone, enum cloud_market market)
{
    for (size_t i = 0; i < g->got.n; i++)
        if (str_eq(g->got.prices[i].zone, zone) && g->got.prices[i].market == market)
            return &g->got.prices[i];
    return NULL;
}

static const char *body_of(const struct rig *g, size_t i)
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

static void add_spot(struct rig *g)
{
    fake_http_add_file(&g->http, 200, "spot_prices_2.xml");
}

/* A server's check: everything is taken from the received request. */
static void assert_signed_for_the_list(struct rig *g, size_t i, const char *host, const char *token)
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
    struct sigv4_header headers[] = {{"content-type", "application/x-amz-json-1.1"}, {"host", host},
        {"x-amz-date", timestamp}, {"x-amz-target", "AWSPriceListService.GetProducts"},
        {"x-amz-security-token", token}};
    struct sigv4_request r = {"POST", "/", headers, token ? 5 : 4, hash};
    struct sigv4_scope scope = {timestamp, "us-east-1", "pricing"};
    assert_int_equal(sigv4_signature(&r, &scope, SECRET, claim.signed_headers, expected, &e), 0);
    assert_string_equal(claim.signature, expected);
    free(authorization);
    free(timestamp);
}

static void the_price_list_is_asked_once_a_day_and_told_every_time(void **state)
{
    struct rig *g = *state;
    setenv("AWS_SESSION_TOKEN", "SESSION", 1);
    create(g);
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
        const char *endpoint, *list, *region, *asked; /* NULL if not asked */
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
    struct rig *g = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t before = g->http.n_requests;
        g->options.endpoint_url = cases[i].endpoint;
        g->options.prices_url = cases[i].list;
        create(g);
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
    struct rig *g = *state;
    struct err e;
    for (size_t i = 0; wrong[i]; i++) {
        g->options.prices_url = wrong[i];
        assert_int_equal(aws_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
        assert_null(g->driver);
    }
}

static void a_list_that_is_denied_is_said_once_and_asked_once_a_day(void **state)
{
    struct rig *g = *state;
    create(g);
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
    struct rig *g = *state;
    create(g);
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
    struct rig *g = *state;
    create(g);
    add_spot(g);
    for (int i = 0; i < 10; i++)
        fake_http_add(&g->http, 200, "{\"PriceList\":[],\"NextToken\":\"again\"}");
    ask(g, "us-east-1", one, 1, ERR_NONE);
    assert_int_equal(g->http.n_requests, 11);
    assert_int_equal(g->got.n, 2);
    assert_non_null(strstr(g->last, "pages"));
}

static void spot_prices_are_no_favour(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    ask(g, "us-east-1", three, 3, ERR_TIMEOUT);
    fake_http_add(&g->http, 403, DENIED_EC2);
    ask(g, "us-east-1", three, 3, ERR_DENIED);
    fake_http_add(&g->http, 200, NO_LIST);
    ask(g, "us-east-1", three, 3, ERR_INVALID);
    assert_int_equal(g->http.n_requests, 3);
}

/* ---- scores with prices ---- */

static void scores_stand_beside_the_spot_prices_of_their_zone(void **state)
{
    struct rig *g = *state;
    g->options.prices_url = NULL;
    create(g);
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
    struct rig *g = *state;
    g->options.prices_url = NULL;
    create(g);
    add_spot(g);
    ask(g, "us-east-1", three, 2, ERR_NONE);
    assert_int_equal(g->http.n_requests, 1);
    fake_http_add(&g->http, 200,
        "<DescribeSpotPriceHistoryResponse><spotPriceHistorySet/></"
        "DescribeSpotPriceHistoryResponse>");
    ask(g, "us-east-1", three, 3, ERR_NONE); /* nor for zones without a name */
    assert_int_equal(g->http.n_requests, 2);
}

static void without_scores_it_goes_on(void **state)
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
    struct rig *g = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t before = g->http.n_requests;
        g->warnings = 0;
        create(g);
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

static void destroy_ends_a_favour_under_way(void **state)
{
    struct rig *g = *state;
    create(g);
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

#define RIG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_request_is_what_the_service_documents),
        cmocka_unit_test(only_the_hour_of_a_shared_linux_machine_counts),
        cmocka_unit_test(prices_of_another_kind_are_left_out),
        cmocka_unit_test(what_is_no_price_list_is_refused),
        cmocka_unit_test(a_list_has_limits),
        cmocka_unit_test(refusals_are_told_apart_by_their_code),
        cmocka_unit_test(scores_are_of_zones_by_id),
        RIG(the_price_list_is_asked_once_a_day_and_told_every_time),
        RIG(keys_go_to_no_price_list_that_is_not_named_with_the_endpoint),
        RIG(the_price_list_must_be_https_or_this_machine),
        RIG(a_list_that_is_denied_is_said_once_and_asked_once_a_day),
        RIG(a_list_that_fails_is_left_alone_for_longer_and_longer),
        RIG(endless_pages_of_the_list_end),
        RIG(spot_prices_are_no_favour),
        RIG(scores_stand_beside_the_spot_prices_of_their_zone),
        RIG(two_types_are_not_scored),
        RIG(without_scores_it_goes_on),
        RIG(destroy_ends_a_favour_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
