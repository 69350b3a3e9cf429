/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs with the same user and name, and those of them that wait for all earlier ones (singleton). A
 * job that waits for a singleton thereby waits for all jobs before it, so each job in a chain of
 * singletons has one dependency.
 */
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/namesakes.h"
#include "scheduler/core/queue/dependencies_private.h"
#include "scheduler/core/queue/queue.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

struct namesakes {
    struct list jobs; /* newest first */
};

#define NAMESAKES_KEY_MAX (2 * CORE_NAME_MAX)

static void namesakes_key(const struct job_row *r, char *out)
{
    char *at = stpcpy(out, r->user);
    *at++ = '\n';
    stpcpy(at, r->spec.name);
}

static struct namesakes *namesakes_find(const struct model *m, const struct job_row *r)
{
    char key[NAMESAKES_KEY_MAX];
    namesakes_key(r, key);
    return smap_get(&m->queue.namesakes, key);
}

void dependencies_adopt(struct model *m, struct job *j)
{
    char key[NAMESAKES_KEY_MAX];
    namesakes_key(&j->row, key);
    struct namesakes *s = smap_get(&m->queue.namesakes, key);
    if (!s) {
        s = mem_alloc(sizeof *s);
        smap_put(&m->queue.namesakes, key, s);
    }
    LIST_FOREACH (&s->jobs, l)
        if (LIST_ENTRY(l, struct job, namesake)->row.id < j->row.id) {
            list_insert_before(l, &j->namesake);
            return;
        }
    list_push_back(&s->jobs, &j->namesake);
}

void namesakes_disown(struct model *m, struct job *j)
{
    if (!link_is_in(&j->namesake))
        return; /* a task: its array is in the list */
    struct namesakes *s = namesakes_find(m, &j->row);
    link_remove(&j->namesake);
    if (!list_is_empty(&s->jobs))
        return;
    char key[NAMESAKES_KEY_MAX];
    namesakes_key(&j->row, key);
    free(smap_remove(&m->queue.namesakes, key));
}

bool job_waits_for_name(const struct job *j)
{
    LIST_FOREACH (&job_side(j)->depends, l)
        if (LIST_ENTRY(l, struct dependency, of_job)->row.kind == DEPEND_SINGLETON)
            return true;
    return false;
}

/* Waits for all earlier jobs of its name. */
static bool waits_for_namesakes(const struct job *j)
{
    return !j->row.spec.depends_any && job_waits_for_name(j);
}

/* How many dependencies namesakes_attach would add for a job with this row and id. */
int64_t namesakes_before(const struct model *m, const struct job_row *r, int64_t id)
{
    const struct namesakes *same = namesakes_find(m, r);
    int64_t n = 0;
    if (!same)
        return 0;
    LIST_FOREACH (&same->jobs, l) {
        const struct job *older = LIST_ENTRY(l, struct job, namesake);
        if (older->row.id >= id)
            continue;
        n++;
        if (waits_for_namesakes(older))
            break;
    }
    return n;
}

int64_t namesakes_waited_for(const struct job *j)
{
    int64_t n = 0;
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency_row *r = &LIST_ENTRY(l, struct dependency, of_job)->row;
        n += r->kind == DEPEND_SINGLETON && r->state == DEPEND_WAITS;
    }
    return n;
}

static void attach_namesake(struct model *m, struct job *j, int64_t on)
{
    dependency_attach(
        m, j, &(struct dependency_row){.job = j->row.id, .on = on, .kind = DEPEND_SINGLETON});
}

/* Adds dependencies on the earlier jobs of its name, back to the latest singleton, which waits for
 * those before it. The job must not wait for any of its name yet. */
void namesakes_attach(struct model *m, struct job *j)
{
    LIST_FOREACH (&namesakes_find(m, &j->row)->jobs, l) {
        const struct job *older = LIST_ENTRY(l, struct job, namesake);
        if (older->row.id >= j->row.id)
            continue;
        attach_namesake(m, j, older->row.id);
        if (waits_for_namesakes(older))
            return;
    }
}

/* The next singleton, which waits for this job too; or NULL. */
static struct job *next_singleton(const struct job *j)
{
    struct job *next = NULL;
    LIST_FOREACH (&job_side(j)->dependents, l) {
        const struct dependency *d = LIST_ENTRY(l, struct dependency, on_job);
        if (d->row.kind == DEPEND_SINGLETON && !d->job->row.spec.depends_any &&
            (!next || d->job->row.id < next->row.id))
            next = d->job;
    }
    return next;
}

/* Singletons that wait for earlier jobs only through this one, which no longer does (or leaves),
 * wait for them directly: the next one does, and later ones through it. The number of dependencies
 * does not grow. */
void namesakes_pass_on(struct model *m, struct job *j)
{
    struct job *next = job_waits_for_name(j) ? next_singleton(j) : NULL;
    struct map has = {0}; /* jobs of its name that it already waits for */
    if (!next)
        return;
    LIST_FOREACH (&job_side(next)->depends, l) {
        struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.kind == DEPEND_SINGLETON)
            map_put(&has, d->row.on, d);
    }
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.kind == DEPEND_SINGLETON && d->on && !map_get(&has, d->row.on))
            attach_namesake(m, next, d->row.on);
    }
    map_deinit(&has);
}

/* Other jobs of its name no longer wait for it. */
static void leave_namesakes(struct model *m, struct job *j, struct stamp now)
{
    namesakes_pass_on(m, j);
    LIST_FOREACH (&job_side(j)->depends, l) {
        struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.kind == DEPEND_SINGLETON)
            dependency_move(m, d, DEPEND_DROPPED);
    }
    for (bool more = true; more;) {
        more = false;
        LIST_FOREACH (&job_side(j)->dependents, l) {
            struct dependency *d = LIST_ENTRY(l, struct dependency, on_job);
            if (d->row.kind != DEPEND_SINGLETON)
                continue;
            dependency_ends(m, d, DEPEND_DROPPED, now); /* and others of the same job */
            more = true;
            break;
        }
    }
}

/* Makes the next singleton wait for this job too, and later ones through it. */
static void add_to_next_singleton(struct model *m, struct job *j, const struct namesakes *s)
{
    struct job *next = NULL;
    LIST_FOREACH (&s->jobs, l) {
        struct job *newer = LIST_ENTRY(l, struct job, namesake);
        if (newer->row.id > j->row.id && waits_for_namesakes(newer))
            next = newer;
    }
    if (next)
        attach_namesake(m, next, j->row.id);
}

void dependencies_rename(struct model *m, struct job *j, const char *name, struct stamp now)
{
    bool waits = job_waits_for_name(j);
    if (!link_is_in(&j->namesake)) { /* a task: its array is in the list */
        STR_COPY(j->row.spec.name, name);
        return;
    }
    leave_namesakes(m, j, now);
    namesakes_disown(m, j);
    STR_COPY(j->row.spec.name, name);
    dependencies_adopt(m, j);
    if (waits)
        namesakes_attach(m, j);
    add_to_next_singleton(m, j, namesakes_find(m, &j->row));
}

void namesakes_destroy_all(struct model *m)
{
    const char *key;
    void *s;
    for (size_t pos = 0; (s = smap_next(&m->queue.namesakes, &pos, &key)) != NULL;)
        free(s);
    smap_deinit(&m->queue.namesakes);
}
