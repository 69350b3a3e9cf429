/* SPDX-License-Identifier: Apache-2.0
 *
 * A task's output on a disk that is too small for it. As root, with a small tmpfs in a mount
 * namespace of this process; otherwise only what needs no disk is tested.
 */
#include "agent/supervisor/output_pump.h"
#include "rights.h"

#include "agent/disk.h"
#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB (1LL << 20)
#define WAIT_MS 20000

/* ---- limits ---- */

static void a_disk_keeps_an_eighth_and_at_most_256_mib(void **state)
{
    (void)state;
    assert_int_equal(fs_reserve(16 * MIB), 2 * MIB);
    assert_int_equal(fs_reserve(1LL << 40), 256 * MIB);
    const struct {
        struct disk_space r;
        enum disk_cause was, is;
    } looks[] = {
        {{16 * MIB, 2 * MIB, 0, 0}, DISK_HAS_SPACE, DISK_HAS_SPACE},
        {{16 * MIB, 2 * MIB - 1, 0, 0}, DISK_HAS_SPACE, DISK_NO_BYTES},
        {{16 * MIB, 2 * MIB + MIB / 2 - 1, 0, 0}, DISK_NO_BYTES, DISK_NO_BYTES},
        {{16 * MIB, 2 * MIB + MIB / 2, 0, 0}, DISK_NO_BYTES, DISK_HAS_SPACE},
        {{16 * MIB, 8 * MIB, 6400, 99}, DISK_HAS_SPACE, DISK_NO_INODES},
        {{16 * MIB, 8 * MIB, 6400, 100}, DISK_HAS_SPACE, DISK_HAS_SPACE},
        {{16 * MIB, 2 * MIB + 1, 6400, 124}, DISK_NO_INODES, DISK_NO_INODES},
        {{16 * MIB, 2 * MIB + 1, 6400, 125}, DISK_NO_INODES, DISK_HAS_SPACE},
        {{16 * MIB, 2 * MIB + 1, 6400, 124}, DISK_NO_BYTES, DISK_NO_BYTES},
        {{16 * MIB, 2 * MIB - 1, 6400, 99}, DISK_NO_INODES, DISK_NO_BYTES},
        {{16 * MIB, 2 * MIB + 1, 6400, 124}, DISK_REFUSED, DISK_HAS_SPACE},
    };
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
        if (disk_judge(&looks[i].r, looks[i].was) != looks[i].is)
            fail_msg("look %zu", i);
}

/* Returns how much it may write until the limit. */
static int64_t writes(int64_t *spare, int64_t own, int64_t others)
{
    for (int64_t n; (n = output_space(*spare, own, others)) > 0; own += n)
        *spare -= n;
    return own;
}

static void the_largest_consumer_is_limited_first_and_each_gets_some(void **state)
{
    (void)state;
    int64_t spare = 1000 * MIB, first = writes(&spare, 0, 0);
    assert_in_range(first, 499 * MIB, 501 * MIB);
    int64_t second = writes(&spare, 0, 0); /* of another user: half of the remaining space */
    assert_in_range(second, 249 * MIB, 251 * MIB);
    assert_int_equal(output_space(spare, first, 0), 0);
    /* the second user's other task has a small rest, ... */
    int64_t own = writes(&spare, 0, second);
    assert_in_range(own, MIB, 20 * MIB);
    assert_true(spare > 200 * MIB); /* ... and other users have most of the space */
    assert_true(output_space(spare, 0, 0) > 0);
    assert_int_equal(output_space(0, 0, 0), 0);
    assert_int_equal(output_space(-5, 0, 0), 0);
    assert_int_equal(output_space(100, 0, 0), 100); /* never more than the free space */
}

