/* SPDX-License-Identifier: Apache-2.0
 *
 * Quotas of vCPUs: the group of a type, Service Quotas' replies, and the driver's call.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "aws_rig.h"
#include "base/str.h"
#include "cloud/aws/service_quotas.h"
#include <string.h>

#define QUOTA(code, value)                                                                         \
    "{\"Quota\":{\"QuotaCode\":\"" code "\",\"QuotaName\":\"Quota " code "\",\"Value\":" value "}" \
    "}"
#define INSTANCE(id, type, state, cpus, more)                                                      \
    "<item><instancesSet><item><instanceId>" id "</instanceId><instanceState><code>" state         \
    "</code></instanceState><instanceType>" type "</instanceType>" more cpus                       \
    "</item></instancesSet></item>"
#define RUNNING "16"
#define CPUS(cores, threads)                                                                       \
    "<cpuOptions><coreCount>" cores "</coreCount><threadsPerCore>" threads                         \
    "</threadsPerCore></cpuOptions>"
#define LIST(items)                                                                                \
    "<DescribeInstancesResponse><reservationSet>" items                                            \
    "</reservationSet></DescribeInstancesResponse>"
#define SPOT "<instanceLifecycle>spot</instanceLifecycle>"
#define NO_SUCH "{\"__type\":\"NoSuchResourceException\",\"Message\":\"none\"}"
#define DENIED "{\"__type\":\"AccessDeniedException\",\"Message\":\"not authorized\"}"

static void a_type_counts_against_the_quota_of_its_group_and_market(void **state)
{
    static const struct {
        const char *type, *spot, *on_demand;
    } rows[] = {
        {"m6i.xlarge", "L-34B43A08", "L-1216C47A"},
        {"im4gn.large", "L-34B43A08", "L-1216C47A"},
        {"d3.xlarge", "L-34B43A08", "L-1216C47A"},
        {"g6.xlarge", "L-3819A6DF", "L-DB2E81BA"},
        {"gr6.4xlarge", "L-3819A6DF", "L-DB2E81BA"},
        {"vt1.3xlarge", "L-3819A6DF", "L-DB2E81BA"},
        {"p5en.48xlarge", "L-7212CCBC", "L-417A185B"},
        {"dl1.24xlarge", "L-85EED4F7", "L-6E869C2A"},
        {"inf2.xlarge", "L-B5D1601B", "L-1945791B"},
        {"trn1.2xlarge", "L-6B0D517C", "L-2C3B7624"},
        {"f1.2xlarge", "L-88CF9481", "L-74FC7D96"},
        {"x2gd.medium", "L-E3A00192", "L-7295265B"},
        {"hpc6a.48xlarge", NULL, NULL},
        {"mac1.metal", NULL, NULL},
        {"u-6tb1.metal", NULL, NULL},
        {"", NULL, NULL},
        {"g", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(str_eq(service_quotas_code(rows[i].type, CLOUD_SPOT), rows[i].spot));
        assert_true(str_eq(service_quotas_code(rows[i].type, CLOUD_ON_DEMAND), rows[i].on_demand));
    }
}

static void malformed_replies_are_refused(void **state)
{
    static const char *const wrong[] = {"", "[]", "{}", "{\"Quota\":1}", "{\"Quota\":{}}",
        "{\"Quota\":{\"QuotaCode\":\"L-1\",\"QuotaName\":\"n\"}}",
        "{\"Quota\":{\"QuotaCode\":\"L-1\",\"QuotaName\":\"n\",\"Value\":\"8\"}}",
        "{\"Quota\":{\"QuotaCode\":\"L-1\",\"QuotaName\":\"n\",\"Value\":-1}}",
        "{\"Quota\":{\"QuotaCode\":\"L-2\",\"QuotaName\":\"n\",\"Value\":8}}",
        "{\"Quota\":{\"QuotaCode\":\"L-1\",\"QuotaName\":7,\"Value\":8}}"};
    struct cloud_quota_value v = {.limit = 77};
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (service_quotas_parse(wrong[i], strlen(wrong[i]), "L-1", &v, &e) != ERR_INVALID)
            fail_msg("accepted: %s", wrong[i]);
    assert_int_equal(v.limit, 77);
    const char *huge = QUOTA("L-1", "1e300"), *cut = QUOTA("L-1", "8.9");
    assert_int_equal(service_quotas_parse(huge, strlen(huge), "L-1", &v, &e), 0);
    assert_int_equal(v.limit, CLOUD_QUOTA_LIMIT_MAX);
    assert_int_equal(service_quotas_parse(cut, strlen(cut), "L-1", &v, &e), 0);
    assert_int_equal(v.limit, 8);
    assert_int_equal(v.used, -1);
}

static const struct cloud_machine machines[] = {
    {"m6i.xlarge", CLOUD_SPOT, 4, 0},
    {"c6i.2xlarge", CLOUD_SPOT, 8, 0},
    {"g6.xlarge", CLOUD_ON_DEMAND, 4, 1},
    {"mac1.metal", CLOUD_ON_DEMAND, 12, 0},
};

static void ask(struct aws_rig *g, int expected)
{
    g->driver->ops->quotas(g->driver, "us-east-1", machines, 4, outcome_quotas, &g->got);
    aws_rig_finish(g, expected);
}

static void expect_row(
    const struct aws_rig *g, size_t i, size_t machine, int64_t per, int64_t limit, int64_t used)
{
    const struct cloud_quota *q = &g->got.quotas[i];
    assert_int_equal(q->machine, machine);
    assert_int_equal(q->per_machine, per);
    assert_int_equal(q->limit, limit);
    assert_int_equal(q->used, used);
    assert_string_equal(q->scope, "us-east-1");
}

static void create(struct aws_rig *g)
{
    g->options.quotas_url = "http://127.0.0.1:4567/";
    aws_rig_create(g);
}

static void what_runs_is_added_up_for_each_quota(void **state)
{
    struct aws_rig *g = *state;
    create(g);
    fake_http_add(&g->http, 200,
        LIST(INSTANCE("i-1", "m6i.xlarge", RUNNING, CPUS("2", "2"), SPOT)
                INSTANCE("i-2", "r6i.large", "0", CPUS("1", "2"), SPOT)
                    INSTANCE("i-3", "m6i.xlarge", "80", CPUS("2", "2"), SPOT)
                        INSTANCE("i-4", "m6i.xlarge", RUNNING, CPUS("2", "2"), "")
                            INSTANCE("i-5", "g6.xlarge", RUNNING, "", "")));
    fake_http_add(&g->http, 200, QUOTA("L-34B43A08", "64.0"));
    fake_http_add(&g->http, 200, QUOTA("L-DB2E81BA", "8"));
    ask(g, 0);
    assert_int_equal(g->got.n, 3); /* the quota of a mac is no number of vCPUs */
    expect_row(g, 0, 0, 4, 64, 6);
    expect_row(g, 1, 1, 8, 64, 6);
    expect_row(g, 2, 2, 4, 8, 4);
    assert_string_equal(g->got.quotas[2].name, "Quota L-DB2E81BA");
    assert_string_equal(g->http.requests[0].url, ENDPOINT);
    assert_string_equal(g->http.requests[1].url, "http://127.0.0.1:4567/");
    assert_true(
        fake_http_sent(&g->http, 1, "X-Amz-Target: ServiceQuotasV20190624.GetServiceQuota"));
    assert_string_equal(buf_str(&g->http.requests[1].body),
        "{\"ServiceCode\":\"ec2\",\"QuotaCode\":\"L-34B43A08\"}");
}

