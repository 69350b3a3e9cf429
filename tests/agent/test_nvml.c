/* SPDX-License-Identifier: Apache-2.0
 *
 * GPUs simulated by a fake of the driver's library, found by the library path; "without" = no
 * library.
 */
#include "agent/gpu/nvml.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define WAIT_MS 30000

static const char script[] = "gpu uuid=GPU-a busy=97 memory=40 total=80 power=400 limit=700 "
                             "temperature=60 clock=990 clock_max=1980 reasons=0x44 ecc_corrected=3 "
                             "ecc_uncorrected=1 processes=2\n"
                             "gpu uuid=GPU-b temperature=31 reasons=0x89\n"
                             "slice uuid=MIG-1 memory=5 total=10 processes=1 busy=99\n"
                             "slice uuid=MIG-2 memory=0 total=10\n";

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void write_script(const char *text)
{
    struct err e;
    assert_int_equal(fs_write_atomic(getenv("BELAY_TEST_NVML"), text, strlen(text), 0600, &e), 0);
}

static size_t look(struct nvml *n, struct nvml_sample *v)
{
    int64_t at, end = now_ms() + WAIT_MS;
    size_t count = 0;
    nvml_request(n);
    while (!nvml_get_samples(n, v, &count, &at)) {
        assert_true(now_ms() < end);
        poll(NULL, 0, 1);
    }
    assert_true(at > 0 && at <= now_ms());
    assert_false(nvml_get_samples(n, v, &count, &at)); /* each sample only once */
    return count;
}

static void each_gpu_and_each_slice_reports_its_load(void **state)
{
    struct nvml_sample *v = mem_array(NVML_SAMPLES_MAX, sizeof(*v));
    struct nvml *n = nvml_create();
    (void)state;
    write_script(script);
    assert_int_equal(look(n, v), 4);
    assert_string_equal(v[0].id, "GPU-a");
    assert_true(v[0].has_busy && !v[0].is_slice && v[0].thermal && v[0].power && !v[0].slowed);
    assert_int_equal(v[0].busy_percent, 97);
    assert_int_equal(v[0].memory_bytes, INT64_C(40) << 30);
    assert_int_equal(v[0].memory_total_bytes, INT64_C(80) << 30);
    assert_int_equal(v[0].power_mw, 400000);
    assert_int_equal(v[0].power_limit_mw, 700000);
    assert_int_equal(v[0].temperature_c, 60);
    assert_int_equal(v[0].clock_permille, 500);
    assert_int_equal(v[0].ecc_corrected, 3);
    assert_int_equal(v[0].ecc_uncorrected, 1);
    assert_int_equal(v[0].processes, 2);
    /* Unsupported values are unknown. */
    assert_string_equal(v[1].id, "GPU-b");
    assert_int_equal(v[1].index, 1);
    assert_false(v[1].has_busy);
    assert_true(v[1].slowed && v[1].power && !v[1].thermal);
    assert_int_equal(v[1].memory_total_bytes, 0);
    assert_true(v[2].is_slice && v[3].is_slice);
    assert_string_equal(v[2].id, "MIG-1");
    assert_int_equal(v[2].index, 1);
    assert_false(v[2].has_busy); /* the GPU does not report a slice's utilisation */
    assert_int_equal(v[2].processes, 1);

    write_script("gpu uuid=GPU-a busy=3\n");
    assert_int_equal(look(n, v), 1);
    assert_int_equal(v[0].busy_percent, 3);
    nvml_destroy(n);
    free(v);
}

/* What is found when the script is this. */
static void expect_fault(struct nvml *n, const char *text, const char *fault)
{
    struct nvml_sample *v = mem_array(NVML_SAMPLES_MAX, sizeof(*v));
    char found[NVML_FAULT_MAX];
    write_script(text);
    look(n, v);
    nvml_get_fault(n, found);
    assert_string_equal(found, fault);
    assert_false(nvml_get_fault(n, found)); /* each only once */
    free(v);
}

