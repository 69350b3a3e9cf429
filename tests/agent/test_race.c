/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations of a root agent on trees of a job's user, while a process of that user replaces
 * entries by symbolic links to another user's directory and hard links to another user's file, as
 * fast as it can: 10,000 tries on each path. No file of the other user may change owner, disappear,
 * change, or be read. The argument names the path, each of which is a separate test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/criu/criu_created.h"
#include "agent/criu/criu_files.h"
#include "agent/task/handover.h"
#include "agent/task/output_writer.h"
#include "agent/task/workdir.h"
#include "base/fs.h"
#include "base/fs_user.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/ckpt.h"
#include "ckpt/snapshot.h"
#include "criu_image.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRIES 10000
/* An operation on a tree that changes meanwhile may fail. Enough successes show that the operation
 * had something to do; some failures show that the racer interfered. */
#define LEAST_MADE (TRIES / 20)
#define REST_EVERY 1024 /* swaps: some twenty milliseconds; a save under load takes longer */
#define REST_MS 120
#define NOBODY 65534
#define PLAIN_FILES 4     /* to make a walk take longer */
#define SECRET_BYTES 7777 /* a size that no file of the user has */
#define OWN_TEXT "the user's own"
#define SKIPPED 77
#define PREYS_MAX 2

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

/* For tries that may fail. */
static void check_made(int n, const char *what)
{
    print_message("%d of %d %s were made\n", n, TRIES, what);
    assert_in_range(n, LEAST_MADE, TRIES - 1);
}

/* ---- the other's files ---- */

static void make_victim(struct place *p)
{
    char secret[SECRET_BYTES];
    memset(secret, 's', sizeof(secret));
    assert_int_equal(mkdir(p->victim, 0755), 0);
    put(in(p->victim, "secret"), secret, sizeof(secret), 0600);
    put(in(p->victim, "open"), secret, sizeof(secret), 0666); /* every user may hard-link it */
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

/* False if there is nothing to swap, or the user may not. */
static bool swap(
    int dir, const char *name, const char *aside, const char *victim, bool by_hard_link)
{
    if (renameat(dir, name, dir, aside) < 0)
        return false;
    int rc = by_hard_link ? linkat(AT_FDCWD, victim, dir, name, 0) : symlinkat(victim, dir, name);
    (void)rc;
    return true;
}

static void swap_back(int dir, const char *name, const char *aside)
{
    unlinkat(dir, name, 0);
    renameat(dir, aside, dir, name);
}

/* What a racer swaps below tree: a directory for a symbolic link to the other user's, and a file
 * for a link to one of the other user's. */
struct prey {
    const char *tree, *d, *f;
    bool by_hard_link; /* hard link to "open"; if false, symbolic link to "secret" */
};

static int64_t monotonic_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* For longer than an operation takes with sanitizers, so that some are made however slow they are
 * and however fast the racer is. */
static void rest(void)
{
    const int64_t until_ms = monotonic_ms() + REST_MS;
    while (monotonic_ms() < until_ms)
        continue;
}

/* In *dir, an open descriptor of the tree or of one that was in its place before: a descriptor
 * stays valid when its directory is moved. -1 = not opened yet. */
static void swap_once(const struct prey *prey, int *dir, const char *victim, unsigned turn)
{
    char file[256];
    snprintf(file, sizeof(file), "%s/%s", victim, prey->by_hard_link ? "open" : "secret");
    if (*dir < 0)
        *dir = open(prey->tree, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is_swapped = *dir >= 0 && swap(*dir, prey->d, "aside", victim, false);
    if (*dir >= 0 && swap(*dir, prey->f, "file-aside", file, prey->by_hard_link))
        swap_back(*dir, prey->f, "file-aside");
    for (volatile unsigned spin = 0; spin < turn % 64; spin++)
        continue;
    if (turn % REST_EVERY == 0)
        rest();
    if (is_swapped)
        swap_back(*dir, prey->d, "aside");
    if (!is_swapped && *dir >= 0) {
        close(*dir);
        *dir = -1;
    }
}

/* One process for all of them: with more processes, each would make fewer tries on one
 * processor. */
static void start_racer_on(struct place *p, const struct prey *preys, unsigned n)
{
    assert_true(n <= PREYS_MAX);
    p->racer = fork();
    if (p->racer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_user();
        int dirs[PREYS_MAX] = {-1, -1};
        for (unsigned i = 0;; i++)
            swap_once(&preys[i % n], &dirs[i % n], p->victim, i / n);
    }
    assert_true(p->racer > 0);
}

static void start_racer(struct place *p, const char *tree)
{
    start_racer_on(p, &(struct prey){tree, "d", "f", true}, 1);
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

/* Includes the entries that the racer swaps. */
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
    assert_int_equal(handover_tree(&user, tree, &e), 0);
}

/* A racer can only slow it down. */
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

/* All of it is in the cache, so that nothing is fetched. */
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
        if (workdir_fetch(&s, p->tree, NULL, &e) != 0)
            fail_msg("%s", e.text);
        if (handover_tree(&user, p->tree, &e) != 0)
            fail_msg("%s", e.text);
        check_victim(p);
    }
}

