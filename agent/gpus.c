/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpus.h"

#include "base/str.h"
#include <stdio.h>
#include <string.h>

void gpus_number(struct gpus *g, int64_t n)
{
    g->n = n < GPUS_MAX ? (size_t)n : GPUS_MAX;
    for (size_t i = 0; i < g->n; i++)
        snprintf(g->id[i], sizeof(g->id[i]), "%zu", i);
}

/* A text has the id. */
static bool has(const char *text, const char *id)
{
    size_t n = strlen(id);
    if (str_eq(text, GPUS_ALL))
        return true;
    for (const char *p = text; *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, id, n) == 0 && (!p[n] || p[n] == ','))
            return true;
    return false;
}

static bool is_free(const char *id, const char *const *others, size_t n_others)
{
    for (size_t k = 0; k < n_others; k++)
        if (has(others[k], id))
            return false;
    return true;
}

/* False: there is no room for it. */
static bool append(char text[GPUS_TEXT_MAX], const char *id)
{
    size_t n = strlen(text), len = strlen(id), comma = n > 0;
    if (n + comma + len >= GPUS_TEXT_MAX)
        return false;
    text[n] = ',';
    memcpy(text + n + comma, id, len + 1);
    return true;
}

int gpus_allot(const struct gpus *g, int64_t n, const char *const *others, size_t n_others, char out[GPUS_TEXT_MAX], struct err *e)
{
    char text[GPUS_TEXT_MAX] = "";
    int64_t given = 0;
    for (size_t i = 0; i < g->n && given < n; i++)
        given += is_free(g->id[i], others, n_others) && append(text, g->id[i]);
    if (given < n)
        return err_set(e, ERR_UNAVAILABLE,
            "it needs %lld GPUs of this node, which has %zu, and %lld of them are free of what has not ended there yet", (long long)n,
            g->n, (long long)given);
    memcpy(out, text, sizeof(text));
    return 0;
}
