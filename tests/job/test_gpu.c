/* SPDX-License-Identifier: Apache-2.0 */
#include "job/gpu.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void product_names_are_shortened(void **state)
{
    static const struct {
        const char *name, *model;
        int64_t mib;
    } all[] = {{"NVIDIA A100-SXM4-40GB", "a100", 40960}, {"A100", "a100", 0}, {"a100", "a100", 0},
        {"NVIDIA H100 PCIe", "h100", 0}, {"Tesla V100-SXM2-16GB", "v100", 16384},
        {"Tesla T4", "t4", 0}, {"NVIDIA GeForce RTX 4090", "rtx-4090", 0},
        {"RTX A6000", "rtx-a6000", 0}, {"rtx-a6000", "rtx-a6000", 0},
        {"NVIDIA H100 80GB HBM3", "h100", 81920}, {"NVIDIA GH200 480GB", "gh200", 491520},
        {"rtx", "rtx", 0}, {"NVIDIA L40S", "l40s", 0}, {"1g.5gb", "1g.5gb", 0}, {"", "", 0},
        {"nvidia", "", 0}, {"a\xc3\xa4", "", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char model[GPU_MODEL_MAX];
        gpu_model(all[i].name, model);
        assert_string_equal(model, all[i].model);
        assert_int_equal(gpu_model_mib(all[i].name), all[i].mib);
    }
}

static void a_gpu_serves_requests_for_its_model_and_memory(void **state)
{
    const struct gpu_kind a100 = {"a100", 40960}, rtx = {"rtx-4090", 24576}, unknown = {"", 0};
    (void)state;
    assert_true(gpu_serves(&a100, &(struct gpu_kind){"a100", 0}) &&
                gpu_serves(&a100, &(struct gpu_kind){"", 40960}));
    assert_true(gpu_serves(&rtx, &(struct gpu_kind){"rtx", 0}) && gpu_serves(&unknown, &unknown));
    assert_false(gpu_serves(&a100, &(struct gpu_kind){"a10", 0}) ||
                 gpu_serves(&a100, &(struct gpu_kind){"a100", 81920}));
    assert_false(gpu_serves(&unknown, &(struct gpu_kind){"a100", 0}) ||
                 gpu_serves(&unknown, &(struct gpu_kind){"", 1}));
}

static void amd_models_are_recognised(void **state)
{
    (void)state;
    assert_true(
        gpu_is_amd("mi300x") && gpu_is_amd("mi250") && gpu_is_amd("radeon") && gpu_is_amd("rx"));
    assert_false(
        gpu_is_amd("") || gpu_is_amd("mi") || gpu_is_amd("a100") || gpu_is_amd("rtx-4090"));
}

static void mig_slices_have_their_own_names(void **state)
{
    static const struct {
        const char *name, *slice;
    } all[] = {{"1g.10gb", "1g.10gb"}, {"7G.80GB", "7g.80gb"}, {"1g.10gb+me", "1g.10gb.me"},
        {"1c.3g.40gb", "1c.3g.40gb"}, {"1g.10gb.me", "1g.10gb.me"},
        {"1g.10gb+me.all", "1g.10gb.me.all"}, {"a100", NULL}, {"1g", NULL}, {"1g.10", NULL},
        {"1g.10gbx", NULL}, {"1g.10gb+", NULL}, {"g.10gb", NULL}, {"1g.10gb+m e", NULL}, {"", NULL},
        {"1g.10gb+aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL}, {"11111g.10gb", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char out[GPU_MODEL_MAX] = "";
        assert_int_equal(gpu_slice(all[i].name, out), all[i].slice != NULL);
        assert_string_equal(out, all[i].slice ? all[i].slice : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product_names_are_shortened),
        cmocka_unit_test(a_gpu_serves_requests_for_its_model_and_memory),
        cmocka_unit_test(amd_models_are_recognised),
        cmocka_unit_test(mig_slices_have_their_own_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
