/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between the ranks of a job through its store (see gang.h).
 */
#include "ckpt/gang.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "ckpt/store/fence.h"
#include "ckpt/store/layout.h"
#include "ckpt/store/store_origin.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAUSE_MS 20
#define PAUSE_MAX_MS 1000
#define MESSAGE_MAX 256 /* bytes of a rank's message other than a manifest */
/* Prefixes of a rank's failure message if its store was full, or failed otherwise. */
#define MESSAGE_FULL "store-full: "
#define MESSAGE_OF_STORE "store: "

/* ---- names ---- */

static struct layout_name dir_of(const struct gang_meeting *g)
{
    char what[32];

    snprintf(what, sizeof(what), "gang/%010" PRId64 "/", g->id.attempt);
    return layout_prefix(g->job, what);
}

/* what: "open", "part" or "failed"; rank -1 for a name without a rank. */
static struct layout_name name_of(const struct gang_meeting *g, const char *what, int32_t rank)
{
    struct layout_name name = dir_of(g);
    size_t n = strlen(name.s);

    if (rank < 0)
        snprintf(name.s + n, sizeof(name.s) - n, "%010" PRId64 "-%s", g->id.sequence, what);
    else
        snprintf(name.s + n, sizeof(name.s) - n, "%010" PRId64 "-%s-%04" PRId32, g->id.sequence,
            what, rank);
    return name;
}

static struct layout_name name_of_restored(const struct gang_meeting *g, int round, int32_t rank)
{
    struct layout_name name = dir_of(g);
    size_t n = strlen(name.s);

    snprintf(name.s + n, sizeof(name.s) - n, "restored-%04d-%04" PRId32, round, rank);
    return name;
}

/* The context that binds an encrypted message to its place. kind: "gang" for a rank's part,
 * "gang-open" for the opening of a save, "gang-failed" for the reason of a failure. */
static struct layout_name seal_of(const struct gang_meeting *g, const char *kind, int32_t rank)
{
    char what[64];

    snprintf(what, sizeof(what), "%.12s/%010" PRId64 "-%010" PRId64 "-%04" PRId32, kind,
        g->id.attempt, g->id.sequence, rank);
    return layout_prefix(g->job, what);
}

void gang_rank_dir(int32_t rank, char out[GANG_RANK_DIR_MAX])
{
    snprintf(out, GANG_RANK_DIR_MAX, "rank-%04" PRId32, rank);
}

/* ---- waiting ---- */

/* Polling with growing pauses. */
struct wait {
    const struct gang_meeting *g;
    int64_t pause_ms;
};

/* Sleeps for one pause. Returns ERR_CANCELLED, or ERR_TIMEOUT with a text that callers replace. */
static int wait_on(struct wait *w, struct err *e)
{
    int64_t left = w->g->deadline_ms - clock_system_ms();

    if (w->g->cancel && atomic_load(w->g->cancel))
        return err_set(e, ERR_CANCELLED, "waiting for the other ranks was cancelled");
    if (left <= 0)
        return err_set(e, ERR_TIMEOUT, "timed out");
    int64_t ms = w->pause_ms < left ? w->pause_ms : left;
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
    w->pause_ms = w->pause_ms * 3 / 2 < PAUSE_MAX_MS ? w->pause_ms * 3 / 2 : PAUSE_MAX_MS;
    return 0;
}

/* ---- what is there ---- */

/* Result of a listing. */
struct found {
    size_t skip;    /* bytes of the prefix */
    int32_t rank;   /* this rank */
    int64_t newest; /* sequence of the newest open save; 0 = none */
    int64_t wanted; /* sequence of the save that the members below describe */
    int32_t n_parts;
    bool parts[CKPT_GANG_MAX];
    int32_t failed;    /* a rank that failed; -1 = none */
    bool has_reported; /* this rank has stored its part, or failed */
};

static bool parse_rank(const char *s, int32_t *ret_rank)
{
    int64_t n;

    if (strlen(s) != 4 || str_to_i64(s, 0, CKPT_GANG_MAX - 1, "rank", &n, NULL) != 0)
        return false;
    *ret_rank = (int32_t)n;
    return true;
}

