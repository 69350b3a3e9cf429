/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `budgets:` of belayd's configuration.
 */
#ifndef BELAY_SCHEDULER_CONFIG_BUDGETS_H
#define BELAY_SCHEDULER_CONFIG_BUDGETS_H

#include "base/yaml.h"
#include "scheduler/config/windows.h"
#include "scheduler/core/queue/budget_options.h"

struct config_budget {
    struct budget_options options; /* without its window and its zone */
    char window[WINDOW_NAME_MAX];  /* "" = none */
    char tz[ZONE_NAME_MAX];
    char *mails[BUDGET_MAILS_MAX]; /* options.n_mails entries */
};

/* Reads the section; call it while the caller's reader is at the file's root. windows are those of
 * the file. Free *ret_budgets with config_budgets_free in all cases. */
void config_read_budgets(struct yaml_reader *root, const struct config_window *windows,
    size_t n_windows, struct config_budget **ret_budgets, size_t *ret_n);
void config_budgets_free(struct config_budget *budgets, size_t n);

#endif
