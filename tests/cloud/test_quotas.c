/* SPDX-License-Identifier: Apache-2.0
 *
 * Google's and Azure's replies about quotas, and which quota a type counts against.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/str.h"
#include "cloud/azure/arm_usages.h"
#include "cloud/gcp/gce_quotas.h"
#include <string.h>

/* "NAME@SCOPE each used/limit; ..." */
static void show(struct cloud_quotas *rows, char *out, size_t size)
{
    struct buf b = {0};
    for (size_t i = 0; i < rows->n; i++) {
        const struct cloud_quota *q = &rows->list[i];
        assert_int_equal(q->machine, 3);
        buf_printf(&b, "%s%s@%s %lld %lld/%lld", i > 0 ? "; " : "", q->name, q->scope,
            (long long)q->per_machine, (long long)q->used, (long long)q->limit);
    }
    str_copy(out, size, buf_str(&b));
    buf_deinit(&b);
    cloud_quotas_deinit(rows);
}

/* ---- Google ---- */

#define Q(metric, limit, usage)                                                                    \
    "{\"metric\":\"" metric "\",\"limit\":" limit ",\"usage\":" usage "}"

static void parse_gcp(const char *body, struct cloud_quota_values *l)
{
    struct err e;
    if (gce_parse_quotas(body, strlen(body), l, &e) != 0)
        fail_msg("%s", e.text);
}

static void a_google_type_counts_against_its_family_its_gpu_and_all_regions(void **state)
{
    static const struct {
        const char *type;
        enum cloud_market market;
        const char *rows;
    } cases[] = {
        {"n1-standard-8+t4", CLOUD_ON_DEMAND,
            "CPUS@r 8 3/24; CPUS_ALL_REGIONS@all regions 8 9/32; NVIDIA_T4_GPUS@r 2 1/4; "
            "GPUS_ALL_REGIONS@all regions 2 1/8"},
        {"n1-standard-8+t4", CLOUD_SPOT,
            "PREEMPTIBLE_CPUS@r 8 0/16; CPUS_ALL_REGIONS@all regions 8 9/32; "
            "PREEMPTIBLE_NVIDIA_T4_GPUS@r 2 0/2; GPUS_ALL_REGIONS@all regions 2 1/8"},
        /* nothing granted for spot: the standard quota counts */
        {"g2-standard-8", CLOUD_SPOT, "NVIDIA_L4_GPUS@r 2 0/1; GPUS_ALL_REGIONS@all regions 2 1/8"},
        {"n2-standard-8", CLOUD_ON_DEMAND, "N2_CPUS@r 8 0/48; CPUS_ALL_REGIONS@all regions 8 9/32"},
        {"c3-highcpu-88", CLOUD_ON_DEMAND, ""}, /* its family is not in these replies */
        {"a2-ultragpu-1g", CLOUD_ON_DEMAND,
            "NVIDIA_A100_80GB_GPUS@r 2 0/3; GPUS_ALL_REGIONS@all regions 2 1/8"},
        {"n1-standard-8+nothing", CLOUD_ON_DEMAND,
            "CPUS@r 8 3/24; CPUS_ALL_REGIONS@all regions 8 9/32"},
        {"", CLOUD_ON_DEMAND, ""},
    };
    struct cloud_quota_values region = {0}, project = {0};
    (void)state;
    parse_gcp(
        "{\"quotas\":[" Q("CPUS", "24.0", "3.0") "," Q("PREEMPTIBLE_CPUS", "16", "0") "," Q(
            "N2_CPUS", "48", "0") "," Q("NVIDIA_T4_GPUS", "4", "1") "," Q("PREEMPTIBLE_NVIDIA_T4_"
                                                                          "GPUS",
            "2", "0") "," Q("NVIDIA_L4_GPUS", "1", "0") "," Q("PREEMPTIBLE_NVIDIA_L4_GPUS", "0",
            "0") "," Q("NVIDIA_A100_80GB_GPUS", "3", "0") "]}",
        &region);
    parse_gcp(
        "{\"quotas\":[" Q("CPUS_ALL_REGIONS", "32", "9") "," Q("GPUS_ALL_REGIONS", "8", "1") "]}",
        &project);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct cloud_machine m = {cases[i].type, cases[i].market, 8, 2};
        struct cloud_quotas rows = {0};
        char shown[512];
        struct err e;
        assert_int_equal(gce_draw_quotas(&m, 3, "r", &region, &project, &rows, &e), 0);
        show(&rows, shown, sizeof(shown));
        assert_string_equal(shown, cases[i].rows);
    }
    cloud_quota_values_deinit(&region);
    cloud_quota_values_deinit(&project);
}

#define F(dimensions, more, value)                                                                 \
    "{\"dimensions\":{" dimensions "}," more "\"details\":{\"value\":" value "}}"