static void without_a_value_of_its_own_an_account_has_the_default(void **state)
{
    struct aws_rig *g = *state;
    create(g);
    fake_http_add(
        &g->http, 200, LIST(INSTANCE("i-1", "m99.large", RUNNING, "", SPOT))); /* unknown type */
    fake_http_add(&g->http, 400, NO_SUCH);
    fake_http_add(&g->http, 200, QUOTA("L-34B43A08", "5"));
    fake_http_add(&g->http, 200, QUOTA("L-DB2E81BA", "0"));
    ask(g, 0);
    assert_true(fake_http_sent(
        &g->http, 2, "X-Amz-Target: ServiceQuotasV20190624.GetAWSDefaultServiceQuota"));
    assert_true(
        fake_http_sent(&g->http, 3, "X-Amz-Target: ServiceQuotasV20190624.GetServiceQuota"));
    assert_int_equal(g->got.n, 3);
    expect_row(g, 0, 0, 4, 5, -1);
    expect_row(g, 2, 2, 4, 0, 0);
    fake_http_add(&g->http, 200, LIST(""));
    fake_http_add(&g->http, 400, NO_SUCH);
    fake_http_add(&g->http, 400, NO_SUCH);
    ask(g, ERR_NOT_FOUND);
}

static void a_refusal_names_the_missing_permission(void **state)
{
    struct aws_rig *g = *state;
    create(g);
    fake_http_add(&g->http, 403,
        "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error>"
        "</Errors></Response>");
    ask(g, ERR_DENIED);
    assert_non_null(strstr(g->got.e.text, "it needs the permission ec2:DescribeInstances"));
    fake_http_add(&g->http, 200, LIST(""));
    fake_http_add(&g->http, 400, DENIED);
    ask(g, ERR_DENIED);
    assert_non_null(strstr(g->got.e.text, "the permission servicequotas:GetServiceQuota"));
    fake_http_add(&g->http, 200, LIST(""));
    fake_http_add(&g->http, 400, NO_SUCH);
    fake_http_add(&g->http, 400, DENIED);
    ask(g, ERR_DENIED);
    assert_non_null(
        strstr(g->got.e.text, "the permission servicequotas:GetAWSDefaultServiceQuota"));
    fake_http_add(&g->http, 200, LIST(""));
    fake_http_add(&g->http, 502, "<html></html>");
    ask(g, ERR_UNAVAILABLE);
    fake_http_add(&g->http, 200, LIST(INSTANCE("i-1", "m6i.large", RUNNING, CPUS("x", "1"), "")));
    ask(g, ERR_INVALID);
}

