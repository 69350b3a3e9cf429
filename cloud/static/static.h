/* SPDX-License-Identifier: Apache-2.0
 *
 * The static driver: machines that are there anyhow (a rack, rented boxes without an API), reached
 * over ssh. To the core they look like a small cloud of as many instances as there are hosts: to
 * launch is to claim a free one and to start its agent, to terminate is to end what the claim runs
 * and to give it up.
 *
 * A host that does not answer is never taken for one without a claim: what is known to be on it is
 * hidden (see `hides` in driver.h) until it answers again, and a claim whose outcome is not known
 * is decided at the same host.
 */
#ifndef BELAY_CLOUD_STATIC_STATIC_H
#define BELAY_CLOUD_STATIC_STATIC_H

#include "base/runner.h"
#include "cloud/provider.h"

#define STATIC_HOSTS_MAX 256
#define STATIC_REGION "static" /* the region, zone and type of all its instances */

struct static_options {
    const char *hosts; /* a line each: HOST, HOST:PORT or [ADDRESS]:PORT */
    const char *user;
    const char *key;         /* path of the private key; readable by us only */
    const char *known_hosts; /* path of the file with their host keys: others are refused */
    int port;                /* 0: 22 */
    const char *agent;       /* path of belay-agent on them; NULL: on their PATH */
    const char *dir;         /* absolute, on them; NULL: its default */
    struct runner *runner;   /* borrowed until destroy, like timers */
    struct timers *timers;
};

/* Copies what it needs. ERR_CONFIG. Reads no file but the key's mode. */
int static_driver_create(
    const struct static_options *o, struct cloud_driver **ret_driver, struct err *e);

extern const struct cloud_provider static_provider;

#endif
