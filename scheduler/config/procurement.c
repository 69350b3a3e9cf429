/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/procurement.h"

#include "scheduler/config/readers.h"

#define POLL_MIN_MS 10
#define STEP_MAX_MS 3600000
#define MARGIN_MAX 900
#define CAP_MAX 1000

/* In the order of enum deadline_rule. */
static const char *const policy_words[] = {"planned", "uniform", "uniform-sticky", "uniform-plain",
    "rc-cr-threshold", "rc-cr-threshold-no-condition2", "greedy", "on-demand", NULL};

void config_read_procurement(struct yaml_reader *root, struct procurement_options *ret_options)
{
    const struct yaml_node *map = yaml_opt_map(root, "deadlines");
    struct yaml_reader r;
    *ret_options = procurement_usual;
    if (!map || root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    ret_options->rule =
        (enum deadline_rule)yaml_opt_enum(&r, "policy", policy_words, (int)procurement_usual.rule);
    ret_options->look_ms =
        config_opt_time_in(&r, "look", POLL_MIN_MS, STEP_MAX_MS, procurement_usual.look_ms);
    const struct yaml_node *step = yaml_opt(&r, "step");
    ret_options->step_ms =
        config_opt_time_in(&r, "step", POLL_MIN_MS, STEP_MAX_MS, procurement_usual.step_ms);
    ret_options->work_margin_pct =
        (int32_t)yaml_opt_i64(&r, "work_margin", 0, MARGIN_MAX, procurement_usual.work_margin_pct);
    ret_options->cap_pct = (int32_t)yaml_opt_i64(&r, "cap", 0, CAP_MAX, procurement_usual.cap_pct);
    ret_options->baseline = (enum deadline_rule)(
        1 + yaml_opt_enum(&r, "baseline", &policy_words[1], (int)procurement_usual.baseline - 1));
    if (r.rc == 0 && ret_options->step_ms < ret_options->look_ms) {
        char at_least[32], found[32];
        time_format_duration(ret_options->look_ms, at_least, sizeof at_least);
        time_format_duration(ret_options->step_ms, found, sizeof found);
        yaml_reader_fail(&r, step ? step : map,
            "expected a step that is not shorter than look, %s, found %s%s", at_least, found,
            step ? "" : " (the default)");
    }
    int rc = yaml_reader_finish(&r);
    root->rc = root->rc ? root->rc : rc;
}
