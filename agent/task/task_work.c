/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocking work: making a task's directory, restoring, saving, cleaning, removing. It runs on a
 * thread of uv's pool, or on one of its own if it uses the store, and reads only members of the
 * task that do not change meanwhile: spec, paths, `work`.
 */
#include "agent/task/task_private.h"

#include "agent/criu/criu_gpu.h"
#include "agent/criu/criu_sandbox.h"
#include "agent/supervisor/env.h"
#include "agent/supervisor/image.h"
#include "agent/task/kept.h"
#include "agent/keyring.h"
#include "agent/task/handover.h"
#include "agent/task/job_secrets.h"
#include "agent/task/task_workdir.h"
#include "agent/supervisor/user.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include "ckpt/store/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRETS_WAIT_MS 15000     /* for belayd to send the secrets again after a restart */
#define DUMP_MS 600000            /* time limit of criu without a deadline */
#define DUMP_MIN_MS 1000          /* minimum time for criu, however near the deadline is */
#define PRE_DUMP_BYTES (64 << 20) /* of memory; less is dumped as fast without a pre-dump */

/* ---- the directory ---- */

/* Gives a file to the user. The directory must be one that only the agent can write to. */
static int own(const struct job_user *u, const char *path, struct err *e)
{
    if (!u->is_other || lchown(path, u->uid, u->gid) == 0)
        return 0;
    return handover_refused(u, path, errno, e);
}

static int make_sub(struct task *t, const struct job_user *u, const char *name, struct err *e)
{
    char *path = mem_printf("%s/%s", t->dir, name);
    int rc = fs_mkdirs(path, 0700, e);
    if (!rc)
        rc = own(u, path, e);
    free(path);
    return rc;
}

/* Writes a file in the task's own directory in place, not by rename: it is read only once spec.json
 * exists. */
static int put_new(struct task *t, const struct job_user *u, const char *name, mode_t mode,
    const char *text, struct err *e)
{
    char *path = mem_printf("%s/%s", t->dir, name);
    int rc = record_put_new(path, text, strlen(text), mode, e);
    if (!rc)
        rc = own(u, path, e);
    free(path);
    return rc;
}

static int make_image_script(struct task *t, const struct job_user *u, struct err *e)
{
    if (!t->spec->image)
        return 0;
    char *path = mem_printf("%s/image.sh", t->dir), *text = image_script();
    int rc = record_put(path, text, strlen(text), 0500, e);
    if (!rc)
        rc = own(u, path, e);
    free(text);
    free(path);
    return rc;
}

static int make_output(const struct task *t, struct err *e)
{
    int fd = open(t->output.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, errno, "creating %s", t->output.path);
    close(fd);
    return 0;
}

/* Writes a file that only the job's user can read. sub: "/control", or "" for the task's own
 * directory. Takes v. */
static int put_secret(struct task *t, const struct job_user *u, const char *sub, const char *name,
    json_t *v, struct err *e)
{
    char *text = json_dump_text(v), *dir = mem_printf("%s%s", t->dir, sub);
    int rc = *sub ? handover_file(u, dir, name, text, strlen(text), e)
                  : put_new(t, u, name, 0600, text, e);
    explicit_bzero(text, strlen(text));
    free(text);
    free(dir);
    json_wipe(v);
    return rc;
}

/* Makes the file that a job needs to change itself at belayd (cli/inside.h), for the job's user
 * only. It is next to the script, because a task with an empty control directory costs half as much
 * to prepare and remove. A container sees only the control directory of the task's directories. */
static int make_token(struct task *t, const struct job_user *u, struct err *e)
{
    const struct config *c = t->common->peer->config;
    if (!t->spec->job_token)
        return 0;
    json_t *v = json_pack("{s:o,s:o,s:o}", "server", json_text(c->server), "ca",
        json_text(c->ca_pem), "token", json_text(t->spec->job_token));
    return put_secret(t, u, t->spec->image ? "/control" : "", TASK_JOB, v, e);
}

