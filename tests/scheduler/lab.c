/* SPDX-License-Identifier: Apache-2.0
 *
 * See lab.h.
 */
#include "tests/scheduler/lab.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/engine/effects.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define START_WALL_MS 1800000000000

static void no_log(void *ctx, enum log_level level, const char *line)
{
    (void)ctx, (void)level, (void)line;
}

static void start_commit(struct commit_port *port, const struct db_batch *b)
{
    struct lab *lab = LIST_ENTRY(port, struct lab, port);
    assert_null(lab->under_way);
    lab->under_way = b;
    if (!lab->by_hand)
        lab_commit(lab, 0);
}

static void on_effects(void *ctx, const struct db_batch *committed)
{
    struct lab *lab = ctx;
    lab->n_effects++;
    for (size_t i = 0; lab->agent_sync && i < committed->changes.n_attempts; i++)
        agent_sync_touch(lab->agent_sync, committed->changes.attempts[i].node);
    for (size_t i = 0; lab->agent_sync && i < committed->changes.n_prefetches; i++)
        agent_sync_touch(lab->agent_sync, committed->changes.prefetches[i]);
    for (size_t i = 0; lab->agent_sync && i < committed->changes.n_nodes; i++)
        if (committed->changes.nodes[i].state == NODE_GONE)
            agent_sync_touch(lab->agent_sync, committed->changes.nodes[i].id);
    for (size_t i = 0; lab->provision && i < committed->changes.n_instances; i++)
        provision_touch(lab->provision, committed->changes.instances[i].id);
}

static void on_fatal(void *ctx, const struct err *e)
{
    struct lab *lab = ctx;
    lab->n_fatal++;
    lab->fatal = *e;
}

static void must(int rc, const struct err *e)
{
    if (rc != 0)
        fail_msg("%s", e->text);
}

static void start(struct lab *lab)
{
    /* Only its measured power is tested. */
    static const struct rack_options rack = {
        .name = "lab", .max_w = RACK_WATTS_MAX, .nodes = {{"n", 1, 100, 300}}, .n_nodes = 1};
    struct model_options o = {.lease_ms = LAB_LEASE_MS, .tables.racks = &rack, .tables.n_racks = 1};
    struct stamp now = {.wall = clock_wall(&lab->vt.clock), .mono = clock_mono(&lab->vt.clock)};
    struct err e;
    must(db_startup(lab->db, &lab->meta, &e), &e);
    STR_COPY(o.cluster_uid, lab->meta.cluster_uid);
    lab->model = model_create(&o);
    lab->planner = planner_create();
    must(db_load(lab->db, lab->model, now, &e), &e);
    lab->port.start = start_commit;
    lab->tick = tick_create(&(struct tick_options){.model = lab->model,
        .planner = lab->planner,
        .timers = &lab->vt.timers,
        .commit = &lab->port,
        .effects = on_effects,
        .fatal = on_fatal,
        .ctx = lab});
}

static void stop(struct lab *lab)
{
    tick_destroy(lab->tick);
    agent_sync_destroy(lab->agent_sync);
    provision_destroy(lab->provision);
    planner_destroy(lab->planner);
    model_destroy(lab->model);
    lab->tick = NULL;
    lab->agent_sync = NULL;
    lab->provision = NULL;
    lab->under_way = NULL;
}

int lab_setup(void **state)
{
    struct lab *lab = mem_alloc(sizeof(*lab));
    struct pool_row base = {.name = "base", .max_nodes = 1000, .usd_per_hour_uusd = 1000000};
    struct err e;
    log_set_sink(no_log, NULL);
    vtimers_init(&lab->vt, START_WALL_MS);
    must(db_open(":memory:", &lab->db, &e), &e);
    must(db_reader_of(lab->db, &lab->reader, &e), &e);
    start(lab);
    lab_post(lab, (struct event){.type = EV_POOL, .pool = &base}, NULL);
    lab_tick(lab);
    lab->n_commits = lab->n_effects = 0;
    *state = lab;
    return 0;
}

int lab_teardown(void **state)
{
    struct lab *lab = *state;
    stop(lab);
    db_reader_close(lab->reader);
    db_close(lab->db);
    vtimers_deinit(&lab->vt);
    free(lab);
    return 0;
}

