/* SPDX-License-Identifier: Apache-2.0
 *
 * The metadata service of one instance on an address of its own.
 */
#ifndef BELAY_CLOUD_EMULATOR_METADATA_SERVER_H
#define BELAY_CLOUD_EMULATOR_METADATA_SERVER_H

#include "cloud/emulator/metadata.h"
#include <uv.h>

struct metadata_server_options {
    struct metadata metadata; /* but for the secret, which is made here */
    struct faults *faults;    /* those of the action "metadata" are used up here */
    const char *host;
    int port; /* 0: any free one */
    struct wall (*now)(void *ctx);
    void *ctx;
};

struct metadata_server;

/* Copies the options; what they point at is borrowed until stop. */
int metadata_server_start(uv_loop_t *loop, const struct metadata_server_options *o,
    struct metadata_server **ret_server, struct err *e);
void metadata_server_stop(struct metadata_server *s);             /* NULL is fine. Run the loop afterwards */
const char *metadata_server_url(const struct metadata_server *s); /* "http://127.0.0.1:4711" */

#endif
