/* SPDX-License-Identifier: Apache-2.0
 *
 * The running emulator: a region for each provider on one libuv loop, their processes, and their
 * servers. The only part that reads the clock.
 */
#ifndef BELAY_EMULATOR_EMULATOR_H
#define BELAY_EMULATOR_EMULATOR_H

#include "base/timers.h"
#include "base/uv/http_server.h"
#include "emulator/config.h"
#include "emulator/front_server.h"
#include "emulator/machines.h"

struct provider {
    const struct front *front;
    void *state; /* owned by the front */
    struct region region;
    struct machines *machines;
    struct machines_options machine_options;
    struct front_setup setup;
    struct front_server *api;
    struct front_server *side; /* of front->side; may be NULL */
};

struct emulator {
    uv_loop_t *loop;
    const struct emulator_config *config;
    struct provider providers[CONFIG_PROVIDERS_MAX];
    struct region *regions[CONFIG_PROVIDERS_MAX]; /* of the providers */
    size_t n_providers;
    struct journal journal;
    struct machines_host host;
    struct list holders; /* of all machines */
    struct timers *timers;
    struct timer timer; /* runs at the earliest region_next */
    struct http_server *control;
    struct list waiters; /* control.c: requests waiting for future events */
    bool is_stopping;
};

/* Starts everything; an error if an address cannot be bound. config is borrowed, but takes over its
 * pools. */
int emulator_start(
    struct emulator *em, uv_loop_t *loop, struct emulator_config *config, struct err *e);

/* Region time: the wall clock at start plus elapsed monotonic time, so that a step of the clock has
 * no effect. */
struct wall emulator_now(struct emulator *em);

/* Advances all regions to now. */
void emulator_advance(struct emulator *em);

/* Must be called after any change to a region. */
void emulator_changed(struct emulator *em);

/* Ends all instances at once and refuses new requests. Run the loop until emulator_is_empty, then
 * deinit. */
void emulator_stop(struct emulator *em);
bool emulator_is_empty(const struct emulator *em);
size_t emulator_machines(const struct emulator *em); /* running machines */
void emulator_deinit(struct emulator *em);

#endif
