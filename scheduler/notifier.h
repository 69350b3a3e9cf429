/* SPDX-License-Identifier: Apache-2.0
 *
 * The outbox's hands: sends webhooks, and mail by the machine's sendmail or by SMTP. What it is told of a failure shows hosts, and
 * neither paths nor what was answered: both may hold secrets.
 */
#ifndef BELAY_SCHEDULER_NOTIFIER_H
#define BELAY_SCHEDULER_NOTIFIER_H

#include "base/runner.h"
#include "base/uv/loop.h"
#include "db/db.h"
#include "scheduler/config_budgets.h"
#include "scheduler/config_notify.h"
#include "scheduler/notify_seal.h"
#include "scheduler/outbox.h"

struct notifier;

struct notifier_options {
    uv_loop_t *loop;
    struct timers *timers;
    struct runner *runner; /* for sendmail */
    struct db_reader *reader;
    const struct config_notify *config;
    const struct config_budget *budgets; /* for their addresses */
    size_t n_budgets;
    const struct notify_sealer *sealer;
    const char *cluster_uid, *cluster;
};

/* What o points to is borrowed. It has an HTTP client of its own: a connection that was made for belayd is none for users. */
struct notifier *notifier_create(const struct notifier_options *o);
struct outbox_port *notifier_port(struct notifier *n);
/* What is under way tells nobody; a mail that is with a thread is waited for by the loop. Before the runner goes. NULL is fine */
void notifier_destroy(struct notifier *n);

#endif
