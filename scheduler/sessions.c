/* SPDX-License-Identifier: Apache-2.0
 *
 * Agent sessions (see sessions.h). Both directions tell states: a status is compared with the model and the
 * differences become facts; the desired document is computed from the model whenever it is asked for.
 *
 * Invariants:
 *  1. What a status told is committed before the status is answered.
 *  2. A node's revision grows with every change of what is desired of it, over restarts of belayd too.
 *  3. Checkpoints of a status are posted before its end, so that an end never hides the save that came with
 * it.
 */
#include "scheduler/sessions.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/extras.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HOLD_SPARE_MS 30000
#define SPECS_BYTES_MAX (4u << 20) /* of scripts and the like in one message: half of what the wire takes */

#define REV_BOOT_SHIFT 32 /* a revision tells in which run of belayd it was given */

/* What the agent was last told and told us of one attempt; only hints, all of it can be forgotten. */
struct seen {
    struct link in_session;
    int64_t job, attempt;
    bool told; /* the agent has it: the script need not be sent again */
    bool sent; /* the agent may have it: to leave it out would be to end it */
    int64_t failed_saves;
    int64_t secrets;   /* the version that the agent holds */
    int64_t status_no; /* the status in which it was last told */
};

struct session {
    int64_t node;
    int64_t incarnation, seq;
    int64_t rev;
    int64_t status_no; /* counts accepted statuses */
    struct list seen;
    int64_t kept[WIRE_KEPT_MAX]; /* jobs, as the last status told */
    size_t n_kept;
    int64_t task_loads, gpu_loads; /* the highest numbers of this incarnation's that were taken */
    bool left_out; /* the last answer had no room for some: they follow when the agent tells what it got */
    /* the status that waits */
    sessions_reply_fn reply;
    void *ctx;
    struct timer timer;
    struct sessions *owner;
};

struct sessions {
    struct sessions_options o;
    struct map by_node;
};

/* One status on its way through the tick. */
struct incoming {
    struct sessions *s;
    int64_t node, have_rev, wait_ms;
    sessions_reply_fn reply;
    void *ctx;
};

/* ---- sessions ---- */

static void on_wait_over(struct timer *timer, void *ctx);

static struct session *session_of(struct sessions *s, int64_t node)
{
    struct session *x = map_get(&s->by_node, node);
    if (x)
        return x;
    x = mem_alloc(sizeof(*x));
    x->node = node;
    x->owner = s;
    x->rev = (s->o.boots << REV_BOOT_SHIFT) + 1;
    timer_init(&x->timer, on_wait_over, x);
    map_put(&s->by_node, node, x);
    return x;
}

static void session_free(struct session *x)
{
    timer_stop(x->owner->o.timers, &x->timer);
    for (struct link *n; (n = list_pop(&x->seen));)
        free(LIST_ENTRY(n, struct seen, in_session));
    free(x);
}

static struct seen *seen_of(struct session *x, int64_t job, int64_t attempt)
{
    LIST_FOREACH (&x->seen, n) {
        struct seen *k = LIST_ENTRY(n, struct seen, in_session);
        if (k->job == job && k->attempt == attempt)
            return k;
    }
    struct seen *k = mem_alloc(sizeof(*k));
    k->job = job;
    k->attempt = attempt;
    list_push_back(&x->seen, &k->in_session);
    return k;
}

/* What neither the agent has nor the model wants is of no use any more. */
static void prune_seen(struct session *x, const struct model *m)
{
    LIST_FOREACH (&x->seen, n) {
        struct seen *k = LIST_ENTRY(n, struct seen, in_session);
        struct job *job = model_job(m, k->job);
        bool live = job_attempt_on(job, k->attempt, x->node) != NULL;
        if (!live && k->status_no != x->status_no) {
            link_remove(&k->in_session);
            free(k);
        }
    }
}

struct sessions *sessions_create(const struct sessions_options *o)
{
    struct sessions *s = mem_alloc(sizeof(*s));
    s->o = *o;
    return s;
}

void sessions_set_channels(struct sessions *s, sessions_channels_fn fn, void *ctx)
{
    s->o.channels = fn;
    s->o.channels_ctx = ctx;
}

void sessions_destroy(struct sessions *s)
{
    if (!s)
        return;
    size_t pos = 0;
    for (struct session *x; (x = map_next(&s->by_node, &pos, NULL));)
        session_free(x);
    map_deinit(&s->by_node);
    free(s);
}

