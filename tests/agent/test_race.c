/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent as root does with trees of a job's user, while a process of that user swaps what is
 * in them for symbolic links to another's directory and for hard links to another's file, as fast
 * as it can: 10,000 tries on each path. No file of the other's may change hands, go, change, or be
 * read. The argument names the group of paths.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/criu_files.h"
#include "agent/place.h"
#include "agent/scribe.h"
#include "agent/workdir.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/ckpt.h"
#include "ckpt/snapshot.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 10000
#define OUTPUT_TRIES 300
#define NOBODY 65534
#define PLAIN_FILES 4     /* so that a walk takes a while */
#define SECRET_BYTES 7777 /* no file of the user's has as many */
#define OWN_TEXT "the user's own"
#define SKIPPED 77

static const struct job_user user = {
    .uid = NOBODY, .gid = NOBODY, .is_other = true, .name = "nobody", .home = "/"};

struct place {
    char dir[64], task[96], tree[128], victim[96], store[96], cache[96], control[128];
    struct store *open_store;
    struct ckpt_job job;
    pid_t racer;
};

static char *in(const char *dir, const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static void put(const char *path, const char *text, size_t n, mode_t mode)
{
    struct err e;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, text, n, &e), 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

/* ---- the other's files ---- */

static void make_victim(struct place *p)
{
    char secret[SECRET_BYTES];
    memset(secret, 's', sizeof(secret));
    assert_int_equal(mkdir(p->victim, 0755), 0);
    put(in(p->victim, "secret"), secret, sizeof(secret), 0600);
    put(in(p->victim, "open"), secret, sizeof(secret),
        0666); /* of which everybody may make hard links */
    assert_int_equal(mkdir(in(p->victim, "sub"), 0755), 0);
    put(in(p->victim, "sub/secret"), secret, sizeof(secret), 0600);
}

static void check_file(const char *path, mode_t mode)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        fail_msg("%s is gone", path);
    if (st.st_uid != 0 || st.st_gid != 0)
        fail_msg("%s is uid %u's now", path, (unsigned)st.st_uid);
    if ((st.st_mode & 07777) != mode || st.st_size != SECRET_BYTES)
        fail_msg("%s was changed", path);
}

static void check_victim(const struct place *p)
{
    struct stat st;
    check_file(in(p->victim, "secret"), 0600);
    check_file(in(p->victim, "open"), 0666);
    check_file(in(p->victim, "sub/secret"), 0600);
    assert_int_equal(lstat(p->victim, &st), 0);
    assert_true(st.st_uid == 0 && (st.st_mode & 0777) == 0755);
    assert_int_equal(lstat(in(p->victim, "sub"), &st), 0);
    assert_true(st.st_uid == 0 && (st.st_mode & 0777) == 0755);
}

/* ---- the user's process ---- */

static void be_user(void)
{
    if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
        _exit(1);
}

static void swap(const char *name, const char *aside, const char *victim, bool by_hard_link)
{
    if (rename(name, aside) < 0)
        return;
    int rc = by_hard_link ? link(victim, name) : symlink(victim, name);
    (void)rc;
}

static void swap_back(const char *name, const char *aside)
{
    unlink(name);
    rename(aside, name);
}

static _Noreturn void race(const char *tree, const char *victim)
{
    char d[256], d_aside[256], f[256], f_aside[256], open_file[256];
    snprintf(d, sizeof(d), "%s/d", tree);
    snprintf(d_aside, sizeof(d_aside), "%s/aside", tree);
    snprintf(f, sizeof(f), "%s/f", tree);
    snprintf(f_aside, sizeof(f_aside), "%s/file-aside", tree);
    snprintf(open_file, sizeof(open_file), "%s/open", victim);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    be_user();
    for (unsigned i = 0;; i++) {
        swap(d, d_aside, victim, false);
        swap(f, f_aside, open_file, true);
        swap_back(f, f_aside);
        for (volatile unsigned spin = 0; spin < i % 64; spin++)
            continue;
        swap_back(d, d_aside);
    }
}

static void start_racer(struct place *p, const char *tree)
{
    p->racer = fork();
    if (p->racer == 0)
        race(tree, p->victim);
    assert_true(p->racer > 0);
}

static void stop_racer(struct place *p)
{
    if (p->racer > 0) {
        kill(p->racer, SIGKILL);
        waitpid(p->racer, NULL, 0);
    }
    p->racer = 0;
}

