/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's side of the protocol of service managers (sd_notify(3)): states as datagrams to the
 * socket that NOTIFY_SOCKET names. The protocol is stable and takes one sendto, so belayd is not
 * linked with libsystemd. Without NOTIFY_SOCKET nothing is sent.
 *
 * If the manager wants a watchdog (WATCHDOG_USEC), a timer of the loop reports twice in each of its
 * intervals. A loop that hangs reports nothing, and the manager restarts belayd.
 */
#ifndef BELAY_SCHEDULER_SERVICE_MANAGER_H
#define BELAY_SCHEDULER_SERVICE_MANAGER_H

#include "base/err.h"
#include "base/timers.h"

struct service_manager;

/* Reads the variables and removes them from the environment, so that programs which belayd runs
 * do not report in its name. Returns NULL if no manager asks for reports. timers must outlive it.
 * ERR_CONFIG: a variable has no valid value. */
int service_manager_open(struct timers *timers, struct service_manager **ret, struct err *e);
/* These do nothing with NULL. A datagram that cannot be sent is logged once. */
void service_manager_ready(struct service_manager *s); /* also starts the watchdog's reports */
void service_manager_stopping(struct service_manager *s);
/* The configuration is being read again, and was. */
void service_manager_reloading(struct service_manager *s);
void service_manager_reloaded(struct service_manager *s);
void service_manager_close(struct service_manager *s);

#endif