/* ---- what is desired ---- */

static void parse_args(const char *json, struct wire_desired_attempt *d)
{
    json_t *v = json_loads(json, 0, NULL);
    size_t i;
    json_t *item;
    d->args = mem_array(json_array_size(v), sizeof(*d->args));
    json_array_foreach(v, i, item) d->args[d->n_args++] = mem_strdup(json_string_value(item));
    json_decref(v);
}

static void parse_env(const char *json, struct wire_desired_attempt *d)
{
    json_t *v = json_loads(json, 0, NULL);
    const char *name;
    json_t *value;
    d->env = mem_array(json_object_size(v), sizeof(*d->env));
    json_object_foreach(v, name, value)
    {
        d->env[d->n_env].name = mem_strdup(name);
        d->env[d->n_env++].value = mem_strdup(json_string_value(value));
    }
    json_decref(v);
}

static char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text && *text ? mem_strdup(text) : NULL;
}

static void parse_grace(const json_t *grace, struct wire_desired_attempt *d)
{
    d->grace_signal = json_integer_value(json_object_get(grace, "signal"));
    d->grace_ms = json_integer_value(json_object_get(grace, "before_ms"));
    d->grace_to_script = json_is_true(json_object_get(grace, "script_only"));
}

static void parse_launch(const char *json, struct wire_desired_attempt *d)
{
    json_t *v = json ? json_loads(json, 0, NULL) : NULL;
    const char *mode = json_string_value(json_object_get(v, "open_mode"));
    d->output = text_of(v, "output");
    d->error = text_of(v, "error");
    d->input = text_of(v, "input");
    d->image = text_of(v, "image");
    STR_COPY(d->open_mode, mode);
    STR_COPY(d->workdir, json_string_value(json_object_get(v, "workdir")));
    d->slurm_env = json_is_true(json_object_get(v, "slurm"));
    d->tasks = json_integer_value(json_object_get(v, "tasks"));
    d->all_tasks = json_integer_value(json_object_get(v, "all_tasks"));
    d->cpus_per_task = json_integer_value(json_object_get(v, "cpus_per_task"));
    parse_grace(json_object_get(v, "grace"), d);
    json_decref(v);
}

/* Takes the script. */
static void add_spec(struct wire_desired_attempt *d, struct spec_change *spec)
{
    d->script = spec->script;
    spec->script = NULL;
    parse_args(spec->args_json, d);
    parse_env(spec->env_json, d);
    STR_COPY(d->cwd, spec->cwd);
    parse_launch(spec->launch_json, d);
    d->slurm_env = d->slurm_env || strstr(d->script, "\n#SBATCH");
}

static void add_row(const struct model *m, const struct attempt *a, struct wire_desired_attempt *d)
{
    const struct job_row *j = &a->job->row;
    const struct extras *x = model_extras(m, j->extras);
    STR_COPY(d->name, j->name);
    STR_COPY(d->user, j->user);
    d->cpus = a->held.cpus;
    d->gpus = a->held.gpus;
    d->memory_mib = a->held.memory_mib;
    d->exclusive = x && x->exclusive;
    if (x)
        counts_format(&x->resources, d->resources);
    d->time_limit_ms = j->time_limit_ms;
    STR_COPY(d->method, ckpt_method_names[j->method]);
    d->ckpt_signal = j->ckpt_signal;
    d->ckpt_keep = j->ckpt_keep;
    d->ckpt_keep_every = j->ckpt_keep_every;
    STR_COPY(d->ckpt_at, j->ckpt_at);
    d->save_ms = j->save_ms;
}

/* Bytes of a text in JSON, at most. */
static size_t json_bytes(const char *s)
{
    size_t n = 2;
    for (; *s; s++)
        n += strchr("\"\\\b\f\n\r\t", *s) ? 2 : (unsigned char)*s < ' ' ? 6 : 1;
    return n;
}

static size_t secrets_bytes(const struct wire_secrets *x)
{
    const char *const texts[] = {x->store_access_key, x->store_secret_key, x->store_token, x->step_token};
    size_t n = x->n_checkpoint_keys * (WIRE_KEY_HEX + 4) + 256; /* and the names, and numbers */
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        n += texts[i] ? json_bytes(texts[i]) : 0;
    return n;
}

