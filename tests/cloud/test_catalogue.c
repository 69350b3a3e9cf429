/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cloud/catalogue.h"
#include "cloud/kept.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

static void a_known_type_is_found(void **state)
{
    struct catalogue_type t;
    struct err e;
    (void)state;
    assert_int_equal(catalogue_find("aws", "p4d.24xlarge", &t, &e), 0);
    assert_int_equal(t.vcpus, 96);
    assert_int_equal(t.memory_mib, 1152 * 1024);
    assert_int_equal(t.gpus, 8);
    assert_string_equal(t.gpu_model, "A100");
    assert_int_equal(t.gpu_memory_mib, 40 * 1024);
    assert_int_equal(t.on_demand_uusd_h, 21957642);
    assert_int_equal(t.spot_uusd_h, 8000000);
    assert_int_equal(catalogue_find("aws", "p4d.25xlarge", &t, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "\"p4d.25xlarge\" is not known; did you mean \"p4d.24xlarge\"?");
    assert_int_equal(catalogue_find("gcp", "p4d.24xlarge", &t, NULL), ERR_NOT_FOUND);
    assert_int_equal(catalogue_find("aws", "p3.2xlarge+t4", &t, NULL), ERR_NOT_FOUND);
}

static void gpus_can_be_attached_to_a_machine(void **state)
{
    static const struct {
        const char *type, *machine, *model;
        int32_t vcpus, gpus;
        int64_t gpu_mib, on_demand_uusd_h, spot_uusd_h;
    } rows[] = {
        {"n1-standard-8+t4", "n1-standard-8", "T4", 8, 1, 16384, 730000, 244500},
        {"n1-standard-16+2xt4", "n1-standard-16", "T4", 16, 2, 16384, 1460000, 488900},
        {"n1-highmem-96+8xv100", "n1-highmem-96", "V100", 96, 8, 16384, 25518500, 8136600},
        {"n1-standard-8+v100", "n1-standard-8", "V100", 8, 1, 16384, 2860000, 927600},
        {"n1-standard-16+p100", "n1-standard-16", "P100", 16, 1, 16384, 2220000, 792900},
        {"n1-standard-96+4xp4", "n1-standard-96", "P4", 96, 4, 8192, 6960000, 2147900},
    };
    struct catalogue_type t;
    struct catalogue_parts p;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char again[CATALOGUE_NAME_MAX];
        assert_int_equal(catalogue_find("gcp", rows[i].type, &t, &e), 0);
        assert_string_equal(t.type, rows[i].type);
        assert_int_equal(t.vcpus, rows[i].vcpus);
        assert_int_equal(t.gpus, rows[i].gpus);
        assert_string_equal(t.gpu_model, rows[i].model);
        assert_int_equal(t.gpu_memory_mib, rows[i].gpu_mib);
        assert_int_equal(t.on_demand_uusd_h, rows[i].on_demand_uusd_h);
        assert_int_equal(t.spot_uusd_h, rows[i].spot_uusd_h);
        assert_int_equal(catalogue_split("gcp", rows[i].type, &p, &e), 0);
        assert_string_equal(p.machine, rows[i].machine);
        assert_ptr_equal(p.gpu, catalogue_gpu_find(p.gpu->accelerator));
        STR_COPY(again, p.machine);
        assert_true(catalogue_attach(again, sizeof(again), p.n_gpus, p.gpu->name));
        assert_string_equal(again, rows[i].type);
    }
    assert_int_equal(catalogue_split("gcp", "custom-12-79872+v100", &p, &e), 0);
    assert_string_equal(p.machine, "custom-12-79872");
    assert_int_equal(catalogue_split("gcp", "a2-highgpu-1g", &p, &e), 0);
    assert_null(p.gpu);
    assert_null(catalogue_gpu_find("nvidia-l4"));
    assert_false(catalogue_takes_gpus("g2-standard-4"));
}

static void what_cannot_be_attached_is_refused(void **state)
{
    static const struct {
        const char *type, *text;
    } wrong[] = {
        {"+t4", "not an instance type of the provider"},
        {"n1 standard+t4", "not an instance type of the provider"},
        {"n1-standard-8+", "expected a GPU"},
        {"n1-standard-8+t5", "one of p4, p100, t4, v100 (nearest: t4)"},
        {"n1-standard-8+T4", "expected a GPU"},
        {"n1-standard-8+t4+t4", "expected a GPU"},
        {"n1-standard-8+1xt4", "expected a GPU"}, /* names of types are unique */
        {"n1-standard-8+0xt4", "expected a GPU"},
        {"n1-standard-8+02xt4", "expected a GPU"},
        {"n1-standard-8+16xt4", "expected a GPU"},
        {"n1-standard-8+2x", "expected a GPU"},
        {"n1-standard-8+xt4", "expected a GPU"},
        {"n1-standard-8+t4x2", "expected a GPU"},
        {"n1-standard-8+3xt4", "expected 1, 2, 4"},
        {"n1-standard-8+8xt4", "expected 1, 2, 4"},
        {"n1-standard-8+3xv100", "expected 1, 2, 4 or 8"},
        {"n1-standard-16+v100", "16 vCPUs; with 1 of the GPU v100 at most 12 are allowed"},
        {"n1-standard-64+2xt4", "at most 48"},
        {"n2-standard-8+t4", "only N1"},
        {"g2-standard-4+t4", "only N1"},
        {"n1-standard-8888888888888888888888888888888888888888888888888888+t4",
            "not an instance type of the provider"},
    };
    struct catalogue_type t = {.vcpus = 77};
    struct catalogue_parts p = {.n_gpus = 77};
    struct err e;
    char full[CATALOGUE_NAME_MAX] =
        "n1-55555555555555555555555555555555555555555555555555555555555";
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(catalogue_split("gcp", wrong[i].type, &p, &e), ERR_CONFIG);
        if (!strstr(e.text, wrong[i].text))
            fail_msg("%s: %s", wrong[i].type, e.text);
        assert_int_equal(catalogue_find("gcp", wrong[i].type, &t, &e), ERR_CONFIG);
    }
    assert_int_equal(p.n_gpus, 77);
    assert_int_equal(t.vcpus, 77);
    assert_int_equal(catalogue_find("gcp", "n1-standard-12+t4", &t, &e), ERR_NOT_FOUND);
    assert_string_equal(
        e.text, "\"n1-standard-12\" is not known; did you mean \"n1-standard-16\"?");
    /* Google may have it */
    assert_int_equal(catalogue_split("gcp", "n1-standard-12+t4", &p, &e), 0);
    assert_int_equal(catalogue_split("aws", "n1-standard-8+t4", &p, &e), ERR_CONFIG);
    assert_false(catalogue_attach(full, sizeof(full), 2, "t4"));
    assert_int_equal(strlen(full), 62);
}