#define FAMILY(name) "\"vm_family\":\"" name "\""
#define REGION(name) "\"region\":\"" name "\""

static void newer_google_families_have_a_quota_each(void **state)
{
    static const char reply[] =
        "{\"quotaId\":\"CPUS-PER-VM-FAMILY-per-project-region\","
        "\"dimensionsInfos\":[" F(REGION("other") "," FAMILY("C4"), "", "\"1\"") "," F(
            REGION("r") "," FAMILY("C4"), "", "\"24\"") "," F(FAMILY("C4"), "",
            "\"8\"") "," F(FAMILY("N4"), "\"applicableLocations\":[\"other\"],",
            "\"9\"") "," F(FAMILY("N4"), "\"applicableLocations\":[\"other\",\"r\"],",
            "\"-1\"") "," F("", "", "\"5\"") "]}";
    static const struct {
        const char *type, *rows;
    } cases[] = {
        {"c4-standard-8", "CPUS_PER_VM_FAMILY C4@r 8 -1/24"},
        {"n4-standard-8", "CPUS_PER_VM_FAMILY N4@r 8 -1/1000000000000"},
        {"m4-megamem-28", "CPUS_PER_VM_FAMILY@r 8 -1/5"},
        {"n2-standard-8", "N2_CPUS@r 8 0/48"},
        {"a3-highgpu-8g", ""},
    };
    struct cloud_quota_values region = {0}, project = {0};
    struct err e;
    (void)state;
    parse_gcp("{\"quotas\":[" Q("N2_CPUS", "48", "0") "]}", &region);
    const struct cloud_machine c4 = {"c4-standard-8", CLOUD_SPOT, 8, 0},
                               n2 = {"n2-standard-8", CLOUD_SPOT, 8, 0},
                               a3 = {"a3-highgpu-8g", CLOUD_SPOT, 8, 8};
    assert_true(gce_needs_family_quota(&c4, &region));
    assert_false(gce_needs_family_quota(&n2, &region));
    assert_false(gce_needs_family_quota(&a3, &region));
    assert_int_equal(gce_parse_family_quota(reply, strlen(reply), "r", &region, &e), 0);
    assert_false(gce_needs_family_quota(&c4, &region));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct cloud_machine m = {cases[i].type, CLOUD_ON_DEMAND, 8, 0};
        struct cloud_quotas rows = {0};
        char shown[512];
        assert_int_equal(gce_draw_quotas(&m, 3, "r", &region, &project, &rows, &e), 0);
        show(&rows, shown, sizeof(shown));
        assert_string_equal(shown, cases[i].rows);
    }
    cloud_quota_values_deinit(&region);
}

static void malformed_limits_of_families_are_refused(void **state)
{
    static const char *const wrong[] = {"", "[]", "{\"dimensionsInfos\":{}}",
        "{\"dimensionsInfos\":[1]}", "{\"dimensionsInfos\":[{}]}",
        "{\"dimensionsInfos\":[{\"details\":{}}]}",
        "{\"dimensionsInfos\":[{\"details\":{\"value\":1}}]}",
        "{\"dimensionsInfos\":[" F("", "", "\"-2\"") "]}",
        "{\"dimensionsInfos\":[" F("", "", "\"9223372036854775808\"") "]}"};
    struct cloud_quota_values l = {0};
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (gce_parse_family_quota(wrong[i], strlen(wrong[i]), "r", &l, &e) != ERR_INVALID)
            fail_msg("accepted: %s", wrong[i]);
    assert_int_equal(gce_parse_family_quota("{}", 2, "r", &l, &e), 0);
    assert_int_equal(l.n, 0);
    cloud_quota_values_deinit(&l);
}

static void googles_malformed_replies_are_refused(void **state)
{
    static const char *const wrong[] = {"", "[]", "{\"quotas\":{}}", "{\"quotas\":[1]}",
        "{\"quotas\":[{}]}", "{\"quotas\":[{\"metric\":\"CPUS\"}]}",
        "{\"quotas\":[{\"metric\":\"CPUS\",\"limit\":1}]}",
        "{\"quotas\":[" Q("C", "\"1\"", "1") "]}", "{\"quotas\":[" Q("C", "-1", "1") "]}",
        "{\"quotas\":[" Q("C", "1", "null") "]}"};
    struct cloud_quota_values l = {0};
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (gce_parse_quotas(wrong[i], strlen(wrong[i]), &l, &e) != ERR_INVALID)
            fail_msg("accepted: %s", wrong[i]);
    parse_gcp("{}", &l); /* a project without any */
    assert_int_equal(l.n, 0);
    parse_gcp("{\"quotas\":[" Q("C", "9.223372036854776e+18", "0.0") "]}", &l);
    assert_int_equal(l.list[0].limit, CLOUD_QUOTA_LIMIT_MAX);
    cloud_quota_values_deinit(&l);
}