static size_t spec_bytes(const struct spec_change *spec)
{
    return json_bytes(spec->script) + strlen(spec->args_json) + strlen(spec->env_json) +
           json_bytes(spec->cwd) + (spec->launch_json ? strlen(spec->launch_json) : 0);
}

/* Nobody could start it, ever: the job fails with the reason instead of waiting. */
static void give_up(struct sessions *s, const struct attempt *a, const struct err *why)
{
    struct event ev = {.type = EV_ATTEMPT_ENDED,
        .ended = {.job = a->row.job, .attempt = a->row.attempt, .node = a->row.node, .end = END_FAILED}};
    log_error(
        "an attempt cannot be started: its script cannot be read", log_i("job", a->row.job), log_err(why));
    STR_COPY(ev.ended.text, why->text);
    tick_post(s->o.tick, &ev, NULL, NULL);
}

/* A message being made. */
struct message {
    struct wire_desired d;
    size_t bytes; /* of specifications and secrets in it */
    bool is_full; /* something was left out */
    bool owes;    /* secrets of something that is in it were */
};

/* "10.0.0.7:40212" or "[::ffff:10.0.0.7]:40212", where it dialled from, without the port. */
static void copy_host(const char *address, char *out, size_t size)
{
    if (str_starts(address, "["))
        address++;
    if (str_starts(address, "::ffff:") && strchr(address, '.'))
        address += 7;
    str_copy(out, size, address);
    char *end = strrchr(out, ']');
    end = end ? end : strrchr(out, ':');
    if (end)
        *end = '\0';
}

static void add_array(const struct job *j, struct wire_desired_attempt *d)
{
    if (!j->parent)
        return;
    const struct ranges *all = &j->parent->array->all;
    d->array = j->row.array;
    d->array_index = j->row.array_index;
    d->array_count = ranges_count(all);
    d->array_min = ranges_first(all);
    d->array_max = ranges_last(all);
    d->array_step = all->v[0].step;
}

static void add_peers(const struct attempt *a, struct wire_desired_attempt *d)
{
    d->rank = a->row.rank;
    if (a->job->row.nodes == 1)
        return;
    d->n_peers = (size_t)a->job->row.ranks;
    d->peers = mem_array(d->n_peers, sizeof(*d->peers));
    LIST_FOREACH (&a->job->ranks, l) {
        const struct attempt *other = LIST_ENTRY(l, struct attempt, in_job);
        struct wire_peer *p = &d->peers[other->row.rank];
        STR_COPY(p->name, other->node->row.name);
        copy_host(other->node->row.address, p->address, sizeof(p->address));
    }
}

/* It may be another than at the start. */
static int64_t limit_ms(const struct attempt *a)
{
    int64_t ms = a->job->row.time_limit_ms;
    return ms == 0 ? WIRE_NO_LIMIT : attempt_holds(a) ? ms + HOLD_SPARE_MS : ms;
}

/* A rank without a script is the last to run into the time limit, so that the first one's end is the job's; and what is left of it
 * when tasks are to be told is the same. */
static void add_script_on(const struct attempt *a, struct wire_desired_attempt *d)
{
    d->script_on_first = a->job->row.script_on == SCRIPT_ON_FIRST;
    if (!attempt_holds(a))
        return;
    STR_COPY(d->method, ckpt_method_names[CKPT_NONE]);
    d->ckpt_at[0] = '\0';
    d->time_limit_ms += d->time_limit_ms > 0 ? HOLD_SPARE_MS : 0;
    d->grace_ms += d->grace_signal > 0 ? HOLD_SPARE_MS : 0;
}

/* What it holds the place for is being saved: it stays until that has ended. */
static bool holds_on(const struct attempt *a)
{
    if (!attempt_holds(a) || a->row.state != ATTEMPT_STOPPING || !a->row.save_first)
        return false;
    LIST_FOREACH (&a->job->ranks, l)
        if (LIST_ENTRY(l, struct attempt, in_job)->row.rank == 0)
            return true;
    return false;
}

/* When the first of the nodes goes that its gang is on; 0: nobody has told. */
static int64_t gang_deadline(const struct attempt *a)
{
    int64_t first = 0;
    LIST_FOREACH (&a->job->ranks, l) {
        const struct node_row *n = &LIST_ENTRY(l, struct attempt, in_job)->node->row;
        if (n->state == NODE_NOTICED && wall_is_set(n->notice_deadline) &&
            (first == 0 || n->notice_deadline.ms < first))
            first = n->notice_deadline.ms;
    }
    return first;
}