static int note(void *ctx, const char *name, int64_t size_bytes)
{
    struct found *f = ctx;
    const char *rest = name + f->skip, *what = strchr(rest, '-');
    int64_t sequence;
    int32_t rank;

    (void)size_bytes;
    if (!layout_parse_attempt(rest, '-', &sequence))
        return 0;
    what++;
    if (str_eq(what, "open") && sequence > f->newest)
        f->newest = sequence;
    if (sequence != f->wanted)
        return 0;
    if (str_starts(what, "failed-") && parse_rank(what + 7, &rank)) {
        f->failed = rank;
        f->has_reported = f->has_reported || rank == f->rank;
    }
    if (str_starts(what, "part-") && parse_rank(what + 5, &rank) && !f->parts[rank]) {
        f->parts[rank] = true;
        f->n_parts++;
        f->has_reported = f->has_reported || rank == f->rank;
    }
    return 0;
}

static int scan_messages(
    const struct gang_meeting *g, int64_t wanted, struct found *ret_found, struct err *e)
{
    struct layout_name dir = dir_of(g);

    *ret_found =
        (struct found){.skip = strlen(dir.s), .rank = g->gang.rank, .wanted = wanted, .failed = -1};
    return g->job->store->ops->list(g->job->store, dir.s, note, ret_found, e);
}

/* seal: the context of an encrypted message (seal_of); NULL if it is not encrypted. */
static int read_message(const struct gang_meeting *g, const struct layout_name *name,
    const struct layout_name *seal, char out[MESSAGE_MAX], struct err *e)
{
    struct buf text = {0};
    size_t n;
    int rc = g->job->store->ops->read(
        g->job->store, name->s, MESSAGE_MAX - 1 + (seal ? CRYPT_MORE : 0), &text, e);

    if (!rc && seal) {
        rc = crypt_open(&g->job->crypt->keys[0], seal->s, text.data, text.len, &n, e);
        if (!rc)
            buf_truncate(&text, n);
    }
    if (!rc)
        str_copy(out, MESSAGE_MAX, buf_str(&text));
    buf_deinit(&text);
    return rc;
}

static bool is_sealed(const struct gang_meeting *g)
{
    return g->job->crypt && g->job->crypt->encrypts && g->job->crypt->n > 0;
}

static int put_message(const struct gang_meeting *g, const struct layout_name *name,
    const struct layout_name *seal, const char *message, struct err *e)
{
    char text[MESSAGE_MAX + CRYPT_MORE];
    size_t n;

    str_copy(text, MESSAGE_MAX, message);
    n = strlen(text);
    if (is_sealed(g)) { /* encrypt, because it contains steps and names of files */
        crypt_seal(&g->job->crypt->keys[0], seal->s, text, n);
        n += CRYPT_MORE;
    }
    return g->job->store->ops->create(g->job->store, name->s, text, n, e);
}

static int failed_by(const struct gang_meeting *g, int32_t rank, struct err *e)
{
    struct layout_name name = name_of(g, "failed", rank), seal = seal_of(g, "gang-failed", rank);
    char why[MESSAGE_MAX] = "";
    struct err ignored;

    read_message(g, &name, is_sealed(g) ? &seal : NULL, why, &ignored);
    bool is_full = str_starts(why, MESSAGE_FULL),
         of_store = is_full || str_starts(why, MESSAGE_OF_STORE);
    int rc = err_set(e, is_full ? ERR_NO_SPACE : ERR_UNAVAILABLE,
        "rank %" PRId32 " could not save: %s", rank, of_store ? strchr(why, ' ') + 1 : why);
    return of_store ? store_origin_mark(rc, e) : rc;
}

/* ---- a save ---- */

/* Rank 0's message when it opens a save: "PROGRESS waits" or "PROGRESS goes-on". */
struct opened {
    int64_t progress;
    bool program_continues;
};

