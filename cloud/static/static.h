/* SPDX-License-Identifier: Apache-2.0
 *
 * The static driver: existing machines (a rack, rented boxes without an API), reached over ssh. The
 * core sees them as a small cloud with one instance per host: a launch claims a free host and
 * starts its agent; a termination ends the claim's processes and releases it.
 *
 * A host that does not answer is never assumed to be free: instances known to be on it are hidden
 * (see `hides` in driver.h) until it answers again, and a claim with an unknown outcome is resolved
 * at the same host.
 */
#ifndef BELAY_CLOUD_STATIC_STATIC_H
#define BELAY_CLOUD_STATIC_STATIC_H

#include "base/runner.h"
#include "cloud/provider.h"

#define STATIC_HOSTS_MAX 256
#define STATIC_REGION "static" /* region, zone and type of all its instances */

struct static_options {
    const char *hosts; /* one per line: HOST, HOST:PORT or [ADDRESS]:PORT */
    const char *user;
    const char *key;         /* path of the private key; must not be readable by others */
    const char *known_hosts; /* path of the file with their host keys: other keys are refused */
    int port;                /* 0 = 22 */
    const char *agent;       /* path of belay-agent on the hosts; NULL to use PATH */
    const char *dir;         /* absolute path on the hosts; NULL for the default */
    struct runner *runner;   /* borrowed until destroy, like timers */
    struct timers *timers;
};

/* Copies what it needs. ERR_CONFIG. Reads no file; checks only the key's mode. */
int static_driver_create(
    const struct static_options *o, struct cloud_driver **ret_driver, struct err *e);

extern const struct cloud_provider static_provider;

#endif