/* What the agent needs to start it. The texts were checked when they came in and are read from our own
 * database: if they do not load, the file is damaged. False: it cannot be sent (now). */
static bool add_start(
    struct sessions *s, const struct attempt *a, bool must, struct message *m, struct wire_desired_attempt *d)
{
    struct spec_change spec = {0};
    struct err e = {0};
    if (db_read_spec(s->o.reader, d->job, &spec, &e) != 0) {
        give_up(s, a, &e);
        return false;
    }
    size_t bytes = spec_bytes(&spec);
    if (!must && m->bytes + bytes > SPECS_BYTES_MAX) {
        m->is_full = true;
    } else {
        m->bytes += bytes;
        add_row(tick_model(s->o.tick), a, d);
        add_array(a->job, d);
        add_peers(a, d);
        STR_COPY(d->pool, a->node->row.pool);
        STR_COPY(d->cluster, s->o.cluster ? s->o.cluster : "");
        add_spec(d, &spec);
        add_script_on(a, d);
    }
    spec_change_deinit(&spec);
    return !m->is_full;
}

/* False: the attempt is left out. One that the agent has or may have never is, with secrets or without. */
static bool add_secrets(
    struct sessions *s, const struct seen *k, struct message *m, struct wire_desired_attempt *d)
{
    struct wire_secrets x = {0};
    bool must = k->told || k->sent, ready;
    if (!s->o.secrets)
        return true;
    ready = s->o.secrets(s->o.secrets_ctx, d->job, d->attempt, &x);
    d->needs_secrets = !ready || x.version != 0;
    if (!ready || x.version == k->secrets) {
        wire_secrets_wipe(&x);
        return ready || must;
    }
    size_t bytes = secrets_bytes(&x);
    if (m->bytes + bytes > SPECS_BYTES_MAX) {
        *(must ? &m->owes : &m->is_full) = true;
        wire_secrets_wipe(&x);
        return must;
    }
    m->bytes += bytes;
    d->secrets = x;
    return true;
}

static void desire(struct sessions *s, const struct attempt *a, struct seen *k, struct message *m)
{
    struct wire_desired_attempt *d = &m->d.attempts[m->d.n_attempts];
    d->job = a->row.job;
    d->attempt = a->row.attempt;
    d->acked_sequence = a->row.sequence;
    d->kill_wait_ms = s->o.kill_wait_ms;
    d->ckpt_every_ms = attempt_holds(a) ? 0 : core_interval_ms(a);
    d->saves_asked = attempt_holds(a) ? 0 : a->row.saves_asked;
    d->limit_ms = limit_ms(a);
    if (a->row.state == ATTEMPT_STOPPING && !holds_on(a)) {
        d->want = a->row.save_first ? WIRE_SAVE_STOP : WIRE_STOP;
        STR_COPY(d->reason, end_kind_names[a->row.stop_reason]);
        if (a->row.save_first)
            d->stop_by = gang_deadline(a);
        if (a->row.stop_reason == END_DRILLED && !a->row.save_first)
            d->kill_wait_ms = 0; /* as a machine goes that nobody was told of */
    }
    if (!add_secrets(s, k, m, d) || (d->want == WIRE_RUN && !k->told && !add_start(s, a, k->sent, m, d))) {
        wire_secrets_wipe(&d->secrets);
        *d = (struct wire_desired_attempt){0};
        return;
    }
    k->sent = true;
    m->d.n_attempts++;
}

/* First what the agent has or may have, which must not be missing, then what is new, as far as there is room.
 */
static void desire_all(struct sessions *s, struct session *x, const struct node *node, struct message *m)
{
    size_t n = 0;
    LIST_FOREACH (&node->attempts, l)
        n++;
    m->d.attempts = mem_array(n, sizeof(*m->d.attempts));
    for (int is_new = 0; is_new < 2; is_new++) {
        LIST_FOREACH (&node->attempts, l) {
            const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
            struct seen *k = seen_of(x, a->row.job, a->row.attempt);
            if (!m->is_full && m->d.n_attempts < WIRE_ATTEMPTS_MAX && (k->told || k->sent) == !is_new)
                desire(s, a, k, m);
        }
    }
    x->left_out = m->is_full || m->owes;
}

