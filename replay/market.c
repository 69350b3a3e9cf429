/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/market.h"

#include "base/mem.h"
#include "base/str.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Takes zone, type and count from a file name such as us-east-1a_v100_1.json. */
static void read_name(struct market_trace *t)
{
    const char *slash = strrchr(t->file, '/'), *name = slash ? slash + 1 : t->file;
    char stem[3 * CORE_NAME_MAX];
    STR_COPY(stem, name);
    if (str_ends(stem, ".json"))
        stem[strlen(stem) - 5] = '\0';
    char *type = strchr(stem, '_');
    if (!type)
        return;
    *type++ = '\0';
    char *count = strrchr(type, '_');
    int64_t n;
    if (count && str_to_i64(count + 1, 1, 1000000, "count", &n, NULL) == 0) {
        *count = '\0';
        t->count = (int32_t)n;
    }
    STR_COPY(t->zone, stem);
    STR_COPY(t->type, type);
}

int market_add(
    struct traces *t, const char *offer, const char *file, struct trace *trace, struct err *e)
{
    if (t->n == MARKET_TRACES_MAX)
        return err_set(e, ERR_INVALID, "more than %d traces", MARKET_TRACES_MAX);
    t->list = mem_resize(t->list, t->n + 1, sizeof *t->list);
    struct market_trace *m = &t->list[t->n++];
    *m = (struct market_trace){
        .file = mem_strdup(file), .offer = mem_strdup(offer), .trace = *trace};
    if (!offer)
        read_name(m);
    *trace = (struct trace){0};
    return 0;
}

static int read_file(struct traces *t, const char *offer, const char *path, struct err *e)
{
    struct trace trace;
    int rc = trace_load(path, &trace, e);
    if (rc == 0 && (rc = market_add(t, offer, path, &trace, e)) != 0)
        trace_deinit(&trace);
    if (rc == 0)
        t->list[t->n - 1].is_explicit = offer != NULL;
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct market_trace *)a)->file, ((const struct market_trace *)b)->file);
}

static int read_dir(struct traces *t, const char *path, struct err *e)
{
    DIR *d = opendir(path);
    size_t first = t->n;
    int rc = d ? 0 : err_errno(e, errno, "%s", path);
    for (const struct dirent *entry; rc == 0 && (entry = readdir(d));) {
        if (!str_ends(entry->d_name, ".json"))
            continue;
        char *file = mem_printf("%s/%s", path, entry->d_name);
        rc = read_file(t, NULL, file, e);
        free(file);
    }
    if (d)
        closedir(d);
    if (rc == 0 && t->n == first)
        rc = err_set(e, ERR_NOT_FOUND, "%s: the directory contains no trace (*.json)", path);
    if (t->n > first)
        qsort(t->list + first, t->n - first, sizeof *t->list, by_name);
    return rc;
}

int market_read(struct traces *t, const char *what, struct err *e)
{
    struct stat st;
    const char *equals = strchr(what, '=');
    if (stat(what, &st) == 0)
        return S_ISDIR(st.st_mode) ? read_dir(t, what, e) : read_file(t, NULL, what, e);
    if (!equals || equals == what)
        return err_errno(e, errno, "%s", what);
    char *offer = mem_strndup(what, (size_t)(equals - what));
    int rc = read_file(t, offer, equals + 1, e);
    free(offer);
    return rc;
}

void market_deinit(struct traces *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->list[i].file);
        free(t->list[i].offer);
        trace_deinit(&t->list[i].trace);
    }
    free(t->list);
    *t = (struct traces){0};
}

bool market_is_for(const struct market_trace *t, const struct offer_row *o)
{
    char all[3 * CORE_NAME_MAX];
    snprintf(all, sizeof all, "%s/%s/%s", o->pool, o->zone, o->type);
    return str_eq(t->offer, all) || str_eq(t->offer, all + strlen(o->pool) + 1) ||
           str_eq(t->offer, o->zone);
}

/* Quality of the match, in the order of market_find's preference: 0 = none; 1 = only the zone; 6 =
 * given for the offer. */
static int fit(const struct market_trace *t, const struct offer_row *o)
{
    if (t->offer)
        return market_is_for(t, o) ? 6 : 0;
    if (!str_eq(t->zone, o->zone))
        return 0;
    if (strcasecmp(t->type, o->type) == 0)
        return 5;
    if (o->gpu.model[0] && strcasecmp(t->type, o->gpu.model) == 0)
        return t->count == o->total.gpus ? 4 : 3;
    return 1;
}

const struct market_trace *market_find(
    const struct traces *t, const struct offer_row *o, bool *ret_prices)
{
    const struct market_trace *best = NULL;
    int best_fit = 0;
    size_t n_zone = 0;
    for (size_t i = 0; i < t->n; i++) {
        int f = fit(&t->list[i], o);
        n_zone += f > 0;
        if (f > best_fit) {
            best = &t->list[i];
            best_fit = f;
        }
    }
    *ret_prices = best_fit >= 4;
    return best_fit == 1 && n_zone > 1 ? NULL : best;
}
