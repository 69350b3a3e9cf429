/* SPDX-License-Identifier: Apache-2.0
 *
 * A thousand simulated reclaims (bench/lost_reclaims.h), one a line, in milliseconds:
 *
 *     NOTICE SAVE INTERVAL LOST BOUND
 */
#include "base/mem.h"
#include "bench/lost_reclaims.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    static const struct {
        int64_t notice_ms;
        size_t n;
    } kinds[] = {{0, 500}, {30000, 250}, {120000, 250}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct lost_reclaim *r = mem_array(kinds[k].n, sizeof *r);
        lost_sample(k, kinds[k].notice_ms, kinds[k].n, r);
        for (size_t i = 0; i < kinds[k].n; i++)
            printf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", r[i].notice_ms,
                r[i].loss.save_ms, r[i].loss.interval_ms, r[i].loss.work_ms, lost_bound_ms(&r[i]));
        free(r);
    }
    return 0;
}
