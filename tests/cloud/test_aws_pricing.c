/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to the price list of AWS, and its replies; replies of EC2 with placement scores.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "aws_rig.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/ec2.h"
#include "cloud/aws/pricing.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void refusals_are_distinguished_by_code(void **state)
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
        {429, "{}", ERR_THROTTLED, "HTTP 429 with an unknown body"},
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

static int parse_scores(const char *body, struct ec2_scores *s, struct err *e)
{
    char page[EC2_PAGE_TOKEN_MAX + 1];
    return ec2_parse_placement_scores(body, strlen(body), s, page, e);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_request_is_what_the_service_documents),
        cmocka_unit_test(only_the_hour_of_a_shared_linux_machine_counts),
        cmocka_unit_test(prices_of_another_kind_are_left_out),
        cmocka_unit_test(what_is_no_price_list_is_refused),
        cmocka_unit_test(a_list_has_limits),
        cmocka_unit_test(refusals_are_distinguished_by_code),
        cmocka_unit_test(scores_are_of_zones_by_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
