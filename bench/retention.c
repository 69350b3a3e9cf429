/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_retention DATABASE JOBS YEARS [MIB]: writes years of JOBS jobs a night, in virtual time,
 * through the same commits as belayd's, with the default ages of the retention, and with
 * database_max if MIB is given. No commit waits for the disk, and a night's jobs, up to 2,000, are
 * written by one commit; neither changes what is stored. Prints a line of JSON for each year: the
 * bytes of the file and of what is used of it, its rows, the longest commit that deleted rows, and
 * the processor time that a night's rows took, to write and to delete.
 *
 * Thirty users of six teams run them: a third on eight reserved nodes, the others on instances, of
 * which each night has one for twenty jobs. A job has its script, labels (ten sets a month), one or
 * two attempts, checkpoints, events, ledger rows, telemetry by the hour and a row of the audit log.
 */
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/time.h"
#include "db/conn.h"
#include "db/db.h"
#include "db/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR_MS 3600000LL
#define BEGIN_MS 1735689600000LL /* 2025-01-01 */
#define NIGHTS 365               /* of a year */
#define USERS 30
#define TEAMS 6
#define RESERVED 8
#define JOBS_AT_ONCE 2000
#define EVENTS 9 /* of a job */
#define SCRIPT_BYTES 900

struct play {
    struct db *db;
    struct db_reader *reader;
    int64_t max_bytes; /* 0 = unlimited */
    struct prng p;
    struct db_batch batch;
    int64_t jobs, nodes, history; /* the last numbers */
    int64_t night_ms, first_instance, n_instances;
    int64_t deleted;
    int64_t prune_max_ms, prune_max_cpu_us, prune_cpu_us, write_cpu_us; /* in this year */
    char script[SCRIPT_BYTES + 1];
};

static void check(int rc, const struct err *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench_retention: %s\n", e->text);
    exit(1);
}

static int64_t cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void commit(struct play *y)
{
    struct err e;
    check(db_commit(y->db, &y->batch, &e), &e);
    db_batch_deinit(&y->batch);
}

/* ---- machines ---- */

static void add_node(struct play *y, bool is_reserved)
{
    struct changes *c = &y->batch.changes;
    struct node_row *n = &c->nodes[c->n_nodes++];
    *n = (struct node_row){.id = ++y->nodes,
        .instance = is_reserved ? CORE_ID_NONE : y->nodes,
        .market = is_reserved ? MARKET_OWNED : MARKET_SPOT,
        .state = is_reserved ? NODE_UP : NODE_GONE,
        .joined_at = {y->night_ms},
        .gone_at = is_reserved ? WALL_NONE : (struct wall){y->night_ms + 8 * HOUR_MS},
        .total = {.cpus = 32, .gpus = 4},
        .gpu = {.model = "L4"}};
    snprintf(n->name, sizeof(n->name), "n%" PRId64, n->id);
    STR_COPY(n->pool, is_reserved ? "base" : "burst");
    if (is_reserved)
        return;
    struct instance_row *i = &c->instances[c->n_instances++];
    *i = (struct instance_row){.id = n->id,
        .node = n->id,
        .market = MARKET_SPOT,
        .state = INSTANCE_GONE,
        .intended_at = {y->night_ms},
        .launched_at = {y->night_ms},
        .joined_at = {y->night_ms},
        .ended_at = n->gone_at};
    STR_COPY(i->pool, "burst");
    STR_COPY(i->zone, "us-east-1a");
    snprintf(i->type, sizeof(i->type), "g6.%dxlarge", 4 << (n->id % 3));
    snprintf(i->token, sizeof(i->token), "token-%" PRId64, i->id);
    struct ledger_row *l = &c->ledger[c->n_ledger++];
    *l = (struct ledger_row){.node = n->id,
        .instance = n->id,
        .kind = LEDGER_IDLE,
        .from = {y->night_ms + 7 * HOUR_MS},
        .to = n->gone_at,
        .ms = HOUR_MS,
        .node_ms = HOUR_MS,
        .uusd = 400000};
}

static void begin_night(struct play *y, int64_t jobs)
{
    struct changes *c = &y->batch.changes;
    int64_t n = y->nodes == 0 ? RESERVED : 0;
    y->n_instances = jobs / 20 + 1;
    c->nodes = mem_array((size_t)(n + y->n_instances), sizeof(*c->nodes));
    c->instances = mem_array((size_t)y->n_instances, sizeof(*c->instances));
    c->ledger = mem_array((size_t)y->n_instances, sizeof(*c->ledger));
    for (; n > 0; n--)
        add_node(y, true);
    y->first_instance = y->nodes + 1;
    for (int64_t i = 0; i < y->n_instances; i++)
        add_node(y, false);
    c->next_node = c->next_instance = y->nodes + 1;
    commit(y);
}

