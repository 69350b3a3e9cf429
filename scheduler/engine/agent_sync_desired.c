/* SPDX-License-Identifier: Apache-2.0
 *
 * The desired state of a node, in the form that its agent gets (see agent_sync.h).
 */
#include "scheduler/engine/agent_sync_private.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/member.h"
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/save_interval.h"
#include "scheduler/core/placement/constraints.h"
#include "scheduler/core/supply/prefetch.h"
#include "scheduler/engine/agent_sync_words.h"
#include <assert.h>
#include <string.h>

/* how much later a rank without a script reaches the time limit than the first rank */
#define NO_SCRIPT_SPARE_MS 30000
/* limit of scripts and the like in one message: half of the wire's limit */
#define SPECS_BYTES_MAX (4u << 20)

static void parse_args(const char *json, struct wire_desired_attempt *d)
{
    json_t *v = json_loads(json, 0, NULL);
    size_t i;
    json_t *item;
    d->args = mem_array(json_array_size(v), sizeof(*d->args));
    json_array_foreach(v, i, item) d->args[d->n_args++] = mem_strdup(json_string_value(item));
    json_decref(v);
}

static void add_env(json_t *v, struct wire_desired_attempt *d)
{
    const char *name;
    json_t *value;
    d->env = mem_array(json_object_size(v), sizeof(*d->env));
    json_object_foreach(v, name, value)
    {
        d->env[d->n_env].name = mem_strdup(name);
        d->env[d->n_env++].value = mem_strdup(json_string_value(value));
    }
}

/* ERR_NOT_FOUND, ERR_CORRUPT: it was sealed with a missing key, or modified. */
static int open_env(const struct agent_sync *s, const char *user, const char *stored,
    json_t **ret_env, struct err *e)
{
    if (s->o.env)
        return s->o.env(s->o.env_ctx, user, stored, ret_env, e);
    *ret_env = json_loads(stored, 0, NULL);
    return 0;
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
    d->open_mode = (enum wire_open_mode)wire_word_find(wire_open_mode_names, mode);
    STR_COPY(d->workdir, json_string_value(json_object_get(v, "workdir")));
    d->slurm_env = json_is_true(json_object_get(v, "slurm"));
    d->tasks = json_integer_value(json_object_get(v, "tasks"));
    d->all_tasks = json_integer_value(json_object_get(v, "all_tasks"));
    d->cpus_per_task = json_integer_value(json_object_get(v, "cpus_per_task"));
    parse_grace(json_object_get(v, "grace"), d);
    json_decref(v);
}

/* Takes ownership of the script. */
static void add_spec(struct wire_desired_attempt *d, struct spec_change *spec, json_t *env)
{
    d->script = spec->script;
    spec->script = NULL;
    parse_args(spec->args_json, d);
    add_env(env, d);
    STR_COPY(d->cwd, spec->cwd);
    parse_launch(spec->launch_json, d);
    d->slurm_env = d->slurm_env || strstr(d->script, "\n#SBATCH");
}

/* Adds the state that the attempt must find in the store, so that it never begins with less than
 * was saved, nor with the state of another job. */
static void add_expected(
    const struct agent_sync *s, const struct job_row *j, struct wire_desired_attempt *d)
{
    if (!s->o.cluster_uid || d->method == WIRE_METHOD_NONE)
        return;
    STR_COPY(d->store_uid, s->o.cluster_uid);
    static_assert(sizeof(d->ckpt_identity) == CKPT_IDENTITY_MAX, "as the wire carries it");
    core_ckpt_identity(s->o.cluster_uid, j->submitted_at, d->ckpt_identity);
    d->expect_attempt = j->last_good.attempt;
    d->expect_sequence = j->last_good.sequence;
    d->from_attempt = j->from_attempt;
}

static void add_row(
    const struct agent_sync *s, const struct attempt *a, struct wire_desired_attempt *d)
{
    const struct job_row *j = &a->job->row;
    const struct model *m = tick_model(s->o.tick);
    const struct constraints *x = model_constraints(m, j->constraints);
    job_spec_for_agent(&j->spec, &d->options);
    STR_COPY(
        d->user, s->o.run_as ? s->o.run_as(s->o.run_as_ctx, a->node->row.pool, j->user) : j->user);
    d->cpus = a->allocated.cpus;
    d->gpus = a->allocated.gpus;
    d->memory_mib = a->allocated.memory_mib;
    d->exclusive = x && x->exclusive;
    if (x)
        counts_format(&x->resources, d->resources);
    d->method = agent_sync_method(j->spec.method);
    d->has_job_secrets = j->spec.secrets > 0;
    d->save_ms = j->save_ms;
}

