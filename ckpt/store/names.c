/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/store/names.h"
#include "base/mem.h"
#include <stdlib.h>

void names_add(struct names *l, char *name)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->v = mem_resize(l->v, l->cap, sizeof(l->v[0]));
    }
    l->v[l->n++] = name;
}

void names_deinit(struct names *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
    *l = (struct names){0};
}
