/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/store/ckpt_desk.h"

#include "base/mem.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdlib.h>

#define ERRAND_MS SECONDS_MS(45) /* of a listing or a pin, for which a caller waits */

/* A listing or a pin. */
struct errand {
    struct store_task task;
    struct ckpt_desk *desk;
    struct link in_desk;
    char identity[CKPT_IDENTITY_MAX], by[CORE_NAME_MAX];
    enum { LIST, PIN, UNPIN } kind;
    struct ckpt_id id;
    struct ckpt_stored *found; /* CKPT_DESK_LISTED of a listing; else NULL */
    size_t n_found;
    ckpt_desk_fn fn;
    void *ctx;
};

struct verification {
    struct store_task task;
    struct ckpt_desk *desk;
    struct link in_desk;
    char identity[CKPT_IDENTITY_MAX], by[CORE_NAME_MAX];
    struct ckpt_id id;
    struct ckpt_pace pace;
    atomic_bool has_begun; /* set by the thread */
    enum verification_state state;
    struct wall asked_at, ended_at;
    struct err why; /* DAMAGED, FAILED */
};

struct ckpt_desk {
    struct timers *timers;
    struct store_tasks *errands, *verifications;
    struct list open_errands;
    struct list all; /* of struct verification, newest first */
};

const char *const verification_state_names[] = {
    "waiting", "running", "intact", "damaged", "failed", NULL};

static int refuse_more(struct err *e)
{
    return err_set(e, ERR_THROTTLED,
        "belayd has %d calls for stored checkpoints to answer already: try again later",
        CKPT_DESK_WAITING);
}

/* ---- listing and pinning ---- */

static int run_errand(struct store_task *t, const struct ckpt_job *j, struct err *e)
{
    struct errand *s = LIST_ENTRY(t, struct errand, task);
    int rc = ckpt_check_identity(j, s->identity, e);
    if (rc != 0)
        return rc;
    if (s->kind == LIST)
        return ckpt_list_stored(j, s->found, CKPT_DESK_LISTED, &s->n_found, e);
    return s->kind == PIN ? ckpt_pin(j, s->id, e) : ckpt_unpin(j, s->id, e);
}

static void free_errand(struct store_task *t)
{
    struct errand *s = LIST_ENTRY(t, struct errand, task);
    free(s->found);
    free(s);
}

static void on_errand(struct store_task *t, const struct err *e)
{
    struct errand *s = LIST_ENTRY(t, struct errand, task);
    link_remove(&s->in_desk);
    s->fn(s->ctx, s->found, s->n_found, e);
    free_errand(t);
}

static int check_more_errands(
    const struct ckpt_desk *d, const struct ckpt_desk_of *of, struct err *e)
{
    int n = 0, n_own = 0;
    LIST_FOREACH (&d->open_errands, l) {
        n++;
        n_own += str_eq(LIST_ENTRY(l, struct errand, in_desk)->by, of->user);
    }
    if (n >= CKPT_DESK_WAITING)
        return refuse_more(e);
    if (n_own >= CKPT_DESK_PER_USER)
        return err_set(e, ERR_THROTTLED,
            "%d calls of %s for stored checkpoints wait already: try again when one was answered",
            CKPT_DESK_PER_USER, of->user);
    return 0;
}

static void put_errand(struct ckpt_desk *d, const struct ckpt_desk_of *of, struct errand errand)
{
    struct err e;
    if (check_more_errands(d, of, &e) != 0) {
        errand.fn(errand.ctx, NULL, 0, &e);
        return;
    }
    struct errand *s = mem_alloc(sizeof(*s));
    *s = errand;
    s->task = (struct store_task){
        .job = of->job, .run = run_errand, .done = on_errand, .dropped = free_errand};
    s->desk = d;
    s->id = of->id;
    STR_COPY(s->identity, of->identity);
    STR_COPY(s->by, of->user);
    if (s->kind == LIST)
        s->found = mem_array(CKPT_DESK_LISTED, sizeof(*s->found));
    list_push_back(&d->open_errands, &s->in_desk);
    store_tasks_put(d->errands, &s->task);
}

void ckpt_desk_list(struct ckpt_desk *d, const struct ckpt_desk_of *of, ckpt_desk_fn fn, void *ctx)
{
    put_errand(d, of, (struct errand){.kind = LIST, .fn = fn, .ctx = ctx});
}

void ckpt_desk_pin(
    struct ckpt_desk *d, const struct ckpt_desk_of *of, bool pinned, ckpt_desk_fn fn, void *ctx)
{
    put_errand(d, of, (struct errand){.kind = pinned ? PIN : UNPIN, .fn = fn, .ctx = ctx});
}

/* ---- verifying ---- */

static int run_verification(struct store_task *t, const struct ckpt_job *j, struct err *e)
{
    struct verification *s = LIST_ENTRY(t, struct verification, task);
    const struct ckpt_verify_with with = {
        .cancel = &t->cancel, .pace = &s->pace, .bytes_max = CKPT_DESK_VERIFY_BYTES};
    atomic_store(&s->has_begun, true);
    int rc = ckpt_check_identity(j, s->identity, e);
    if (rc == 0)
        rc = ckpt_verify_with(j, s->id, &with, e);
    return rc == ERR_CANCELLED
               ? err_set(e, ERR_TIMEOUT, "it took longer than %" PRId64 " minutes, and was stopped",
                     CKPT_DESK_VERIFY_MS / 60000)
               : rc;
}