static int read_opened(const struct gang_meeting *g, struct opened *ret, struct err *e)
{
    struct layout_name name = name_of(g, "open", -1), seal = seal_of(g, "gang-open", 0);
    char text[MESSAGE_MAX];
    int rc = read_message(g, &name, is_sealed(g) ? &seal : NULL, text, e);
    char *how = rc ? NULL : strchr(text, ' ');

    if (rc)
        return rc;
    if (how)
        *how++ = '\0';
    if (!how || (!str_eq(how, "waits") && !str_eq(how, "goes-on")) ||
        str_to_i64(text, -1, INT64_MAX, "progress", &ret->progress, NULL) != 0)
        return err_set(
            e, ERR_CORRUPT, "rank 0's message about save %" PRId64 " is malformed", g->id.sequence);
    ret->program_continues = str_eq(how, "goes-on");
    return 0;
}

static int put_opened(const struct gang_meeting *g, struct err *e)
{
    struct layout_name name = name_of(g, "open", -1), seal = seal_of(g, "gang-open", 0);
    char *text =
        mem_printf("%" PRId64 " %s", g->progress, g->program_continues ? "goes-on" : "waits");
    int rc = put_message(g, &name, &seal, text, e);

    free(text);
    return rc;
}

/* Opens the save or continues one that a killed agent, or a call whose reply was lost, has opened
 * for the same commit. A save open for another commit makes this one take the next sequence. */
static int open_save(struct gang_meeting *g, struct err *e)
{
    struct opened o;
    struct found f;
    int rc;

    while ((rc = put_opened(g, e)) == ERR_CONFLICT) {
        rc = read_opened(g, &o, e);
        if (rc || (o.progress == g->progress && o.program_continues == g->program_continues))
            break;
        g->id.sequence++;
    }
    if (!rc)
        rc = scan_messages(g, g->id.sequence, &f, e);
    if (rc)
        return rc;
    g->joined = true;
    return f.failed < 0 ? 0 : failed_by(g, f.failed, e);
}

static int err_steps(int32_t rank, int64_t step, int64_t other, struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE,
        "the ranks are not at the same step: rank %" PRId32 " is at %" PRId64
        ", another at %" PRId64 "; all have to commit at the same one",
        rank, step, other);
}

/* If rank 0's or this rank's program has gone on, both must report their steps: otherwise it is
 * unknown whether the two saves are of the same step. */
static int check_steps(const struct gang_meeting *g, const struct opened *o, struct err *e)
{
    bool both_reported = g->progress >= 0 && o->progress >= 0,
         both_wait = !g->program_continues && !o->program_continues;

    if (both_reported || both_wait || g->refused)
        return 0;
    return err_set(e, ERR_UNAVAILABLE,
        "rank %" PRId32 " does not report its step with the commit, but rank %" PRId32
        " does: all ranks must, or none",
        g->progress < 0 ? g->gang.rank : 0, g->progress < 0 ? 0 : g->gang.rank);
}

/* Fails the open save, whose step this rank has passed, so that the other ranks stop waiting. */
static void fail_passed_step(const struct gang_meeting *g, const struct opened *o)
{
    struct err why;

    if (o->progress >= 0)
        err_set(&why, ERR_UNAVAILABLE,
            "it has no checkpoint of step %" PRId64
            ", and is past it: all ranks have to commit at the same steps",
            o->progress);
    else
        err_set(&why, ERR_UNAVAILABLE, "it is already at its next checkpoint");
    gang_fail(g, &why);
}

/* Joins the open save with an error: both programs wait in commits of different steps, and neither
 * can reach the other's step. */
static int join_with_error(
    struct gang_meeting *g, const struct gang_meeting *open, const struct opened *o, struct err *e)
{
    g->id = open->id;
    g->joined = true;
    return err_steps(g->gang.rank, g->progress, o->progress, e);
}

/* Examines the save that rank 0 has opened; open is g with that save's id. Joins it if it is this
 * rank's commit, fails if rank 0 is past that commit, and returns 0 without joining otherwise. */