/* Upper limit of the bytes of a text in JSON. */
static size_t json_bytes(const char *s)
{
    size_t n = 2;
    for (; *s; s++)
        n += strchr("\"\\\b\f\n\r\t", *s) ? 2 : (unsigned char)*s < ' ' ? 6 : 1;
    return n;
}

static size_t secrets_bytes(const struct wire_secrets *x)
{
    const char *const texts[] = {x->store_access_key, x->store_secret_key, x->store_token};
    size_t n = x->n_checkpoint_keys * (WIRE_KEY_HEX + 4) + 256; /* and the names, and numbers */
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        n += texts[i] ? json_bytes(texts[i]) : 0;
    for (size_t i = 0; i < x->n_of_job; i++)
        n += strlen(x->of_job[i].value) + 3 * SECRET_NAME_MAX;
    return n;
}

static size_t spec_bytes(const struct spec_change *spec)
{
    return json_bytes(spec->script) + strlen(spec->args_json) + strlen(spec->env_json) +
           json_bytes(spec->cwd) + (spec->launch_json ? strlen(spec->launch_json) : 0);
}

/* The attempt can never be started: the job fails with the reason instead of waiting. */
static void end_unstartable(struct agent_sync *s, const struct attempt *a, const struct err *why)
{
    struct event ev = {.type = EV_ATTEMPT_ENDED,
        .ended = {
            .job = a->row.job, .attempt = a->row.attempt, .node = a->row.node, .end = END_FAILED}};
    log_error("an attempt cannot be started", log_i("job", a->row.job), log_err(why));
    STR_COPY(ev.ended.text, why->text);
    tick_post(s->o.tick, &ev, NULL, NULL);
}

/* A message being made. */
struct message {
    struct wire_desired *d;
    size_t bytes;       /* the size of its specifications and secrets */
    bool is_full;       /* something was omitted */
    bool lacks_secrets; /* secrets of an included attempt were omitted */
};

/* Copies the host of "10.0.0.7:40212" or "[::ffff:10.0.0.7]:40212", an agent's address, without the
 * port. */
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
    if (a->job->row.spec.nodes == 1)
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

/* The limit in force: users may change it after the start. */
static int64_t limit_ms(const struct attempt *a)
{
    int64_t ms = a->job->row.spec.time_limit_ms;
    return ms == 0 ? WIRE_NO_LIMIT : attempt_has_no_script(a) ? ms + NO_SCRIPT_SPARE_MS : ms;
}

/* A rank without a script reaches the time limit last, so that the first rank's end is the job's.
 * The delay before the limit at which its tasks get a signal is the same. */
static void add_script_on(const struct attempt *a, struct wire_desired_attempt *d)
{
    d->script_on_first = a->job->row.spec.script_on == SCRIPT_ON_FIRST;
    if (!attempt_has_no_script(a))
        return;
    d->method = WIRE_METHOD_NONE;
    d->options.ckpt_at[0] = '\0';
    d->options.time_limit_ms += d->options.time_limit_ms > 0 ? NO_SCRIPT_SPARE_MS : 0;
    d->grace_ms += d->grace_signal > 0 ? NO_SCRIPT_SPARE_MS : 0;
}

/* The gang's state is being saved: this rank stays until that has ended. */
static bool waits_for_gang_save(const struct attempt *a)
{
    if (!attempt_has_no_script(a) || a->row.state != ATTEMPT_STOPPING || !a->row.save_first)
        return false;
    LIST_FOREACH (&a->job->ranks, l)
        if (LIST_ENTRY(l, struct attempt, in_job)->row.rank == 0)
            return true;
    return false;
}

/* Returns the deadline of the first node of its gang that is to be reclaimed; 0 if none is
 * announced. */
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

static void add_token(const struct agent_sync *s, struct wire_desired_attempt *d)
{
    char token[WIRE_JOB_TOKEN_MAX + 1];
    if (!s->o.job_token)
        return;
    s->o.job_token(s->o.job_token_ctx, d->job, d->attempt, token);
    d->job_token = mem_strdup(token);
    explicit_bzero(token, sizeof(token));
}

/* Adds what the agent needs to start the attempt. The texts were checked at the submit and are read
 * from our own database: if they do not load, the file is damaged. Returns false if it cannot be
 * sent now. */