static void free_verification(struct store_task *t)
{
    free(LIST_ENTRY(t, struct verification, task));
}

static void on_verified(struct store_task *t, const struct err *e)
{
    struct verification *s = LIST_ENTRY(t, struct verification, task);
    s->state = !e                       ? VERIFICATION_INTACT
               : e->kind == ERR_CORRUPT ? VERIFICATION_DAMAGED
                                        : VERIFICATION_FAILED;
    s->ended_at = clock_wall(s->desk->timers->clock);
    if (e)
        s->why = *e;
}

static bool is_over(const struct verification *s)
{
    return s->state >= VERIFICATION_INTACT;
}

/* Makes room for one more of the user: forgets the user's own oldest result, or that of all users,
 * where as many are kept as may be. */
static void forget_oldest(struct ckpt_desk *d, const char *user)
{
    struct verification *oldest = NULL, *own = NULL;
    int n = 0, n_own = 0;
    LIST_FOREACH (&d->all, l) {
        struct verification *s = LIST_ENTRY(l, struct verification, in_desk);
        bool is_own = str_eq(s->by, user);
        n++;
        n_own += is_own;
        if (is_over(s)) {
            oldest = s;
            own = is_own ? s : own;
        }
    }
    struct verification *s = n_own >= CKPT_DESK_KEPT_PER_USER ? own
                             : n >= CKPT_DESK_KEPT            ? oldest
                                                              : NULL;
    if (!s)
        return;
    link_remove(&s->in_desk);
    free(s);
}

/* ERR_THROTTLED; *ret_is_there is true if the same one is not over. */
static int check_more(
    const struct ckpt_desk *d, const struct ckpt_desk_of *of, bool *ret_is_there, struct err *e)
{
    int n = 0, n_own = 0;
    *ret_is_there = false;
    LIST_FOREACH (&d->all, l) {
        const struct verification *s = LIST_ENTRY(l, struct verification, in_desk);
        bool is_open = !is_over(s);
        *ret_is_there |= is_open && s->task.job == of->job && s->id.attempt == of->id.attempt &&
                         s->id.sequence == of->id.sequence;
        n += is_open;
        n_own += is_open && str_eq(s->by, of->user);
    }
    if (n >= CKPT_DESK_WAITING)
        return refuse_more(e);
    if (n_own >= CKPT_DESK_PER_USER && !*ret_is_there)
        return err_set(e, ERR_THROTTLED,
            "%d verifications of %s are waiting already: try again when one has ended, or use "
            "belay checkpoint verify",
            CKPT_DESK_PER_USER, of->user);
    return 0;
}

int ckpt_desk_verify(struct ckpt_desk *d, const struct ckpt_desk_of *of, struct err *e)
{
    bool is_there;
    int rc = check_more(d, of, &is_there, e);
    if (rc != 0 || is_there)
        return rc;
    forget_oldest(d, of->user);
    struct verification *s = mem_alloc(sizeof(*s));
    *s = (struct verification){.task = {.job = of->job,
                                   .run = run_verification,
                                   .done = on_verified,
                                   .dropped = free_verification},
        .desk = d,
        .id = of->id,
        .pace.total_bytes = -1,
        .asked_at = clock_wall(d->timers->clock),
        .ended_at = WALL_NONE};
    STR_COPY(s->identity, of->identity);
    STR_COPY(s->by, of->user);
    list_push_front(&d->all, &s->in_desk);
    store_tasks_put(d->verifications, &s->task);
    return 0;
}

static struct verification_info info_of(const struct verification *s)
{
    struct verification_info v = {.id = s->id,
        .state = s->state,
        .by = s->by,
        .text = s->why.text,
        .total_bytes = atomic_load(&s->pace.total_bytes),
        .done_bytes = atomic_load(&s->pace.done_bytes),
        .asked_at = s->asked_at,
        .ended_at = s->ended_at};
    if (s->state == VERIFICATION_WAITING && atomic_load(&s->has_begun))
        v.state = VERIFICATION_RUNNING;
    return v;
}

void ckpt_desk_each(const struct ckpt_desk *d, int64_t job, verification_fn fn, void *ctx)
{
    LIST_FOREACH (&d->all, l) {
        const struct verification *s = LIST_ENTRY(l, struct verification, in_desk);
        const struct verification_info v = info_of(s);
        if (s->task.job == job)
            fn(ctx, &v);
    }
}

/* ---- life ---- */

struct ckpt_desk *ckpt_desk_create(const struct store_tasks_options *o)
{
    struct store_tasks_options errands = *o, verifications = *o;
    struct ckpt_desk *d = mem_alloc(sizeof(*d));
    errands.limit_ms = ERRAND_MS;
    verifications.limit_ms = CKPT_DESK_VERIFY_MS;
    *d = (struct ckpt_desk){.timers = o->timers,
        .errands = store_tasks_create(&errands),
        .verifications = store_tasks_create(&verifications)};
    return d;
}

void ckpt_desk_destroy(struct ckpt_desk *d)
{
    struct link *l;
    if (!d)
        return;
    while ((l = list_pop(&d->all))) {
        struct verification *s = LIST_ENTRY(l, struct verification, in_desk);
        if (is_over(s)) /* store_tasks_destroy frees the others */
            free(s);
    }
    store_tasks_destroy(d->errands);
    store_tasks_destroy(d->verifications);
    free(d);
}
