/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/retries.h"

void config_read_retries(struct yaml_reader *r, const char *key, struct retries *ret_retries)
{
    const struct yaml_node *map = yaml_opt_map(r, key);
    struct yaml_reader own;
    struct err why;
    *ret_retries = (struct retries){0};
    if (!map || r->rc != 0)
        return;
    yaml_reader_init(&own, r->file, map, r->e);
    for (int k = 0; k < RETRY_KINDS; k++) {
        const struct yaml_node *node = yaml_opt(&own, retry_kind_names[k]);
        const char *text = yaml_opt_str(&own, retry_kind_names[k], 16, NULL);
        if (text && own.rc == 0 && retries_parse_number(text, &ret_retries->n[k], &why) != 0)
            yaml_reader_fail(&own, node, "%s", why.text);
    }
    yaml_reader_finish_in(r, &own);
}