static bool give_secrets(
    void *ctx, int64_t job, int64_t attempt, struct wire_secrets *ret_secrets, struct err *ret_why)
{
    const struct lab *lab = ctx;
    assert_true(job > 0 && attempt > 0);
    wire_secrets_copy(&lab->secrets, ret_secrets);
    *ret_why = lab->secrets_why;
    return !lab->secrets_late;
}

static const char *store_fault(void *ctx)
{
    const struct lab *lab = ctx;
    return lab->store_fault;
}

void lab_add_agent_sync(struct lab *lab)
{
    lab->agent_sync = agent_sync_create(&(struct agent_sync_options){.tick = lab->tick,
        .cluster = "lab",
        .timers = &lab->vt.timers,
        .reader = lab->reader,
        .boots = lab->meta.boots,
        .lease_ms = LAB_LEASE_MS,
        .sync_ms = LAB_SYNC_MS,
        .kill_wait_ms = 5000,
        .store_fault = store_fault,
        .store_ctx = lab,
        .secrets = give_secrets,
        .secrets_ctx = lab});
}

void lab_tick(struct lab *lab)
{
    vtimers_advance(&lab->vt, 0);
}

void lab_advance(struct lab *lab, int64_t ms)
{
    vtimers_advance(&lab->vt, ms);
}

void lab_commit(struct lab *lab, int rc)
{
    const struct db_batch *b = lab->under_way;
    struct err e = {0};
    assert_non_null(b);
    lab->under_way = NULL;
    if (rc == 0) {
        must(db_commit(lab->db, b, &e), &e);
        lab->n_commits++;
    } else {
        err_set(&e, (enum err_kind)rc, "the disk said so");
    }
    tick_committed(lab->tick, rc, &e);
    if (lab->by_hand)
        lab_tick(lab);
}

void lab_restart(struct lab *lab)
{
    bool had_agent_sync = lab->agent_sync != NULL;
    stop(lab);
    start(lab);
    if (had_agent_sync)
        lab_add_agent_sync(lab);
    lab_tick(lab);
}

void lab_on_reply(void *ctx, const struct err *e, int64_t id)
{
    struct lab_reply *r = ctx;
    r->n++;
    r->rc = e ? (int)e->kind : 0;
    r->id = id;
    r->at_commit = r->lab ? r->lab->n_commits : 0;
    if (e)
        r->e = *e;
}

void lab_post(struct lab *lab, struct event ev, struct lab_reply *r)
{
    if (r)
        r->lab = lab;
    tick_post(lab->tick, &ev, r ? lab_on_reply : NULL, r);
}

static void submit(struct lab *lab, int32_t cpus, const char *script, struct lab_reply *r)
{
    struct job_row job = {.spec.name = "job",
        .user = "ann",
        .spec.nodes = 1,
        .spec.need = {.cpus = cpus},
        .spec.method = CKPT_SIGNAL,
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_every_ms = 60000,
        .spec.ckpt_keep = 3};
    struct job_texts texts = {.script = script,
        .args_json = "[\"a\",\"\"]",
        .env_json = "{\"K\":\"v\"}",
        .cwd = "/data",
        .labels_json = "{}"};
    struct event ev = {.type = EV_SUBMIT, .submit = {.job = &job, .texts = &texts}};
    lab_post(lab, ev, r);
    memset(&job, 0xff, sizeof(job)); /* posted events are copied */
}

void lab_submit(struct lab *lab, int32_t cpus, struct lab_reply *r)
{
    submit(lab, cpus ? cpus : 1, "#!/bin/sh\ntrue\n", r);
}

void lab_submit_script(struct lab *lab, const char *script)
{
    submit(lab, 1, script, NULL);
}

int64_t lab_join(struct lab *lab, const char *name, int32_t cpus)
{
    struct node_row n = {.total = {.cpus = cpus, .memory_mib = 1024},
        .notice_deadline = WALL_NONE,
        .joined_at = WALL_NONE,
        .gone_at = WALL_NONE};
    struct lab_reply r = {0};
    STR_COPY(n.name, name);
    STR_COPY(n.pool, "base");
    STR_COPY(n.key_hash, name);
    lab_post(lab, (struct event){.type = EV_JOIN, .join = {.node = &n}}, &r);
    lab_tick(lab);
    if (lab->by_hand)
        lab_commit(lab, 0);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.rc, 0);
    return r.id;
}
