/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's Service Quotas: its answers to the driver, and to wrong requests.
 */
#include "emulator/ec2/quotas.h"
#include "base/str.h"
#include "cloud/aws/service_quotas.h"
#include "tests/emulator/world.h"
#include <string.h>

static const struct ec2_granted granted[] = {{"L-34B43A08", 64}};

static void call(struct world *w, const char *action, const char *type, const char *body,
    struct ec2_reply *ret_reply)
{
    const struct ec2_quotas_request q = {action, type, body, strlen(body)};
    ec2_quotas_call(&w->region, granted, 1, &q, ret_reply);
}

static void expect(struct world *w, const char *action, const char *code, int64_t limit)
{
    struct ec2_reply reply;
    struct buf body = {0};
    struct cloud_quota_value v;
    struct err e;
    service_quotas_build_get(code, &body);
    call(w, action, SERVICE_QUOTAS_CONTENT_TYPE, buf_str(&body), &reply);
    if (limit < 0) {
        assert_int_equal(service_quotas_parse_error(
                             reply.status, buf_str(&reply.body), reply.body.len, action, &e),
            ERR_NOT_FOUND);
    } else {
        assert_int_equal(
            service_quotas_parse(buf_str(&reply.body), reply.body.len, code, &v, &e), 0);
        assert_int_equal(v.limit, limit);
    }
    buf_deinit(&reply.body);
    buf_deinit(&body);
}

static void the_driver_reads_granted_and_default_values(void **state)
{
    struct world w;
    (void)state;
    world_init(&w);
    world_start(&w);
    expect(&w, SERVICE_QUOTAS_APPLIED, "L-34B43A08", 64);
    expect(&w, SERVICE_QUOTAS_APPLIED, "L-1216C47A", -1);
    expect(&w, SERVICE_QUOTAS_DEFAULT, "L-1216C47A", 5);
    expect(&w, SERVICE_QUOTAS_DEFAULT, "L-DB2E81BA", 0);
    expect(&w, SERVICE_QUOTAS_DEFAULT, "L-00000000", -1);
    world_stop(&w);
}

static void every_quota_of_the_driver_is_known(void **state)
{
    static const char *const types[] = {"m6i.xlarge", "g6.xlarge", "p5.48xlarge", "inf2.xlarge",
        "trn1.2xlarge", "dl1.24xlarge", "f1.2xlarge", "x2gd.medium"};
    struct world w;
    (void)state;
    world_init(&w);
    world_start(&w);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        for (int on_demand = 0; on_demand < 2; on_demand++)
            expect(&w, SERVICE_QUOTAS_DEFAULT,
                service_quotas_code(types[i], on_demand ? CLOUD_ON_DEMAND : CLOUD_SPOT),
                i == 0 ? 5 : 0);
    world_stop(&w);
}

static void requests_that_are_wrong_are_refused_by_name(void **state)
{
#define TYPE_JSON SERVICE_QUOTAS_CONTENT_TYPE
    static const struct {
        const char *action, *type, *body, *code;
    } cases[] = {
        {"GetServiceQuota", TYPE_JSON, "", "SerializationException"},
        {"GetServiceQuota", TYPE_JSON, "[]", "IllegalArgumentException"},
        {"GetServiceQuota", TYPE_JSON, "{\"ServiceCode\":\"ec2\"}", "IllegalArgumentException"},
        {"GetServiceQuota", TYPE_JSON, "{\"ServiceCode\":\"ec2\",\"QuotaCode\":7}",
            "IllegalArgumentException"},
        {"GetServiceQuota", TYPE_JSON, "{\"ServiceCode\":\"s3\",\"QuotaCode\":\"L-34B43A08\"}",
            "NoSuchResourceException"},
        {"GetServiceQuota", "text/plain", "{}", "UnknownOperationException"},
        {"ListServiceQuotas", TYPE_JSON, "{}", "UnknownOperationException"},
    };
    struct world w;
    (void)state;
    world_init(&w);
    world_start(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ec2_reply reply;
        call(&w, cases[i].action, cases[i].type, cases[i].body, &reply);
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
        const char *code;
        enum err_kind kind;
    } codes[] = {
        {"AccessDeniedException", ERR_DENIED},
        {"UnauthorizedOperation", ERR_DENIED},
        {"AuthFailure", ERR_DENIED},
        {"TooManyRequestsException", ERR_THROTTLED},
        {"RequestLimitExceeded", ERR_THROTTLED},
        {"InternalError", ERR_UNAVAILABLE},
    };
    struct world w;
    (void)state;
    world_init(&w);
    world_start(&w);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        struct ec2_reply reply = {0};
        struct err e;
        ec2_quotas_error(&w.region, "GetServiceQuota", codes[i].code, NULL, &reply);
        if (service_quotas_parse_error(reply.status, buf_str(&reply.body), reply.body.len,
                "GetServiceQuota", &e) != (int)codes[i].kind)
            fail_msg("%s: %s", codes[i].code, e.text);
        buf_deinit(&reply.body);
    }
    world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_reads_granted_and_default_values),
        cmocka_unit_test(every_quota_of_the_driver_is_known),
        cmocka_unit_test(requests_that_are_wrong_are_refused_by_name),
        cmocka_unit_test(the_driver_knows_our_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