static bool add_start(struct agent_sync *s, const struct attempt *a, bool must, struct message *m,
    struct wire_desired_attempt *d)
{
    struct spec_change spec = {0};
    struct err e = {0};
    json_t *env = NULL;
    if (db_read_spec(s->o.reader, d->job, &spec, &e) != 0 ||
        open_env(s, a->job->row.user, spec.env_json, &env, &e) != 0) {
        spec_change_deinit(&spec);
        end_unstartable(s, a, &e);
        return false;
    }
    size_t bytes = spec_bytes(&spec);
    if (!must && m->bytes + bytes > SPECS_BYTES_MAX) {
        m->is_full = true;
    } else {
        m->bytes += bytes;
        add_row(s, a, d);
        add_array(a->job, d);
        add_peers(a, d);
        STR_COPY(d->pool, a->node->row.pool);
        STR_COPY(d->cluster, s->o.cluster ? s->o.cluster : "");
        add_spec(d, &spec, env);
        add_token(s, d);
        add_script_on(a, d);
        add_expected(s, &a->job->row, d);
    }
    json_wipe(env);
    spec_change_deinit(&spec);
    return !m->is_full;
}

/* Returns false if the attempt is omitted; *ret_why may then have the reason. An attempt that its
 * agent has, or may have, is never omitted, with or without secrets. */
static bool add_secrets(struct agent_sync *s, const struct known_attempt *k, struct message *m,
    struct wire_desired_attempt *d, struct err *ret_why)
{
    struct wire_secrets x = {0};
    bool must = k->reported || k->sent, ready;
    if (!s->o.secrets)
        return true;
    ready = s->o.secrets(s->o.secrets_ctx, d->job, d->attempt, &x, ret_why);
    d->needs_secrets = !ready || x.version != 0;
    if (!ready || x.version == k->secrets) {
        wire_secrets_wipe(&x);
        return ready || must;
    }
    size_t bytes = secrets_bytes(&x);
    if (m->bytes + bytes > SPECS_BYTES_MAX) {
        *(must ? &m->lacks_secrets : &m->is_full) = true;
        wire_secrets_wipe(&x);
        return must;
    }
    m->bytes += bytes;
    d->secrets = x;
    return true;
}

static bool may_use_store(const struct agent_sync *s, const struct attempt *a,
    const struct known_attempt *k, struct err *ret_why)
{
    bool needs_it = a->job->row.spec.method != CKPT_NONE && !attempt_has_no_script(a) &&
                    !k->reported && !k->sent;
    const char *fault = needs_it && s->o.store_fault ? s->o.store_fault(s->o.store_ctx) : NULL;
    if (fault)
        err_set(ret_why, ERR_UNAVAILABLE, "%s", fault);
    return !fault;
}

/* Posts a change of withholding that the model does not have yet. why is NULL if the agent gets the
 * attempt, or may already have it. Such an attempt is no longer withheld at the next decision,
 * because facts are applied first. */
static void post_withheld(struct agent_sync *s, const struct attempt *a, const struct err *why)
{
    struct event ev = {.type = EV_WITHHELD,
        .withheld = {.job = a->row.job,
            .attempt = a->row.attempt,
            .node = a->row.node,
            .why = !why                                                 ? WITHHELD_NO
                   : why->kind == ERR_DENIED || why->kind == ERR_CONFIG ? WITHHELD_DENIED
                                                                        : WITHHELD_AWAY}};
    if (why)
        STR_SHORTEN(ev.withheld.text, why->text);
    if (a->row.state == ATTEMPT_ASSIGNED &&
        (a->withheld != ev.withheld.why || (why && !str_eq(a->row.text, ev.withheld.text))))
        tick_post(s->o.tick, &ev, NULL, NULL);
}

/* Returns false if the attempt waits for credentials or keys of the store. An attempt that is to
 * end before its agent has received it needs none. */
static bool add_needed(struct agent_sync *s, const struct attempt *a, const struct known_attempt *k,
    struct message *m, struct wire_desired_attempt *d)
{
    struct err why = {0};
    if (d->want != WIRE_RUN && !k->reported && !k->sent)
        return true;
    bool ready = may_use_store(s, a, k, &why) && add_secrets(s, k, m, d, &why);
    if (!ready && why.kind == ERR_INVALID) {
        end_unstartable(s, a, &why);
        return false;
    }
    if (ready || why.kind != ERR_NONE)
        post_withheld(s, a, ready ? NULL : &why);
    return ready;
}