/* Makes the file with which srun starts tasks on the other nodes (cli/slurm/step_parts.h). */
static int make_steps(struct task *t, const struct job_user *u, struct err *e)
{
    const struct wire_desired_attempt *s = t->spec;
    const struct config *c = t->common->peer->config;
    if (!s->script_on_first || s->rank > 0 || !s->job_token)
        return 0;
    json_t *nodes = json_array();
    for (size_t i = 0; i < s->n_peers; i++)
        json_array_append_new(nodes, json_text(s->peers[i].name));
    json_t *v = json_pack("{s:o,s:o,s:o,s:o,s:o}", "server", json_text(c->server), "ca",
        json_text(c->ca_pem), "token", json_text(s->job_token), "address",
        json_text(s->peers[0].address), "nodes", nodes);
    return put_secret(t, u, "/control", TASK_STEPS, v, e);
}

static int make_dir(struct task *t, const struct job_user *u, struct err *e)
{
    char *spec = mem_printf("%s/spec.json", t->dir);
    bool is_spare = *t->work.spare.name && spare_use(t->common->dir, &t->work.spare, t->dir, u);
    /* made by an earlier agent: keeps a complete script, which may be about to start */
    bool is_made = !is_spare && fs_exists(spec);
    int rc = is_spare ? 0 : fs_mkdirs(t->dir, u->is_other ? 0711 : 0700, e);
    if (!rc && !is_made)
        rc = put_new(t, u, "script", 0500, t->spec->script, e);
    if (!rc)
        rc = make_image_script(t, u, e);
    if (!rc)
        rc = make_output(t, e);
    if (!rc && !is_spare)
        rc = make_sub(t, u, "control", e);
    if (!rc && !is_made)
        rc = make_token(t, u, e);
    if (!rc)
        rc = make_steps(t, u, e);
    if (!rc && !is_spare && !task_by_criu(t))
        rc = make_sub(t, u, "checkpoint", e);
    if (!rc && !is_made)
        rc = record_write_spec(spec, t->spec, e); /* last, because it makes the directory valid */
    free(spec);
    return rc;
}

/* ---- the store ---- */

/* A restore by CRIU does as root what the images say. Only their seal proves that this job's agents
 * made them. */
static int check_seal(struct task *t, struct ckpt_crypt *crypt)
{
    crypt->only_sealed = task_by_criu(t) && t->work.kind == WORK_PREPARE;
    if (!crypt->only_sealed || (crypt->encrypts && crypt->n > 0))
        return 0;
    return err_set(&t->work.e, ERR_CONFIG,
        "--checkpoint criu restores as root what the store holds, so it needs encrypted "
        "checkpoints, and this cluster's are not: set encryption: client in belayd's "
        "configuration, restart belayd "
        "and "
        "release the job, or submit it with another --checkpoint");
}

static int with_store(struct task *t, int (*fn)(struct task *t, const struct ckpt_job *j))
{
    struct task_work *w = &t->work;
    struct job_store store;
    const struct job_store_of of = {.url = w->store,
        .cluster = w->cluster,
        .uid = t->spec->store_uid,
        .job = t->job,
        .secrets = &w->secrets,
        .net = w->net,
        .cancel = &w->cancel,
        .pulse = &w->pulse};
    if (w->needs_secrets && w->secrets.version == 0)
        return err_set(&w->e, ERR_UNAVAILABLE,
            "the keys or credentials of this job's checkpoints are missing: this agent was "
            "restarted, and belayd, which has them, does not answer");
    int rc = job_store_open(&of, &store, &w->store_fault, &w->e);
    w->store_failed = rc != 0;
    if (rc)
        return rc;
    rc = check_seal(t, &store.crypt);
    if (rc == 0)
        rc = fn(t, &store.job);
    w->is_unsealed = rc == ERR_CONFIG && store.crypt.only_sealed;
    job_store_close(&store);
    bool is_disk_full = rc == ERR_NO_SPACE && !w->e.of_store;
    w->store_failed = rc != 0 && rc != ERR_CANCELLED && !is_disk_full && !w->fenced;
    if (rc == ERR_DENIED && w->net != t->common->net)
        err_wrap(&w->e, "with the credentials that belayd gave for this job");
    return rc;
}

