/* SPDX-License-Identifier: Apache-2.0
 *
 * The body of an update of a job: known fields within their limits, or an error.
 */
#include "base/mem.h"
#include "fuzz/check.h"
#include "scheduler/api/update_request.h"
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct job_row row = {.id = 1,
        .spec.name = "job",
        .user = "ann",
        .spec.need = {2, 1, 1024},
        .spec.nodes = 4,
        .spec.nodes_min = 2,
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = 3};
    const struct update_request_of of = {
        .row = &row, .constraints = "constraint=a&b", .launch_json = "{}"};
    struct update_request u;
    struct err e = {0};
    json_t *v;
    if (json_parse((const char *)data, size, UPDATE_REQUEST_BYTES_MAX, &v, &e) != 0)
        return 0;
    memset(&u, CHECK_PATTERN, sizeof(u));
    int rc = update_request_parse(v, &of, &u, &e);
    json_decref(v);
    if (rc != 0) {
        check_error(rc, &e);
        return 0;
    }
    const struct job_row *r = &u.to.row;
    assert(u.fields > 0);
    assert(r->spec.need.cpus >= 1 && r->spec.need.gpus >= 0 && r->spec.need.memory_mib >= 0 &&
           r->spec.time_limit_ms >= 0);
    assert(r->spec.nodes_min >= 1 && r->spec.nodes >= r->spec.nodes_min &&
           r->spec.nodes <= JOB_NODES_MAX);
    const struct event ev = update_request_event(&u, row.id, "ann");
    assert(ev.type == EV_UPDATE && ev.update.job == row.id);
    update_request_deinit(&u);
    return 0;
}