/* Of what the node keeps, that of jobs which will never run again. */
static void add_unneeded(struct sessions *s, const struct session *x, struct wire_desired *d)
{
    d->unneeded = mem_array(x->n_kept, sizeof(*d->unneeded));
    for (size_t i = 0; i < x->n_kept; i++) {
        const struct job *job = model_job(tick_model(s->o.tick), x->kept[i]);
        if (!job || job->row.state == JOB_ENDED)
            d->unneeded[d->n_unneeded++].job = x->kept[i];
    }
}

static void answer(struct sessions *s, struct session *x, sessions_reply_fn reply, void *ctx)
{
    const struct node *node = model_node(tick_model(s->o.tick), x->node);
    struct message m = {.d = {.rev = x->rev, .sync_ms = s->o.sync_ms, .lease_ms = s->o.lease_ms}};
    if (!node) {
        struct err e;
        err_set(&e, ERR_NOT_FOUND,
            "node %lld is not one of this cluster's any more: its instance has ended or it was "
            "deleted",
            (long long)x->node);
        reply(ctx, &e, NULL);
        return;
    }
    desire_all(s, x, node, &m);
    add_unneeded(s, x, &m.d);
    if (s->o.channels)
        s->o.channels(s->o.channels_ctx, x->node, &m.d);
    m.d.task_loads_taken = x->task_loads;
    m.d.gpu_loads_taken = x->gpu_loads;
    reply(ctx, NULL, &m.d);
    wire_desired_deinit(&m.d);
}

/* Something was left out of the last answer, and the agent has told all that it got since. */
static bool has_room_again(const struct session *x)
{
    LIST_FOREACH (&x->seen, n) {
        const struct seen *k = LIST_ENTRY(n, struct seen, in_session);
        if (k->sent && !k->told)
            return false;
    }
    return x->left_out;
}

/* Lets the waiting status go: with e, or (e NULL) with what is desired now. The latter only when all that the
 * model holds is on disk: in an effect or a reply of the tick. */
static void release(struct session *x, const struct err *e)
{
    sessions_reply_fn reply = x->reply;
    if (!reply)
        return;
    x->reply = NULL;
    timer_stop(x->owner->o.timers, &x->timer);
    if (e)
        reply(x->ctx, e, NULL);
    else
        answer(x->owner, x, reply, x->ctx);
}

static void drop_if_gone(struct sessions *s, struct session *x)
{
    if (x->reply || model_node(tick_model(s->o.tick), x->node))
        return;
    map_remove(&s->by_node, x->node);
    session_free(x);
}

void sessions_touch(struct sessions *s, int64_t node)
{
    struct session *x = session_of(s, node);
    x->rev++;
    release(x, NULL);
    drop_if_gone(s, x);
}

/* A timer may fire while a commit is under way: the release takes its turn behind it. */
struct overdue {
    struct sessions *s;
    int64_t node;
};

static void on_overdue(void *ctx, const struct err *e, int64_t id)
{
    struct overdue *o = ctx;
    struct session *x = map_get(&o->s->by_node, o->node);
    (void)id;
    if (x)
        release(x, e);
    free(o);
}

static void on_wait_over(struct timer *timer, void *ctx)
{
    struct session *x = ctx;
    struct overdue *o = mem_alloc(sizeof(*o));
    (void)timer;
    *o = (struct overdue){x->owner, x->node};
    tick_when_durable(x->owner->o.tick, on_overdue, o);
}

void sessions_release_all(struct sessions *s)
{
    struct err e;
    size_t pos = 0;
    err_set(&e, ERR_UNAVAILABLE, "belayd is stopping");
    for (struct session *x; (x = map_next(&s->by_node, &pos, NULL));)
        release(x, &e);
}

/* ---- what is told ---- */

void sessions_read_extras(const char *features, const char *resources, char ret_features[FEATURES_TEXT_MAX],
    char ret_resources[COUNTS_TEXT_MAX])
{
    struct counts counts = {0};
    char name[FEATURE_MAX];
    ret_features[0] = '\0';
    for (size_t pos = 0; features_next(features, &pos, name);)
        features_add(ret_features, FEATURES_TEXT_MAX, name);
    if (counts_parse(resources, &counts, NULL) != 0)
        counts = (struct counts){0};
    counts_format(&counts, ret_resources);
}

