/* SPDX-License-Identifier: Apache-2.0
 *
 * Access of other folders to the parts of the model that this folder owns.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_MODEL_ACCESS_H
#define BELAY_SCHEDULER_CORE_MODEL_MODEL_ACCESS_H

#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/state.h"

/* Makes the planner examine its state again (struct model_versions). */
static inline void model_note_change(struct model *m)
{
    ++m->versions.change;
}
static inline void model_note_rewind(struct model *m)
{
    ++m->versions.rewind;
}
static inline void model_note_retry_all(struct model *m)
{
    ++m->versions.retry_all;
}
static inline void model_note_reserve(struct model *m)
{
    ++m->versions.reserve_epoch;
}
static inline void model_note_launch(struct model *m)
{
    ++m->versions.launches;
}
/* Both return the new count. */
static inline int64_t model_note_growth(struct model *m)
{
    return ++m->versions.growth;
}
static inline int64_t model_note_arrival(struct model *m)
{
    return ++m->versions.arrivals;
}
static inline int64_t model_note_owed(struct model *m)
{
    return m->versions.owed_more = ++m->versions.growth;
}
static inline const struct model_versions *model_versions(const struct model *m)
{
    return &m->versions;
}
/* The next free ids. NEXT_ID takes one; SAW_ID advances the counter past the id of a stored row. */
static inline const struct model_counters *model_next_ids(const struct model *m)
{
    return &m->changes.next_ids;
}
#define NEXT_ID(m, thing) ((m)->changes.next_ids.next_##thing++)
#define SAW_ID(m, thing, id)                                                                       \
    ((m)->changes.next_ids.next_##thing = (id) < (m)->changes.next_ids.next_##thing                \
                                              ? (m)->changes.next_ids.next_##thing                 \
                                              : (id) + 1)
/* Final rows of this tick. ADD_ROW appends a zeroed row and yields its address. */
static inline const struct changes *model_final_rows(const struct model *m)
{
    return &m->changes.out;
}
#define ADD_ROW(m, rows) GROW((m)->changes.out.rows, (m)->changes.out.n_##rows)
/* most recent row of the history */
static inline struct history_row *history_last(struct model *m)
{
    return &m->changes.out.history[m->changes.out.n_history - 1];
}
/* Allocates a zeroed object; retire_*() frees it. */
static inline struct job *model_alloc_job(struct model *m)
{
    return slab_take(&m->rows.job_slab, sizeof(struct job));
}
static inline struct attempt *model_alloc_attempt(struct model *m)
{
    return slab_take(&m->rows.attempt_slab, sizeof(struct attempt));
}
static inline struct node *model_alloc_node(struct model *m)
{
    return slab_take(&m->rows.node_slab, sizeof(struct node));
}
/* Adds to and removes from the indexes by id, name, key and token. */
static inline void model_put_job(struct model *m, struct job *j)
{
    map_put(&m->rows.jobs, j->row.id, j);
}
static inline void model_remove_job(struct model *m, const struct job *j)
{
    map_remove(&m->rows.jobs, j->row.id);
}
/* Iterates all jobs in unspecified order. pos starts at 0; returns NULL at the end. */
static inline struct job *model_next_job(const struct model *m, size_t *pos)
{
    return map_next(&m->rows.jobs, pos, &(int64_t){0});
}
static inline void model_put_offer(struct model *m, struct offer *o)
{
    map_put(&m->rows.offers, o->row.id, o);
}
static inline void model_put_pool(struct model *m, struct pool *p) /* sets its index */
{
    p->index = (int32_t)smap_size(&m->rows.pools);
    smap_put(&m->rows.pools, p->row.name, p);
    list_push_back(&m->rows.all_pools, &p->in_all);
}
static inline void model_put_node(struct model *m, struct node *n)
{
    map_put(&m->rows.nodes, n->row.id, n);
    smap_put(&m->rows.node_names, n->row.name, n);
    smap_put(&m->rows.node_keys, n->row.key_hash, n);
    list_push_back(&m->rows.all_nodes, &n->in_all);
}
static inline void model_remove_node(struct model *m, struct node *n)
{
    map_remove(&m->rows.nodes, n->row.id);
    smap_remove(&m->rows.node_names, n->row.name);
    smap_remove(&m->rows.node_keys, n->row.key_hash);
    link_remove(&n->in_all);
}
static inline struct node *model_node_named(const struct model *m, const char *name)
{
    return smap_get(&m->rows.node_names, name);
}
static inline void model_put_instance(struct model *m, struct instance *i)
{
    map_put(&m->rows.instances, i->row.id, i);
    smap_put(&m->rows.tokens, i->row.token, i);
    list_push_back(&m->rows.all_instances, &i->in_all);
}
static inline void model_remove_instance(struct model *m, struct instance *i)
{
    map_remove(&m->rows.instances, i->row.id);
    smap_remove(&m->rows.tokens, i->row.token);
    link_remove(&i->in_all);
}
/* key: region and the provider's id */
static inline void model_put_provider_id(struct model *m, const char *key, struct instance *i)
{
    smap_put(&m->rows.provider_ids, key, i);
}
static inline void model_remove_provider_id(struct model *m, const char *key)
{
    smap_remove(&m->rows.provider_ids, key);
}
static inline struct instance *model_provider_id(const struct model *m, const char *key)
{
    return smap_get(&m->rows.provider_ids, key);
}

#endif
