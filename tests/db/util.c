/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/db/util.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/attributes.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int util_setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = mem_printf("%s/belay-db-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return -1;
    *state = mem_printf("%s/belay.db", dir);
    free(dir);
    return 0;
}

int util_teardown(void **state)
{
    char *path = *state;
    struct err e;
    *strrchr(path, '/') = '\0';
    int rc = fs_remove_tree(path, &e);
    free(path);
    return rc;
}

static void check(int rc, const struct err *e)
{
    if (rc != 0)
        print_error("%s\n", e->text);
    assert_int_equal(rc, 0);
}

struct db *util_open(const char *path)
{
    struct db *d = NULL;
    struct err e;
    check(db_open(path, &d, &e), &e);
    return d;
}

struct db_reader *util_reader(const char *path)
{
    struct db_reader *r = NULL;
    struct err e;
    check(db_reader_open(path, &r, &e), &e);
    return r;
}

void util_exec(const char *path, const char *text)
{
    sqlite3 *sql = NULL;
    struct err e;
    assert_int_equal(sqlite3_open(path, &sql), SQLITE_OK);
    check(sql_exec(sql, text, &e), &e);
    sqlite3_close(sql);
}

#define FILE_MAX (256u << 20)

void util_copy_file(const char *path, const char *to, const char *suffix)
{
    char *a = mem_printf("%s%s", path, suffix), *b = mem_printf("%s%s", to, suffix);
    struct buf bytes = {0};
    struct err e;
    unlink(b);
    if (fs_exists(a)) {
        check(fs_read(a, FILE_MAX, &bytes, &e), &e);
        check(fs_write_atomic(b, bytes.data, bytes.len, 0600, &e), &e);
    }
    buf_deinit(&bytes);
    free(a);
    free(b);
}

void util_commit(struct db *d, struct db_batch *b)
{
    struct err e;
    check(db_commit(d, b, &e), &e);
    db_batch_deinit(b);
}

static void put_i64(char *p, int64_t v)
{
    memcpy(p, &v, sizeof(v));
}

static void put_i32(char *p, int32_t v)
{
    memcpy(p, &v, sizeof(v));
}

static int32_t n_names(const struct column *c)
{
    const char *const *names = c->sm ? c->sm->names : c->names;
    int32_t n = 0;
    while (names[n])
        n++;
    return n;
}

static int64_t number(enum fill how, struct prng *p, int64_t low, int64_t high)
{
    switch (how) {
    case FILL_LOW:
        return low;
    case FILL_HIGH:
        return high;
    case FILL_RANDOM:
        return prng_range(p, low, high);
    default:
        return low <= 0 ? 0 : low;
    }
}

/* Quotes, a backslash, a line feed and two-byte letters: breaks statements built from text. */
static const char awkward[] = "'\"; \\\n\tDROP TABLE jobs;-- %s ?1 \xc3\xa9\xc3\xbc";

static void fill_text(char *p, size_t size, enum fill how, struct prng *prng)
{
    size_t n = (size_t)number(how, prng, 0, (int64_t)size - 1);
    for (size_t i = 0; i < n; i++)
        p[i] = awkward[i % (sizeof(awkward) - 1)];
}

static void fill_column(const struct column *c, char *p, enum fill how, struct prng *prng);

static void fill_heap(char *p, enum fill how, struct prng *prng)
{
    if (how == FILL_ZERO)
        return;
    size_t size = (size_t)number(how, prng, 1, 1 << 20);
    char *text = mem_alloc(size);
    fill_text(text, size, FILL_HIGH, prng);
    memcpy(p, &text, sizeof(text));
}