static void add_attempt(
    struct agent_sync *s, const struct attempt *a, struct known_attempt *k, struct message *m)
{
    struct wire_desired_attempt *d = &m->d->attempts[m->d->n_attempts];
    d->job = a->row.job;
    d->attempt = a->row.attempt;
    d->acked_sequence = a->row.sequence;
    d->kill_wait_ms = s->o.kill_wait_ms;
    d->store_wait_ms = s->o.store_wait_ms;
    d->ckpt_every_ms = attempt_has_no_script(a) ? 0 : core_interval_ms(a);
    d->saves_asked = attempt_has_no_script(a) ? 0 : a->row.saves_asked;
    d->limit_ms = limit_ms(a);
    d->gang_ended = a->job->row.gang_end != END_NONE;
    if (a->row.state == ATTEMPT_STOPPING && !waits_for_gang_save(a)) {
        d->want = a->row.save_first ? WIRE_SAVE_STOP : WIRE_STOP;
        d->reason = agent_sync_reason(a->row.stop_reason);
        if (a->row.save_first)
            d->stop_by = gang_deadline(a);
        if (a->row.stop_reason == END_DRILLED && !a->row.save_first)
            d->kill_wait_ms = 0; /* like a machine that vanishes without notice */
    }
    if (!add_needed(s, a, k, m, d) ||
        (d->want == WIRE_RUN && !k->reported && !add_start(s, a, k->sent, m, d))) {
        wire_secrets_wipe(&d->secrets);
        *d = (struct wire_desired_attempt){0};
        return;
    }
    k->sent = true;
    m->d->n_attempts++;
}

/* Adds first the attempts that the agent has or may have, which must not be missing, then new ones,
 * as far as there is space.
 */
static void add_attempts(
    struct agent_sync *s, struct node_sync *x, const struct node *node, struct message *m)
{
    size_t n = 0;
    LIST_FOREACH (&node->attempts, l)
        n++;
    m->d->attempts = mem_array(n, sizeof(*m->d->attempts));
    for (int is_new = 0; is_new < 2; is_new++) {
        LIST_FOREACH (&node->attempts, l) {
            const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
            struct known_attempt *k = agent_sync_find_known(x, a->row.job, a->row.attempt);
            if (!m->is_full && m->d->n_attempts < WIRE_ATTEMPTS_MAX &&
                (k->reported || k->sent) == !is_new)
                add_attempt(s, a, k, m);
        }
    }
    x->left_out = m->is_full || m->lacks_secrets;
}

/* Lists the kept trees of jobs that will never run again. */
static void add_unneeded(struct agent_sync *s, const struct node_sync *x, struct wire_desired *d)
{
    d->unneeded = mem_array(x->n_kept, sizeof(*d->unneeded));
    for (size_t i = 0; i < x->n_kept; i++) {
        const struct job *job = model_job(tick_model(s->o.tick), x->kept[i]);
        if (!job || job->row.state == JOB_ENDED)
            d->unneeded[d->n_unneeded++].job = x->kept[i];
    }
}

/* While belayd cannot use the store, or has no credentials for it, nothing is fetched. */
static bool add_prefetch_secrets(const struct agent_sync *s, struct wire_prefetch *x)
{
    struct err ignored = {0};
    if (s->o.store_fault && s->o.store_fault(s->o.store_ctx))
        return false;
    if (s->o.secrets && !s->o.secrets(s->o.secrets_ctx, x->job, x->attempt, &x->secrets, &ignored))
        return false;
    x->needs_secrets = x->secrets.version != 0;
    return true;
}

static void add_prefetch(
    const struct agent_sync *s, const struct node *node, struct wire_desired *d)
{
    const struct model *m = tick_model(s->o.tick);
    struct wire_prefetch *x = &d->prefetch;
    struct prefetch_order o;
    if (!prefetch_order_of(m, node, &o))
        return;
    *x = (struct wire_prefetch){.job = o.job, .attempt = o.attempt, .sequence = o.sequence};
    if (o.sequence == 0)
        return;
    x->from_attempt = model_job(m, o.job)->row.from_attempt;
    STR_COPY(x->store_uid, s->o.cluster_uid);
    if (!add_prefetch_secrets(s, x)) {
        wire_secrets_wipe(&x->secrets);
        x->sequence = 0;
    }
}

void agent_sync_build_desired(
    struct agent_sync *s, struct node_sync *x, const struct node *node, struct wire_desired *d)
{
    struct message m = {.d = d};
    add_attempts(s, x, node, &m);
    add_unneeded(s, x, d);
    add_prefetch(s, node, d);
}
