/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `spend_anomalies:` of belayd's configuration: when spending counts as far above the
 * usual, and who is mailed. Webhooks are by their `events`.
 *
 *     spend_anomalies: {weeks: 8, at_least: 50, mail: [ops@lab.example], users: true}
 */
#ifndef BELAY_SCHEDULER_CONFIG_SPEND_H
#define BELAY_SCHEDULER_CONFIG_SPEND_H

#include "base/yaml.h"
#include "scheduler/core/ledger/anomalies.h"
#include "telemetry/spend_anomaly.h"

struct config_spend {
    struct spend_limits limits;
    char *mails[ANOMALY_MAILS_MAX];
    int32_t n_mails;
    bool to_users; /* also each user about their own, and the leads of a team about its */
};

/* Reads the section; defaults for absent keys. Deinit *ret in all cases. */
void config_read_spend(struct yaml_reader *root, struct config_spend *ret);
void config_spend_deinit(struct config_spend *c);

#endif