/* ---- Azure ---- */

#define U(name, limit, used)                                                                       \
    "{\"unit\":\"Count\",\"currentValue\":" used ",\"limit\":" limit                               \
    ",\"name\":{\"value\":\"" name "\",\"localizedValue\":\"x\"}}"

static void an_azure_size_counts_against_spot_or_all_and_its_family(void **state)
{
    static const struct {
        const char *type;
        enum cloud_market market;
        const char *rows;
    } cases[] = {
        {"Standard_D8s_v5", CLOUD_SPOT, "lowPriorityCores@r 8 16/64"},
        {"Standard_D8s_v5", CLOUD_ON_DEMAND, "cores@r 8 4/100; standardDSv5Family@r 8 1/10"},
        {"Standard_NC4as_T4_v3", CLOUD_ON_DEMAND,
            "cores@r 8 4/100; Standard NCASv3_T4 Family@r 8 0/20"},
        {"Standard_NC24ads_A100_v4", CLOUD_ON_DEMAND,
            "cores@r 8 4/100; StandardNCADSA100v4Family@r 8 0/48"},
        {"Standard_E32-16s_v5", CLOUD_ON_DEMAND, "cores@r 8 4/100; standardESv5Family@r 8 0/7"},
        {"Standard_M128", CLOUD_ON_DEMAND, "cores@r 8 4/100"},
        {"something", CLOUD_ON_DEMAND, "cores@r 8 4/100"},
    };
    const char *body = "{\"value\":[" U("cores", "100", "4") "," U("lowPriorityCores", "64",
        "16") "," U("standardDSv5Family", "10", "1") "," U("Standard NCASv3_T4 Family", "20",
        "0") "," U("StandardNCADSA100v4Family", "48", "0") "," U("standardESv5Family", "7",
        "0") "],\"nextLink\":\"https://management.azure.com/x\"}";
    struct cloud_quota_values l = {0};
    char next[ARM_URL_MAX + 1], shown[512];
    struct err e;
    (void)state;
    assert_int_equal(arm_parse_usages(body, strlen(body), &l, next, &e), 0);
    assert_string_equal(next, "https://management.azure.com/x");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct cloud_machine m = {cases[i].type, cases[i].market, 8, 0};
        struct cloud_quotas rows = {0};
        assert_int_equal(arm_draw_usages(&m, 3, "r", &l, &rows, &e), 0);
        show(&rows, shown, sizeof(shown));
        assert_string_equal(shown, cases[i].rows);
    }
    cloud_quota_values_deinit(&l);
}

static void azures_malformed_replies_are_refused(void **state)
{
    static const char *const wrong[] = {"", "[]", "{}", "{\"value\":{}}", "{\"value\":[7]}",
        "{\"value\":[{}]}", "{\"value\":[{\"name\":\"cores\",\"limit\":1,\"currentValue\":1}]}",
        "{\"value\":[{\"name\":{},\"limit\":1,\"currentValue\":1}]}",
        "{\"value\":[" U("cores", "-1", "1") "]}", "{\"value\":[" U("cores", "1", "\"1\"") "]}",
        "{\"value\":[],\"nextLink\":7}"};
    struct cloud_quota_values l = {0};
    char next[ARM_URL_MAX + 1];
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (arm_parse_usages(wrong[i], strlen(wrong[i]), &l, next, &e) != ERR_INVALID)
            fail_msg("accepted: %s", wrong[i]);
    cloud_quota_values_deinit(&l);
}

/* ---- common ---- */

static void lists_have_an_end(void **state)
{
    struct cloud_quota_values l = {0};
    struct cloud_quotas rows = {0};
    const struct cloud_quota_value v = {.name = "n"};
    struct err e;
    (void)state;
    for (int i = 0; i < CLOUD_QUOTA_VALUES_MAX; i++)
        assert_int_equal(cloud_quota_values_add(&l, &v, &e), 0);
    assert_int_equal(cloud_quota_values_add(&l, &v, &e), ERR_INVALID);
    for (int i = 0; i < CLOUD_QUOTAS_MAX; i++)
        assert_int_equal(cloud_quotas_draw(&rows, 0, 1, &v, "r", &e), 0);
    assert_int_equal(cloud_quotas_draw(&rows, 0, 1, &v, "r", &e), ERR_INVALID);
    cloud_quota_values_deinit(&l);
    cloud_quotas_deinit(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_google_type_counts_against_its_family_its_gpu_and_all_regions),
        cmocka_unit_test(newer_google_families_have_a_quota_each),
        cmocka_unit_test(malformed_limits_of_families_are_refused),
        cmocka_unit_test(googles_malformed_replies_are_refused),
        cmocka_unit_test(an_azure_size_counts_against_spot_or_all_and_its_family),
        cmocka_unit_test(azures_malformed_replies_are_refused),
        cmocka_unit_test(lists_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