/* Members without a column, each with a value of its type; texts are ASCII. */
static void fill_spec(char *p, enum fill how, struct prng *prng)
{
    static const enum column_type types[] = {[JOB_MEMBER_INT32] = COLUMN_I32,
        [JOB_MEMBER_INT64] = COLUMN_I64,
        [JOB_MEMBER_BOOL] = COLUMN_BOOL,
        [JOB_MEMBER_NOT] = COLUMN_BOOL,
        [JOB_MEMBER_WORD] = COLUMN_NAMED,
        [JOB_MEMBER_MOMENT] = COLUMN_OPTIONAL,
        [JOB_MEMBER_TEXT] = COLUMN_TEXT};
    for (size_t i = 0; i < job_attributes_count + job_stored_count; i++) {
        const struct job_attribute *a =
            i < job_attributes_count ? &job_attributes[i] : &job_stored[i - job_attributes_count];
        const struct column c = {.type = types[a->member_type], .size = a->size, .names = a->words};
        if (a->member_type == JOB_MEMBER_NONE || (a->masks & JOB_IN_COLUMN))
            continue;
        fill_column(&c, p + a->at, how, prng);
        for (size_t b = 0; a->member_type == JOB_MEMBER_TEXT && b < a->size; b++)
            p[a->at + b] &= 0x7f;
    }
}

static void fill_column(const struct column *c, char *p, enum fill how, struct prng *prng)
{
    switch (c->type) {
    case COLUMN_I64:
    case COLUMN_OPTIONAL:
    case COLUMN_NEW_ID:
        put_i64(p, number(how, prng, INT64_MIN, INT64_MAX));
        break;
    case COLUMN_I32:
        put_i32(p, (int32_t)number(how, prng, INT32_MIN, INT32_MAX));
        break;
    case COLUMN_BOOL:
        *(bool *)p = number(how, prng, 0, 1) != 0;
        break;
    case COLUMN_NAMED:
        put_i32(p, (int32_t)number(how, prng, 0, n_names(c) - 1));
        break;
    case COLUMN_TEXT:
        fill_text(p, c->size, how, prng);
        break;
    case COLUMN_TEXT_HEAP:
        fill_heap(p, how, prng);
        break;
    case COLUMN_SPEC:
        fill_spec(p, how, prng);
        break;
    case COLUMN_PLAIN: /* no member */
        break;
    }
}

void fill_row(enum table_id t, void *row, enum fill how, struct prng *p, int64_t key)
{
    const struct table *table = &tables[t];
    for (int i = 0; i < table->n_columns; i++) {
        const struct column *c = &table->columns[i];
        char *at = (char *)row + c->offset;
        if (i >= table->n_keys)
            fill_column(c, at, how, p);
        else if (c->type == COLUMN_TEXT)
            snprintf(at, c->size, "key-%lld", (long long)key);
        else if (c->type == COLUMN_NAMED)
            put_i32(at, (int32_t)(key % n_names(c)));
        else if (c->type == COLUMN_BOOL)
            *(bool *)at = key % 2;
        else if (c->type == COLUMN_I32)
            put_i32(at, (int32_t)(key + i));
        else
            put_i64(at, key + i);
    }
}