/* Files without content, so that a restore takes no longer than building the tree. */
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

static void a_checkpoint(void **state)
{
    struct place *p = *state;
    struct ckpt_restored restored;
    struct err e;
    save_own(p);
    start_racer(p, p->tree);
    for (int i = 0; i < TRIES; i++) {
        if (ckpt_restore(&p->job, 2, p->tree, NULL, &restored, &e) != 0)
            fail_msg("%s", e.text);
        assert_int_equal(restored.damaged, 0);
        if (handover_checkpoint(&user, p->tree, &e) != 0)
            fail_msg("%s", e.text);
        check_victim(p);
    }
}

/* ---- the ranks of a gang ---- */

#define RANKS 2

static void save_rank(const struct place *p, int rank)
{
    const struct ckpt_save_with with = {.gang = {rank, RANKS}};
    struct ckpt_stats stats;
    struct err e;
    char *tree = mem_printf("%s/saved-%d", p->dir, rank);
    assert_int_equal(mkdir(tree, 0700), 0);
    fill_with(tree, "");
    if (ckpt_save_with(&p->job, (struct ckpt_id){1, 1}, tree, 1, NULL, &with, &stats, &e) != 0)
        fail_msg("%s", e.text);
    free(tree);
}

/* As agent/task/task_work.c: with an earlier attempt's directory as nearby. */
static void restore_rank(const struct place *p, struct ckpt_gang gang, const char *tree,
    const char *ranks, int want_ranks)
{
    const struct ckpt_restore_with with = {.nearby = {tree}, .gang = gang, .ranks_dir = ranks};
    struct ckpt_restored restored;
    struct err e;
    if (ckpt_restore_with(&p->job, 2, tree, &with, NULL, &restored, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(restored.damaged, 0);
    assert_int_equal(restored.id.attempt, 1);
    assert_int_equal(restored.ranks, want_ranks);
}

/* Each rank as a process, because they wait for each other. */
static void all_ranks(const struct place *p, void (*run)(const struct place *p, int rank))
{
    pid_t pids[RANKS];
    int status;
    for (int k = 0; k < RANKS; k++) {
        pids[k] = fork();
        assert_true(pids[k] >= 0);
        if (pids[k] == 0) {
            run(p, k);
            _exit(0);
        }
    }
    for (int k = 0; k < RANKS; k++) {
        assert_int_equal(waitpid(pids[k], &status, 0), pids[k]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void first_restore(const struct place *p, int rank)
{
    char *tree = mem_printf("%s/node-%d", p->task, rank);
    restore_rank(p, (struct ckpt_gang){rank, RANKS}, tree, NULL, RANKS);
    free(tree);
}

/* As many ranks as have saved. Each would be on its own node; here both are below one directory.
 * They have agreed once before, so that none waits for the other again. */
static void ranks_on_their_nodes(void **state)
{
    struct place *p = *state;
    struct err e;
    char *trees[RANKS];
    all_ranks(p, save_rank);
    all_ranks(p, first_restore);
    struct prey preys[RANKS];
    for (int k = 0; k < RANKS; k++) {
        trees[k] = mem_printf("%s/node-%d", p->task, k);
        preys[k] = (struct prey){trees[k], "d", "f", true};
    }
    start_racer_on(p, preys, RANKS);
    for (int i = 0; i < TRIES; i++) {
        int k = i % RANKS;
        char *ranks = mem_printf("%s/ranks-%d", p->task, k);
        restore_rank(p, (struct ckpt_gang){k, RANKS}, trees[k], ranks, RANKS);
        assert_false(fs_has_name(ranks));
        if (handover_checkpoint(&user, trees[k], &e) != 0)
            fail_msg("%s", e.text);
        check_victim(p);
        free(ranks);
    }
    for (int k = 0; k < RANKS; k++)
        free(trees[k]);
}

/* Fewer ranks than have saved: each saved part is a tree next to the checkpoint. The racer works in
 * a rank's directory. */
static void ranks_that_are_fewer(void **state)
{
    struct place *p = *state;
    char *ranks = mem_printf("%s/ranks", p->task);
    struct err e;
    all_ranks(p, save_rank);
    const struct prey preys[] = {
        {p->tree, "d", "f", true}, {ranks, "rank-0000", "rank-0001/f", true}};
    start_racer_on(p, preys, 2);
    for (int i = 0; i < TRIES; i++) {
        restore_rank(p, (struct ckpt_gang){0, 1}, p->tree, ranks, RANKS);
        if (handover_checkpoint(&user, p->tree, &e) != 0 || handover_tree(&user, ranks, &e) != 0)
            fail_msg("%s", e.text);
        check_victim(p);
    }
    free(ranks);
}

/* ---- CRIU ---- */

/* The program chose the modes of a restored scratch directory, which may be world-writable. */
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
        if (handover_scratch(&user, p->task, checkpoint, &e) != 0 ||
            handover_tree(&user, made, &e) != 0)
            fail_msg("%s", e.text);
        check_victim(p);
    }
    free(made);
    free(saved);
    free(checkpoint);
}

/* Recreates a removed open file like criu 3.17.1: all by name, as root. */
static void make_again(const char *path)
{
    char ghost[256];
    snprintf(ghost, sizeof(ghost), "%s.cr.1.ghost", path);
    int fd = open(ghost, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    close(fd);
    bool is_made = chown(ghost, NOBODY, NOBODY) == 0 && chmod(ghost, 0644) == 0 &&
                   link(ghost, path) == 0 && unlink(path) == 0;
    is_made = unlink(ghost) == 0 && is_made;
    (void)is_made; /* the racer may have made any of it fail */
}

static void a_removed_file(void **state)
{
    struct place *p = *state;
    char *gone = mem_printf("%s/gone", p->tree), *images = mem_printf("%s/images", p->dir);
    const struct prey prey = {p->tree, "d", "gone.cr.1.ghost", false};
    struct err e;
    int allowed = 0;
    make_user_tree(p->tree);
    assert_int_equal(mkdir(images, 0700), 0);
    assert_int_equal(image_write_ghost(images, gone, &e), 0);
    start_racer_on(p, &prey, 1);
    for (int i = 0; i < TRIES; i++) {
        if (criu_created_check(images, NULL, &e) == 0) {
            make_again(gone);
            allowed++;
        }
        check_victim(p);
    }
    assert_int_equal(allowed, 0);
    free(images);
    free(gone);
}

/* No process of the user can be in it until it is given. */
static void a_removed_file_in_scratch(void **state)
{
    struct place *p = *state;
    char *checkpoint = mem_printf("%s/checkpoint", p->task),
         *saved = mem_printf("%s/scratch", checkpoint);
    char *made = mem_printf("%s/scratch", p->task), *gone = mem_printf("%s/gone", made);
    const struct prey prey = {made, "d", "gone.cr.1.ghost", false};
    struct err e;
    start_racer_on(p, &prey, 1);
    for (int i = 0; i < TRIES; i++) {
        assert_int_equal(fs_mkdirs(saved, 0700, &e), 0);
        fill(saved);
        if (handover_scratch(&user, p->task, checkpoint, &e) != 0)
            fail_msg("%s", e.text);
        make_again(gone);
        check_victim(p);
        if (handover_tree(&user, made, &e) != 0)
            fail_msg("%s", e.text);
    }
    free(gone);
    free(made);
    free(saved);
    free(checkpoint);
}

/* If d was copied while it was a link, nothing is below it. */
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
             0; /* may fail because of changes meanwhile */
        check_copy(copy);
        check_victim(p);
        remove_it(to);
    }
    check_made(n, "copies");
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
        if (i % 100 == 0) /* otherwise each would read all earlier ones */
            assert_int_equal(fs_remove_tree(in(p->store, "lab"), &e), 0);
        int rc = ckpt_save(&p->job, (struct ckpt_id){1, i + 1}, p->tree, -1, NULL, &stats, &e);
        if (rc == 0 && stats.bytes > TREE_BYTES)
            fail_msg("what was saved has another's file in it: %lld bytes", (long long)stats.bytes);
        n += rc == 0;
        check_victim(p);
    }
    check_made(n, "saves");
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
    check_made(n, "snapshots");
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
        n += handover_file(&user, p->control, "f", OWN_TEXT, strlen(OWN_TEXT), &e) == 0;
        check_victim(p);
    }
    print_message("%d of %d files were written\n", n, TRIES);
    assert_true(n > 0);
}