static struct ckpt_gang gang_of(const struct task *t)
{
    if (!task_is_gang(t))
        return (struct ckpt_gang){0};
    return (struct ckpt_gang){.rank = (int32_t)t->spec->rank, .nodes = (int32_t)t->spec->n_peers};
}

/* Reuses files on this node: first those of an earlier try, then those of earlier attempts. */
static int restore_near(struct task *t, const struct ckpt_job *j)
{
    struct task_work *w = &t->work;
    const struct task_common *r = t->common;
    char *left[CKPT_NEARBY_MAX - 1];
    size_t n = kept_find(r->kept_dir, r->dir, t->job, t->attempt, left, CKPT_NEARBY_MAX - 1);
    char *ranks = mem_printf("%s/ranks", t->dir);
    struct ckpt_restore_with with = {.nearby = {t->ckpt.dir},
        .gang = gang_of(t),
        .ranks_dir = ranks,
        .from_attempt = t->spec->from_attempt};
    for (size_t i = 0; i < n; i++)
        with.nearby[1 + i] = left[i];
    int rc = ckpt_restore_with(j, t->attempt, t->ckpt.dir, &with, &w->cancel, &w->restored, &w->e);
    for (size_t i = 0; i < n; i++)
        free(left[i]);
    free(ranks);
    return rc;
}

static int give_ranks(const struct task *t, const struct job_user *u, struct err *e)
{
    char *ranks = mem_printf("%s/ranks", t->dir);
    int rc = fs_exists(ranks) ? handover_tree(u, ranks, e) : 0;
    free(ranks);
    return rc;
}

/* ---- CRIU ---- */

/* The checkpoint's directory stays the agent's, because criu does as root what the images say. */
static int prepare_sandbox(struct task *t, const struct job_user *u)
{
    struct task_work *w = &t->work;
    if (t->common->criu->can == WIRE_CRIU_NO)
        return err_set(&w->e, ERR_UNSUPPORTED, "--checkpoint criu: %s", t->common->criu->text);
    STR_COPY(t->state.criu, t->common->criu->path);
    int rc = criu_sandbox_write_hook(t->dir, &w->e);
    if (rc)
        return rc;
    return handover_scratch(u, t->dir, t->ckpt.dir, &w->e);
}

static int64_t dump_time_ms(const struct task_work *w)
{
    int64_t left = w->deadline_ms ? w->deadline_ms - clock_mono(&clock_system).ms : DUMP_MS;
    return left < DUMP_MIN_MS ? DUMP_MIN_MS : left;
}

static int dump(struct task *t)
{
    struct task_work *w = &t->work;
    struct err ignored;
    bool with_gpus = t->common->criu->can == WIRE_CRIU_GPU && *t->state.gpus;
    struct criu_dump d = {
        .task_dir = t->dir, .criu = t->common->criu, .step = CRIU_PRE_DUMP, .with_gpus = with_gpus};
    int64_t began = clock_mono(&clock_system).ms;
    int rc = criu_sandbox_prepare_dump(t->dir, &w->e);
    if (!rc && with_gpus)
        rc = criu_gpu_check_memory(t->state.gpus, t->supervision.usage.memory, &w->e);
    d.timeout_ms = dump_time_ms(w);
    if (!rc && d.criu->tracks && !with_gpus && criu_sandbox_memory(t->dir) >= PRE_DUMP_BYTES) {
        rc = criu_sandbox_dump(&d, &w->e);
        d.parent = rc == 0;
        if (rc && rc != ERR_TIMEOUT) { /* then dumps without a pre-dump */
            log_warn("memory could not be dumped ahead", log_i("job", t->job), log_err(&w->e));
            rc = criu_sandbox_prepare_dump(t->dir, &ignored);
        }
    }
    d.step = w->dumps_stopped ? CRIU_DUMP_STOPPED : CRIU_DUMP_RUNNING;
    d.timeout_ms = dump_time_ms(w);
    if (!rc)
        rc = criu_sandbox_dump(&d, &w->e);
    w->dump_ms = clock_mono(&clock_system).ms - began;
    return rc;
}

/* Searches the newest checkpoint that is older than `below`, which CRIU failed to restore. */
struct older {
    struct ckpt_id below, found;
    int64_t progress, from_attempt;
};

