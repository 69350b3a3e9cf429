/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/store/direct.h"
#include "base/fs.h"
#include "base/mem.h"
#include "tests/ckpt/tools.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LARGE ((size_t)1 << 20)

static char *content(size_t n)
{
    char *p = mem_pages(n);

    for (size_t i = 0; i < n; i++)
        p[i] = (char)(i * 2654435761u >> 24);
    return p;
}

static struct buf pages(size_t size)
{
    struct buf b = {.data = mem_pages(size), .cap = size};

    b.data[0] = '\0';
    return b;
}

/* n bytes from p on, into dir and back into a buffer with and one without aligned memory. */
static void goes_and_comes(const char *dir, const char *p, size_t n)
{
    struct buf aligned = pages(n + DIRECT_MORE), plain = {0}, tight = pages(n + 1);
    char path[400];
    struct err e;
    int fd;

    snprintf(path, sizeof(path), "%s/file", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    OK(direct_write(fd, p, n, &e));
    assert_int_equal(fsync(fd), 0);
    close(fd);
    struct buf *const all[] = {&aligned, &plain, &tight};
    for (size_t i = 0; i < 3; i++) {
        OK(direct_read(path, n, all[i], &e));
        assert_int_equal(all[i]->len, n);
        assert_memory_equal(buf_str(all[i]), p, n);
        if (n) /* more than allowed */
            FAILS(ERR_INVALID, direct_read(path, n - 1, all[i], &e));
        buf_deinit(all[i]);
    }
    unlink(path);
}

static void bytes_of_any_number_and_offset_are_read_back(void **state)
{
    static const size_t sizes[] = {
        0, 1, 4096, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, LARGE - 4096, LARGE + 28};
    const char *const dirs[] = {/* on the second O_DIRECT may not be supported */
        ((struct scratch *)*state)->dir, "/dev/shm"};
    char *p = content(LARGE + 4096);

    for (size_t d = 0; d < 2; d++) {
        char dir[400];

        snprintf(dir, sizeof(dir), "%s/direct.XXXXXX", dirs[d]);
        if (!mkdtemp(dir))
            continue; /* not available here */
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            goes_and_comes(dir, p, sizes[i]);
            goes_and_comes(dir, p + 16, sizes[i]);
        }
        rmdir(dir);
    }
    free(p);
}

