/* SPDX-License-Identifier: Apache-2.0
 *
 * A real agent whose own disk is full: its directory is a small tmpfs, in a mount namespace of this
 * process. Run as root; otherwise there is nothing to test.
 */
#include "world.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define DISK "size=16m"

static bool can_mount;

static char *in_node(struct world *w, const char *name)
{
    return mem_printf("%s/node/%s", w->dir, name);
}

static struct world *create(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char *node = in_node(w, "");
    if (!can_mount)
        skip();
    assert_int_equal(mkdir(node, 0711), 0);
    assert_int_equal(mount("belay-test", node, "tmpfs", 0, DISK), 0);
    free(node);
    return w;
}

static bool has_no_tasks(struct world *w, int64_t unused)
{
    char *path = in_node(w, "tasks/*");
    glob_t found = {0};
    bool none = glob(path, 0, NULL, &found) == GLOB_NOMATCH;
    (void)unused;
    globfree(&found);
    free(path);
    return none;
}

/* Before world_teardown, which removes the mount point. */
static int teardown(void **state)
{
    struct world *w = *state;
    char *node = in_node(w, ""), *ballast = in_node(w, "ballast");
    unlink(ballast);
    w->deaf = w->deaf_to_output = false;
    for (size_t i = 0; i < WORLD_WANTS; i++)
        w->wants[i].a.job = 0;
    if (w->agent) {
        world_go(w);
        world_until(w, has_no_tasks, 0, "the tasks are gone");
        world_kill_agent(w, SIGTERM);
    }
    umount2(node, MNT_DETACH);
    free(ballast);
    free(node);
    return world_teardown(state);
}

/* All but so many pages are taken. */
static void fill(struct world *w, int pages)
{
    static const char page[PAGE];
    char *path = in_node(w, "ballast");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    off_t size = 0;
    assert_true(fd >= 0);
    for (ssize_t n; (n = write(fd, page, PAGE)) > 0;)
        size += n;
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(ftruncate(fd, (size + PAGE - 1) / PAGE * PAGE - (off_t)pages * PAGE), 0);
    close(fd);
    free(path);
}

static void make_room(struct world *w)
{
    char *path = in_node(w, "ballast");
    assert_int_equal(unlink(path), 0);
    free(path);
}

/* ---- starts ---- */

static bool ended_or_runs(struct world *w, int64_t job)
{
    return has_ended(w, job) || is_running(w, job);
}

/* Whatever the room is used up by, in every step of a start: the job's directory, the records of
 * its supervisor, the record of its end. */
static void a_start_without_room_is_no_loss_of_the_node(void **state)
{
    struct world *w = create(state);
    int refused = 0, done = 0;
    world_start_agent(w);
    world_want(w, 1, 1, "#!/bin/sh\n");
    world_until(w, has_ended, 1, "the node works");
    for (int pages = 0; done < 2 && pages < 32; pages++) {
        int64_t job = 2 + pages;
        world_forget(w, job - 1);
        world_go(w);
        world_until(w, is_forgotten, job - 1, "the one before is cleared away");
        fill(w, pages);
        world_want(w, job, 1, "#!/bin/sh\nexit 0\n");
        world_go(w);
        world_until(w, ended_or_runs, job, "it has ended, or has started");
        make_room(w); /* for the record of its end */
        world_until(w, has_ended, job, "it has ended");
        const struct wire_attempt_status *s = world_told(w, job);
        if (s->end != WIRE_END_CAPACITY && s->end != WIRE_END_SUCCEEDED)
            fail_msg("with %d pages it ended as %s: %s", pages,
                wire_word_name(wire_end_names, (int)s->end), s->text);
        if (s->end == WIRE_END_CAPACITY && !strstr(s->text, "No space left on device"))
            fail_msg("with %d pages: %s", pages, s->text);
        refused += s->end == WIRE_END_CAPACITY;
        done += s->end == WIRE_END_SUCCEEDED;
    }
    assert_true(refused >= 3);
    assert_int_equal(done, 2);
}

/* ---- what is told ---- */

static bool is_full(struct world *w, int64_t unused)
{
    (void)unused;
    return w->status.disk_full[0];
}

static bool has_room(struct world *w, int64_t unused)
{
    (void)unused;
    return w->status.seq > 0 && !w->status.disk_full[0];
}

static void a_node_says_when_its_disk_is_full_and_when_it_has_room_again(void **state)
{
    struct world *w = create(state);
    world_start_agent(w);
    world_until(w, has_room, 0, "it has room");
    fill(w, (2 << 20) / PAGE - 8); /* a little less than the eighth that is kept */
    world_until(w, is_full, 0, "the full disk is reported");
    if (!strstr(w->status.disk_full, "of 16.0 MiB are free, and 2.0 MiB are kept"))
        fail_msg("%s", w->status.disk_full);
    fill(w, (2 << 20) / PAGE + 8); /* not enough more */
    world_want(w, 1, 1, "#!/bin/sh\n");
    world_go(w);
    world_until(w, has_ended, 1, "what belayd wants all the same is run");
    assert_int_equal(world_told(w, 1)->end, WIRE_END_SUCCEEDED);
    assert_true(is_full(w, 0));
    make_room(w);
    world_until(w, has_room, 0, "it has room again");
}

/* A quota, for example: what the file system says of its free space is not all. */
static void a_start_that_found_no_room_is_reported_as_a_full_disk(void **state)
{
    struct world *w = create(state);
    world_start_agent(w);
    world_until(w, has_room, 0, "it has room");
    fill(w, 0);
    world_want(w, 1, 1, "#!/bin/sh\n");
    world_go(w);
    world_until(w, has_ended, 1, "it is refused");
    assert_int_equal(world_told(w, 1)->end, WIRE_END_CAPACITY);
    assert_true(is_full(w, 0)); /* in the same message */
    make_room(w);
}

static bool may_mount(void)
{
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_start_without_room_is_no_loss_of_the_node, teardown),
        cmocka_unit_test_teardown(
            a_node_says_when_its_disk_is_full_and_when_it_has_room_again, teardown),
        cmocka_unit_test_teardown(a_start_that_found_no_room_is_reported_as_a_full_disk, teardown),
    };
    can_mount = may_mount();
    return world_run(tests, sizeof(tests) / sizeof(*tests), argc, argv);
}