/* ---- jobs ---- */

static void add_ledger(
    struct play *y, struct job_row *j, const struct attempt_row *a, bool is_reserved)
{
    static const enum ledger_kind kinds[] = {LEDGER_RESTORE, LEDGER_USEFUL, LEDGER_SAVE};
    struct changes *c = &y->batch.changes;
    int64_t ms = a->ended_at.ms - a->started_at.ms;
    for (int k = 0; k < 3; k++)
        c->ledger[c->n_ledger++] = (struct ledger_row){.job = a->job,
            .attempt = a->attempt,
            .node = a->node,
            .instance = is_reserved ? CORE_ID_NONE : a->node,
            .kind = kinds[k],
            .from = a->started_at,
            .to = a->ended_at,
            .ms = k == 1 ? ms - 2 * (ms / 100) : ms / 100,
            .node_ms = k == 1 ? ms - 2 * (ms / 100) : ms / 100,
            .uusd = k == 1 ? ms / 10 : ms / 1000,
            .on_demand_uusd = k == 1 ? ms / 4 : 0};
    for (int k = 1; k <= 3; k++)
        j->cost_uusd += c->ledger[c->n_ledger - (size_t)k].uusd;
}

static void add_load(struct play *y, const struct attempt_row *a)
{
    struct loads_batch *b = &y->batch.loads;
    for (int64_t at = a->started_at.ms / HOUR_MS * HOUR_MS; at < a->ended_at.ms; at += HOUR_MS)
        b->tasks[b->n_tasks++] = (struct task_load_row){.job = a->job,
            .attempt = a->attempt,
            .node = a->node,
            .span_ms = HOUR_MS,
            .at = at,
            .load = {.ms = HOUR_MS, .cpu_ms = 3 * HOUR_MS, .memory_bytes = INT64_C(1) << 34}};
}

static int64_t add_attempt(
    struct play *y, struct job_row *j, int64_t attempt, int64_t at_ms, bool is_last)
{
    struct changes *c = &y->batch.changes;
    int64_t job = j->id;
    bool is_reserved = job % 3 == 0;
    struct attempt_row *a = &c->attempts[c->n_attempts++];
    *a = (struct attempt_row){.job = job,
        .attempt = attempt,
        .node = is_reserved ? 1 + job % RESERVED
                            : y->first_instance + prng_range(&y->p, 0, y->n_instances - 1),
        .state = ATTEMPT_ENDED,
        .end = is_last ? END_SUCCEEDED : END_RECLAIMED,
        .assigned_at = {at_ms},
        .started_at = {at_ms + 20000},
        .ended_at = {at_ms + prng_range(&y->p, HOUR_MS / 4, 3 * HOUR_MS)}};
    c->checkpoints[c->n_checkpoints++] = (struct checkpoint_row){.job = job,
        .ref = {.attempt = attempt, .sequence = 1},
        .node = a->node,
        .saved_at = a->ended_at,
        .bytes = INT64_C(4) << 30,
        .stored_bytes = INT64_C(1) << 30};
    add_ledger(y, j, a, is_reserved);
    add_load(y, a);
    return a->ended_at.ms;
}

static void add_events(struct play *y, int64_t job, int64_t from_ms, int64_t to_ms)
{
    static const char *const kinds[EVENTS] = {"submitted", "placed", "started", "saved", "saved",
        "restored", "saved", "ended", "cleaned"};
    struct changes *c = &y->batch.changes;
    for (int k = 0; k < EVENTS; k++) {
        struct history_row *h = &c->history[c->n_history++];
        *h = (struct history_row){.id = ++y->history,
            .job = job,
            .attempt = 1,
            .at = {from_ms + (to_ms - from_ms) * k / EVENTS}};
        STR_COPY(h->kind, kinds[k]);
        STR_COPY(h->text, "saved 4.1 GiB in 9.3 s at step 1200");
    }
}