enum criu_ability sessions_criu_ability(const char *name)
{
    int found = CRIU_UNKNOWN;
    for (int i = CRIU_NO; criu_ability_names[i]; i++)
        if (str_eq(criu_ability_names[i], name))
            found = i;
    return (enum criu_ability)found;
}

static void post_checkpoints(
    struct sessions *s, const struct attempt *a, const struct wire_attempt_status *st)
{
    for (size_t i = 0; i < st->n_checkpoints; i++) {
        const struct wire_checkpoint *c = &st->checkpoints[i];
        if (c->sequence <= a->row.sequence)
            continue;
        struct event ev = {
            .type = EV_CHECKPOINT,
            .checkpoint = {.job = st->job,
                .node = a->row.node,
                .ref = {st->attempt, c->sequence},
                .bytes = c->bytes,
                .stored_bytes = c->stored_bytes,
                .took_ms = c->took_ms,
                .pause_ms = c->pause_ms == WIRE_NONE ? c->took_ms : c->pause_ms,
                .progress = c->progress == WIRE_NONE ? PROGRESS_NONE : c->progress,
                .saved_at = {c->saved_at}},
        };
        STR_COPY(ev.checkpoint.cause, c->cause);
        tick_post(s->o.tick, &ev, NULL, NULL);
    }
}

static void post_failed_saves(
    struct sessions *s, struct seen *k, const struct attempt *a, const struct wire_attempt_status *st)
{
    if (st->failed_saves > k->failed_saves) {
        struct event ev = {.type = EV_SAVE_FAILED,
            .save_failed = {.job = st->job, .attempt = st->attempt, .node = a->row.node}};
        STR_COPY(ev.save_failed.text, st->save_error);
        tick_post(s->o.tick, &ev, NULL, NULL);
    }
    k->failed_saves = st->failed_saves;
}

static void post_end(struct sessions *s, const struct attempt *a, const struct wire_attempt_status *st)
{
    struct event ev = {.type = EV_ATTEMPT_ENDED,
        .ended = {.job = st->job,
            .attempt = st->attempt,
            .node = a->row.node,
            .exit_code = (int32_t)st->exit_code}};
    int end = END_NONE;
    for (int i = 1; end_kind_names[i]; i++)
        if (str_eq(end_kind_names[i], st->end))
            end = i;
    if (end == END_NONE) {
        log_warn(
            "an agent told an unknown end; counted as failed", log_i("job", st->job), log_s("end", st->end));
        end = END_FAILED;
    }
    ev.ended.end = (enum end_kind)end;
    ev.ended.cpu_ms = st->usage.cpu_ms;
    ev.ended.cpu_user_ms = st->usage.cpu_user_ms;
    ev.ended.memory_peak = st->usage.memory_peak_bytes;
    STR_COPY(ev.ended.text, st->text);
    tick_post(s->o.tick, &ev, NULL, NULL);
}

/* What is known already is told again with every status. */
static void post_usage(struct sessions *s, const struct attempt *a, const struct wire_attempt_status *st)
{
    const struct wire_usage *u = &st->usage;
    if (u->cpu_ms == a->row.cpu_ms && u->memory_peak_bytes == a->row.memory_peak && u->cpu_milli == a->cpu_milli &&
        u->memory_bytes == a->memory_bytes)
        return;
    struct event ev = {.type = EV_USAGE,
        .usage = {.job = st->job,
            .attempt = st->attempt,
            .node = a->row.node,
            .cpu_ms = u->cpu_ms,
            .cpu_user_ms = u->cpu_user_ms,
            .memory_peak = u->memory_peak_bytes,
            .cpu_milli = u->cpu_milli,
            .memory_bytes = u->memory_bytes}};
    tick_post(s->o.tick, &ev, NULL, NULL);
}

/* Once after each cleaning: the first rank alone cleans. */
static void post_kept(struct sessions *s, const struct attempt *a, const struct wire_attempt_status *st)
{
    int64_t known = model_stored_bytes(tick_model(s->o.tick), st->job);
    if (st->kept_bytes == 0 || known < 0 || known == st->kept_bytes || a->row.rank > 0)
        return;
    struct event ev = {.type = EV_KEPT, .kept = {.job = st->job, .attempt = st->attempt, .node = a->row.node, .bytes = st->kept_bytes}};
    tick_post(s->o.tick, &ev, NULL, NULL);
}