/* ---- trees ---- */

/* What the racer moves about is among them. */
static void fill_with(const char *tree, const char *text)
{
    char name[32];
    assert_int_equal(mkdir(in(tree, "d"), 0755), 0);
    put(in(tree, "d/secret"), text, strlen(text), 0644);
    assert_int_equal(mkdir(in(tree, "d/sub"), 0755), 0);
    put(in(tree, "d/sub/secret"), text, strlen(text), 0644);
    put(in(tree, "f"), text, strlen(text), 0644);
    for (int i = 0; i < PLAIN_FILES; i++) {
        snprintf(name, sizeof(name), "p%02d", i);
        put(in(tree, name), text, strlen(text), 0644);
    }
}

static void fill(const char *tree)
{
    fill_with(tree, OWN_TEXT);
}

#define N_FILES (PLAIN_FILES + 3)
#define TREE_BYTES (int64_t)(N_FILES * (sizeof(OWN_TEXT) - 1))

static void make_user_tree(const char *tree)
{
    struct err e;
    assert_int_equal(fs_mkdirs(tree, 0700, &e), 0);
    fill(tree);
    assert_int_equal(place_give(&user, tree, &e), 0);
}

/* A racer makes no difference to it but in time. */
static void remove_it(const char *tree)
{
    struct err e;
    if (fs_remove_tree(tree, &e) != 0)
        fail_msg("%s", e.text);
}

static int setup(void **state)
{
    struct place *p = mem_alloc(sizeof(*p));
    char url[128];
    struct err e;
    snprintf(p->dir, sizeof(p->dir), "%s/belay-test-XXXXXX",
        access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(p->dir));
    assert_int_equal(chmod(p->dir, 0711), 0);
    snprintf(p->task, sizeof(p->task), "%s/1-1", p->dir);
    snprintf(p->victim, sizeof(p->victim), "%s/victim", p->dir);
    snprintf(p->store, sizeof(p->store), "%s/store", p->dir);
    snprintf(p->cache, sizeof(p->cache), "%s/cache", p->dir);
    snprintf(p->tree, sizeof(p->tree), "%s/tree", p->task);
    snprintf(p->control, sizeof(p->control), "%s/control", p->task);
    assert_int_equal(mkdir(p->task, 0711), 0);
    assert_int_equal(mkdir(p->cache, 0700), 0);
    make_victim(p);
    p->job = (struct ckpt_job){.cluster = "lab", .job = 7};
    snprintf(url, sizeof(url), "file://%s", p->store);
    assert_int_equal(store_open(url, NULL, &p->job.store, &e), 0);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    struct err e;
    stop_racer(p);
    store_close(p->job.store);
    int rc = fs_remove_tree(p->dir, &e);
    free(p);
    return rc;
}

/* ---- making ---- */

static void add_file(struct buf *text, const char *cache, const char *path)
{
    char hash[1][CHUNK_HEX_SIZE];
    struct err e;
    chunk_hash(OWN_TEXT, strlen(OWN_TEXT), hash[0]);
    if (!fs_exists(in(cache, hash[0])))
        put(in(cache, hash[0]), OWN_TEXT, strlen(OWN_TEXT), 0600);
    assert_int_equal(workdir_add_file(text, path, 0644, (int64_t)strlen(OWN_TEXT),
                         (const char(*)[CHUNK_HEX_SIZE])hash, &e),
        0);
}

/* All of it is in the cache, so that nobody is asked. */
static void send_workdir(const struct place *p, char ret_hash[CHUNK_HEX_SIZE])
{
    struct buf text = {0};
    struct err e;
    char name[32];
    workdir_begin(&text);
    assert_int_equal(workdir_add_dir(&text, "d", 0755, &e), 0);
    add_file(&text, p->cache, "d/secret");
    assert_int_equal(workdir_add_dir(&text, "d/sub", 0755, &e), 0);
    add_file(&text, p->cache, "d/sub/secret");
    add_file(&text, p->cache, "f");
    for (int i = 0; i < PLAIN_FILES; i++) {
        snprintf(name, sizeof(name), "p%02d", i);
        add_file(&text, p->cache, name);
    }
    chunk_hash(text.data, text.len, ret_hash);
    put(in(p->cache, ret_hash), text.data, text.len, 0600);
    buf_deinit(&text);
}