static int match_older(void *ctx, const struct ckpt_info *info)
{
    struct older *o = ctx;
    bool is_older =
        layout_compare_ids(info->id, o->below) < 0 && info->id.attempt >= o->from_attempt;
    if (is_older) {
        o->found = info->id;
        o->progress = info->progress;
    }
    return is_older;
}

/* A checkpoint that fails verification is skipped but not set aside, which is left to nodes where
 * CRIU has not refused a newer one (restore_near). */
static int restore_older(struct task *t, const struct ckpt_job *j)
{
    struct task_work *w = &t->work;
    struct older o = {.below = {t->state.refused_attempt, t->state.refused_sequence},
        .from_attempt = t->spec->from_attempt};
    int rc = ERR_CORRUPT;
    while (rc == ERR_CORRUPT || rc == ERR_NOT_FOUND) {
        o.found = (struct ckpt_id){0};
        rc = fs_remove_tree(t->ckpt.dir, &w->e);
        if (!rc)
            rc = ckpt_list(j, match_older, &o, &w->e);
        if (rc || o.found.attempt == 0)
            return rc;
        rc = ckpt_get(j, o.found, t->ckpt.dir, &w->cancel, &w->restored.stats, &w->e);
        o.below = o.found;
    }
    if (!rc) {
        w->restored.id = o.found;
        w->restored.progress = o.progress;
    }
    return rc;
}

/* ---- restore, save, clean, find ---- */

static int begin_with_store(struct task *t, const struct ckpt_job *j)
{
    struct task_work *w = &t->work;
    const struct wire_desired_attempt *s = t->spec;
    const struct ckpt_expected x = {.identity = s->ckpt_identity,
        .last = {s->expect_attempt, s->expect_sequence},
        .from_attempt = s->from_attempt};
    enum ckpt_mismatch mismatch;
    int rc = ckpt_begin(j, t->attempt, &x, &mismatch, &w->e);
    w->fenced = rc == ERR_CONFLICT && mismatch == CKPT_MATCHES;
    if (mismatch != CKPT_MATCHES)
        w->store_fault = mismatch == CKPT_LOST ? STORE_HAS_LOST_IT : STORE_IS_ANOTHER;
    return rc;
}

/* If a checkpoint fails verification, or CRIU failed to restore it, the previous one is used. If
 * none is left, the job is held: only its user may decide to repeat all of its work. */
static int check_restored(struct task *t, const struct ckpt_job *j)
{
    struct task_work *w = &t->work;
    const struct ckpt_id last = {t->spec->expect_attempt, t->spec->expect_sequence};
    bool on_purpose = false;
    if (w->restored.id.attempt > 0)
        return 0;
    if (t->state.refused_attempt > 0) {
        w->store_fault = STORE_IS_REFUSED;
        return err_set(
            &w->e, ERR_UNSUPPORTED, "it has no other checkpoint: %s", t->state.reported.save_error);
    }
    int rc = last.attempt > 0 ? ckpt_was_deleted(j, last, &on_purpose, &w->e) : 0;
    if (rc || on_purpose || last.attempt == 0)
        return rc;
    w->store_fault = STORE_IS_DAMAGED;
    return err_set(&w->e, ERR_CORRUPT, "it has no checkpoint left to resume from%s%s",
        w->restored.damaged ? ": " : "", w->restored.damage);
}

/* Takes the fence first, without which older attempts could still save. */
static int restore(struct task *t, const struct ckpt_job *j)
{
    struct task_work *w = &t->work;
    int (*const fetch)(struct task *, const struct ckpt_job *) =
        t->state.refused_attempt > 0 ? restore_older : restore_near;
    int rc = begin_with_store(t, j);
    if (rc)
        return rc;
    rc = fetch(t, j);
    if (rc == ERR_NO_SPACE && !w->e.of_store) { /* removes kept directories, fetches everything */
        kept_prune(t->common->kept_dir, NULL, 0, KEPT_NONE);
        rc = fetch(t, j);
    }
    return rc ? rc : check_restored(t, j);
}

static struct ckpt_keep keep_of(const struct task *t)
{
    const struct job_spec *s = &t->spec->options;
    return (struct ckpt_keep){
        .newest = s->ckpt_keep < 1 ? 1 : s->ckpt_keep, .every = s->ckpt_keep_every};
}