/* What the ledger has as useful and it does again: looked up only where it was not restored from what is last good, or one before was not. */
static int64_t behind_ms(const struct sessions *s, const struct job_row *j, int64_t attempt, struct ckpt_ref restored)
{
    struct err e;
    int64_t ms = 0;
    bool newest = restored.attempt == j->last_good.attempt && restored.sequence == j->last_good.sequence, was = false;
    int rc = attempt > 2 && newest ? db_read_was_behind(s->o.reader, j->id, attempt, &was, &e) : 0;
    if (rc == 0 && (was || !newest))
        rc = db_read_behind(s->o.reader, j->id, attempt, restored, &ms, &e);
    if (rc != 0)
        log_warn("what a job does again cannot be read: it is not counted", log_i("job", j->id), log_err(&e));
    return ms;
}

static void post_attempt(struct sessions *s, struct session *x, const struct wire_attempt_status *st)
{
    const struct job *job = model_job(tick_model(s->o.tick), st->job);
    const struct attempt *a = job_attempt_on(job, st->attempt, x->node);
    struct seen *k = seen_of(x, st->job, st->attempt);
    k->told = true;
    k->secrets = st->secrets;
    k->status_no = x->status_no;
    if (!a)
        return; /* stale: it is not desired, so the agent forgets it */
    if (st->started_at != WIRE_NONE && !wall_is_set(a->row.started_at)) {
        struct ckpt_ref restored = {st->restored_attempt, st->restored_sequence};
        struct event ev = {.type = EV_ATTEMPT_STARTED,
            .started = {.job = st->job,
                .attempt = st->attempt,
                .node = x->node,
                .restored = restored,
                .behind_ms = behind_ms(s, &job->row, st->attempt, restored),
                .restored_progress =
                    st->restored_progress == WIRE_NONE ? PROGRESS_NONE : st->restored_progress,
                .restore_ms = st->restore_ms,
                .bytes = st->restored_bytes,
                .nearby_bytes = st->reused_bytes,
                .damaged = (int32_t)st->damaged}};
        tick_post(s->o.tick, &ev, NULL, NULL);
    }
    if (st->done != WIRE_NONE && a->row.rank == 0) {
        struct event ev = {.type = EV_PROGRESS,
            .progress = {.job = st->job,
                .attempt = st->attempt,
                .done = st->done,
                .total = st->total == WIRE_NONE ? PROGRESS_NONE : st->total,
                .has_first = st->first_done != WIRE_NONE,
                .first = st->first_done}};
        tick_post(s->o.tick, &ev, NULL, NULL);
    }
    post_checkpoints(s, a, st);
    post_kept(s, a, st);
    post_failed_saves(s, k, a, st);
    if (st->phase == WIRE_ENDED)
        post_end(s, a, st);
    else
        post_usage(s, a, st);
}

/* An attempt that this agent had told and does not tell any more is lost with whatever it was (a wiped disk). One that was told to the
 * belayd before us only counts once the agent has heard of us: what it wrote before may have been overtaken by what told of it. */
static void post_vanished(struct sessions *s, struct session *x, const struct node *node, int64_t have_rev)
{
    bool knows_us = have_rev >> REV_BOOT_SHIFT == s->o.boots;
    LIST_FOREACH (&node->attempts, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        const struct seen *k = seen_of(x, a->row.job, a->row.attempt);
        bool had = k->told || (knows_us && a->row.started_at.ms != TIME_NONE_MS);
        if (!had || k->status_no == x->status_no)
            continue;
        struct event ev = {.type = EV_ATTEMPT_ENDED,
            .ended = {.job = a->row.job, .attempt = a->row.attempt, .node = x->node, .end = END_NODE_LOST}};
        STR_COPY(ev.ended.text, SESSIONS_VANISHED);
        tick_post(s->o.tick, &ev, NULL, NULL);
    }
}

static void post_notice(struct sessions *s, const struct node *node, const struct wire_notice *n)
{
    int kind = NOTICE_TYPE_NONE;
    for (int i = 1; notice_type_names[i]; i++)
        if (str_eq(notice_type_names[i], n->kind))
            kind = i;
    if (kind <= (int)node->row.notice)
        return;
    struct event ev = {.type = EV_NOTICE,
        .notice = {.node = node->row.id,
            .kind = (enum notice_type)kind,
            .deadline = {n->deadline == WIRE_NONE ? TIME_NONE_MS : n->deadline}}};
    tick_post(s->o.tick, &ev, NULL, NULL);
}

