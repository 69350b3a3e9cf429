/* SPDX-License-Identifier: Apache-2.0
 *
 * Life cycle and lookups of the model, and the dispatch of an event to the function that applies
 * it.
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/forecast/job_runtimes.h"
#include "scheduler/core/ledger/storage.h"
#include "scheduler/core/lifecycle/ckpt_gc.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/lifecycle/digest.h"
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/ledger/anomalies.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/queue/calendars.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/crons.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/labels.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/queue/shares.h"
#include "scheduler/core/supply/base_load.h"
#include "scheduler/core/supply/boots.h"

#include "base/mem.h"
#include <assert.h>
#include <stdlib.h>

struct model *model_create(const struct model_options *o)
{
    struct model *m = mem_alloc(sizeof *m);
    m->options = *o;
    m->changes.next_ids = (struct model_counters){1, 1, 1, 1, 1, 1, 1};
    licences_init(m, o->tables.licences, o->tables.n_licences);
    queue_init(m);
    m->versions.reserve_epoch = 1;
    procurement_init(m, o->procurement);
    budgets_init(m, o->tables.budgets, o->tables.n_budgets);
    racks_init(m, o->tables.racks, o->tables.n_racks);
    digests_begin(m);
    return m;
}

static void free_all(struct map *map)
{
    void *p;
    for (size_t pos = 0; (p = map_next(map, &pos, &(int64_t){0})) != NULL;)
        free(p);
    map_deinit(map);
}

static void free_all_strings(struct smap *map)
{
    const char *key;
    void *p;
    for (size_t pos = 0; (p = smap_next(map, &pos, &key)) != NULL;)
        free(p);
    smap_deinit(map);
}

void model_destroy(struct model *m)
{
    if (!m)
        return;
    struct job *j;
    budgets_destroy_all(m);
    drills_destroy_all(m);
    accounts_destroy_all(m);
    dependencies_destroy_all(m);
    for (size_t pos = 0; (j = map_next(&m->rows.jobs, &pos, &(int64_t){0})) != NULL;) {
        array_free(j);
        free(j->side);
    }
    certificates_destroy_all(m);
    procurement_deinit(m);
    runtimes_destroy_all(m);
    crons_destroy_all(m);
    calendars_destroy_all(m);
    map_deinit(&m->rows.jobs);
    node_failures_destroy_all(m);
    map_deinit(&m->rows.nodes);
    free_all(&m->rows.instances);
    free_all(&m->rows.offers);
    ckpt_gc_deinit(m);
    storage_deinit(m);
    constraints_deinit(m);
    labels_deinit(m);
    queue_deinit(m);
    racks_deinit(m);
    maintenance_deinit(m);
    nodes_deinit(m);
    slab_deinit(&m->rows.job_slab);
    slab_deinit(&m->rows.attempt_slab);
    slab_deinit(&m->rows.node_slab);
    free_all_strings(&m->rows.pools);
    smap_deinit(&m->rows.tokens);
    smap_deinit(&m->rows.provider_ids);
    smap_deinit(&m->rows.node_keys);
    smap_deinit(&m->rows.node_names);
    free(m->loading.jobs);
    notify_deinit(m);
    digests_destroy_all(m);
    anomalies_destroy_all(m);
    changes_deinit(&m->changes.out);
    free(m);
}

static const apply_fn appliers[] = {
    [EV_SUBMIT] = apply_submit,
    [EV_CANCEL] = apply_cancel,
    [EV_REQUEUE] = apply_requeue,
    [EV_SAVE] = apply_save,
    [EV_ENTER] = apply_enter,
    [EV_UPDATE] = apply_update,
    [EV_HOLD] = apply_hold,
    [EV_RELEASE] = apply_release,
    [EV_ELIGIBLE] = apply_eligible,
    [EV_UNMEETABLE] = apply_unmeetable,
    [EV_JOIN] = apply_join,
    [EV_HEARTBEAT] = apply_heartbeat,
    [EV_FACTS] = apply_facts,
    [EV_CONDITION] = apply_condition,
    [EV_GPUS] = apply_gpus,
    [EV_DISK] = apply_disk,
    [EV_FAULT] = apply_fault,
    [EV_NOTICE] = apply_notice,
    [EV_ATTEMPT_STARTED] = apply_started,
    [EV_ATTEMPT_ENDED] = apply_ended,
    [EV_CHECKPOINT] = apply_checkpoint,
    [EV_SAVE_FAILED] = apply_save_failed,
    [EV_OUTPUT_CUT] = apply_output_cut,
    [EV_NO_CREDENTIALS] = apply_no_credentials,
    [EV_STORE_REFUSED] = apply_store_refused,
    [EV_WITHHELD] = apply_withheld,
    [EV_WITHHELD_DUE] = apply_withheld_due,
    [EV_PROGRESS] = apply_progress,
    [EV_USAGE] = apply_usage,
    [EV_KEPT] = apply_kept,
    [EV_DRAIN] = apply_drain,
    [EV_UNDRAIN] = apply_undrain,
    [EV_NODE_DELETE] = apply_node_delete,
    [EV_POOL] = apply_pool,
    [EV_OFFER] = apply_offer,
    [EV_LIMITS] = apply_limits,
    [EV_SETTINGS] = apply_settings,
    [EV_PRICE] = apply_price,
    [EV_SCORE] = apply_score,
    [EV_MOVE] = apply_move,
    [EV_PREFETCH] = apply_prefetch,
    [EV_PREFETCHED] = apply_prefetched,
    [EV_SETTLE] = apply_settle,
    [EV_LAUNCHED] = apply_launched,
    [EV_LAUNCH_REFUSED] = apply_launch_refused,
    [EV_OFFER_REFUSED] = apply_offer_refused,
    [EV_BOOT_CONSOLE] = apply_boot_console,
    [EV_POOL_RETRY] = apply_pool_retry,
    [EV_INSTANCE_GONE] = apply_instance_gone,
    [EV_CLEANED] = apply_cleaned,
    [EV_CRON_PUT] = apply_cron_put,
    [EV_CRON_SET] = apply_cron_set,
    [EV_CRON_RUN] = apply_cron_run,
    [EV_CRON_DUE] = apply_cron_due,
    [EV_DIGEST] = apply_digest,
    [EV_DIGEST_SET] = apply_digest_set,
    [EV_ANOMALY] = apply_anomaly,
    [EV_RESERVATION_ADD] = apply_reservation_add,
    [EV_RESERVATION_REMOVE] = apply_reservation_remove,
    [EV_CALENDAR_SET] = apply_calendar_set,
    [EV_CALENDAR_REMOVE] = apply_calendar_remove,
    [EV_RESERVATION_DUE] = apply_reservation_due,
    [EV_PARK] = apply_park,
    [EV_BUDGET] = apply_budget,
    [EV_BASE_LOAD] = apply_base_load,
    [EV_EXPIRE] = apply_expire,
    [EV_PROCUREMENT] = apply_procurement,
    [EV_TABLE] = apply_table,
    [EV_THROTTLE] = apply_throttle,
    [EV_UNTHROTTLE] = apply_unthrottle,
    [EV_PREEMPT] = apply_preempt,
    [EV_DELIVERED] = apply_delivered,
    [EV_WARN] = apply_warn,
    [EV_IDLE_GPUS] = apply_idle_gpus,
    [EV_PLACE] = apply_place,
    [EV_LAUNCH] = apply_launch,
    [EV_END_INSTANCE] = apply_end_instance,
    [EV_NODE_LOST] = apply_node_lost,
    [EV_CLEAN] = apply_clean,
    [EV_DRILL] = apply_drill,
    [EV_DRILL_COMPARED] = apply_drill_compared,
    [EV_DRILL_DUE] = apply_drill_due,
    [EV_REQUEUE_DUE] = apply_requeue_due,
    [EV_AVOIDED] = apply_avoided,
    [EV_ORDER] = apply_order,
    [EV_RESERVE] = apply_reserve,
};

int core_apply(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct outcome unused;
    assert((size_t)ev->type < sizeof appliers / sizeof appliers[0]);
    pools_age(m, ev->now.wall);
    return appliers[ev->type](m, ev, ret_outcome ? ret_outcome : &unused, e);
}

struct job *model_job(const struct model *m, int64_t id)
{
    return map_get(&m->rows.jobs, id);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

size_t model_jobs_between(const struct model *m, int64_t first, int64_t last, int64_t **ret_ids)
{
    size_t live = map_size(&m->rows.jobs), n = 0;
    int64_t *ids, id;
    last = last < m->changes.next_ids.next_job ? last : m->changes.next_ids.next_job - 1;
    bool by_numbers = last < first || (uint64_t)(last - first) < live;
    size_t most = !by_numbers ? live : last < first ? 0 : (size_t)(last - first) + 1;
    ids = *ret_ids = mem_alloc((most + 1) * sizeof *ids);
    for (id = first; by_numbers && id <= last; id++)
        if (map_get(&m->rows.jobs, id))
            ids[n++] = id;
    for (size_t pos = 0; !by_numbers && map_next(&m->rows.jobs, &pos, &id);)
        if (id >= first && id <= last)
            ids[n++] = id;
    qsort(ids, n, sizeof *ids, by_number);
    return n;
}

struct attempt *job_attempt(const struct job *j)
{
    struct link *l = list_first(&j->ranks);
    return l ? LIST_ENTRY(l, struct attempt, in_job) : NULL;
}

struct attempt *job_attempt_on(const struct job *j, int64_t attempt, int64_t node)
{
    if (!j || j->row.attempts != attempt)
        return NULL;
    LIST_FOREACH (&j->ranks, l) {
        struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        if (a->row.node == node)
            return a;
    }
    return NULL;
}

struct node *model_node(const struct model *m, int64_t id)
{
    return map_get(&m->rows.nodes, id);
}

struct node *model_node_by_key(const struct model *m, const char *key_hash)
{
    return smap_get(&m->rows.node_keys, key_hash);
}

struct instance *model_instance(const struct model *m, int64_t id)
{
    return map_get(&m->rows.instances, id);
}

struct instance *model_instance_by_token(const struct model *m, const char *token)
{
    return smap_get(&m->rows.tokens, token);
}

struct pool *model_pool(const struct model *m, const char *name)
{
    return smap_get(&m->rows.pools, name);
}

struct offer *model_offer(const struct model *m, int64_t id)
{
    return map_get(&m->rows.offers, id);
}

const struct list *model_nodes(const struct model *m)
{
    return &m->rows.all_nodes;
}

const struct list *model_instances(const struct model *m)
{
    return &m->rows.all_instances;
}

const struct list *model_pools(const struct model *m)
{
    return &m->rows.all_pools;
}

void model_counts(const struct model *m, struct model_counts *ret_counts)
{
    *ret_counts = (struct model_counts){
        .pending = queue_n_pending(m) + queue_n_waiting(m),
        .waiting = queue_n_waiting(m),
        .running = (int64_t)map_size(&m->rows.jobs) - queue_n_pending(m) - queue_n_waiting(m),
        .nodes_up = (int64_t)map_size(&m->rows.nodes) - nodes_n_lost(m),
        .nodes_lost = nodes_n_lost(m),
        .instances = (int64_t)map_size(&m->rows.instances),
        .shapes = (int64_t)queue_n_shapes(m),
        .ckpt_gc = ckpt_gc_n_open(m),
        .outbox = notify_n_outbox(m),
    };
}