static int save(struct task *t, const struct ckpt_job *j)
{
    struct task_work *w = &t->work;
    const struct ckpt_id id = {t->attempt, w->sequence};
    struct err ignored;
    if (!t->ckpt.seen)
        t->ckpt.seen = ckpt_seen_create();
    const struct ckpt_save_with with = {.seen = t->ckpt.seen,
        .deadline_ms = w->deadline_ms,
        .pace = &w->pace,
        .gang = gang_of(t),
        .refused = w->refused,
        .keep = keep_of(t)};
    int rc = w->snapshot ? ckpt_save_snapshot(
                               j, id, w->snapshot, w->progress, &w->cancel, &with, &w->stats, &w->e)
                         : ckpt_save_with(j, id, t->ckpt.dir, w->progress, &w->cancel, &with,
                               &w->stats, &w->e);
    w->fenced = rc == ERR_CONFLICT && ckpt_fence(j, t->attempt, &ignored) == ERR_CONFLICT;
    return rc;
}

static int clean(struct task *t, const struct ckpt_job *j)
{
    return ckpt_clean_with(
        j, t->attempt, keep_of(t), t->ckpt.seen, &t->work.cancel, &t->work.kept_bytes, &t->work.e);
}

static int note_found(void *ctx, const struct ckpt_info *info)
{
    struct task *t = ctx;
    bool is_it = task_is_gang(t) ? info->id.sequence >= t->work.sequence
                                 : info->id.sequence == t->work.sequence;
    if (info->id.attempt == t->attempt && is_it && !info->unreadable)
        t->work.found = (struct wire_checkpoint){.sequence = info->id.sequence,
            .bytes = info->bytes,
            .progress = info->progress < 0 ? WIRE_NONE : info->progress,
            .saved_at = info->saved_at.ms};
    return 1; /* ends the list: only the newest checkpoint can be the save */
}

static int find(struct task *t, const struct ckpt_job *j)
{
    const struct ckpt_gang gang = gang_of(t);
    struct err e;
    int rc = ckpt_list(j, note_found, t, &t->work.e);
    if (!rc && task_is_gang(t) &&
        ckpt_gang_lost(j, (struct ckpt_id){t->attempt, t->state.sequence}, &gang, &e))
        log_warn("a lost save could not be reported to the other ranks", log_i("job", t->job),
            log_err(&e));
    return rc;
}

/* ---- the working directory, and the checkpoint ---- */

/* Fetches the working directory from belayd while the checkpoint is restored from the store:
 * neither reads what the other writes. An error of the restore comes first, because what becomes of
 * the attempt depends on what is known of the store (prepare_failed). */
static int fetch_and_restore(struct task *t, const struct job_user *u)
{
    struct task_workdir b;
    int rc = 0;
    task_workdir_begin(&b, t, u, task_saves(t));
    if (task_saves(t) && (b.is_parallel || b.rc == 0))
        rc = with_store(t, restore);
    struct err e;
    int rc_workdir = task_workdir_end(&b, &e);
    if (rc == 0 && rc_workdir)
        t->work.e = e;
    return rc ? rc : rc_workdir;
}

/* ---- kinds ---- */

static int prepare(struct task *t)
{
    struct task_work *w = &t->work;
    struct job_user u;
    int rc = user_resolve(t->spec->user, &u, &w->e);
    if (!rc)
        rc = user_admit(&u, t->common->system_users, &w->e);
    w->user_refused = rc == ERR_CONFIG;
    if (!rc)
        rc = make_dir(t, &u, &w->e);
    w->of_records = rc == ERR_NO_SPACE && !w->e.of_user;
    if (!rc)
        rc = fetch_and_restore(t, &u);
    if (!rc && t->spec->has_job_secrets)
        rc = job_secrets_put(t->dir, &u, &w->secrets, &w->e);
    if (!rc && task_by_criu(t))
        return prepare_sandbox(t, &u);
    if (!rc && task_saves(t))
        rc = handover_checkpoint(&u, t->ckpt.dir, &w->e);
    if (!rc && task_saves(t))
        rc = give_ranks(t, &u, &w->e);
    return rc;
}