static int join_or_fail_open(struct gang_meeting *g, const struct gang_meeting *open, struct err *e)
{
    struct opened o;
    struct found f;
    int rc = scan_messages(g, open->id.sequence, &f, e);
    bool is_next, both_reported;

    if (rc || (f.has_reported && g->id.sequence > open->id.sequence))
        return rc;
    rc = read_opened(open, &o, e);
    if (rc)
        return rc == ERR_NOT_FOUND ? 0 : rc; /* it was removed meanwhile */
    both_reported = o.progress >= 0 && g->progress >= 0;
    if (both_reported && o.progress != g->progress && !o.program_continues &&
        !g->program_continues && f.failed < 0)
        return join_with_error(g, open, &o, e);
    is_next = both_reported ? g->progress > o.progress : g->id.sequence > open->id.sequence;
    if (is_next) {
        if (f.failed < 0)
            fail_passed_step(open, &o);
        return 0;
    }
    if (both_reported && g->progress < o.progress) {
        g->left_out = true;
        return err_set(e, ERR_UNAVAILABLE,
            "rank 0 has no checkpoint of step %" PRId64 " and is at %" PRId64
            ": all ranks have to commit at the same steps",
            g->progress, o.progress);
    }
    g->id = open->id;
    g->joined = true;
    return f.failed < 0 ? check_steps(g, &o, e) : failed_by(g, f.failed, e);
}

static int join_open(struct gang_meeting *g, struct err *e)
{
    struct wait w = {.g = g, .pause_ms = PAUSE_MS};
    struct gang_meeting open = *g; /* the newest save examined */
    struct found f;

    open.id.sequence = 0;
    for (;;) {
        int rc = scan_messages(g, 0, &f, e);

        if (!rc && f.newest > open.id.sequence) {
            open.id.sequence = f.newest;
            rc = join_or_fail_open(g, &open, e);
        }
        if (rc || g->joined)
            return rc;
        rc = wait_on(&w, e);
        if (rc == ERR_TIMEOUT)
            rc = err_set(e, ERR_TIMEOUT,
                "rank 0 has not reached this checkpoint: all ranks must commit at the same step");
        if (rc)
            return rc;
    }
}

int gang_join(struct gang_meeting *g, struct err *e)
{
    int rc = g->gang.rank == 0 ? open_save(g, e) : join_open(g, e);

    if (rc || !g->refused)
        return rc;
    *e = *g->refused;
    return e->kind;
}

bool gang_fail(const struct gang_meeting *g, const struct err *why)
{
    struct layout_name name = name_of(g, "failed", g->gang.rank);
    struct layout_name seal = seal_of(g, "gang-failed", g->gang.rank);
    char *text = mem_printf("%s%s",
        !why->of_store              ? ""
        : why->kind == ERR_NO_SPACE ? MESSAGE_FULL
                                    : MESSAGE_OF_STORE,
        why->text);
    struct err e;
    int rc = put_message(g, &name, &seal, text, &e);

    free(text);
    if (rc && rc != ERR_CONFLICT)
        log_warn("a failed save could not be reported to the other ranks",
            log_i("job", g->job->job), log_err(&e));
    return !rc || rc == ERR_CONFLICT;
}

void gang_reason(const struct gang_meeting *g, struct err *e)
{
    struct found f;
    struct err ignored;

    if (scan_messages(g, g->id.sequence, &f, &ignored) == 0 && f.failed >= 0 &&
        f.failed != g->gang.rank)
        failed_by(g, f.failed, e);
}

int ckpt_gang_lost(
    const struct ckpt_job *j, struct ckpt_id upto, const struct ckpt_gang *gang, struct err *e)
{
    struct gang_meeting g = {.job = j, .gang = *gang, .id = upto};
    struct layout_name manifest;
    struct err why;
    struct found f;
    int64_t size;
    int rc = scan_messages(&g, 0, &f, e);

    if (rc || f.newest == 0 || f.newest > upto.sequence)
        return rc;
    g.id.sequence = f.newest;
    rc = scan_messages(&g, f.newest, &f, e);
    if (rc || (f.has_reported && gang->rank != 0))
        return rc;
    manifest = layout_manifest(j, g.id);
    rc = j->store->ops->stat(j->store, manifest.s, &size, e);
    if (rc != ERR_NOT_FOUND)
        return rc;
    err_set(&why, ERR_UNAVAILABLE, "its agent was restarted meanwhile");
    gang_fail(&g, &why);
    return 0;
}

