/* SPDX-License-Identifier: Apache-2.0
 *
 * State on disk after failures: a failing disk, a full disk, a killed process. The state after a
 * crash is observed by copying the files and opening the copy.
 */
#include "tests/db/faulty_vfs.h"
#include "tests/db/util.h"

#include "base/fs.h"
#include "base/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Number of submits that belayd would find if it started on the current files: jobs and history
 * rows must agree. */
static int64_t jobs_after_a_crash(const char *path)
{
    char *copy = mem_printf("%s.copy", path), *shm = mem_printf("%s.copy-shm", path);
    util_copy_file(path, copy, "");
    util_copy_file(path, copy, "-wal");
    unlink(shm); /* a crash of the machine removes it */
    struct db *d = util_open(copy);
    int64_t n = count_rows(d, TABLE_JOBS);
    assert_int_equal(count_rows(d, TABLE_HISTORY), n);
    db_close(d);
    free(copy);
    free(shm);
    return n;
}

/* Three submits, or with texts: enough to grow the log's index beyond its first page. */
static struct db_batch batch_of(int64_t first, bool huge)
{
    struct db_batch b = {0};
    for (int64_t id = first; id < first + 3; id++) {
        batch_add_submit(&b, id);
        struct spec_change spec = {.job = id};
        if (huge) {
            spec.script = mem_alloc((6u << 20) + 1);
            memset(spec.script, 'x', 6u << 20);
        }
        batch_add(&b, TABLE_SPECS, &spec);
    }
    return b;
}

/* Commits with the plan's fault. The result must match the state on disk; then the fault is removed
 * and the commit succeeds. True if the fault did not occur. */
static bool try_fault(const char *path, bool huge, int *ret_rc)
{
    struct db_batch before = batch_of(1, false), b = batch_of(4, huge);
    struct faulty_plan wanted = faulty_plan;
    struct err e = {0};

    unlink(path);
    faulty_plan = (struct faulty_plan){0};
    struct db *d = util_open(path);
    util_commit(d, &before);
    faulty_plan = wanted;
    int rc = db_commit(d, &b, &e);
    bool passed = faulty_plan.fail_at[FAULTY_WRITE] + faulty_plan.fail_at[FAULTY_SYNC] +
                      faulty_plan.fail_at[FAULTY_SHM] >
                  0;
    faulty_plan = (struct faulty_plan){0};
    int64_t found = jobs_after_a_crash(path);
    if (rc == 0)
        assert_int_equal(found, 6);
    else if (rc == ERR_NO_SPACE)
        assert_int_equal(found, 3); /* definitely rolled back */
    else
        assert_true(found == 3 || found == 6);
    assert_int_equal(count_rows(d, TABLE_JOBS), rc == 0 ? 6 : 3);
    if (rc == ERR_NO_SPACE) {
        assert_int_equal(db_commit(d, &b, &e), 0);
        assert_int_equal(jobs_after_a_crash(path), 6);
    }
    db_batch_deinit(&b);
    db_close(d);
    *ret_rc = rc;
    return passed;
}

/* Every write, then every fsync, with each error code of the real VFS. */
static void what_a_failed_commit_answers_is_what_is_on_disk(void **state)
{
    static const struct {
        enum faulty_op op;
        int code, errnum, kind;
    } faults[] = {
        {FAULTY_WRITE, SQLITE_FULL, ENOSPC, ERR_NO_SPACE},
        {FAULTY_WRITE, SQLITE_IOERR_WRITE, EDQUOT, ERR_NO_SPACE},
        {FAULTY_WRITE, SQLITE_IOERR_WRITE, EIO, ERR_IO},
        {FAULTY_SYNC, SQLITE_IOERR_FSYNC, EIO, ERR_IO},
        {FAULTY_SYNC, SQLITE_IOERR_FSYNC, ENOSPC, ERR_IO}, /* the commit may be on disk */
    };

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        int n_failed = 0, rc;
        for (int64_t n = 1;; n++) {
            faulty_plan = (struct faulty_plan){.errnum = faults[i].errnum};
            faulty_plan.fail_at[faults[i].op] = n;
            faulty_plan.code[faults[i].op] = faults[i].code;
            if (try_fault(*state, false, &rc))
                break;
            assert_int_equal(rc, faults[i].kind);
            n_failed++;
        }
        assert_in_range(n_failed, 1, 100);
    }
}

/* SQLite grows the log's index after the commit is on disk: a transaction that failed there is
 * committed after a crash. So a full disk at that point must not be reported as a rollback. */
static void no_space_for_the_index_is_not_called_a_rollback(void **state)
{
    int rc;

    faulty_plan = (struct faulty_plan){.errnum = ENOSPC};
    faulty_plan.fail_at[FAULTY_SHM] = 1;
    faulty_plan.code[FAULTY_SHM] = SQLITE_IOERR_SHMSIZE;
    assert_false(try_fault(*state, true, &rc));
    assert_int_equal(rc, ERR_IO);
}

/* ---- a disk that is actually full ---- */

