/* SPDX-License-Identifier: Apache-2.0
 *
 * See effects.h.
 */
#include "scheduler/engine/effects.h"

void effects_release(const struct db_batch *committed, struct agent_sync *agent_sync,
    struct provision *provision, struct cleaner *cleaner, struct outbox *outbox)
{
    const struct changes *c = &committed->changes;
    for (size_t i = 0; i < c->n_attempts; i++)
        agent_sync_touch(agent_sync, c->attempts[i].node);
    for (size_t i = 0; i < c->n_prefetches; i++)
        agent_sync_touch(agent_sync, c->prefetches[i]);
    for (size_t i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].state == NODE_GONE)
            agent_sync_touch(agent_sync, c->nodes[i].id);
    for (size_t i = 0; i < c->n_instances; i++)
        provision_touch(provision, c->instances[i].id);
    for (size_t i = 0; i < c->n_pools; i++)
        provision_note_pool(provision, &c->pools[i]);
    for (size_t i = 0; i < c->n_ckpt_gc; i++)
        cleaner_touch(cleaner, &c->ckpt_gc[i]);
    if (c->n_outbox > 0)
        outbox_touch(outbox);
}
