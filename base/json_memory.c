/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_memory.h"

#include "base/mem.h"
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(size_t n)
{
    return mem_resize(NULL, n, 1);
}

static void wipe_and_free(void *p)
{
    if (p)
        explicit_bzero(p, malloc_usable_size(p));
    free(p);
}

void json_memory_wipe_freed(void)
{
    json_set_alloc_funcs(allocate, wipe_and_free);
}