/* Uses all but n bytes of the free space; truncate to release it. */
static int fill_disk(const char *path, off_t but)
{
    static char block[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    while (write(fd, block, sizeof(block)) > 0)
        ;
    int rc = ftruncate(fd, lseek(fd, 0, SEEK_END) - but);
    close(fd);
    return rc;
}

static bool says_full(int rc, const struct err *e)
{
    return rc == ERR_NO_SPACE && e->kind == ERR_NO_SPACE && strstr(e->text, "space");
}

/* In a child: a mount namespace of its own is cleaned up in every case. 0 ok, 77 not permitted,
 * else the failing step. */
static int on_a_small_disk(const char *small)
{
    char *path = mem_printf("%s/belay.db", small), *ballast = mem_printf("%s/ballast", small);
    struct err e = {0};
    struct db *d = NULL;
    int64_t id = 0;
    int rc = 0;

    if (mkdir(small, 0700) != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("small", small, "tmpfs", 0, "size=4m") != 0)
        return 77;
    if (db_open(path, &d, &e) != 0 || fill_disk(ballast, 1 << 20) != 0)
        return 1;
    while (rc == 0) {
        struct db_batch b = {0};
        batch_add_submit(&b, ++id);
        rc = db_commit(d, &b, &e);
        db_batch_deinit(&b);
    }
    if (!says_full(rc, &e) || count_rows(d, TABLE_JOBS) != id - 1)
        return 2;
    if (sqlite3_wal_checkpoint_v2(d->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) ==
        SQLITE_OK)
        return 3;
    db_close(d);
    if (unlink(ballast) != 0 || db_open(path, &d, &e) != 0 || count_rows(d, TABLE_JOBS) != id - 1)
        return 4;
    if (fill_disk(ballast, 0) != 0)
        return 5;
    struct db_batch b = {0};
    for (int64_t i = id; i < id + 100; i++)
        batch_add_submit(&b, i);
    if (!says_full(db_commit(d, &b, &e), &e))
        return 6;
    if (unlink(ballast) != 0 || db_commit(d, &b, &e) != 0 || count_rows(d, TABLE_JOBS) != id + 99)
        return 7;
    db_batch_deinit(&b);
    db_close(d); /* also checkpoints the log */
    if (fill_disk(ballast, 0) != 0 || !says_full(db_open(path, &d, &e), &e))
        return 8;
    free(path);
    free(ballast);
    return 0;
}

static int wait_exit(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void a_full_disk_says_so_and_is_well_once_there_is_space(void **state)
{
    char *small = mem_printf("%s.small", (const char *)*state);
    pid_t pid = fork();
    if (pid == 0)
        _exit(on_a_small_disk(small));
    int rc = wait_exit(pid);
    free(small);
    if (rc == 77)
        printf("SKIP: only root may mount a small disk\n");
    else
        assert_int_equal(rc, 0);
}

/* ---- kill -9 ---- */

static void commit_until_killed(const char *path, int ack_fd, int64_t first)
{
    struct db *d = util_open(path);
    for (int64_t id = first;; id++) {
        struct db_batch b = {0};
        batch_add_submit(&b, id);
        util_commit(d, &b);
        if (write(ack_fd, &id, sizeof(id)) != sizeof(id))
            _exit(1);
    }
}

/* Kills the child after a varying number of acknowledgements. Returns the last acknowledged one. */
static int64_t run_and_kill(const char *path, int64_t first, int64_t n_acks)
{
    int pipe_fds[2];
    int64_t acked = 0, id;

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0)
        commit_until_killed(path, pipe_fds[1], first);
    close(pipe_fds[1]);
    for (int64_t i = 0; i < n_acks; i++) {
        assert_int_equal(read(pipe_fds[0], &id, sizeof(id)), sizeof(id));
        acked = id;
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(wait_exit(pid), -SIGKILL);
    while (read(pipe_fds[0], &id, sizeof(id)) == sizeof(id))
        acked = id;
    close(pipe_fds[0]);
    return acked;
}

static void what_was_acknowledged_survives_kill_9(void **state)
{
    const char *path = *state;
    struct prng p;
    int64_t present = 0;

    prng_init(&p, 9);
    for (int round = 0; round < 15; round++) {
        int64_t acked = run_and_kill(path, present + 1, 1 + (int64_t)prng_below(&p, 60));
        struct db *d = util_open(path);
        present = count_rows(d, TABLE_JOBS);
        /* at most one was not acknowledged in time */
        assert_true(present == acked || present == acked + 1);
        assert_int_equal(count_rows(d, TABLE_HISTORY), present);
        int64_t next = 0;
        struct err e;
        assert_int_equal(sql_get_i64(d->sql, "SELECT next_job FROM meta", &next, &e), 0);
        assert_int_equal(next, present + 1); /* so no number is reused */
        db_close(d);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, util_setup, util_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            what_a_failed_commit_answers_is_what_is_on_disk, faulty_setup, faulty_teardown),
        cmocka_unit_test_setup_teardown(
            no_space_for_the_index_is_not_called_a_rollback, faulty_setup, faulty_teardown),
        TEST(a_full_disk_says_so_and_is_well_once_there_is_space),
        TEST(what_was_acknowledged_survives_kill_9),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