/* For each way of a write, and any alignment. */
static void writes_at_places_add_up(void **state)
{
    static const size_t steps[] = {LARGE, LARGE - 1, (256 << 10) + 5, 4096, 17};
    const char *dir = ((struct scratch *)*state)->dir;
    struct direct_choice choice = {0};
    char path[400], *p = content(LARGE + 4096);
    struct buf expected = {0}, out = pages(48 * LARGE + DIRECT_MORE);
    struct err e;
    int fd;

    snprintf(path, sizeof(path), "%s/file", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (size_t i = 0; i < 80; i++) {
        size_t n = i < 40 ? LARGE : steps[i % 5];
        const char *from = p + (i % 3 ? 0 : i % 4096);

        OK(direct_write_at(&choice, fd, from, n, (int64_t)expected.len, &e));
        buf_add(&expected, from, n);
    }
    assert_true(atomic_load(&choice.cost[false]) > 0 && atomic_load(&choice.cost[true]) > 0);
    close(fd);
    OK(direct_read(path, expected.len, &out, &e));
    assert_int_equal(out.len, expected.len);
    assert_memory_equal(out.data, expected.data, expected.len);
    buf_deinit(&expected);
    buf_deinit(&out);
    free(p);
}

#define COST 1000000000000LL /* ns per MiB: more than any write takes */

/* A direct write excludes all writes through the cache to the same file. */
static void the_slower_way_is_seldom_tried(void **state)
{
    struct direct_choice choice = {.n = 100, .cost = {1, COST}};
    char path[400], *p = content(LARGE);
    int tried = 0;
    struct err e;

    snprintf(path, sizeof(path), "%s/file", ((struct scratch *)*state)->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (int i = 0; i < 512; i++) {
        long long before = atomic_load(&choice.cost[true]);

        OK(direct_write_at(&choice, fd, p, 256 << 10, 0, &e));
        tried += atomic_load(&choice.cost[true]) != before && !atomic_load(&choice.is_full);
    }
    assert_in_range(tried, 0, 4);
    close(fd);
    free(p);
}

static void *spin(void *stop)
{
    while (!atomic_load((atomic_bool *)stop)) {
    }
    return NULL;
}

static long long cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Other threads have the processor meanwhile, or hold the file's lock. */
static void waiting_is_no_cost_of_the_cache(void **state)
{
    enum { SPINNERS = 4, WRITES = 128 };
    atomic_bool stop = false;
    pthread_t spinners[SPINNERS];
    char path[400], *p = content(LARGE);
    cpu_set_t all, one;
    struct err e;
    int cpu = 0;

    snprintf(path, sizeof(path), "%s/file", ((struct scratch *)*state)->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0); /* inherited by the threads */
    for (size_t i = 0; i < SPINNERS; i++)
        assert_int_equal(pthread_create(&spinners[i], NULL, spin, &stop), 0);
    long long began = cpu_ns(), cost = 0;
    for (int i = 0; i < WRITES; i++) {
        struct direct_choice choice = {.n = 101, .cost = {0, COST}};

        OK(direct_write_at(&choice, fd, p, LARGE - 4096, 0, &e));
        cost += atomic_load(&choice.cost[false]);
    }
    long long took = cpu_ns() - began;
    atomic_store(&stop, true);
    for (size_t i = 0; i < SPINNERS; i++)
        pthread_join(spinners[i], NULL);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    assert_true(cost > 0);
    assert_in_range(cost, 1, took);
    close(fd);
    free(p);
}

static void a_cache_near_its_dirty_limit_is_full(void **state)
{
    static const char text[] = "nr_free_pages 5\nnr_dirty %d\nnr_writeback 200\n"
                               "nr_dirtied 99999\nnr_dirty_threshold 2400\n"
                               "nr_dirty_background_threshold 800\n";
    char vmstat[300];

    (void)state;
    /* Linux delays writers from 1,600 pages on */
    snprintf(vmstat, sizeof(vmstat), text, 0);
    assert_false(direct_cache_is_full(vmstat));
    snprintf(vmstat, sizeof(vmstat), text, 1299);
    assert_false(direct_cache_is_full(vmstat));
    snprintf(vmstat, sizeof(vmstat), text, 1300);
    assert_true(direct_cache_is_full(vmstat));
    assert_false(direct_cache_is_full(""));
    assert_false(direct_cache_is_full("nr_dirty 5\nnr_writeback 5\n"));
    assert_false(direct_cache_is_full("nr_dirty\nnr_writeback\nnr_dirty_threshold"));
}

static void what_cannot_be_read_is_an_error(void **state)
{
    const char *dir = ((struct scratch *)*state)->dir;
    struct buf out = pages(LARGE);
    char path[400];
    struct err e;

    snprintf(path, sizeof(path), "%s/none", dir);
    FAILS(ERR_NOT_FOUND, direct_read(path, LARGE, &out, &e));
    FAILS(ERR_INVALID, direct_read(dir, LARGE, &out, &e));
    assert_int_equal(mkfifo(path, 0600), 0);
    FAILS(ERR_INVALID, direct_read(path, LARGE, &out, &e));
    assert_int_equal(out.len, 0);
    buf_deinit(&out);
}

/* As on a full disk: the part that fits is written, the rest reports the error. */
static void a_file_that_does_not_fit_is_an_error(void **state)
{
    const struct rlimit small = {LARGE / 2, RLIM_INFINITY};
    struct rlimit before;
    char path[400], *p = content(LARGE);
    struct err e;
    int fd;

    snprintf(path, sizeof(path), "%s/large", ((struct scratch *)*state)->dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = direct_write(fd, p, LARGE, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(rc < 0 && strstr(e.text, "write failed"));
    close(fd);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            bytes_of_any_number_and_offset_are_read_back, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(writes_at_places_add_up, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            the_slower_way_is_seldom_tried, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            waiting_is_no_cost_of_the_cache, scratch_setup, scratch_teardown),
        cmocka_unit_test(a_cache_near_its_dirty_limit_is_full),
        cmocka_unit_test_setup_teardown(
            what_cannot_be_read_is_an_error, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            a_file_that_does_not_fit_is_an_error, scratch_setup, scratch_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
