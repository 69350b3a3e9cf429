/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections of belayd's configuration about notifications: `webhooks:`, `mail:`,
 * `notify_allow:`.
 */
#ifndef BELAY_SCHEDULER_CONFIG_NOTIFY_H
#define BELAY_SCHEDULER_CONFIG_NOTIFY_H

#include "base/yaml.h"
#include "scheduler/core/lifecycle/notify_outbox.h"
#include "scheduler/config/notify_guard.h"

struct config_hook {
    enum notify_format format;
    char *url, *url_file, *mail_to; /* exactly one is set; the others are NULL */
    char *secret_file;              /* may be NULL: bodies are not signed */
    char *key_file;                 /* NOTIFY_PAGERDUTY: the routing key; else NULL */
};

struct config_notify {
    struct notify_hook hooks[NOTIFY_HOOKS_MAX]; /* with the same indices: */
    struct config_hook files[NOTIFY_HOOKS_MAX];
    size_t n_hooks;
    char *smtp;                           /* NULL for sendmail */
    char *sendmail;                       /* absolute; default /usr/sbin/sendmail */
    bool names_sendmail;                  /* else the default */
    char *from;                           /* default "belay" */
    char *user, *password_file, *ca_file; /* for smtp; NULL if not set */
    struct notify_guard guard;
};

/* Reads the sections; call it while the caller's reader is at the file's root. Deinit *ret in all
 * cases. */
void config_read_notify(struct yaml_reader *root, struct config_notify *ret);
void config_notify_deinit(struct config_notify *c);

#endif