static int put_part(const struct gang_meeting *g, const struct manifest *own, struct err *e)
{
    struct layout_name name = name_of(g, "part", g->gang.rank),
                       seal = seal_of(g, "gang", g->gang.rank);
    struct buf text = {0};
    int rc = layout_seal_manifest(own, &seal, &text, e);

    if (!rc)
        rc = g->job->store->ops->create(g->job->store, name.s, text.data, text.len, e);
    buf_deinit(&text);
    /* A killed agent has stored the part. The program still waits, so the part is the same. */
    return rc == ERR_CONFLICT ? 0 : rc;
}

/* ---- all parts as one ---- */

static const char *below(struct manifest *m, const char *dir, const char *path)
{
    char *joined = mem_printf("%s/%s", dir, path);
    const char *kept = manifest_text(m, joined, strlen(joined));

    free(joined);
    return kept;
}

static int add_entry(
    struct manifest *m, const char *dir, const struct manifest_entry *from, struct err *e)
{
    struct manifest_entry *to = manifest_add_entry(m);
    const struct manifest_extra *extra = from->extra;
    int rc = 0;

    *to = *from;
    to->extra = NULL;
    to->path = below(m, dir, from->path);
    if (from->type == MANIFEST_HARD)
        to->target = below(m, dir, from->target);
    else if (from->target)
        to->target = manifest_text(m, from->target, strlen(from->target));
    if (extra && extra->is_sparse)
        rc = manifest_set_data(m, to, extra->data, extra->n_data, e);
    if (!rc && extra && extra->n_xattrs)
        rc = manifest_set_xattrs(m, to, extra->xattrs, extra->n_xattrs, e);
    return rc;
}

static int add_part(struct manifest *m, int32_t rank, const struct manifest *part, struct err *e)
{
    char dir[GANG_RANK_DIR_MAX];
    struct manifest_entry *top = manifest_add_entry(m);
    uint32_t n_packs = (uint32_t)m->n_packs;
    int rc = 0;

    gang_rank_dir(rank, dir);
    *top = (struct manifest_entry){
        .path = manifest_text(m, dir, strlen(dir)), .type = MANIFEST_DIR, .mode = 0700};
    for (size_t i = 0; !rc && i < part->n_entries; i++)
        rc = add_entry(m, dir, &part->entries[i], e);
    for (size_t i = 0; !rc && i < part->n_chunks; i++) {
        struct manifest_chunk *c = manifest_add_chunk(m);

        *c = part->chunks[i];
        c->pack += c->pack ? n_packs : 0;
    }
    for (size_t i = 0; !rc && i < part->n_packs; i++)
        *manifest_add_pack(m) = part->packs[i];
    return rc;
}

/* Checks that all ranks that report a step report the same one, and sets it in m. */
static int agree_on_progress(struct manifest *m, int32_t rank, int64_t progress, struct err *e)
{
    if (progress >= 0 && m->progress >= 0 && progress != m->progress)
        return err_steps(rank, progress, m->progress, e);
    if (progress >= 0)
        m->progress = progress;
    return 0;
}

static int merge(const struct gang_meeting *g, struct manifest *m, struct err *e)
{
    int rc = 0;

    for (int32_t rank = 0; !rc && rank < g->gang.nodes; rank++) {
        struct layout_name name = name_of(g, "part", rank), seal = seal_of(g, "gang", rank);
        struct manifest part;

        rc = layout_read_sealed(g->job, g->id, &name, &seal, &part, e);
        if (rc)
            return err_wrap(e, "the part of rank %" PRId32, rank);
        if (part.key != m->key)
            rc = err_set(
                e, ERR_UNAVAILABLE, "rank %" PRId32 " is not encrypted with this one's key", rank);
        if (!rc)
            rc = agree_on_progress(m, rank, part.progress, e);
        if (!rc)
            rc = add_part(m, rank, &part, e);
        manifest_deinit(&part);
    }
    return rc ? rc : manifest_lay_out(m, e);
}

static int commit_all(
    const struct gang_meeting *g, const struct manifest *own, struct manifest *m, struct err *e)
{
    int rc;

    *m = (struct manifest){
        .job = own->job, .id = own->id, .saved_at = own->saved_at, .progress = -1, .key = own->key};
    STR_COPY(m->cluster, own->cluster);
    rc = merge(g, m, e);
    if (rc)
        return rc;
    rc = layout_commit(g->job, m, e);
    if (rc == ERR_NO_SPACE && g->make_space && g->make_space(g->space_ctx, m, e))
        rc = layout_commit(g->job, m, e);
    return rc;
}

