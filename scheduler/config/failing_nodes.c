/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/failing_nodes.h"

#include "scheduler/config/readers.h"
#include <inttypes.h>

#define JOBS_USUAL 4
#define USERS_USUAL 3

void config_read_failing_nodes(struct yaml_reader *root, struct node_failures_options *ret_options)
{
    const struct yaml_node *map = yaml_opt_map(root, "failing_nodes");
    struct yaml_reader r;
    *ret_options = (struct node_failures_options){
        JOBS_USUAL, USERS_USUAL, .within_ms = SECONDS_MS(600), .quick_ms = SECONDS_MS(60)};
    if (!map || root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    int32_t jobs = (int32_t)yaml_opt_i64(&r, "jobs", 0, NODE_FAILURES_MAX, JOBS_USUAL),
            usual = jobs > 0 && jobs < USERS_USUAL ? jobs : USERS_USUAL;
    ret_options->jobs = jobs;
    ret_options->users = (int32_t)yaml_opt_i64(&r, "users", 1, NODE_FAILURES_MAX, usual);
    ret_options->within_ms =
        config_opt_time_in(&r, "within", SECONDS_MS(1), SECONDS_MS(86400), ret_options->within_ms);
    ret_options->quick_ms =
        config_opt_time_in(&r, "quick", SECONDS_MS(1), SECONDS_MS(3600), ret_options->quick_ms);
    if (r.rc == 0 && jobs > 0 && ret_options->users > jobs)
        yaml_reader_fail(&r, yaml_opt(&r, "users"),
            "%" PRId32 " jobs (key jobs) cannot be of %" PRId32
            " users: give at most as many users",
            jobs, ret_options->users);
    yaml_reader_finish_in(root, &r);
}
