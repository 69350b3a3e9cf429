/* SPDX-License-Identifier: Apache-2.0
 *
 * The running emulator: the region on a libuv loop, its processes, and the two servers in front of it. The
 * only part that knows the clock.
 */
#ifndef BELAY_CLOUD_EMULATOR_EMULATOR_H
#define BELAY_CLOUD_EMULATOR_EMULATOR_H

#include "base/timers.h"
#include "base/uv/http_server.h"
#include "cloud/emulator/config.h"
#include "cloud/emulator/ec2_api.h"
#include "cloud/emulator/machines.h"

struct emulator {
    uv_loop_t *loop;
    const struct emulator_config *config;
    struct region region;
    struct keyring keyring;
    struct machines *machines;
    struct machines_host host;
    struct machines_options machine_options;
    struct ec2_account account;
    struct timers *timers;
    struct timer timer; /* at region_next */
    struct http_server *ec2, *control;
    struct list waiters; /* of control.c: requests for events that have not happened yet */
    bool is_stopping;
};

/* Starts everything; ERR when an address cannot be bound. config is borrowed, its pools are taken. */
int emulator_start(struct emulator *em, uv_loop_t *loop, struct emulator_config *config, struct err *e);

/* Region time: the wall clock at start, moved by the monotonic one, so that a step of the clock moves
 * nothing. */
struct wall emulator_now(struct emulator *em);

/* After anything was done to the region. */
void emulator_changed(struct emulator *em);

/* Ends all instances at once and refuses new requests. Run the loop until emulator_is_empty; then deinit. */
void emulator_stop(struct emulator *em);
bool emulator_is_empty(const struct emulator *em);
void emulator_deinit(struct emulator *em);

/* The HTTP handlers; ctx is the emulator. */
void ec2_server_handle(void *ctx, struct http_exchange *x, const struct http_server_request *r);
void control_handle(void *ctx, struct http_exchange *x, const struct http_server_request *r);
void control_wake(struct emulator *em); /* answers those who waited for what the journal now has */

#endif
