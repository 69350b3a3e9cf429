/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of ended jobs goes to the store and comes back unchanged; whatever is interrupted or
 * damaged, it is complete in one of the two places.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/db.h"
#include "scheduler/logs/archive.h"
#include "scheduler/logs/archive_index.h"
#include "scheduler/logs/old_output.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW_MS (30000 * DAY_MS)
#define LARGE (9 << 20)

static struct err e;

struct rig {
    char top[64], *logs, *dir; /* dir: of job 1 */
    struct store *store;
    struct ckpt_crypt crypt;
    struct archive a;
};

static int setup(void **state)
{
    struct rig *r = mem_alloc(sizeof(*r));
    STR_COPY(r->top, "/tmp/belay-archive-XXXXXX");
    assert_non_null(mkdtemp(r->top));
    r->logs = mem_printf("%s/logs", r->top);
    r->dir = mem_printf("%s/0/1", r->logs);
    assert_int_equal(fs_mkdirs(r->dir, 0700, &e), 0);
    char *url = mem_printf("file://%s/store", r->top);
    assert_int_equal(store_open(url, NULL, &r->store, &e), 0);
    free(url);
    r->a = (struct archive){
        .store = r->store, .cluster = "lab", .job = 1, .crypt = &r->crypt, .dir = r->dir};
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct rig *r = *state;
    store_close(r->store);
    int rc = fs_remove_tree(r->top, &e);
    free(r->logs);
    free(r->dir);
    free(r);
    return rc;
}

static void write_file(const char *dir, const char *name, const void *p, size_t n)
{
    char *path = mem_printf("%s/%s", dir, name);
    assert_int_equal(fs_mkdirs(dir, 0700, &e), 0);
    assert_int_equal(fs_write_atomic(path, p, n, 0600, &e), 0);
    free(path);
}

