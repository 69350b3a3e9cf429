/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent reports about its disk: a small tmpfs, in a mount namespace of this process, and
 * virtual time. Run as root; otherwise there is nothing to test.
 */
#include "agent/disk.h"
#include "rights.h"

#include "base/vtimers.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB (1LL << 20)

static bool can_mount;

struct rig {
    char dir[64];
    struct vtimers vt;
    struct disk disk;
    int n_changes;
};

static void on_change(void *ctx)
{
    struct rig *r = ctx;
    r->n_changes++;
}

/* With 16 MiB, of which 2 are kept, and 640 files, of which 10 are. */
static void begin(struct rig *r)
{
    *r = (struct rig){.dir = "/tmp/belay-test-disk-XXXXXX"};
    if (!can_mount)
        skip();
    assert_non_null(mkdtemp(r->dir));
    assert_int_equal(mount("belay-test", r->dir, "tmpfs", 0, "size=16m,nr_inodes=640"), 0);
    vtimers_init(&r->vt, 0);
    r->disk = (struct disk){.dir = r->dir, .timers = &r->vt.timers, .changed = on_change, .ctx = r};
    disk_start(&r->disk);
    assert_string_equal(disk_full(&r->disk), "");
}

static void end(struct rig *r)
{
    disk_stop(&r->disk);
    vtimers_deinit(&r->vt);
    assert_int_equal(umount2(r->dir, MNT_DETACH), 0);
    assert_int_equal(rmdir(r->dir), 0);
}

static void use_up_bytes(struct rig *r, int64_t left)
{
    char path[96];
    struct disk_space space;
    snprintf(path, sizeof(path), "%s/ballast", r->dir);
    unlink(path);
    assert_true(disk_read(r->dir, &space));
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(posix_fallocate(fd, 0, (off_t)(space.free_bytes - left)), 0);
    close(fd);
}

static void use_up_files(struct rig *r, int64_t left)
{
    struct disk_space space;
    assert_true(disk_read(r->dir, &space));
    for (int64_t k = space.free_inodes; k > left; k--) {
        char path[96];
        snprintf(path, sizeof(path), "%s/%lld", r->dir, (long long)k);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        close(fd);
    }
}

static void free_files(struct rig *r)
{
    for (int k = 0; k <= 640; k++) {
        char path[96];
        snprintf(path, sizeof(path), "%s/%d", r->dir, k);
        unlink(path);
    }
}

static void assert_says(const struct rig *r, const char *text)
{
    if (!strstr(disk_full(&r->disk), text) || (!*text && *disk_full(&r->disk)))
        fail_msg("it says \"%s\", not \"%s\"", disk_full(&r->disk), text);
}

/* A quota, for example: the file system has free space that this user may not use. */
static void records_without_space_count_as_a_full_disk_for_a_minute(void **state)
{
    (void)state;
    struct rig r;
    begin(&r);
    disk_refused(&r.disk, true, "writing spec.json: No space left on device");
    assert_string_equal(disk_full(&r.disk), DISK_REFUSED_TEXT);
    assert_int_equal(r.n_changes, 1);
    vtimers_advance(&r.vt, DISK_REFUSED_MS - 1);
    assert_string_equal(disk_full(&r.disk), DISK_REFUSED_TEXT);
    vtimers_advance(&r.vt, DISK_CHECK_MS + 1);
    assert_string_equal(disk_full(&r.disk), "");
    assert_int_equal(r.n_changes, 2);
    end(&r);
}

/* One job that is larger than the free space, or than its user's quota, must not close the node to
 * other jobs. */
static void a_job_that_does_not_fit_closes_no_node(void **state)
{
    (void)state;
    struct rig r;
    begin(&r);
    disk_refused(&r.disk, false, "writing checkpoint/a: Disk quota exceeded");
    assert_string_equal(disk_full(&r.disk), "");
    assert_int_equal(r.n_changes, 0);
    /* unless other jobs find no space either: that is reported without delay */
    use_up_bytes(&r, MIB);
    disk_refused(&r.disk, false, "writing checkpoint/a: No space left on device");
    assert_says(&r, "1.0 MiB of 16.0 MiB are free");
    use_up_bytes(&r, 8 * MIB);
    vtimers_advance(&r.vt, DISK_CHECK_MS);
    assert_string_equal(disk_full(&r.disk), "");
    assert_int_equal(r.n_changes, 2);
    end(&r);
}

static void the_reason_is_what_is_short(void **state)
{
    (void)state;
    struct rig r;
    begin(&r);
    use_up_bytes(&r, 2 * MIB + MIB / 4); /* more than is kept, but not a quarter more */
    use_up_files(&r, 9);
    vtimers_advance(&r.vt, DISK_CHECK_MS);
    assert_says(&r, "9 of 640 files (inodes) are free");
    assert_int_equal(r.n_changes, 1);
    use_up_bytes(&r, MIB);
    vtimers_advance(&r.vt, DISK_CHECK_MS);
    assert_says(&r, "1.0 MiB of 16.0 MiB are free");
    free_files(&r);
    use_up_bytes(&r, 2 * MIB + MIB / 4);
    vtimers_advance(&r.vt, DISK_CHECK_MS);
    assert_says(&r, "1.0 MiB of 16.0 MiB are free"); /* as of the moment when it became full */
    use_up_bytes(&r, 3 * MIB);
    vtimers_advance(&r.vt, DISK_CHECK_MS);
    assert_says(&r, "");
    assert_int_equal(r.n_changes, 3);
    end(&r);
}

static void a_disk_that_fills_up_after_a_refusal_says_so(void **state)
{
    (void)state;
    struct rig r;
    begin(&r);
    disk_refused(&r.disk, true, "writing spec.json: No space left on device");
    use_up_bytes(&r, MIB);
    vtimers_advance(&r.vt, DISK_CHECK_MS);
    assert_says(&r, "1.0 MiB of 16.0 MiB are free");
    use_up_bytes(&r, 8 * MIB);
    vtimers_advance(&r.vt, DISK_CHECK_MS);
    assert_string_equal(disk_full(&r.disk), DISK_REFUSED_TEXT);
    vtimers_advance(&r.vt, DISK_REFUSED_MS);
    assert_string_equal(disk_full(&r.disk), "");
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_without_space_count_as_a_full_disk_for_a_minute),
        cmocka_unit_test(a_job_that_does_not_fit_closes_no_node),
        cmocka_unit_test(the_reason_is_what_is_short),
        cmocka_unit_test(a_disk_that_fills_up_after_a_refusal_says_so),
    };
    can_mount = enter_own_mounts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
