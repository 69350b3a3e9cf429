/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_ledger DATABASE ENTRIES: fills the database of a stopped belayd with a ledger of one year,
 * through the same commits as belayd's, except that no commit waits for the disk and hot pages stay
 * in memory. 200 users of 40 teams run jobs of several hours in five pools. A third of the attempts
 * on spot are reclaimed; most jobs have labels, and some fifty jobs share each set. Prints the
 * seconds it took, and the number of jobs and bytes, in total and by table, as JSON.
 */
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/time.h"
#include "db/conn.h"
#include "db/db.h"

#include <stdio.h>
#include <stdlib.h>

#define HOUR_MS 3600000LL
#define YEAR_MS (365 * 24 * HOUR_MS)
#define BEGIN_MS 1735689600000LL /* 2025-01-01 */
#define USERS 200
#define TEAMS 40
#define POOLS 5
#define NODES 1000
#define JOBS_AT_ONCE 1000
#define ENTRIES_MAX 12 /* entries of a job, at most */

struct year {
    struct db *db;
    struct prng p;
    int64_t wanted, entries, jobs;
    struct db_batch batch;
};

static void check(int rc, const struct err *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench_ledger: %s\n", e->text);
    exit(1);
}

/* Node n is an instance, except that those of the first pool are reserved. */
static void add_nodes(struct year *y)
{
    struct db_batch b = {0};
    struct err e;
    b.changes.nodes = mem_array(NODES, sizeof(*b.changes.nodes));
    b.changes.instances = mem_array(NODES, sizeof(*b.changes.instances));
    for (int n = 0; n < NODES; n++) {
        enum market market = n % POOLS == 0 ? MARKET_OWNED : n % 3 ? MARKET_SPOT : MARKET_ON_DEMAND;
        struct node_row *r = &b.changes.nodes[b.changes.n_nodes++];
        *r = (struct node_row){.id = n + 1,
            .market = market,
            .state = NODE_GONE,
            .total = {.cpus = 64, .gpus = 8},
            .gpu = {.model = "A100"}};
        snprintf(r->name, sizeof(r->name), "n%d", n + 1);
        snprintf(r->pool, sizeof(r->pool), "pool-%d", n % POOLS);
        if (market == MARKET_OWNED)
            continue;
        struct instance_row *i = &b.changes.instances[b.changes.n_instances++];
        *i = (struct instance_row){
            .id = n + 1, .node = n + 1, .market = market, .state = INSTANCE_GONE};
        snprintf(i->pool, sizeof(i->pool), "pool-%d", n % POOLS);
        snprintf(i->type, sizeof(i->type), "p%dd.24xlarge", 3 + n % 2);
        r->instance = i->id;
    }
    check(db_commit(y->db, &b, &e), &e);
    db_batch_deinit(&b);
}

static void add_entry(struct year *y, const struct job_row *j, int64_t node, enum ledger_kind kind,
    int64_t from_ms, int64_t to_ms, int64_t ms)
{
    struct changes *c = &y->batch.changes;
    bool reserved = (node - 1) % POOLS == 0;
    int64_t uusd = ms * 3 / 1000;
    c->ledger[c->n_ledger++] = (struct ledger_row){.job = j->id,
        .attempt = 1,
        .node = node,
        .instance = reserved ? CORE_ID_NONE : node,
        .kind = kind,
        .from = {from_ms},
        .to = {to_ms},
        .ms = ms,
        .node_ms = ms,
        .uusd = uusd,
        .on_demand_uusd = kind == LEDGER_USEFUL ? 3 * uusd : 0};
    y->entries++;
}

/* An attempt ends after hours; if it is reclaimed, the job continues in the next one. */
static int64_t add_attempts(struct year *y, const struct job_row *j, int64_t user, int64_t at)
{
    for (int attempt = 1; attempt <= 3; attempt++) {
        /* each user runs in two pools */
        int64_t node = 1 + prng_range(&y->p, 0, NODES / POOLS - 1) * POOLS +
                       (user + prng_range(&y->p, 0, 1)) % POOLS;
        int64_t ms = prng_range(&y->p, HOUR_MS / 10, 6 * HOUR_MS), end = at + ms;
        bool taken_back = attempt < 3 && (node - 1) % POOLS != 0 && prng_range(&y->p, 0, 2) == 0;
        add_entry(y, j, node, LEDGER_RESTORE, at, end, ms / 100);
        add_entry(y, j, node, LEDGER_SAVE, at, end, ms / 50);
        if (taken_back)
            add_entry(y, j, node, LEDGER_LOST, at, end, ms / 20);
        add_entry(y, j, node, LEDGER_USEFUL, at, end,
            ms - ms / 100 - ms / 50 - (taken_back ? ms / 20 : 0));
        at = end;
        if (!taken_back)
            break;
    }
    return at;
}