static void a_working_directory(void **state)
{
    struct place *p = *state;
    struct workdir_source s = {.cache = p->cache};
    struct err e;
    send_workdir(p, s.hash);
    start_racer(p, p->tree);
    for (int i = 0; i < TRIES; i++) {
        if (workdir_bring(&s, p->tree, NULL, &e) != 0)
            fail_msg("%s", e.text);
        if (place_give(&user, p->tree, &e) != 0)
            fail_msg("%s", e.text);
        check_victim(p);
    }
}

/* Files without content: so a restore takes no more time than the tree does. */
static void save_own(struct place *p)
{
    struct ckpt_stats stats;
    struct err e;
    char *tree = mem_printf("%s/saved", p->dir);
    assert_int_equal(mkdir(tree, 0700), 0);
    fill_with(tree, "");
    assert_int_equal(ckpt_save(&p->job, (struct ckpt_id){1, 1}, tree, -1, NULL, &stats, &e), 0);
    assert_int_equal(stats.files, N_FILES);
    free(tree);
}

static void restore_and_give(
    struct place *p, int (*give)(const struct job_user *u, const char *path, struct err *e))
{
    struct ckpt_restored restored;
    struct err e;
    save_own(p);
    start_racer(p, p->tree);
    for (int i = 0; i < TRIES; i++) {
        if (ckpt_restore(&p->job, 2, p->tree, NULL, &restored, &e) != 0)
            fail_msg("%s", e.text);
        assert_int_equal(restored.damaged, 0);
        if (give(&user, p->tree, &e) != 0)
            fail_msg("%s", e.text);
        check_victim(p);
    }
}

static void a_checkpoint(void **state)
{
    restore_and_give(*state, place_checkpoint);
}

/* What other ranks have saved is restored in the same way, and given as a tree beside the
 * checkpoint. */
static void ranks(void **state)
{
    restore_and_give(*state, place_give);
}

/* ---- CRIU ---- */

/* The modes of a restored scratch directory are the program's: it may have been everybody's. */
static void scratch(void **state)
{
    struct place *p = *state;
    char *checkpoint = mem_printf("%s/checkpoint", p->task),
         *saved = mem_printf("%s/scratch", checkpoint);
    char *made = mem_printf("%s/scratch", p->task);
    struct err e;
    start_racer(p, made);
    for (int i = 0; i < TRIES; i++) {
        assert_int_equal(fs_mkdirs(saved, 0700, &e), 0);
        fill(saved);
        assert_int_equal(chmod(saved, 0777), 0);
        if (place_scratch(&user, p->task, checkpoint, &e) != 0)
            fail_msg("%s", e.text);
        check_victim(p);
    }
    free(made);
    free(saved);
    free(checkpoint);
}

/* Where d was copied as the link that it was for a moment, nothing is below it. */
static void check_copy(const char *copy)
{
    static const char *const names[] = {"f", "d/secret", "d/sub/secret"};
    struct stat d, st;
    bool has_d = lstat(in(copy, "d"), &d) == 0 && S_ISDIR(d.st_mode);
    for (size_t i = 0; i < (has_d ? 3 : 1); i++)
        if (lstat(in(copy, names[i]), &st) == 0 && S_ISREG(st.st_mode) &&
            st.st_size == SECRET_BYTES)
            fail_msg("%s of a copy is another's file", names[i]);
}

static void a_copy_of_scratch(void **state)
{
    struct place *p = *state;
    const struct criu_files none = {0};
    char *to = mem_printf("%s/checkpoint", p->task), *copy = mem_printf("%s/scratch", to);
    struct err e;
    int n = 0;
    make_user_tree(p->tree);
    start_racer(p, p->tree);
    for (int i = 0; i < TRIES; i++) {
        assert_int_equal(fs_mkdirs(to, 0700, &e), 0);
        n += criu_files_save(&none, NOBODY, p->tree, to, &e) ==
             0; /* what changes meanwhile may make it fail */
        check_copy(copy);
        check_victim(p);
        remove_it(to);
    }
    print_message("%d of %d copies were made\n", n, TRIES);
    free(copy);
    free(to);
}

/* ---- saving ---- */

