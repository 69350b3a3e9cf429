/* SPDX-License-Identifier: Apache-2.0
 *
 * A front on an address: the API of a provider, or the metadata service of one instance. Lets the
 * faults happen that wait for it, and keeps the requests that have to wait.
 */
#ifndef BELAY_EMULATOR_FRONT_SERVER_H
#define BELAY_EMULATOR_FRONT_SERVER_H

#include "emulator/front.h"
#include <uv.h>

struct front_server_options {
    const struct front *front;
    struct region *region;
    void *state;               /* the front's */
    struct instance *instance; /* whose metadata service it is; NULL: the API */
    const char *host;
    int port;                      /* 0: any free one */
    struct wall (*now)(void *ctx); /* the region's time */
    void (*changed)(void *ctx);    /* after each request: the region may be another */
    void *ctx;
};

struct front_server;

/* Copies the options; what they point at is borrowed until stop. */
int front_server_start(uv_loop_t *loop, const struct front_server_options *o,
    struct front_server **ret_server, struct err *e);
/* NULL is fine. Run the loop afterwards */
void front_server_stop(struct front_server *s);
const char *front_server_url(const struct front_server *s); /* "http://127.0.0.1:4711" */

/* Asks the requests that wait again. NULL is fine. */
void front_server_wake(struct front_server *s);

#endif