static void add_job(struct play *y)
{
    struct changes *c = &y->batch.changes;
    struct job_row *j = &c->jobs[c->n_jobs++];
    int64_t at = y->night_ms + prng_range(&y->p, 0, 4 * HOUR_MS), month = y->night_ms / DAY_MS / 30;
    *j = (struct job_row){.id = ++y->jobs,
        .state = JOB_ENDED,
        .end = END_SUCCEEDED,
        .attempts = 1 + (y->jobs % 5 == 1),
        .submitted_at = {y->night_ms},
        .started_at = {at},
        .last_good_at = WALL_NONE,
        .spec = {.need = {.cpus = 4, .gpus = 1, .memory_mib = 16384}}};
    snprintf(j->spec.name, sizeof(j->spec.name), "nightly-%" PRId64, j->id % 200);
    snprintf(j->user, sizeof(j->user), "user-%" PRId64, j->id % USERS);
    snprintf(j->spec.team, sizeof(j->spec.team), "team-%" PRId64, j->id % TEAMS);
    for (int64_t n = 1; n <= j->attempts; n++)
        at = add_attempt(y, j, n, at, n == j->attempts);
    j->ended_at.ms = at;
    add_events(y, j->id, y->night_ms, at);
    c->specs[c->n_specs++] = (struct spec_change){.job = j->id,
        .script = mem_strdup(y->script),
        .labels_json =
            mem_printf("{\"experiment\": \"e%" PRId64 "\", \"project\": \"p%" PRId64 "\"}",
                month * 10 + j->id % 10, j->id % 10)};
    c->ckpt_gc[c->n_ckpt_gc++] = (struct ckpt_gc_row){
        .job = j->id, .state = CKPT_GC_DONE, .succeeded = true, .closed = true};
    struct audit_row *a = &y->batch.audit[y->batch.n_audit++];
    *a = (struct audit_row){.at = {y->night_ms}, .result = "ok", .source = "10.1.2.3 (token 17)"};
    STR_COPY(a->user, j->user);
    STR_COPY(a->route, "POST /api/v1/jobs");
    snprintf(a->request, sizeof(a->request), "%032" PRIx64, (uint64_t)j->id);
    snprintf(a->object, sizeof(a->object), "%" PRId64, j->id);
}

static void add_jobs(struct play *y, int64_t n)
{
    struct changes *c = &y->batch.changes;
    size_t at_most = (size_t)n;
    c->jobs = mem_array(at_most, sizeof(*c->jobs));
    c->specs = mem_array(at_most, sizeof(*c->specs));
    c->ckpt_gc = mem_array(at_most, sizeof(*c->ckpt_gc));
    c->attempts = mem_array(2 * at_most, sizeof(*c->attempts));
    c->checkpoints = mem_array(2 * at_most, sizeof(*c->checkpoints));
    c->ledger = mem_array(6 * at_most, sizeof(*c->ledger));
    c->history = mem_array(EVENTS * at_most, sizeof(*c->history));
    y->batch.loads.tasks = mem_array(10 * at_most, sizeof(*y->batch.loads.tasks));
    y->batch.audit = mem_array(at_most, sizeof(*y->batch.audit));
    for (int64_t i = 0; i < n; i++)
        add_job(y);
    c->next_job = y->jobs + 1;
    c->next_history = y->history + 1;
    /* as scheduler/telemetry.c: hours stay 90 days */
    y->batch.loads.from[LOAD_SPANS - 1] = y->night_ms - 90 * DAY_MS;
    commit(y);
}

/* ---- retention ---- */

/* As scheduler/retention.c: the age that lets the oldest jobs go; 0 = the database is not too
 * large. */
static int64_t age_by_size(struct play *y, int64_t now_ms)
{
    int64_t file, used;
    struct wall end;
    struct err e;
    if (y->max_bytes == 0)
        return 0;
    check(db_read_size(y->reader, &file, &used, &e), &e);
    if (used <= y->max_bytes)
        return 0;
    check(db_read_nth_end(y->reader, PRUNE_JOBS_MAX - 1, &end, &e), &e);
    return wall_is_set(end) && now_ms - end.ms > DAY_MS ? now_ms - end.ms - 1 : DAY_MS;
}

static void prune(struct play *y)
{
    struct pruned p;
    int64_t by_size_ms;
    do {
        int64_t began = clock_mono(&clock_system).ms, cpu = cpu_us();
        by_size_ms = age_by_size(y, y->night_ms + DAY_MS);
        y->batch.prune = (struct prune){.is_due = true,
            .now = {y->night_ms + DAY_MS},
            .age_ms = {[PRUNE_JOBS] =
                           by_size_ms > 0 && by_size_ms < 400 * DAY_MS ? by_size_ms : 400 * DAY_MS,
                [PRUNE_EVENTS] = 90 * DAY_MS,
                [PRUNE_AUDIT] = 1100 * DAY_MS,
                [PRUNE_DAYS] = 800 * DAY_MS}};
        commit(y);
        int64_t took = clock_mono(&clock_system).ms - began, took_cpu = cpu_us() - cpu;
        y->prune_max_ms = took > y->prune_max_ms ? took : y->prune_max_ms;
        y->prune_max_cpu_us = took_cpu > y->prune_max_cpu_us ? took_cpu : y->prune_max_cpu_us;
        y->prune_cpu_us += took_cpu;
        db_get_pruned(y->db, &p);
        y->deleted += p.jobs;
    } while (p.is_more || (by_size_ms > DAY_MS && p.jobs > 0));
}

