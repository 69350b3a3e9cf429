/* SPDX-License-Identifier: Apache-2.0
 *
 * Telemetry in the database: reports of the same interval add up, and old rows are removed
 * gradually.
 */
#include "tests/db/util.h"

#include "base/mem.h"
#include "base/str.h"

#define MINUTE 60000LL

static struct err e;

static void add_task(
    struct db_batch *b, int64_t job, int32_t rank, int64_t span_ms, int64_t at, int64_t ms)
{
    struct task_load_row r = {.job = job,
        .attempt = 1,
        .rank = rank,
        .span_ms = span_ms,
        .at = at,
        .node = 7,
        .load = {.ms = ms, .cpu_ms = ms / 2, .memory_bytes = ms}};
    batch_add(b, TABLE_TASK_LOADS, &r);
}

static void add_gpu(struct db_batch *b, const char *gpu, int64_t at, int64_t busy_ms)
{
    struct gpu_load_row r = {.job = 1,
        .attempt = 1,
        .node = 7,
        .span_ms = MINUTE,
        .at = at,
        .load = {.ms = 1000, .busy_ms = busy_ms, .temperature_c = busy_ms}};
    STR_COPY(r.gpu, gpu);
    batch_add(b, TABLE_GPU_LOADS, &r);
}

static int print_task(void *ctx, const struct task_load_row *r)
{
    buf_printf(ctx, "%d@%lld:%lld,%lld,%lld ", (int)r->rank, (long long)r->at,
        (long long)r->load.ms, (long long)r->load.cpu_ms, (long long)r->load.memory_bytes);
    return 0;
}

static int print_gpu(void *ctx, const struct gpu_load_row *r)
{
    buf_printf(ctx, "%s@%lld:%lld,%lld ", r->gpu, (long long)r->at, (long long)r->load.busy_ms,
        (long long)r->load.temperature_c);
    return 0;
}

static void reports_of_the_same_interval_add_up(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r = util_reader(*state);
    struct db_batch b = {0};
    struct buf got = {0};
    add_task(&b, 1, 1, MINUTE, MINUTE, 1000);
    add_task(&b, 1, 0, MINUTE, 2 * MINUTE, 4000);
    add_task(&b, 1, 0, MINUTE, MINUTE, 2000);
    add_task(&b, 1, 0, 10 * MINUTE, 0, 2000);
    add_task(&b, 2, 0, MINUTE, MINUTE, 77);
    add_gpu(&b, "GPU-b", 0, 10);
    add_gpu(&b, "GPU-a", 0, 20);
    util_commit(d, &b);
    add_task(&b, 1, 0, MINUTE, MINUTE, 1000);
    add_gpu(&b, "GPU-b", 0, 30);
    util_commit(d, &b);
    assert_int_equal(db_read_task_loads(r, 1, 1, MINUTE, 0, print_task, &got, &e), 0);
    assert_string_equal(
        buf_str(&got), "0@60000:3000,1500,2000 0@120000:4000,2000,4000 1@60000:1000,500,1000 ");
    buf_clear(&got);
    assert_int_equal(db_read_task_loads(r, 1, 0, MINUTE, MINUTE + 1, print_task, &got, &e), 0);
    assert_string_equal(buf_str(&got), "0@120000:4000,2000,4000 ");
    buf_clear(&got);
    assert_int_equal(db_read_gpu_loads(r, 1, 1, MINUTE, 0, print_gpu, &got, &e), 0);
    assert_string_equal(buf_str(&got), "GPU-a@0:20,20 GPU-b@0:40,30 ");
    buf_deinit(&got);
    db_reader_close(r);
    db_close(d);
}

static void what_is_old_goes_by_its_span_and_no_more_than_so_much_at_once(void **state)
{
    struct db *d = util_open(*state);
    struct db_batch b = {0};
    for (int64_t i = 0; i < LOADS_THINNED + 200; i++)
        add_task(&b, 1, 0, MINUTE, i * MINUTE, 1);
    add_task(&b, 1, 0, 10 * MINUTE, 0, 1);
    add_gpu(&b, "GPU-a", 0, 1);
    util_commit(d, &b);
    b.loads.from[0] = (LOADS_THINNED + 100) * MINUTE;
    util_commit(d, &b);
    assert_int_equal(count_rows(d, TABLE_TASK_LOADS), 200 + 1);
    assert_int_equal(count_rows(d, TABLE_GPU_LOADS), 0);
    b.loads.from[0] = (LOADS_THINNED + 100) * MINUTE;
    util_commit(d, &b);
    assert_int_equal(count_rows(d, TABLE_TASK_LOADS), 100 + 1);
    b.loads.from[1] = 1;
    util_commit(d, &b);
    assert_int_equal(count_rows(d, TABLE_TASK_LOADS), 100);
    db_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            reports_of_the_same_interval_add_up, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            what_is_old_goes_by_its_span_and_no_more_than_so_much_at_once, util_setup,
            util_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