static void post_facts(struct sessions *s, const struct node *node, const struct wire_status *st)
{
    struct event ev = {
        .type = EV_FACTS, .facts = {.node = node->row.id, .criu = sessions_criu_ability(st->criu)}};
    STR_COPY(ev.facts.criu_text, st->criu_text);
    sessions_read_extras(st->features, st->resources, ev.facts.features, ev.facts.resources);
    ev.facts.gpu.memory_mib = st->gpu_memory_mib;
    gpu_model(st->gpu_model, ev.facts.gpu.model);
    if (ev.facts.criu != node->row.criu || !str_eq(ev.facts.criu_text, node->row.criu_text) ||
        !str_eq(ev.facts.gpu.model, node->row.gpu.model) || ev.facts.gpu.memory_mib != node->row.gpu.memory_mib ||
        !str_eq(ev.facts.features, node->row.features) || !str_eq(ev.facts.resources, node->row.resources))
        tick_post(s->o.tick, &ev, NULL, NULL);
}

static void take_loads(struct sessions *s, struct session *x, const struct wire_status *st)
{
    if (s->o.loads)
        s->o.loads(s->o.loads_ctx, x->node, st, x->task_loads, x->gpu_loads);
    for (size_t i = 0; i < st->n_task_loads; i++)
        x->task_loads = st->task_loads[i].no > x->task_loads ? st->task_loads[i].no : x->task_loads;
    for (size_t i = 0; i < st->n_gpu_loads; i++)
        x->gpu_loads = st->gpu_loads[i].no > x->gpu_loads ? st->gpu_loads[i].no : x->gpu_loads;
}

/* After the commit of what a status told: answer it or let it wait. */
static void on_told(void *ctx, const struct err *e, int64_t id)
{
    struct incoming *in = ctx;
    struct sessions *s = in->s;
    (void)id;
    if (e) {
        in->reply(in->ctx, e, NULL);
        free(in);
        return;
    }
    struct session *x = session_of(s, in->node);
    prune_seen(x, tick_model(s->o.tick));
    if (has_room_again(x))
        x->rev++;
    if (in->wait_ms <= 0 || in->have_rev != x->rev || !model_node(tick_model(s->o.tick), in->node)) {
        answer(s, x, in->reply, in->ctx);
        drop_if_gone(s, x);
    } else {
        release(x, NULL);
        x->reply = in->reply;
        x->ctx = in->ctx;
        timer_start(s->o.timers, &x->timer, in->wait_ms < s->o.sync_ms ? in->wait_ms : s->o.sync_ms);
    }
    free(in);
}

void sessions_status(
    struct sessions *s, int64_t node_id, const struct wire_status *st, sessions_reply_fn reply, void *ctx)
{
    const struct node *node = model_node(tick_model(s->o.tick), node_id);
    struct session *x = session_of(s, node_id);
    struct incoming *in = mem_alloc(sizeof(*in));
    *in = (struct incoming){.s = s,
        .node = node_id,
        .have_rev = st->have_rev,
        .wait_ms = st->wait_ms,
        .reply = reply,
        .ctx = ctx};
    bool newer = st->incarnation > x->incarnation || (st->incarnation == x->incarnation && st->seq > x->seq);
    if (node && newer) {
        if (st->incarnation != x->incarnation)
            x->task_loads = x->gpu_loads = 0;
        x->incarnation = st->incarnation;
        x->seq = st->seq;
        x->status_no++;
        x->n_kept = st->n_kept;
        for (size_t i = 0; i < st->n_kept; i++)
            x->kept[i] = st->kept[i].job;
        post_notice(s, node, &st->notice);
        post_facts(s, node, st);
        for (size_t i = 0; i < st->n_attempts; i++)
            post_attempt(s, x, &st->attempts[i]);
        post_vanished(s, x, node, st->have_rev);
        take_loads(s, x, st);
    }
    struct event ev = {.type = EV_HEARTBEAT, .heartbeat = {.node = node_id}};
    tick_post(s->o.tick, &ev, on_told, in);
}
