/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/since.h"

#include "base/str.h"
#include "cli/slurm/slurm.h"
#include <string.h>

int since_parse(const char *text, struct wall now, struct wall *ret_at, struct err *e)
{
    int64_t ms;
    if (time_parse_iso(text, ret_at, e) == 0)
        return 0;
    if (text[strspn(text, "0123456789")] && time_parse_duration(text, false, &ms, e) == 0) {
        *ret_at = (struct wall){now.ms - ms};
        return 0;
    }
    if (slurm_time_parse(text, now, ret_at, e) == 0)
        return 0;
    return err_set(e, ERR_INVALID,
        "expected a time like 10m (ago), 20:44, today, 2026-11-21T20:44 or 2026-11-21T20:44:00Z, "
        "found %s",
        str_show(text, (char[STR_SHOW_MAX]){0}));
}
