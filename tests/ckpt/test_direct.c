/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/store/direct.h"
#include "base/fs.h"
#include "base/mem.h"
#include "tests/ckpt/tools.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
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
            what_cannot_be_read_is_an_error, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            a_file_that_does_not_fit_is_an_error, scratch_setup, scratch_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
