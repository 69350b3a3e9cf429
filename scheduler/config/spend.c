/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/spend.h"

#include "base/mem.h"
#include "job/notify_address.h"
#include "scheduler/config/readers.h"
#include "telemetry/spend_anomaly.h"
#include <stdlib.h>

static void read_mails(struct yaml_reader *r, struct config_spend *c)
{
    const struct yaml_node *seq = yaml_opt_seq(r, "mail", ANOMALY_MAILS_MAX);
    struct err why;
    for (size_t k = 0; seq && k < seq->n_items && r->rc == 0; k++) {
        const struct yaml_node *item = seq->items[k];
        if (item->type != YAML_SCALAR)
            yaml_reader_fail(r, item, "mail: expected an address");
        else if (notify_check_address(item->text, &why) != 0)
            yaml_reader_fail(r, item, "mail: %s", why.text);
        else
            c->mails[c->n_mails++] = mem_strdup(item->text);
    }
}

void config_read_spend(struct yaml_reader *root, struct config_spend *ret)
{
    const struct yaml_node *map = yaml_opt_map(root, "spend_anomalies");
    struct yaml_reader r;
    *ret = (struct config_spend){.limits = {.weeks = SPEND_WEEKS_DEFAULT,
                                     .deviations = SPEND_DEVIATIONS_DEFAULT,
                                     .at_least_uusd = SPEND_AT_LEAST_UUSD_DEFAULT},
        .to_users = true};
    if (!map || root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    ret->limits.weeks =
        (int32_t)yaml_opt_i64(&r, "weeks", SPEND_WEEKS_MIN, SPEND_WEEKS_MAX, SPEND_WEEKS_DEFAULT);
    ret->limits.deviations =
        (int32_t)yaml_opt_i64(&r, "deviations", 1, SPEND_DEVIATIONS_MAX, SPEND_DEVIATIONS_DEFAULT);
    ret->limits.at_least_uusd = yaml_opt_uusd(&r, "at_least", SPEND_AT_LEAST_UUSD_DEFAULT);
    ret->to_users = config_opt_truth(&r, "users", true);
    read_mails(&r, ret);
    yaml_reader_finish_in(root, &r);
}

void config_spend_deinit(struct config_spend *c)
{
    for (int32_t k = 0; k < c->n_mails; k++)
        free(c->mails[k]);
    *c = (struct config_spend){0};
}
