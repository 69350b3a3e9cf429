/* SPDX-License-Identifier: Apache-2.0
 *
 *               boots            terminate, deadline            last process gone
 *   PENDING ----------> RUNNING --------------------> SHUTTING_DOWN -----------> TERMINATED
 *      |                  |  |                                                     ^  ^
 *      |                  |  +-- powers off, "stop" --> STOPPING --> STOPPED ------+  |
 *      +------------------+-- powers off, "terminate"; never booted -----------------+
 *
 * RUNNING is charged per millisecond at the current price. EC2's minimum of 60 s and its free first
 * hour of a reclaimed instance are not modelled, so that costs add up predictably.
 */
#include "emulator/instance.h"
#include "base/mem.h"
#include "base/sm.h"
#include "base/str.h"
#include <assert.h>
#include <stdlib.h>

static const char *const state_names[] = {
    "pending", "running", "shutting-down", "terminated", "stopping", "stopped", NULL};
static const int state_codes[] = {0, 16, 32, 48, 64, 80};

static const struct sm_transition transitions[] = {
    {INSTANCE_PENDING, INSTANCE_RUNNING},
    {INSTANCE_PENDING, INSTANCE_TERMINATED},
    {INSTANCE_RUNNING, INSTANCE_SHUTTING_DOWN},
    {INSTANCE_RUNNING, INSTANCE_STOPPING},
    {INSTANCE_RUNNING, INSTANCE_TERMINATED},
    {INSTANCE_SHUTTING_DOWN, INSTANCE_TERMINATED},
    {INSTANCE_STOPPING, INSTANCE_STOPPED},
    {INSTANCE_STOPPED, INSTANCE_TERMINATED},
};

static const struct sm life = {.thing = "instance",
    .names = state_names,
    .transitions = transitions,
    .n_transitions = sizeof(transitions) / sizeof(transitions[0])};

void launch_spec_deinit(struct launch_spec *s)
{
    buf_deinit(&s->user_data);
    tags_deinit(&s->tags);
    tags_deinit(&s->attributes);
    tags_deinit(&s->scopes);
    for (size_t k = 0; k < s->n_disks; k++)
        tags_deinit(&s->disks[k].tags);
}

void instance_destroy(struct instance *i)
{
    if (!i)
        return;
    assert(!i->machine);
    tags_deinit(&i->tags);
    free(i);
}

int instance_state_code(int state)
{
    assert(state >= 0 && state <= INSTANCE_STOPPED);
    return state_codes[state];
}

const char *instance_state_name(int state)
{
    return sm_name(&life, state);
}

void instance_move(struct instance *i, int to)
{
    sm_move(&life, i->number, &i->state, to);
}

void instance_bill(struct instance *i, struct wall now)
{
    if (i->state != INSTANCE_RUNNING || now.ms <= i->billed_until.ms)
        return;
    int64_t price = i->pool->price_uusd_h[i->reservation->spec.market];
    int64_t hour_ms = SECONDS_MS(3600);
    int64_t sum = price * (now.ms - i->billed_until.ms) + i->cost_rest;
    i->cost_uusd += sum / hour_ms;
    i->cost_rest = sum % hour_ms;
    i->billed_until = now;
}
