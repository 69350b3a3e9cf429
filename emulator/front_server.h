/* SPDX-License-Identifier: Apache-2.0
 *
 * A front at an address: the API of a provider, or the metadata service of one instance. Applies
 * the queued faults and keeps the requests that wait.
 */
#ifndef BELAY_EMULATOR_FRONT_SERVER_H
#define BELAY_EMULATOR_FRONT_SERVER_H

#include "emulator/front.h"
#include <uv.h>

struct front_server_options {
    const struct front *front;
    struct region *region;
    void *state;               /* owned by the front */
    struct instance *instance; /* its metadata service; NULL for the API */
    const char *host;
    int port;                      /* 0 = any free one */
    struct wall (*now)(void *ctx); /* the region's time */
    void (*changed)(void *ctx);    /* called after each request: the region may have changed */
    void *ctx;
};

struct front_server;

/* Copies the options; what they point to is borrowed until stop. */
int front_server_start(uv_loop_t *loop, const struct front_server_options *o,
    struct front_server **ret_server, struct err *e);
/* s may be NULL. Run the loop afterwards */
void front_server_stop(struct front_server *s);
const char *front_server_url(const struct front_server *s); /* "http://127.0.0.1:4711" */

/* Repeats the waiting requests. s may be NULL. */
void front_server_wake(struct front_server *s);

#endif