static void a_save(void **state)
{
    struct place *p = *state;
    struct ckpt_stats stats;
    struct err e;
    int n = 0;
    make_user_tree(p->tree);
    start_racer(p, p->tree);
    for (int i = 0; i < TRIES; i++) {
        if (i % 100 == 0) /* or each would look through those before it */
            assert_int_equal(fs_remove_tree(in(p->store, "lab"), &e), 0);
        int rc = ckpt_save(&p->job, (struct ckpt_id){1, i + 1}, p->tree, -1, NULL, &stats, &e);
        if (rc == 0 && stats.bytes > TREE_BYTES)
            fail_msg("what was saved has another's file in it: %lld bytes", (long long)stats.bytes);
        n += rc == 0;
        check_victim(p);
    }
    print_message("%d of %d saves were made\n", n, TRIES);
}

static void a_snapshot(void **state)
{
    struct place *p = *state;
    const struct ckpt_snapshot_how how = {.scratch = p->task};
    struct ckpt_snapshot_stats stats;
    struct err e;
    int n = 0;
    make_user_tree(p->tree);
    start_racer(p, p->tree);
    for (int i = 0; i < TRIES; i++) {
        struct ckpt_snapshot *s = NULL;
        int rc = ckpt_snapshot_take(p->tree, &how, NULL, &s, &stats, &e);
        if (rc == 0 && s && manifest_bytes(&s->manifest) > TREE_BYTES)
            fail_msg("a snapshot has another's file in it");
        n += rc == 0;
        ckpt_snapshot_destroy(s);
        check_victim(p);
    }
    print_message("%d of %d snapshots were taken\n", n, TRIES);
}

/* ---- the rest ---- */

static void a_removal(void **state)
{
    struct place *p = *state;
    start_racer(p, p->tree);
    for (int i = 0; i < TRIES; i++) {
        make_user_tree(p->tree);
        remove_it(p->tree);
        assert_false(fs_exists(p->tree));
        check_victim(p);
    }
}

static void a_file_of_the_users(void **state)
{
    struct place *p = *state;
    struct err e;
    int n = 0;
    assert_int_equal(mkdir(p->control, 0700), 0);
    assert_int_equal(lchown(p->control, NOBODY, NOBODY), 0);
    start_racer(p, p->control); /* its file is "f" */
    for (int i = 0; i < TRIES; i++) {
        n += place_file(&user, p->control, "f", OWN_TEXT, strlen(OWN_TEXT), &e) == 0;
        check_victim(p);
    }
    print_message("%d of %d files were written\n", n, TRIES);
    assert_true(n > 0);
}

/* -o FILE: d is a directory of the user's, or a way to the other's. Each is a process, so there
 * are fewer. */
static void an_output_file(void **state)
{
    struct place *p = *state;
    struct err e;
    int n = 0, from = open("/dev/null", O_RDONLY | O_CLOEXEC);
    make_user_tree(p->tree);
    start_racer(p, p->tree);
    for (int i = 0; i < OUTPUT_TRIES; i++) {
        struct scribe s = {.user = &user,
            .cwd = p->tree,
            .copies = {{from, "d/secret", true, -1}, {.from = -1, .also = -1}}};
        n += scribe_start(&s, &e) == 0;
        scribe_finish(&s);
        check_victim(p);
    }
    print_message("%d of %d outputs were opened\n", n, OUTPUT_TRIES);
    close(from);
}

#define race_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest make[] = {
        race_test(a_working_directory), race_test(a_checkpoint), race_test(ranks)};
    const struct CMUnitTest criu[] = {race_test(scratch), race_test(a_copy_of_scratch)};
    const struct CMUnitTest save[] = {race_test(a_save), race_test(a_snapshot)};
    const struct CMUnitTest rest[] = {
        race_test(a_removal), race_test(a_file_of_the_users), race_test(an_output_file)};
    const char *group = argc > 1 ? argv[1] : "";
    if (geteuid() != 0) {
        printf("SKIP: only root has other users' files to lose\n");
        return SKIPPED;
    }
    if (str_eq(group, "make"))
        return cmocka_run_group_tests(make, NULL, NULL);
    if (str_eq(group, "criu"))
        return cmocka_run_group_tests(criu, NULL, NULL);
    if (str_eq(group, "save"))
        return cmocka_run_group_tests(save, NULL, NULL);
    return cmocka_run_group_tests(rest, NULL, NULL);
}
