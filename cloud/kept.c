/* SPDX-License-Identifier: Apache-2.0
 *
 * See kept.h.
 */
#include "cloud/kept.h"

#include "base/mem.h"
#include <stdlib.h>

const char *cloud_keep(struct cloud_kept *k, const char *text)
{
    if (!text)
        return NULL;
    k->list = mem_resize(k->list, k->n + 1, sizeof(*k->list));
    return k->list[k->n++] = mem_strdup(text);
}

void cloud_kept_deinit(struct cloud_kept *k)
{
    for (size_t i = 0; i < k->n; i++)
        free(k->list[i]);
    free(k->list);
    *k = (struct cloud_kept){0};
}