static void faults_of_the_hardware_are_found(void **state)
{
    static const char lost[] = "gpu uuid=GPU-a fails=15\ngpu uuid=GPU-b\n";
    struct nvml *n = nvml_create();
    (void)state;
    /* errors before the first sample are no new ones */
    expect_fault(n, "gpu uuid=GPU-a ecc_uncorrected=7\ngpu uuid=GPU-b\n", "");
    expect_fault(n, "gpu uuid=GPU-a ecc_uncorrected=7 ecc_corrected=99\ngpu uuid=GPU-b\n", "");
    expect_fault(n, "gpu uuid=GPU-a ecc_uncorrected=9\ngpu uuid=GPU-b\n",
        "GPU 0 (GPU-a): 2 memory errors were not corrected");
    expect_fault(n, "gpu uuid=GPU-a ecc_uncorrected=9\ngpu uuid=GPU-b\n", "");
    expect_fault(n, "gpu uuid=GPU-a ecc_uncorrected=0\ngpu uuid=GPU-b\n", ""); /* reset */
    expect_fault(n, "gpu uuid=GPU-a\ngpu uuid=GPU-b\nxid uuid=GPU-b number=79 no=1\n",
        "GPU GPU-b: Xid 79, it has fallen off the bus");
    expect_fault(n, "gpu uuid=GPU-a\ngpu uuid=GPU-b\nxid uuid=GPU-b number=79 no=1\n", "");
    expect_fault(n, "gpu uuid=GPU-a\nxid uuid=GPU-c number=48 no=2\n",
        "GPU unknown: Xid 48, a memory error that cannot be corrected");
    expect_fault(n, lost, "GPU 0 (GPU-a): the driver has lost it");
    expect_fault(n, lost, "");
    expect_fault(n, "gpu uuid=GPU-a\ngpu uuid=GPU-b\n", "");
    expect_fault(n, "gpu uuid=GPU-a\ngpu uuid=GPU-b fails=16\n",
        "GPU 1 (GPU-b): the driver says that it must be reset");
    nvml_destroy(n);
}

static void what_a_program_can_cause_is_no_fault(void **state)
{
    static const int xids[] = {1, 13, 31, 32, 43, 45, 63, 68, 69, 92, 94, 109, 999};
    struct nvml *n = nvml_create();
    char text[128];
    (void)state;
    for (size_t i = 0; i < sizeof(xids) / sizeof(xids[0]); i++) {
        snprintf(text, sizeof(text), "gpu uuid=GPU-a\nxid uuid=GPU-a number=%d no=%zu\n", xids[i],
            i + 10);
        expect_fault(n, text, "");
    }
    nvml_destroy(n);
}

static void a_driver_that_hangs_blocks_no_caller(void **state)
{
    struct nvml_sample *v = mem_array(NVML_SAMPLES_MAX, sizeof(*v));
    struct nvml *n = nvml_create();
    size_t count;
    int64_t at;
    (void)state;
    write_script(script);
    assert_int_equal(look(n, v), 4);
    write_script("hang\n");
    int64_t began = now_ms();
    for (int i = 0; i < 1000; i++) {
        nvml_request(n);
        assert_false(nvml_get_samples(n, v, &count, &at));
    }
    assert_true(now_ms() - began < WAIT_MS);
    while (!nvml_is_stuck(n, now_ms() + NVML_STUCK_MS + 1)) { /* once its thread has started */
        assert_true(now_ms() - began < WAIT_MS);
        poll(NULL, 0, 1);
    }
    assert_false(nvml_is_stuck(n, began));
    write_script(script); /* and the thread continues */
    assert_int_equal(look(n, v), 4);
    assert_false(nvml_is_stuck(n, now_ms() + NVML_STUCK_MS + 1));
    nvml_destroy(n);
    free(v);
}

static void without_the_library_there_is_nothing_to_see(void **state)
{
    struct nvml_sample *v = mem_array(NVML_SAMPLES_MAX, sizeof(*v));
    struct nvml *n = nvml_create();
    (void)state;
    assert_int_equal(look(n, v), 0);
    nvml_destroy(n);
    nvml_destroy(nvml_create()); /* one that never sampled */
    free(v);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest with[] = {
        cmocka_unit_test(each_gpu_and_each_slice_reports_its_load),
        cmocka_unit_test(faults_of_the_hardware_are_found),
        cmocka_unit_test(what_a_program_can_cause_is_no_fault),
        cmocka_unit_test(a_driver_that_hangs_blocks_no_caller),
    };
    const struct CMUnitTest without[] = {
        cmocka_unit_test(without_the_library_there_is_nothing_to_see),
    };
    char path[64] = "/tmp/belay-nvml.XXXXXX";
    if (argc > 1 && str_eq(argv[1], "without"))
        return cmocka_run_group_tests(without, NULL, NULL);
    int fd = mkstemp(path);
    if (fd < 0 || setenv("BELAY_TEST_NVML", path, 1) != 0)
        return 1;
    close(fd);
    int rc = cmocka_run_group_tests(with, NULL, NULL);
    unlink(path);
    return rc;
}