static void add_job(struct year *y)
{
    struct changes *c = &y->batch.changes;
    int64_t at = BEGIN_MS + (int64_t)((__extension__(__int128) YEAR_MS) * y->entries / y->wanted);
    int64_t user = prng_range(&y->p, 0, USERS - 1),
            experiment = y->jobs / (50 * USERS) * USERS + user;
    struct job_row *j = &c->jobs[c->n_jobs++];
    *j = (struct job_row){.id = ++y->jobs,
        .state = JOB_ENDED,
        .end = prng_range(&y->p, 0, 9) ? END_SUCCEEDED : END_FAILED,
        .submitted_at = {at},
        .started_at = {at},
        .last_good_at = WALL_NONE};
    snprintf(j->spec.name, sizeof(j->spec.name), "train-%lld", (long long)experiment);
    snprintf(j->user, sizeof(j->user), "user-%lld", (long long)user);
    snprintf(j->spec.team, sizeof(j->spec.team), "team-%lld", (long long)(user % TEAMS));
    j->ended_at.ms = add_attempts(y, j, user, at);
    struct spec_change *s = &c->specs[c->n_specs++];
    *s = (struct spec_change){.job = j->id,
        .labels_json = j->id % 4 ? mem_printf("{\"experiment-id\": \"e%lld\", \"model\": "
                                              "\"m%lld\", \"project\": \"p%lld\"}",
                                       (long long)experiment, (long long)(experiment % 300),
                                       (long long)(user % 20))
                                 : mem_strdup("{}")};
    c->next_job = j->id + 1;
}

static void add_batch(struct year *y)
{
    struct changes *c = &y->batch.changes;
    struct err e;
    c->jobs = mem_array(JOBS_AT_ONCE, sizeof(*c->jobs));
    c->specs = mem_array(JOBS_AT_ONCE, sizeof(*c->specs));
    c->ledger = mem_array(JOBS_AT_ONCE * ENTRIES_MAX, sizeof(*c->ledger));
    for (int i = 0; i < JOBS_AT_ONCE && y->entries < y->wanted; i++)
        add_job(y);
    check(db_commit(y->db, &y->batch, &e), &e);
    db_batch_deinit(&y->batch);
}

static int64_t get(struct year *y, const char *text)
{
    int64_t v;
    struct err e;
    check(sql_get_i64(y->db->sql, text, &v, &e), &e);
    return v;
}

int main(int argc, char **argv)
{
    struct year y = {0};
    struct err e;
    if (argc != 3 || str_to_i64(argv[2], 1, INT64_C(1) << 40, "entries", &y.wanted, &e) != 0) {
        fprintf(stderr, "usage: bench_ledger DATABASE ENTRIES\n");
        return 2;
    }
    prng_init(&y.p, 1);
    check(db_open(argv[1], &y.db, &e), &e);
    check(sql_exec(y.db->sql,
              "PRAGMA synchronous = OFF; PRAGMA cache_size = -2000000; PRAGMA wal_autocheckpoint = "
              "200000",
              &e),
        &e);
    int64_t began = clock_mono(&clock_system).ms;
    add_nodes(&y);
    while (y.entries < y.wanted)
        add_batch(&y);
    double seconds = (double)(clock_mono(&clock_system).ms - began) / 1000;
    static const char of[] = "SELECT ifnull(sum(pgsize), 0) FROM dbstat WHERE name IN (%s)";
    static const char *const places[][2] = {{"ledger", "'ledger', 'ledger_job', 'ledger_to'"},
        {"sums", "'cost_sums'"}, {"job_rows", "'jobs', 'jobs_user', 'jobs_ended', 'job_specs'"},
        {"labels",
            "'job_labels', 'label_sets', 'job_label_sets', 'sqlite_autoindex_label_sets_1'"}};
    printf("{\"seconds\": %.1f, \"entries\": %lld, \"jobs\": %lld, \"rows\": %lld", seconds,
        (long long)y.entries, (long long)y.jobs,
        (long long)get(&y, "SELECT count(*) FROM cost_sums"));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char text[300];
        snprintf(text, sizeof(text), of, places[i][1]);
        printf(", \"%s\": %lld", places[i][0], (long long)get(&y, text));
    }
    printf("}\n");
    db_close(y.db);
    return 0;
}