/* The files in the directory of an ordinary task, in the order of their removal. Without the spec,
 * which is first, a restarted agent does not take the directory for a task. */
static const char *const plain_files[] = {"spec.json", "state.json", "script", TASK_JOB,
    "supervisor.pid", "exit.json", "output.log", "ctl.sock"};

static int remove_all(struct task *t)
{
    if (t->spec->has_job_secrets)
        job_secrets_remove(t->dir);
    if (t->work.keeps)
        kept_put(t->common->kept_dir, t->job, t->attempt, t->ckpt.dir);
    t->work.is_spare =
        *t->work.spare.name && spare_make(t->common->dir, &t->work.spare, t->dir, plain_files,
                                   sizeof(plain_files) / sizeof(*plain_files));
    return t->work.is_spare ? 0 : fs_remove_tree(t->dir, &t->work.e);
}

/* Frees the space of an incomplete restore now; the rest of the task may stay for a while. */
static void drop_partial(const struct task *t)
{
    char *workdir = mem_printf("%s/" WORKDIR_NAME, t->dir);
    struct err e;
    if (fs_remove_tree(t->ckpt.dir, &e) || fs_remove_tree(workdir, &e))
        log_warn("files that did not fit on the disk cannot be removed", log_i("job", t->job),
            log_err(&e));
    free(workdir);
}

static void on_thread(void *ctx)
{
    struct task *t = ctx;
    struct task_work *w = &t->work;
    switch (w->kind) {
    case WORK_PREPARE:
        w->rc = prepare(t);
        if (w->rc == ERR_NO_SPACE && !w->store_failed && !w->of_records)
            drop_partial(t);
        break;
    case WORK_DUMP:
        w->rc = dump(t);
        break;
    case WORK_SAVE:
        w->rc = with_store(t, save);
        break;
    case WORK_CLEAN:
        w->rc = with_store(t, clean);
        break;
    case WORK_FIND:
        w->rc = with_store(t, find);
        break;
    case WORK_REMOVE:
        w->rc = remove_all(t);
        break;
    case WORK_NONE:
        break;
    }
}

static void on_done(void *ctx)
{
    struct task *t = ctx;
    bool was_save = t->work.kind == WORK_SAVE;
    const struct task_common *common = t->common;
    wire_secrets_wipe(&t->work.secrets);
    workdir_source_deinit(&t->work.workdir);
    t->work.kind = WORK_NONE;
    if (!t->released)
        timer_stop(common->timers, &t->prep.hang_check);
    if (!t->released && !t->work.is_given_up)
        t->work.done(t); /* which may free it */
    if (was_save)
        common->order(common->ctx);
}

static bool needs_secrets(const struct task *t)
{
    return t->spec->needs_secrets || t->state.needs_secrets;
}

/* Whether the work is short: a preparation that fetches nothing. */
static bool is_short(const struct task *t)
{
    return t->work.kind == WORK_PREPARE && !task_saves(t) && !*t->spec->workdir;
}

bool task_work_uses_store(const struct task *t)
{
    return task_saves(t) && t->work.kind != WORK_REMOVE && t->work.kind != WORK_DUMP;
}

static void run_on_store(struct task *t)
{
    task_watch_store(t);
    t->work.on_store =
        (struct store_work){.work = on_thread, .done = on_done, .ctx = t, .user = t->spec->user};
    store_threads_run(t->common->store_threads, &t->work.on_store);
}

static void begin(struct task *t)
{
    t->work.waits = t->work.lacks = false;
    timer_stop(t->common->timers, &t->secrets_wait);
    t->work.needs_secrets = needs_secrets(t);
    if (t->secrets.version != 0 && t->dir)
        keyring_renew(t->dir);
    wire_secrets_copy(&t->secrets, &t->work.secrets);
    t->work.net = t->secrets.store_token ? t->net : t->common->net;
    if (t->work.kind == WORK_PREPARE && *t->spec->workdir)
        workdir_source_init(&t->work.workdir, t->common->peer, t->job, t->attempt, t->spec->workdir,
            t->common->workdirs_dir);
    t->work.started_ms = task_mono_ms(t);
    if (task_work_uses_store(t))
        run_on_store(t);
    else if (t->work.kind == WORK_REMOVE && !task_saves(t))
        crew_run(t->common->removers, on_thread, on_done, t);
    else if (is_short(t))
        crew_run(t->common->preparers, on_thread, on_done, t);
    else
        uv_run_work(t->common->loop, on_thread, on_done, t);
}

