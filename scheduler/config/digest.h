/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `digest:` of belayd's configuration: when the morning digest is sent, and to which
 * addresses. Webhooks get it by their `events`, users by subscribing.
 */
#ifndef BELAY_SCHEDULER_CONFIG_DIGEST_H
#define BELAY_SCHEDULER_CONFIG_DIGEST_H

#include "base/yaml.h"
#include "scheduler/core/lifecycle/digest_options.h"

struct config_digest {
    bool is_set;                   /* false: none is sent, and the rest is at its default */
    struct digest_options options; /* without its zone */
    char tz[ZONE_NAME_MAX];
    char *mails[DIGEST_MAILS_MAX]; /* options.n_mails entries */
    bool when_empty;               /* also sent if there is nothing to say */
};

/* Reads the section; call it while the caller's reader is at the file's root. Deinit *ret in all
 * cases. */
void config_read_digest(struct yaml_reader *root, struct config_digest *ret);
void config_digest_deinit(struct config_digest *c);

#endif
