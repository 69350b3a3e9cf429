/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections of belayd's configuration about who is told of what: `webhooks:`, `mail:`,
 * `notify_allow:`.
 */
#ifndef BELAY_SCHEDULER_CONFIG_NOTIFY_H
#define BELAY_SCHEDULER_CONFIG_NOTIFY_H

#include "base/yaml.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/notify/notify_guard.h"

struct config_hook {
    char *url, *url_file; /* one of them; the other NULL */
    char *secret_file;    /* NULL: bodies are not signed */
};

struct config_notify {
    struct notify_hook hooks[NOTIFY_HOOKS_MAX]; /* and in the same places: */
    struct config_hook files[NOTIFY_HOOKS_MAX];
    size_t n_hooks;
    char *smtp;                           /* NULL: by sendmail */
    char *sendmail;                       /* absolute; default /usr/sbin/sendmail */
    char *from;                           /* default "belay" */
    char *user, *password_file, *ca_file; /* of smtp; NULL: not set */
    struct notify_guard guard;
};

/* As the caller's reader goes over the file's root. *ret is deinited in any case. */
void config_read_notify(struct yaml_reader *root, struct config_notify *ret);
void config_notify_deinit(struct config_notify *c);

#endif