static void requests_go_to_the_region_or_to_the_configured_host_only(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g); /* an endpoint of EC2's, none of Service Quotas */
    ask(g, ERR_UNSUPPORTED);
    assert_non_null(strstr(g->got.e.text, "`quotas`"));
    assert_int_equal(g->http.n_requests, 0);
    g->driver->ops->destroy(g->driver);
    g->driver = NULL;
    g->options.endpoint_url = NULL;
    aws_rig_create(g);
    fake_http_add(&g->http, 200, LIST(""));
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    ask(g, ERR_TIMEOUT);
    assert_string_equal(g->http.requests[1].url, "https://servicequotas.us-east-1.amazonaws.com/");
    size_t sent = g->http.n_requests;
    g->driver->ops->quotas(g->driver, "us-east-1", &machines[3], 1, outcome_quotas, &g->got);
    aws_rig_finish(g, 0);
    assert_int_equal(g->got.n, 0);
    assert_int_equal(g->http.n_requests, sent);
    g->driver->ops->quotas(g->driver, "us-east-1/", machines, 1, outcome_quotas, &g->got);
    aws_rig_finish(g, ERR_CONFIG);
}

int main(void)
{
#define RIG(test) cmocka_unit_test_setup_teardown(test, aws_rig_setup, aws_rig_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_type_counts_against_the_quota_of_its_group_and_market),
        cmocka_unit_test(malformed_replies_are_refused),
        RIG(what_runs_is_added_up_for_each_quota),
        RIG(without_a_value_of_its_own_an_account_has_the_default),
        RIG(a_refusal_names_the_missing_permission),
        RIG(requests_go_to_the_region_or_to_the_configured_host_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