static void assert_file(const char *dir, const char *name, const void *p, size_t n)
{
    struct buf got = {0};
    char *path = mem_printf("%s/%s", dir, name);
    if (fs_read(path, 64 << 20, &got, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(got.len, n);
    assert_memory_equal(got.data, p, n);
    buf_deinit(&got);
    free(path);
}

static bool exists(const char *dir, const char *name)
{
    char *path = mem_printf("%s/%s", dir, name);
    bool is = fs_exists(path);
    free(path);
    return is;
}

/* Lines, then zeros, then lines: more than two chunks. */
static char *make_large(void)
{
    char *p = mem_alloc(LARGE);
    for (size_t i = 0; i < LARGE; i++)
        p[i] = i >= (4 << 20) && i < (8 << 20) + 100 ? '\0' : "step 12 loss 0.25\n"[i % 18];
    return p;
}

static void put(struct rig *r)
{
    bool moved = false;
    if (archive_put(&r->a, &moved, &e) != 0)
        fail_msg("%s", e.text);
}

static void goes_and_comes_back(struct rig *r)
{
    struct stat before, after;
    char *large = make_large(), *path = mem_printf("%s/1.log", r->dir);
    write_file(r->dir, "1.log", large, LARGE);
    write_file(r->dir, "2.3.log", "short\n", 6);
    write_file(r->dir, "2.3.log.at", "0123456789abcdef", 16);
    write_file(r->dir, "2.3.log.cut", "", 0);
    assert_int_equal(stat(path, &before), 0);
    put(r);
    assert_true(archive_has(r->dir));
    assert_false(exists(r->dir, "1.log") || exists(r->dir, "2.3.log.cut"));
    put(r); /* repeated: nothing changes */
    assert_int_equal(archive_get(&r->a, 0, &e), 0);
    assert_false(archive_has(r->dir));
    assert_file(r->dir, "1.log", large, LARGE);
    assert_file(r->dir, "2.3.log", "short\n", 6);
    assert_file(r->dir, "2.3.log.at", "0123456789abcdef", 16);
    assert_file(r->dir, "2.3.log.cut", "", 0);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
    assert_true(after.st_blocks * 512 < LARGE - (3 << 20)); /* the zeros are a hole */
    put(r);                                                 /* and again */
    assert_int_equal(archive_get(&r->a, 0, &e), 0);
    assert_file(r->dir, "1.log", large, LARGE);
    free(large);
    free(path);
}

static int add_bytes(void *ctx, const char *name, int64_t size_bytes)
{
    (void)name;
    *(int64_t *)ctx += size_bytes;
    return 0;
}

static int64_t stored(struct rig *r)
{
    int64_t bytes = 0;
    assert_int_equal(r->store->ops->list(r->store, "lab/output/1/", add_bytes, &bytes, &e), 0);
    return bytes;
}

static void output_goes_to_the_store_compressed_and_comes_back(void **state)
{
    struct rig *r = *state;
    goes_and_comes_back(r);
    assert_true(stored(r) > 0 && stored(r) < LARGE / 100);
    assert_int_equal(archive_remove(&r->a, &e), 0);
    assert_int_equal(stored(r), 0);
}

static int has_text(void *ctx, const char *name, int64_t size_bytes)
{
    struct rig *r = ctx;
    struct buf object = {0};
    assert_int_equal(r->store->ops->read(r->store, name, (size_t)size_bytes, &object, &e), 0);
    assert_null(memmem(object.data, object.len, "short", 5));
    buf_deinit(&object);
    return 0;
}

static void encrypted_output_is_not_in_the_store_in_clear(void **state)
{
    struct rig *r = *state;
    unsigned char key[CRYPT_KEY_BYTES] = {7};
    crypt_add_bytes(&r->crypt, key);
    r->crypt.encrypts = true;
    goes_and_comes_back(r);
    put(r);
    assert_int_equal(r->store->ops->list(r->store, "lab/output/1/", has_text, r, &e), 0);
    crypt_wipe(&r->crypt); /* the key file was lost */
    assert_int_equal(archive_get(&r->a, 0, &e), ERR_UNSUPPORTED);
    assert_true(archive_has(r->dir));
}

static void damage(struct rig *r, bool removes)
{
    char *command = removes ? mem_printf("find %s/store -path '*output*' -type f -delete", r->top)
                            : mem_printf("find %s/store -path '*output*' -type f "
                                         "-exec sh -c 'printf X >>\"$1\"' - {} ';'",
                                  r->top);
    assert_int_equal(system(command), 0);
    free(command);
}

static void damaged_output_is_refused_and_stays_known(void **state)
{
    struct rig *r = *state;
    write_file(r->dir, "1.log", "short\n", 6);
    put(r);
    damage(r, false);
    assert_int_not_equal(archive_get(&r->a, 0, &e), 0);
    assert_true(archive_has(r->dir));
    assert_false(exists(r->dir, "1.log"));
    damage(r, true);
    assert_int_equal(archive_get(&r->a, 0, &e), ERR_NOT_FOUND);
    assert_true(archive_has(r->dir));
}

static void a_damaged_index_is_refused(void **state)
{
    struct rig *r = *state;
    struct buf index = {0};
    write_file(r->dir, "1.log", "short\n", 6);
    put(r);
    char *path = mem_printf("%s/" ARCHIVE_INDEX, r->dir);
    assert_int_equal(fs_read(path, 4096, &index, &e), 0);
    for (size_t n = 0; n < index.len; n++) { /* its end is missing */
        assert_int_equal(fs_write_atomic(path, index.data, n, 0600, &e), 0);
        if (archive_get(&r->a, 0, &e) == 0)
            fail_msg("%zu bytes of the index were taken", n);
        assert_true(archive_has(r->dir));
    }
    static const char *const bad[] = {"belay-output 2 -\nend\n",
        "belay-output 1 -\nfile x 1 1\nend\n", "belay-output 1 -\nfile ../1.log 0 0\nend\n",
        "belay-output 1 -\nfile 1.log -1 0\nend\n",
        "belay-output 1 -\nfile 1.log 5 0\nhole 4\nend\n",
        "belay-output 1 -\nfile 1.log 5 0\nhole 99999999999\nend\n",
        "belay-output 1 -\nfile 1.log 5 0\nchunk ab 5 5\nend\n",
        "belay-output 1 0123456789abcdef\nend\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(fs_write_atomic(path, bad[i], strlen(bad[i]), 0600, &e), 0);
        if (archive_get(&r->a, 0, &e) == 0)
            fail_msg("taken: %s", bad[i]);
        assert_true(archive_has(r->dir));
    }
    buf_deinit(&index);
    free(path);
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BEGIN "belay-output 1 -\n"
#define FILE_OF(n) BEGIN "file 1.log " n " 0\n"

static void each_malformed_line_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "line 1: the index ends here"},
        {"\n", "line 1: it has no such form"},
        {"end\n", "line 1: the first line of an index"},
        {"belay-output 1 \nend\n", "line 1: it has no such form"},
        {"belay-output 1 0123456789ABCDEF\nend\n", "line 1: it has no such form"},
        {"belay-output 1 - -\nend\n", "line 1: it has no such form"},
        {BEGIN, "line 2: the index ends here"},
        {BEGIN "end", "line 2: the index ends here"},
        {BEGIN "end\n\n", "line 3: there is more behind the end"},
        {BEGIN BEGIN "end\n", "line 2: the first line of an index, and no other"},
        {BEGIN "hole 1\nend\n", "line 2: it is longer than what is left"},
        {FILE_OF("01") "hole 1\nend\n", "line 2: it has no such form"},
        {FILE_OF("+1") "hole 1\nend\n", "line 2: it has no such form"},
        {FILE_OF("1125899906842625") "end\n", "line 2: it has no such form"},
        {FILE_OF("99999999999999999999") "end\n", "line 2: it has no such form"},
        {FILE_OF("5") "hole 0\nhole 5\nend\n", "line 3: it has no such form"},
        {FILE_OF("5") "hole -5\nend\n", "line 3: it has no such form"},
        {FILE_OF("4194305") "hole 4194305\nend\n", "line 3: it has no such form"},
        {FILE_OF("5") "hole 5\nhole 1\nend\n", "line 4: it is longer than what is left"},
        {FILE_OF("5") "hole 4\nend\n", "line 4: the file before it is not complete"},
        {FILE_OF("5") "file 2.log 0 0\nend\n", "line 3: the file before it is not complete"},
        {FILE_OF("5") "chunk " HASH " 5 6\nend\n", "line 3: it has no such form"},
        {FILE_OF("5") "chunk " HASH "0 5 5\nend\n", "line 3: it has no such form"},
        {FILE_OF("0") "file 1.log 0 0\nend\n", "line 3: the file is there twice"},
        {BEGIN "file .log 0 0\nend\n", "line 2: it has no such form"},
        {BEGIN "file 1.log.part 0 0\nend\n", "line 2: it has no such form"},
        {BEGIN "file 1/2.log 0 0\nend\n", "line 2: it has no such form"},
        {BEGIN "file 1.log 0 -1\nend\n", "line 2: it has no such form"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int rc = archive_index_read(bad[i].text, strlen(bad[i].text), NULL, NULL, &e);
        if (rc != ERR_CORRUPT || !str_starts(e.text, bad[i].why))
            fail_msg("%s: %s", bad[i].text, rc ? e.text : "taken");
    }
    static const char nul[] = BEGIN "e\0nd\nend\n";
    assert_int_equal(archive_index_read(nul, sizeof(nul) - 1, NULL, NULL, &e), ERR_CORRUPT);
}

static void an_index_has_a_limit_of_files_and_of_bytes(void **state)
{
    (void)state;
    struct buf index = {0};
    buf_adds(&index, BEGIN);
    for (int i = 0; i <= ARCHIVE_FILES_MAX; i++)
        buf_printf(&index, "file %d.log 0 0\n", i);
    buf_adds(&index, "end\n");
    assert_int_equal(archive_index_read(index.data, index.len, NULL, NULL, &e), ERR_CORRUPT);
    assert_string_equal(e.text, "line 100002: there are too many files");
    assert_int_equal(
        archive_index_read(index.data, ARCHIVE_INDEX_BYTES_MAX + 1, NULL, NULL, &e), ERR_CORRUPT);
    buf_deinit(&index);
}

/* Nothing was fetched, and no file has its name yet. */
static void a_damaged_index_changes_nothing(void **state)
{
    struct rig *r = *state;
    struct buf index = {0};
    write_file(r->dir, "1.log", "short\n", 6);
    write_file(r->dir, "2.log", "other\n", 6);
    put(r);
    char *path = mem_printf("%s/" ARCHIVE_INDEX, r->dir);
    assert_int_equal(fs_read(path, 4096, &index, &e), 0);
    buf_truncate(&index, index.len - strlen("end\n"));
    buf_adds(&index, "file 1.log 0 0\nend\n");
    assert_int_equal(fs_write_atomic(path, index.data, index.len, 0600, &e), 0);
    assert_int_equal(archive_get(&r->a, 0, &e), ERR_CORRUPT);
    assert_true(strstr(e.text, "archived is damaged") && strstr(e.text, "twice"));
    assert_false(exists(r->dir, "1.log") || exists(r->dir, "2.log"));
    buf_deinit(&index);
    free(path);
}

static void what_has_no_space_stays_in_the_store(void **state)
{
    struct rig *r = *state;
    write_file(r->dir, "1.log", "short\n", 6);
    put(r);
    assert_int_equal(archive_get(&r->a, INT64_MAX / 2, &e), ERR_NO_SPACE);
    assert_true(archive_has(r->dir));
    assert_int_equal(archive_get(&r->a, 0, &e), 0);
    assert_file(r->dir, "1.log", "short\n", 6);
}

/* The index was written, and then belayd was killed before the files were removed. */
static void an_interrupted_move_is_finished(void **state)
{
    struct rig *r = *state;
    write_file(r->dir, "1.log", "short\n", 6);
    put(r);
    write_file(r->dir, "1.log", "short\n", 6);
    put(r);
    assert_false(exists(r->dir, "1.log"));
    assert_int_equal(archive_get(&r->a, 0, &e), 0);
    assert_file(r->dir, "1.log", "short\n", 6);
}

static void a_cancelled_move_leaves_the_output_here(void **state)
{
    struct rig *r = *state;
    atomic_int cancel = 1;
    bool moved = false;
    r->a.cancel = &cancel;
    write_file(r->dir, "1.log", "short\n", 6);
    assert_int_equal(archive_put(&r->a, &moved, &e), ERR_CANCELLED);
    assert_false(moved || archive_has(r->dir));
    assert_file(r->dir, "1.log", "short\n", 6);
}

/* ---- which output ---- */

static void add_job(struct db *d, int64_t id, enum job_state state, int64_t days_ago)
{
    struct job_row j = {.id = id,
        .state = state,
        .submitted_at = {NOW_MS - 500 * DAY_MS},
        .ended_at = state == JOB_ENDED ? (struct wall){NOW_MS - days_ago * DAY_MS} : WALL_NONE};
    struct db_batch b = {0};
    b.changes.jobs = mem_dup(&j, sizeof(j));
    b.changes.n_jobs = 1;
    b.changes.next_job = id + 1;
    assert_int_equal(db_commit(d, &b, &e), 0);
    db_batch_deinit(&b);
}

static char *dir_of(struct rig *r, int64_t job)
{
    return mem_printf("%s/%lld/%lld", r->logs, (long long)(job / 1000), (long long)job);
}

/* "here", "away" or "gone" */
static const char *where(struct rig *r, int64_t job)
{
    char *dir = dir_of(r, job);
    const char *is = exists(dir, "1.log") ? "here" : archive_has(dir) ? "away" : "gone";
    free(dir);
    return is;
}

static void output_is_moved_and_removed_by_the_age_of_its_job(void **state)
{
    struct rig *r = *state;
    struct db *d;
    static const int64_t ids[] = {1, 2, 3, 4, 2005, 9000};
    char *path = mem_printf("%s/belay.db", r->top);
    assert_int_equal(db_open(path, &d, &e), 0);
    add_job(d, 1, JOB_ENDED, 450); /* is deleted */
    struct db_batch prune = {
        .prune = {.is_due = true, .now = {NOW_MS}, .age_ms = {[PRUNE_JOBS] = 400 * DAY_MS}}};
    assert_int_equal(db_commit(d, &prune, &e), 0);
    add_job(d, 2, JOB_ENDED, 100);
    add_job(d, 3, JOB_ENDED, 40);
    add_job(d, 4, JOB_ENDED, 10);
    add_job(d, 2005, JOB_RUNNING, 0);
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) { /* 9000 is unknown */
        char *dir = dir_of(r, ids[i]);
        write_file(dir, "1.log", "text\n", 5);
        free(dir);
    }
    struct old_output o = {.dir = r->logs,
        .now = {NOW_MS},
        .keep_ms = 90 * DAY_MS,
        .disk_ms = 30 * DAY_MS,
        .store = r->store,
        .cluster = "lab"};
    assert_int_equal(db_reader_open(path, &o.reader, &e), 0);
    assert_int_equal(old_output_look(&o, &e), 0);
    assert_int_equal(o.removed, 2);
    assert_int_equal(o.moved, 1);
    static const char *const want[] = {"gone", "gone", "away", "here", "here", "here"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        assert_string_equal(where(r, ids[i]), want[i]);
    o.now.ms += 60 * DAY_MS; /* without a store, what is in it stays known */
    o.store = NULL;
    assert_int_equal(old_output_look(&o, &e), 0);
    assert_string_equal(where(r, 3), "away");
    o.store = r->store;
    assert_int_equal(old_output_look(&o, &e), 0);
    assert_string_equal(where(r, 3), "gone");
    assert_string_equal(where(r, 4), "away");
    db_reader_close(o.reader);
    db_close(d);
    free(path);
}

static void output_that_was_just_brought_back_stays_a_day(void **state)
{
    struct rig *r = *state;
    struct db *d;
    char *path = mem_printf("%s/belay.db", r->top);
    struct stat st;
    assert_int_equal(db_open(path, &d, &e), 0);
    add_job(d, 1, JOB_ENDED, 200);
    write_file(r->dir, "1.log", "text\n", 5);
    assert_int_equal(stat(r->dir, &st), 0);
    struct old_output o = {.dir = r->logs,
        .now = {(int64_t)st.st_mtim.tv_sec * 1000 + 3600000},
        .disk_ms = DAY_MS,
        .store = r->store,
        .cluster = "lab"};
    assert_int_equal(db_reader_open(path, &o.reader, &e), 0);
    add_job(d, 1, JOB_ENDED, (NOW_MS - o.now.ms) / DAY_MS + 200);
    assert_int_equal(old_output_look(&o, &e), 0);
    assert_string_equal(where(r, 1), "here");
    o.now.ms += DAY_MS;
    assert_int_equal(old_output_look(&o, &e), 0);
    assert_string_equal(where(r, 1), "away");
    db_reader_close(o.reader);
    db_close(d);
    free(path);
}

/* 10 blocks of text that does not compress. */
static void write_noise(const char *dir, int64_t job)
{
    unsigned char p[40960];
    uint32_t x = (uint32_t)job * 2654435761U + 1;
    for (size_t i = 0; i < sizeof(p); i++) {
        x = x * 1664525U + 1013904223U;
        p[i] = (unsigned char)(x >> 24);
    }
    write_file(dir, "1.log", p, sizeof(p));
}

static void look(struct old_output *o)
{
    if (old_output_look(o, &e) != 0)
        fail_msg("%s", e.text);
}

/* Jobs 1 to 6 ended in the reverse order of their numbers; 7 runs, and 8 is not known. */
static void the_oldest_output_goes_beyond_a_size_and_never_that_of_a_live_job(void **state)
{
    struct rig *r = *state;
    struct db *d;
    char *path = mem_printf("%s/belay.db", r->top);
    assert_int_equal(db_open(path, &d, &e), 0);
    for (int64_t job = 1; job <= 8; job++) {
        char *dir = dir_of(r, job);
        if (job <= 7)
            add_job(d, job, job == 7 ? JOB_RUNNING : JOB_ENDED, job);
        write_noise(dir, job);
        free(dir);
    }
    struct old_output o = {.dir = r->logs, .now = {NOW_MS}, .store = r->store, .cluster = "lab"};
    assert_int_equal(db_reader_open(path, &o.reader, &e), 0);
    look(&o);
    assert_int_equal(o.moved + o.removed, 0);
    assert_int_equal(o.use.disk_bytes, 8 * 40960);
    assert_int_equal(o.use.live_bytes, 40960);
    assert_int_equal(o.use.next_on_disk, 6);
    assert_int_equal(o.use.next_in_store, 0);
    o.disk_bytes = 6 * 40960; /* two go */
    o.now.ms = INT64_MAX / 4; /* nothing was touched lately */
    look(&o);
    static const char *const two[] = {"here", "here", "here", "here", "away", "away"};
    for (int64_t job = 1; job <= 8; job++)
        assert_string_equal(where(r, job), job <= 6 ? two[job - 1] : "here");
    assert_int_equal(o.use.disk_bytes, 6 * 40960);
    assert_int_equal(o.use.store_jobs, 2);
    assert_true(o.use.store_bytes > 2 * 40000 && o.use.store_bytes < 2 * 42000);
    assert_int_equal(o.use.next_on_disk, 4);
    assert_int_equal(o.use.next_in_store, 6);
    o.store_bytes = 41999; /* one of them is removed */
    look(&o);
    assert_string_equal(where(r, 6), "gone");
    assert_string_equal(where(r, 5), "away");
    o.disk_bytes = o.store_bytes = 1; /* all go but the live one and the unknown one */
    look(&o);
    for (int64_t job = 1; job <= 8; job++)
        assert_string_equal(where(r, job), job <= 6 ? "gone" : "here");
    assert_int_equal(o.use.disk_bytes, 2 * 40960);
    assert_int_equal(o.use.store_bytes, 0);
    assert_int_equal(o.use.next_on_disk, 0);
    db_reader_close(o.reader);
    db_close(d);
    free(path);
}

static void without_a_store_a_size_removes_nothing(void **state)
{
    struct rig *r = *state;
    struct db *d;
    char *path = mem_printf("%s/belay.db", r->top);
    assert_int_equal(db_open(path, &d, &e), 0);
    add_job(d, 1, JOB_ENDED, 10);
    write_noise(r->dir, 1);
    struct old_output o = {.dir = r->logs,
        .now = {INT64_MAX / 4},
        .cluster = "lab",
        .disk_bytes = 1,
        .store_bytes = 1};
    assert_int_equal(db_reader_open(path, &o.reader, &e), 0);
    look(&o);
    assert_string_equal(where(r, 1), "here");
    db_reader_close(o.reader);
    db_close(d);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        TEST(output_goes_to_the_store_compressed_and_comes_back),
        TEST(encrypted_output_is_not_in_the_store_in_clear),
        TEST(damaged_output_is_refused_and_stays_known),
        TEST(a_damaged_index_is_refused),
        TEST(each_malformed_line_is_named),
        TEST(an_index_has_a_limit_of_files_and_of_bytes),
        TEST(a_damaged_index_changes_nothing),
        TEST(what_has_no_space_stays_in_the_store),
        TEST(an_interrupted_move_is_finished),
        TEST(a_cancelled_move_leaves_the_output_here),
        TEST(output_is_moved_and_removed_by_the_age_of_its_job),
        TEST(output_that_was_just_brought_back_stays_a_day),
        TEST(the_oldest_output_goes_beyond_a_size_and_never_that_of_a_live_job),
        TEST(without_a_store_a_size_removes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