/* ---- waiting for the others ---- */

static int err_missing_ranks(const struct gang_meeting *g, const struct found *f, struct err *e)
{
    int32_t rank = 0;

    while (rank < g->gang.nodes && f->parts[rank])
        rank++;
    if (rank == g->gang.nodes)
        return err_set(
            e, ERR_TIMEOUT, "rank 0 has not committed the checkpoint that all ranks have stored");
    return err_set(e, ERR_TIMEOUT,
        "rank %" PRId32 " has not reached this checkpoint (%" PRId32 " of %" PRId32 " have)", rank,
        f->n_parts, g->gang.nodes);
}

static int await_parts(const struct gang_meeting *g, struct err *e)
{
    struct wait w = {.g = g, .pause_ms = PAUSE_MS};
    struct found f;

    for (;;) {
        int rc = scan_messages(g, g->id.sequence, &f, e);

        if (rc || f.n_parts == g->gang.nodes)
            return rc;
        if (f.failed >= 0)
            return failed_by(g, f.failed, e);
        rc = wait_on(&w, e);
        if (rc)
            return rc == ERR_TIMEOUT ? err_missing_ranks(g, &f, e) : rc;
    }
}

/* Waits for rank 0's manifest. Lists before it reads the manifest, because rank 0 may remove the
 * save's messages once the manifest exists. An existing manifest overrides a failure. */
static int await_commit(const struct gang_meeting *g, struct manifest *ret_total, struct err *e)
{
    struct wait w = {.g = g, .pause_ms = PAUSE_MS};
    struct found f;

    for (;;) {
        int rc = scan_messages(g, g->id.sequence, &f, e);

        if (rc)
            return rc;
        rc = layout_read_manifest(g->job, g->id, ret_total, e);
        if (rc != ERR_NOT_FOUND)
            return rc;
        if (f.failed >= 0)
            return failed_by(g, f.failed, e);
        if (f.newest > g->id.sequence)
            return err_set(e, ERR_UNAVAILABLE, "rank 0 has given up this save and started another");
        rc = fence_check(g->job, g->id.attempt, e);
        if (!rc)
            rc = wait_on(&w, e);
        if (rc)
            return rc == ERR_TIMEOUT ? err_missing_ranks(g, &f, e) : rc;
    }
}

int gang_commit(
    struct gang_meeting *g, const struct manifest *own, struct manifest *ret_total, struct err *e)
{
    struct manifest total = {0};
    int rc = put_part(g, own, e);

    if (!rc && g->gang.rank == 0)
        rc = await_parts(g, e);
    if (!rc)
        rc = g->gang.rank == 0 ? commit_all(g, own, &total, e) : await_commit(g, &total, e);
    if (rc) {
        manifest_deinit(&total);
        return rc;
    }
    *ret_total = total;
    return 0;
}

/* ---- resuming ---- */

static int read_restored(
    const struct gang_meeting *g, int round, int32_t rank, struct ckpt_id *ret_id, struct err *e)
{
    struct layout_name name = name_of_restored(g, round, rank);
    char text[MESSAGE_MAX];
    int rc = read_message(g, &name, NULL, text, e);
    char *dot = rc ? NULL : strchr(text, '.');

    if (rc)
        return rc;
    if (dot)
        *dot = '\0';
    if (!dot || str_to_i64(text, 0, CKPT_NUMBER_MAX, "attempt", &ret_id->attempt, NULL) != 0 ||
        str_to_i64(dot + 1, 0, CKPT_NUMBER_MAX, "sequence", &ret_id->sequence, NULL) != 0)
        return err_set(e, ERR_CORRUPT,
            "rank %" PRId32 "'s message about its restore names no checkpoint", rank);
    return 0;
}