/* Location of a table's rows in a batch. */
static struct {
    size_t rows, n, size;
} const places[TABLE_COUNT] = {
#define PLACE(table, member, row)                                                                  \
    [table] = {offsetof(struct db_batch, member), offsetof(struct db_batch, n_##member),           \
        sizeof(struct row)}
#define PLACE_IN_LOADS(table, member, row)                                                         \
    [table] = {offsetof(struct db_batch, loads.member),                                            \
        offsetof(struct db_batch, loads.n_##member), sizeof(struct row)}
#define PLACE_IN_CHANGES(table, member, row)                                                       \
    [table] = {offsetof(struct db_batch, changes.member),                                          \
        offsetof(struct db_batch, changes.n_##member), sizeof(struct row)}
    PLACE_IN_CHANGES(TABLE_POOLS, pools, pool_row),
    PLACE_IN_CHANGES(TABLE_OFFERS, offers, offer_row),
    PLACE_IN_CHANGES(TABLE_INSTANCES, instances, instance_row),
    PLACE_IN_CHANGES(TABLE_NODES, nodes, node_row),
    PLACE_IN_CHANGES(TABLE_NODE_FAILURES, node_failures, node_failure_row),
    PLACE_IN_CHANGES(TABLE_JOBS, jobs, job_row),
    PLACE_IN_CHANGES(TABLE_SPECS, specs, spec_change),
    PLACE_IN_CHANGES(TABLE_ATTEMPTS, attempts, attempt_row),
    PLACE_IN_CHANGES(TABLE_CHECKPOINTS, checkpoints, checkpoint_row),
    PLACE_IN_CHANGES(TABLE_HISTORY, history, history_row),
    PLACE_IN_CHANGES(TABLE_LEDGER, ledger, ledger_row),
    PLACE_IN_CHANGES(TABLE_CKPT_GC, ckpt_gc, ckpt_gc_row),
    PLACE_IN_CHANGES(TABLE_STORED, stored, stored_row),
    PLACE_IN_CHANGES(TABLE_DRILLS, drills, drill_row),
    PLACE_IN_CHANGES(TABLE_CONSTRAINTS, constraints, constraints_row),
    PLACE_IN_CHANGES(TABLE_ARRAYS, arrays, array_row),
    PLACE_IN_CHANGES(TABLE_DEPENDENCIES, depends, dependency_row),
    PLACE_IN_CHANGES(TABLE_ACCOUNTS, accounts, account_row),
    PLACE_IN_CHANGES(TABLE_BUDGETS, budgets, budget_row),
    PLACE_IN_CHANGES(TABLE_CRONS, crons, cron_row),
    PLACE_IN_CHANGES(TABLE_CRON_JOBS, cron_jobs, cron_job_change),
    PLACE_IN_CHANGES(TABLE_CRON_RUNS, cron_runs, cron_run_row),
    PLACE_IN_CHANGES(TABLE_DIGESTS, digests, digest_row),
    PLACE_IN_CHANGES(TABLE_ANOMALIES, anomalies, anomaly_row),
    PLACE_IN_CHANGES(TABLE_RESERVATIONS, reservations, maintenance_row),
    PLACE_IN_CHANGES(TABLE_CALENDARS, calendars, calendar_row),
    PLACE_IN_CHANGES(TABLE_OUTBOX, outbox, outbox_row),
    PLACE_IN_LOADS(TABLE_TASK_LOADS, tasks, task_load_row),
    PLACE_IN_LOADS(TABLE_GPU_LOADS, gpus, gpu_load_row),
    PLACE(TABLE_SECRETS, secrets, secret_row),
    PLACE(TABLE_TOKENS, tokens, token_row),
    PLACE(TABLE_AUDIT_LOG, audit, audit_row),
};

size_t row_size(enum table_id t)
{
    return places[t].size;
}

void batch_add(struct db_batch *b, enum table_id t, const void *row)
{
    char **rows = (char **)((char *)b + places[t].rows);
    size_t *n = (size_t *)((char *)b + places[t].n);
    if ((*n & (*n - 1)) == 0) /* full at each power of two */
        *rows = mem_resize(*rows, *n ? *n * 2 : 1, places[t].size);
    memcpy(*rows + *n * places[t].size, row, places[t].size);
    *n += 1;
}

void batch_add_submit(struct db_batch *b, int64_t id)
{
    struct job_row job = {.id = id,
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = 3,
        .spec.ckpt_keep_every = 10,
        .submitted_at = at_ms(id),
        .started_at = WALL_NONE,
        .ended_at = WALL_NONE,
        .last_good_at = WALL_NONE,
        .last_good_progress = PROGRESS_NONE,
        .progress = PROGRESS_NONE,
        .progress_total = PROGRESS_NONE,
        .spec.nodes = 1,
        .spec.nodes_min = 1,
        .ranks = 1,
        .spec.need = {.cpus = 1, .memory_mib = 512}};
    struct history_row history = {.id = id, .job = id, .at = at_ms(id), .kind = "submitted"};
    snprintf(job.spec.name, sizeof(job.spec.name), "job-%lld", (long long)id);
    STR_COPY(job.user, "ada");
    batch_add(b, TABLE_JOBS, &job);
    batch_add(b, TABLE_HISTORY, &history);
    b->changes.next_job = b->changes.next_history = id + 1;
}

int64_t count_rows(struct db *d, enum table_id t)
{
    char text[80];
    int64_t n = -1;
    struct err e;
    snprintf(text, sizeof(text), "SELECT count(*) FROM %s", tables[t].name);
    check(sql_get_i64(d->sql, text, &n, &e), &e);
    return n;
}

struct wall at_ms(int64_t ms)
{
    return (struct wall){ms};
}
