/* SPDX-License-Identifier: Apache-2.0
 *
 * The outbox's port: sends webhooks, and mail by the machine's sendmail or by SMTP, once;
 * scheduler/engine/outbox.h tries again. Its error texts contain hosts, but neither paths nor
 * answers, because both may contain secrets.
 */
#ifndef BELAY_SCHEDULER_NOTIFY_NOTIFIER_H
#define BELAY_SCHEDULER_NOTIFY_NOTIFIER_H

#include "base/runner.h"
#include "base/uv/loop.h"
#include "db/db.h"
#include "scheduler/config/budgets.h"
#include "scheduler/config/digest.h"
#include "scheduler/config/spend.h"
#include "scheduler/config/notify.h"
#include "scheduler/notify/notify_seal.h"
#include "scheduler/notify/notify_text.h"
#include "scheduler/engine/outbox.h"
#include "scheduler/engine/tick.h"

struct notifier;

struct notifier_options {
    uv_loop_t *loop;
    struct timers *timers;
    struct runner *runner; /* for sendmail */
    struct db_reader *reader;
    const struct config_notify *config;
    const struct config_budget *budgets; /* for the addresses of budgets */
    size_t n_budgets;
    const struct sealer *sealer;
    const struct config_spend *spend;
    /* of morning digests: */
    struct tick *tick;
    const struct config_digest *digest;
    const struct time_zone *digest_zone;
    const char *db_path;
    const char *cluster_uid, *cluster;
};

/* The data that o points to is borrowed. The notifier has its own HTTP client, so that connections
 * made for belayd are never used for users. */
struct notifier *notifier_create(const struct notifier_options *o);
/* Other budgets; borrowed, as those before. */
void notifier_set_budgets(
    struct notifier *n, const struct config_budget *budgets, size_t n_budgets);
/* Of digests that begin later; the section of the configuration is read in place. */
void notifier_set_digest_zone(struct notifier *n, const struct time_zone *zone);
struct outbox_port *notifier_port(struct notifier *n);
/* Sends a report to an address or a URL, in the same way as a user's notification; check it with
 * notify_check_address or notify_check_url first. done runs exactly once, later: when the
 * destination has accepted it, when the only try has failed, or when the notifier is destroyed.
 * ERR_UNAVAILABLE: too many at once. */
#define NOTIFIER_REPORTS_AT_ONCE 2
int notifier_send(struct notifier *n, const struct notify_report *r, const char *to, bool is_url,
    outbox_done_fn done, void *ctx, struct err *e);
/* Drops the outbox's deliveries without callbacks; the loop waits for a mail that is on a thread.
 * Call before the runner is destroyed. n may be NULL. */
void notifier_destroy(struct notifier *n);

#endif