/* During a reclaim the save has a deadline, and other tasks' saves may be stored first. */
static void wait_for_turn(struct task *t)
{
    int64_t deadline = t->supervision.hard_at.ms - TASK_COMMIT_MS;
    t->work.waits = true;
    t->work.deadline_ms = deadline > 0 ? deadline : 1;
    t->common->order(t->common->ctx);
    if (t->work.waits)
        log_info("a save waits for its turn", log_i("job", t->job), log_i("attempt", t->attempt),
            log_i("expected_ms", t->ckpt.save_took_ms));
}

void task_work_cancel(struct task *t)
{
    atomic_store(&t->work.cancel, 1);
    if (task_work_is_busy(&t->work) && (t->work.waits || t->work.lacks))
        begin(t); /* fails at once, because it is cancelled */
}

/* ---- secrets ---- */

static bool lacks_secrets(const struct task *t)
{
    enum work_kind kind = t->work.kind;
    bool needs =
        (task_saves(t) && needs_secrets(t)) || (kind == WORK_PREPARE && t->spec->has_job_secrets);
    return kind != WORK_REMOVE && kind != WORK_DUMP && needs && t->secrets.version == 0;
}

static void start_work(struct task *t)
{
    t->work.lacks = false;
    if (t->work.kind == WORK_SAVE && mono_is_set(t->supervision.hard_at)) {
        wait_for_turn(t);
        return;
    }
    if (t->work.kind == WORK_DUMP && mono_is_set(t->supervision.hard_at))
        t->work.deadline_ms = t->supervision.hard_at.ms;
    begin(t);
}

void task_work_secrets(struct task *t)
{
    if (t->work.lacks)
        start_work(t);
}

static void on_secrets_wait(struct timer *timer, void *ctx)
{
    (void)timer;
    start_work(ctx); /* without secrets the work fails */
}

void task_work_init(struct task *t)
{
    timer_init(&t->secrets_wait, on_secrets_wait, t);
}

/* ---- turns ---- */

bool task_turn(const struct task *t, struct save_order_entry *ret, int64_t *ret_deadline_ms)
{
    const struct task_work *w = &t->work;
    if (w->kind != WORK_SAVE || w->lacks)
        return false;
    *ret = (struct save_order_entry){
        .estimate_ms = t->ckpt.save_took_ms, .started_ms = w->waits ? -1 : w->started_ms};
    if (w->deadline_ms != 0)
        *ret_deadline_ms = w->deadline_ms;
    return true;
}

void task_take_turn(struct task *t)
{
    begin(t);
}

void task_work_start(struct task *t, enum work_kind kind, void (*done)(struct task *t))
{
    struct task_work *w = &t->work;
    const struct wire_joined *node = &t->common->peer->id->node;
    w->kind = kind;
    w->done = done;
    w->rc = 0;
    w->e = (struct err){0};
    w->is_given_up = false;
    w->is_spare = w->fenced = w->is_unsealed = w->user_refused = w->store_failed = false;
    w->store_fault = STORE_IS_FINE;
    w->found = (struct wire_checkpoint){0};
    w->restored = (struct ckpt_restored){.progress = -1};
    w->stats = (struct ckpt_stats){0};
    atomic_store(&w->cancel, 0);
    atomic_store(&w->pulse.begun, 0);
    atomic_store(&w->pulse.alive, 0);
    atomic_store(&w->pace.total_bytes, -1);
    STR_COPY(w->store, node->store);
    STR_COPY(w->cluster, node->cluster);
    w->deadline_ms = 0;
    w->lacks = lacks_secrets(t);
    if (w->lacks)
        timer_start(t->common->timers, &t->secrets_wait, SECRETS_WAIT_MS);
    else
        start_work(t);
}