static int64_t get(struct play *y, const char *text)
{
    int64_t v;
    struct err e;
    check(sql_get_i64(y->db->sql, text, &v, &e), &e);
    return v;
}

static int64_t count_all_rows(struct play *y)
{
    struct buf text = {0};
    struct query q;
    struct err e;
    query_init_text(&q, &y->db->statements,
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'", &e);
    while (query_step(&q))
        buf_printf(&text, "%s(SELECT count(*) FROM %s)", text.len > 0 ? " + " : "SELECT ",
            (const char *)sqlite3_column_text(q.stmt, 0));
    check(query_finish(&q), &e);
    int64_t n = get(y, buf_str(&text));
    buf_deinit(&text);
    return n;
}

static void print_year(struct play *y, int year, int64_t began_ms)
{
    struct err e;
    check(sql_exec(y->db->sql, "PRAGMA wal_checkpoint(TRUNCATE)", &e), &e);
    int64_t page = get(y, "PRAGMA page_size"), pages = get(y, "PRAGMA page_count"),
            unused = get(y, "PRAGMA freelist_count");
    printf("{\"year\": %d, \"bytes\": %" PRId64 ", \"used\": %" PRId64 ", \"jobs\": %" PRId64
           ", \"rows\": %" PRId64 ", \"deleted\": %" PRId64 ", \"sums_bytes\": %" PRId64
           ", \"longest_ms\": %" PRId64 ", \"longest_cpu_ms\": %.1f, \"write_cpu_ms\": %.1f"
           ", \"prune_cpu_ms\": %.1f, \"seconds\": %" PRId64 "}\n",
        year, pages * page, (pages - unused) * page, get(y, "SELECT count(*) FROM jobs"),
        count_all_rows(y), y->deleted,
        get(y, "SELECT ifnull(sum(pgsize), 0) FROM dbstat WHERE name IN ('cost_sums', "
               "'deleted_costs', 'label_sets', 'sqlite_autoindex_label_sets_1', 'deleted_jobs')"),
        y->prune_max_ms, (double)y->prune_max_cpu_us / 1000,
        (double)y->write_cpu_us / (1000 * NIGHTS), (double)y->prune_cpu_us / (1000 * NIGHTS),
        (clock_mono(&clock_system).ms - began_ms) / 1000);
    fflush(stdout);
    y->prune_max_ms = y->prune_max_cpu_us = y->prune_cpu_us = y->write_cpu_us = 0;
}

static int on_gap(void *ctx, const char *text)
{
    (void)ctx;
    fprintf(stderr, "bench_retention: %s\n", text);
    exit(1);
}

/* The bills are what the deleted rows and those that are left add up to. */
static void check_sums(struct play *y)
{
    struct db_reader *r;
    struct err e;
    check(db_reader_of(y->db, &r, &e), &e);
    check(db_read_rollup_gaps(r, on_gap, NULL, &e), &e);
    check(db_read_job_gaps(r, on_gap, NULL, &e), &e);
    db_reader_close(r);
}

int main(int argc, char **argv)
{
    struct play y = {.night_ms = BEGIN_MS};
    struct err e;
    int64_t jobs, years, mib = 0;
    if (argc < 4 || argc > 5 || str_to_i64(argv[2], 1, 1000000, "jobs", &jobs, &e) != 0 ||
        str_to_i64(argv[3], 1, 100, "years", &years, &e) != 0 ||
        (argc == 5 && str_to_i64(argv[4], 1, 1 << 20, "MiB", &mib, &e) != 0)) {
        fprintf(stderr, "usage: bench_retention DATABASE JOBS YEARS [MIB]\n");
        return 2;
    }
    prng_init(&y.p, 1);
    memset(y.script, '#', SCRIPT_BYTES);
    check(db_open(argv[1], &y.db, &e), &e);
    check(sql_exec(y.db->sql, "PRAGMA synchronous = OFF", &e), &e);
    check(db_reader_of(y.db, &y.reader, &e), &e);
    y.max_bytes = mib << 20;
    int64_t began = clock_mono(&clock_system).ms;
    for (int year = 1; year <= years; year++) {
        for (int night = 0; night < NIGHTS; night++, y.night_ms += DAY_MS) {
            int64_t cpu = cpu_us();
            begin_night(&y, jobs);
            for (int64_t left = jobs; left > 0; left -= JOBS_AT_ONCE)
                add_jobs(&y, left < JOBS_AT_ONCE ? left : JOBS_AT_ONCE);
            y.write_cpu_us += cpu_us() - cpu;
            prune(&y);
        }
        print_year(&y, year, began);
    }
    check_sums(&y);
    db_reader_close(y.reader);
    db_close(y.db);
    return 0;
}
