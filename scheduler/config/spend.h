/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `spend_anomalies:` of belayd's configuration: when spending counts as far above the
 * usual, and which addresses are notified. Webhooks are by their `events`.
 *
 *     spend_anomalies: {weeks: 8, deviations: 4, at_least: 50, mail: [ops@lab.example]}
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
};

/* Reads the section; defaults for absent keys. Deinit *ret in all cases. */
void config_read_spend(struct yaml_reader *root, struct config_spend *ret);
void config_spend_deinit(struct config_spend *c);

#endif