static int write_restored(
    const struct gang_meeting *g, int round, struct ckpt_id own, struct err *e)
{
    struct layout_name name = name_of_restored(g, round, g->gang.rank);
    struct ckpt_id before;
    char text[64];
    int n = snprintf(text, sizeof(text), "%" PRId64 ".%" PRId64, own.attempt, own.sequence);
    int rc = g->job->store->ops->create(g->job->store, name.s, text, (size_t)n, e);

    if (rc != ERR_CONFLICT)
        return rc;
    rc = read_restored(g, round, g->gang.rank, &before, e); /* of this rank's previous agent */
    if (!rc && layout_compare_ids(before, own) != 0)
        rc = err_set(e, ERR_CONFLICT,
            "this rank has already reported to the others that it restored %" PRId64 ".%" PRId64,
            before.attempt, before.sequence);
    return rc;
}

/* Waits for the message with which `rank` reports what it restored in this round. */
static int await_restored(
    const struct gang_meeting *g, int round, int32_t rank, struct ckpt_id *ret_id, struct err *e)
{
    struct wait w = {.g = g, .pause_ms = PAUSE_MS};

    for (;;) {
        int rc = read_restored(g, round, rank, ret_id, e);

        if (rc == ERR_NOT_FOUND)
            rc = wait_on(&w, e);
        else
            return rc;
        if (rc == ERR_TIMEOUT)
            return err_set(e, ERR_TIMEOUT, "rank %" PRId32 " has not restored its part", rank);
        if (rc)
            return rc;
    }
}

int gang_agree(const struct gang_meeting *g, int round, struct ckpt_id own,
    struct ckpt_id *ret_least, bool *ret_agreed, struct err *e)
{
    int rc = write_restored(g, round, own, e);

    *ret_least = own;
    *ret_agreed = true;
    for (int32_t rank = 0; !rc && rank < g->gang.nodes; rank++) {
        struct ckpt_id id = own;

        if (rank != g->gang.rank)
            rc = await_restored(g, round, rank, &id, e);
        if (rc || layout_compare_ids(id, own) != 0)
            *ret_agreed = false;
        if (!rc && layout_compare_ids(id, *ret_least) < 0)
            *ret_least = id;
    }
    return rc;
}

/* ---- a rank's part ---- */

static bool is_gang(const struct manifest *m)
{
    return m->n_entries > 0 && str_eq(m->entries[0].path, "rank-0000") &&
           m->entries[0].type == MANIFEST_DIR;
}

int32_t gang_ranks(const struct manifest *m)
{
    int32_t n = 0;
    char dir[GANG_RANK_DIR_MAX];

    if (!is_gang(m))
        return 0;
    gang_rank_dir(0, dir);
    for (size_t i = 0; i < m->n_entries && n < CKPT_GANG_MAX; i++) {
        n += str_eq(m->entries[i].path, dir);
        gang_rank_dir(n, dir);
    }
    return n;
}

/* Keeps only the chunks of bytes from .. to - 1 of the content. Parts share no chunks. All packs
 * stay, so that their numbers do: those without chunks are not read. */
static void keep_chunks(struct manifest *m, int64_t from, int64_t to)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_chunks; i++)
        if (m->chunks[i].offset >= from && m->chunks[i].offset < to)
            m->chunks[n++] = m->chunks[i];
    m->n_chunks = n;
}

int gang_slice(struct manifest *m, int32_t rank, struct err *e)
{
    char dir[GANG_RANK_DIR_MAX + 1];
    size_t n = 0, skip;
    int64_t from = -1, to = 0;

    if (!is_gang(m))
        return 0;
    gang_rank_dir(rank, dir);
    str_copy(dir + strlen(dir), 2, "/");
    skip = strlen(dir);
    for (size_t i = 0; i < m->n_entries; i++) {
        struct manifest_entry entry = m->entries[i];

        if (!str_starts(entry.path, dir))
            continue;
        from = from < 0 ? entry.offset : from;
        to = entry.offset + manifest_content(&entry);
        entry.path += skip;
        if (entry.type == MANIFEST_HARD && !str_starts(entry.target, dir))
            return err_set(
                e, ERR_CORRUPT, "'%.200s' is a hard link to a file of another rank", entry.path);
        if (entry.type == MANIFEST_HARD)
            entry.target += skip;
        m->entries[n++] = entry;
    }
    m->n_entries = n;
    keep_chunks(m, from, to);
    return manifest_lay_out(m, e);
}
