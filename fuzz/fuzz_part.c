/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of a step's part: complete, or an error.
 */
#include "cli/slurm/part.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct part p;
    struct err e = {0};
    int rc = part_parse((const char *)data, size, &p, &e);
    if (rc == 0) {
        assert(
            strlen(p.key) == PART_KEY_HEX && p.argv[0] && p.cwd && p.on.nodelist && p.on.per_node);
        assert(p.on.n >= 1 && p.on.n <= STEP_TASKS_MAX && p.port >= 1 && p.port <= 65535);
        for (int64_t i = 0; i < p.on.n; i++)
            assert(p.on.ids[i] >= 0 && p.on.ids[i] < p.on.tasks);
    } else {
        check_error(rc, &e);
    }
    part_deinit(&p);
    return 0;
}