/* ---- -o FILE and -e FILE ---- */

/* The steps of the output writer before it copies. Returns 1 if a file could not be opened. */
static int open_output(void *ctx)
{
    const struct output_writer *s = ctx;
    int fds[OUTPUT_WRITER_SOURCES][OUTPUT_WRITER_TARGETS], copy;
    bool is_open = output_writer_open_files(s, false, fds, &copy) == 0;
    for (int i = 0; is_open && i < OUTPUT_WRITER_SOURCES; i++)
        if (write(fds[i][0], OWN_TEXT, strlen(OWN_TEXT)) < 0)
            return 2;
    return is_open ? 0 : 1;
}

/* In a process with its own user, directory and descriptors, but shared memory: copying the memory,
 * with a sanitizer's, would take most of the time. */
static int status_of_output(struct output_writer *s)
{
    static char stack[256 << 10] __attribute__((aligned(64)));
    int status;
    pid_t pid = clone(open_output, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, s);
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    return WEXITSTATUS(status);
}

/* One file is below a directory that is the user's or a link to the other user's, one is a file or
 * a link to the other user's file. They alternate as the first one opened, because the second is
 * not opened if the first fails. The working directory may be the other user's too. */
static void output_files(void **state)
{
    static const char *const names[2][2] = {{"d/sub/secret", "f"}, {"f", "d/sub/secret"}};
    static const char *const names_in_d[2] = {"sub/secret", "secret"};
    struct place *p = *state;
    char *d = mem_printf("%s/d", p->tree);
    int n = 0, from = open("/dev/null", O_RDONLY | O_CLOEXEC);
    make_user_tree(p->tree);
    start_racer_on(p, &(struct prey){p->tree, "d", "f", false}, 1);
    for (int i = 0; i < TRIES; i++) {
        bool in_d = i % 3 == 2;
        const char *const *files = in_d ? names_in_d : names[i % 2];
        struct output_writer s = {.user = &user,
            .cwd = in_d ? d : p->tree,
            .open_wait_ms = 30000,
            .copies = {{from, files[0], true, -1}, {from, files[1], true, -1}}};
        n += status_of_output(&s) == 0;
        check_victim(p);
    }
    print_message("%d of %d times both files were opened\n", n, TRIES);
    assert_true(n > 0 && n < TRIES);
    close(from);
    free(d);
}

#define race_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {race_test(a_working_directory), race_test(a_checkpoint),
        race_test(ranks_on_their_nodes), race_test(ranks_that_are_fewer), race_test(scratch),
        race_test(a_removed_file), race_test(a_removed_file_in_scratch),
        race_test(a_copy_of_scratch), race_test(a_save), race_test(a_snapshot),
        race_test(a_removal), race_test(a_file_of_the_users), race_test(output_files)};
    const size_t n = sizeof(tests) / sizeof(*tests);
    if (geteuid() != 0) {
        printf("SKIP: only root has other users' files to lose\n");
        return SKIPPED;
    }
    for (size_t i = 0; i < n; i++) {
        const struct CMUnitTest one[] = {tests[i]};
        if (argc == 2 && str_eq(argv[1], tests[i].name))
            return cmocka_run_group_tests(one, NULL, NULL);
    }
    fprintf(stderr, "usage: %s PATH; one of\n", argv[0]);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "  %s\n", tests[i].name);
    return 2;
}