static void a_users_tasks_count_together_while_they_live(void **state)
{
    (void)state;
    struct output_shares *s = output_shares_create();
    int up[2], down[2];
    char c;
    assert_true(s && pipe(up) == 0 && pipe(down) == 0);
    output_shares_set(NULL, 7, 5);
    assert_int_equal(output_shares_others(NULL, 7), 0);
    pid_t pid = fork();
    if (pid == 0) {
        output_shares_set(s, 7, 100);
        output_shares_set(s, 7, 1000);
        if (write(up[1], "x", 1) == 1 && read(down[0], &c, 1) >= 0)
            _exit(0); /* without an error message */
        _exit(1);
    }
    assert_int_equal(read(up[0], &c, 1), 1);
    output_shares_set(s, 7, 10);
    assert_int_equal(output_shares_others(s, 7), 1000);
    assert_int_equal(output_shares_others(s, 8), 0);
    assert_int_equal(write(down[1], "x", 1), 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(output_shares_others(s, 7), 0);
    for (int i = 0; i < OUTPUT_SHARES_MAX + 10; i++) { /* places of the dead are used again */
        pid = fork();
        if (pid == 0) {
            output_shares_set(s, 9, 1);
            _exit(output_shares_others(s, 7) == 10 ? 0 : 1);
        }
        int status;
        assert_true(waitpid(pid, &status, 0) == pid && status == 0);
    }
    output_shares_set(s, 7, 0);
    output_shares_set(s, 7, 3);
    assert_int_equal(output_shares_others(s, 7), 0);
}

/* ---- on a small disk ---- */

struct rig {
    char dir[64];
    struct output_pump pump;
    struct output_writer writer;
    int end; /* the program's */
    pid_t program;
};

static bool can_mount;

static int setup(void **state)
{
    static struct rig r;
    r = (struct rig){.program = 0};
    *state = &r;
    if (!can_mount)
        return 0;
    STR_COPY(r.dir, "/tmp/belay-pump-XXXXXX");
    if (!mkdtemp(r.dir) || mount("belay-test", r.dir, "tmpfs", 0, "size=16m") < 0)
        return -1;
    char *path = mem_printf("%s/output.log", r.dir);
    struct err e;
    r.pump = (struct output_pump){.writer = &r.writer, .user = 7, .stall_ms = 300};
    r.pump.log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    free(path);
    return output_pump_open(&r.pump, &r.pump.log, 1, geteuid(), getegid(), &r.end, &e);
}

static int teardown(void **state)
{
    struct rig *r = *state;
    if (!can_mount)
        return 0;
    if (r->program > 0) {
        kill(r->program, SIGKILL);
        waitpid(r->program, NULL, 0);
    }
    output_pump_finish(&r->pump);
    close(r->pump.log);
    umount2(r->dir, MNT_DETACH);
    return rmdir(r->dir);
}

/* Prints n bytes of numbered lines of 16 bytes. */
static void start_program(struct rig *r, int64_t n)
{
    r->program = fork();
    if (r->program == 0) {
        char lines[16 * 256 + 8];
        close(r->pump.streams[0].from);
        for (int64_t at = 0; at < n; at += 16 * 256) {
            for (int i = 0; i < 256; i++)
                snprintf(lines + i * 16, 24, "%015llu\n", (unsigned long long)(at / 16 + i));
            if (write(r->end, lines, 16 * 256) != 16 * 256)
                _exit(1);
        }
        _exit(0);
    }
    close(r->end);
}

static int64_t free_bytes(const struct rig *r)
{
    struct disk_space d;
    assert_true(disk_read(r->dir, &d));
    return d.free_bytes;
}

static int64_t size_of_log(const struct rig *r, int64_t *ret_blocks)
{
    struct stat st;
    assert_int_equal(fstat(r->pump.log, &st), 0);
    *ret_blocks = (int64_t)st.st_blocks * 512;
    return (int64_t)st.st_size;
}

typedef bool (*cond)(const struct rig *r);

static void turn_until(struct rig *r, cond c, const char *what)
{
    int64_t until = clock_system_ms() + WAIT_MS;
    while (!c(r)) {
        struct pollfd fds[OUTPUT_STREAMS];
        int wait = output_pump_poll(&r->pump, fds);
        if (clock_system_ms() > until)
            fail_msg("waited in vain until %s", what);
        assert_true(poll(fds, OUTPUT_STREAMS, wait < 0 || wait > 100 ? 100 : wait) >= 0);
        output_pump_turn(&r->pump, fds);
        if (free_bytes(r) < 2 * MIB)
            fail_msg("%lld bytes are free", (long long)free_bytes(r));
    }
}

static bool is_stalled(const struct rig *r)
{
    return r->pump.stalled_since > 0;
}

static bool is_cut(const struct rig *r)
{
    return r->pump.is_cut && r->pump.streams[0].lost > 0;
}

static bool is_over(const struct rig *r)
{
    return r->pump.streams[0].from < 0;
}

static bool is_stalled_or_over(const struct rig *r)
{
    return is_stalled(r) || is_over(r);
}

static char *read_log(const struct rig *r, int64_t from)
{
    int64_t blocks, n = size_of_log(r, &blocks) - from;
    char *text = mem_alloc((size_t)n + 1);
    assert_int_equal(pread(r->pump.log, text, (size_t)n, from), n);
    return text;
}

static void a_program_waits_for_space_and_loses_nothing(void **state)
{
    struct rig *r = *state;
    int64_t blocks, taken = 0, lines = 0;
    if (!can_mount)
        skip();
    r->pump.stall_ms = WAIT_MS;
    start_program(r, 40 * MIB);
    while (!is_over(r)) {
        turn_until(r, is_stalled_or_over, "it is stalled, or over");
        int64_t size = size_of_log(r, &blocks);
        assert_true(blocks <= 8 * MIB);
        char *text = read_log(r, taken); /* belayd takes it */
        for (int64_t at = 0; at + 16 <= size - taken; at += 16, lines++) {
            long long number = atoll(text + at);
            if (number != lines)
                fail_msg("line %lld is %lld", (long long)lines, number);
        }
        taken = lines * 16;
        free(text);
        r->pump.stalled_since = 0; /* so that it is seen to be stalled again */
        output_pump_shipped(&r->pump, taken);
    }
    assert_int_equal(size_of_log(r, &blocks), 40 * MIB);
    assert_int_equal(lines, 40 * MIB / 16);
}

static void output_without_space_for_long_is_cut_with_a_note(void **state)
{
    struct rig *r = *state;
    int64_t blocks;
    if (!can_mount)
        skip();
    start_program(r, 40 * MIB);
    turn_until(r, is_stalled, "it is stalled");
    int64_t held_at = size_of_log(r, &blocks);
    assert_in_range(held_at, 6 * MIB, 8 * MIB); /* half of what is not kept */
    turn_until(r, is_over, "the program goes on to its end");
    output_pump_finish(&r->pump);
    char *text = read_log(r, held_at);
    long long missing = -1;
    const char *note = strstr(text, "\n---- belay: output is missing from here on");
    const char *count = note ? strstr(note, "---- belay: ") : NULL;
    count = count ? strstr(count + 1, "---- belay: ") : NULL;
    if (!count || sscanf(count, "---- belay: %lld bytes of output are missing here", &missing) != 1)
        fail_msg("%s", text);
    int64_t notes = (int64_t)strlen(note);
    assert_int_equal(size_of_log(r, &blocks) - notes + missing, 40 * MIB);
    free(text);
}

static void output_continues_when_there_is_space_again(void **state)
{
    struct rig *r = *state;
    int64_t blocks;
    if (!can_mount)
        skip();
    start_program(r, 1LL << 40);
    turn_until(r, is_cut, "it is cut");
    int64_t cut_at = size_of_log(r, &blocks);
    output_pump_shipped(&r->pump, cut_at);
    turn_until(r, is_stalled, "it goes on, and is stalled again");
    char *text = read_log(r, cut_at), *note = strstr(text, " bytes of output are missing here");
    assert_true(str_starts(text, "---- belay: ") && note);
    assert_true(strlen(note) > 4 * MIB);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disk_keeps_an_eighth_and_at_most_256_mib),
        cmocka_unit_test(the_largest_consumer_is_limited_first_and_each_gets_some),
        cmocka_unit_test(a_users_tasks_count_together_while_they_live),
        cmocka_unit_test_setup_teardown(
            a_program_waits_for_space_and_loses_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(
            output_without_space_for_long_is_cut_with_a_note, setup, teardown),
        cmocka_unit_test_setup_teardown(
            output_continues_when_there_is_space_again, setup, teardown),
    };
    can_mount = enter_own_mounts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
