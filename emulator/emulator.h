/* SPDX-License-Identifier: Apache-2.0
 *
 * The running emulator: a region for each provider on one libuv loop, their processes, and the
 * servers in front of them. The only part that knows the clock.
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
    void *state; /* the front's */
    struct region region;
    struct machines *machines;
    struct machines_options machine_options;
    struct front_place place;
    struct front_server *api;
    struct front_server *side; /* of front->side; NULL: none */
};

struct emulator {
    uv_loop_t *loop;
    const struct emulator_config *config;
    struct provider providers[CONFIG_PROVIDERS_MAX];
    struct region *regions[CONFIG_PROVIDERS_MAX]; /* those of the providers */
    size_t n_providers;
    struct journal journal;
    struct machines_host host;
    struct list holders; /* of all machines */
    struct timers *timers;
    struct timer timer; /* at the first region_next */
    struct http_server *control;
    struct list waiters; /* of control.c: requests for events that have not happened yet */
    bool is_stopping;
};

/* Starts everything; ERR when an address cannot be bound. config is borrowed, its pools are
 * taken. */
int emulator_start(
    struct emulator *em, uv_loop_t *loop, struct emulator_config *config, struct err *e);

/* Region time: the wall clock at start, moved by the monotonic one, so that a step of the clock
 * moves nothing. */
struct wall emulator_now(struct emulator *em);

/* All regions, to now. */
void emulator_advance(struct emulator *em);

/* After anything was done to a region. */
void emulator_changed(struct emulator *em);

/* Ends all instances at once and refuses new requests. Run the loop until emulator_is_empty; then
 * deinit. */
void emulator_stop(struct emulator *em);
bool emulator_is_empty(const struct emulator *em);
size_t emulator_machines(const struct emulator *em); /* that run */
void emulator_deinit(struct emulator *em);

/* The control endpoint's HTTP handler; ctx is the emulator. */
void control_handle(void *ctx, struct http_exchange *x, const struct http_server_request *r);
void control_wake(struct emulator *em); /* answers those who waited for what the journal now has */

#endif
