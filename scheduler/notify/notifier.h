/* SPDX-License-Identifier: Apache-2.0
 *
 * The outbox's hands: sends webhooks, and mail by the machine's sendmail or by SMTP. What it is
 * told of a failure shows hosts, and neither paths nor what was answered: both may hold secrets.
 */
#ifndef BELAY_SCHEDULER_NOTIFY_NOTIFIER_H
#define BELAY_SCHEDULER_NOTIFY_NOTIFIER_H

#include "base/runner.h"
#include "base/uv/loop.h"
#include "db/db.h"
#include "scheduler/config/budgets.h"
#include "scheduler/config/notify.h"
#include "scheduler/notify/notify_seal.h"
#include "scheduler/notify/notify_text.h"
#include "scheduler/engine/outbox.h"

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

/* What o points to is borrowed. It has an HTTP client of its own: a connection that was made for
 * belayd is none for users. */
struct notifier *notifier_create(const struct notifier_options *o);
struct outbox_port *notifier_port(struct notifier *n);
/* To an address, or to a URL, as a user's notice goes there; checked by notify_check_address or
 * notify_check_url before. done runs once, later: when it was taken there, or not, for there is no
 * second try; or when the notifier is destroyed. ERR_UNAVAILABLE: too many at once. */
#define NOTIFIER_REPORTS_AT_ONCE 2
int notifier_send(struct notifier *n, const struct notify_report *r, const char *to, bool is_url,
    outbox_done_fn done, void *ctx, struct err *e);
/* What is under way of the outbox tells nobody; a mail that is with a thread is waited for by the
 * loop. Before the runner goes. NULL is fine */
void notifier_destroy(struct notifier *n);

#endif