static void check_rows(const char *provider, size_t expected)
{
    const char *const *names = catalogue_names(provider);
    size_t n = 0;
    for (; names[n]; n++) {
        struct catalogue_type t;
        assert_int_equal(catalogue_find(provider, names[n], &t, NULL), 0);
        assert_string_equal(t.provider, provider);
        assert_string_equal(t.type, names[n]);
        assert_true(t.vcpus > 0 && t.memory_mib > 0 && t.on_demand_uusd_h > 0);
        assert_true(t.spot_uusd_h >= 0 && t.spot_uusd_h < t.on_demand_uusd_h);
        assert_int_equal(t.gpus > 0, t.gpu_memory_mib > 0);
        assert_int_equal(t.gpus > 0, *t.gpu_model != '\0');
        assert_non_null(strstr(catalogue_source(provider, names[n], false), "list price"));
        assert_non_null(strstr(
            catalogue_source(provider, names[n], false), catalogue_region(provider, names[n])));
        assert_non_null(strstr(catalogue_source(provider, names[n], true), "spot price"));
    }
    assert_int_equal(n, expected);
}

static void every_row_makes_sense(void **state)
{
    (void)state;
    check_rows("aws", 29);
    check_rows("azure", 17);
    check_rows("gcp", 31);
    check_rows("lambda", 9);
    assert_null(*catalogue_names("none"));
    assert_string_equal(str_nearest("p5.48xlarg", catalogue_names("aws")), "p5.48xlarge");
}

static void volumes_have_prices_and_sizes_that_are_billed(void **state)
{
    const char *source = NULL;
    (void)state;
    assert_int_equal(catalogue_volume_uusd("aws", "gp3", &source), 80000);
    assert_string_equal(source, "list price, us-east-1");
    assert_int_equal(catalogue_volume_uusd("gcp", "pd-balanced", &source), 100000);
    assert_int_equal(catalogue_volume_uusd("azure", "StandardSSD_LRS", &source), 75000);
    assert_int_equal(catalogue_volume_uusd("aws", "pd-balanced", &source), -1);
    assert_int_equal(catalogue_volume_uusd("lambda", "", &source), -1);
    assert_int_equal(catalogue_volume_billed_gib("aws", "gp3", 129), 129);
    assert_int_equal(catalogue_volume_billed_gib("azure", "StandardSSD_LRS", 0), 4);
    assert_int_equal(catalogue_volume_billed_gib("azure", "StandardSSD_LRS", 128), 128);
    assert_int_equal(catalogue_volume_billed_gib("azure", "StandardSSD_LRS", 129), 256);
    assert_int_equal(catalogue_volume_billed_gib("azure", "StandardSSD_LRS", 32767), 32768);
    assert_int_equal(catalogue_volume_billed_gib("azure", "StandardSSD_LRS", 1048576), 1048576);
    assert_int_equal(catalogue_volume_billed_gib("azure", "PremiumV2_LRS", 129), 129);
}

static void data_that_leaves_has_a_price(void **state)
{
    int64_t to_region = -1, out = -1;
    (void)state;
    assert_false(catalogue_egress("lambda", &to_region, &out));
    assert_false(catalogue_egress("", &to_region, &out));
    assert_int_equal(to_region, -1);
    assert_int_equal(out, -1);
    assert_true(catalogue_egress("azure", &to_region, &out));
    assert_int_equal(to_region, 20000);
    assert_int_equal(out, 87000);
    assert_int_equal(catalogue_store_uusd_gib_month("gs://b"), 20000);
    assert_int_equal(catalogue_store_uusd_gib_month("file:///s3:"), 0);
}

static void kept_texts_are_copies(void **state)
{
    struct cloud_kept k = {0};
    char text[] = "one";
    (void)state;
    assert_null(cloud_keep(&k, NULL));
    const char *one = cloud_keep(&k, text), *empty = cloud_keep(&k, "");
    text[0] = 'x';
    assert_string_equal(one, "one");
    assert_string_equal(empty, "");
    assert_int_equal(k.n, 2);
    cloud_kept_deinit(&k);
    cloud_kept_deinit(&k);
    assert_null(k.list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_type_is_found),
        cmocka_unit_test(gpus_can_be_attached_to_a_machine),
        cmocka_unit_test(what_cannot_be_attached_is_refused),
        cmocka_unit_test(every_row_makes_sense),
        cmocka_unit_test(volumes_have_prices_and_sizes_that_are_billed),
        cmocka_unit_test(data_that_leaves_has_a_price),
        cmocka_unit_test(kept_texts_are_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
