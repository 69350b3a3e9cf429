/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/gpus.h"

#include "job/gpu.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>

/* ---- the list ---- */

static void add(struct gpus *g, const char *id, const char *slice)
{
    if (g->n == GPUS_DEVICES_MAX)
        return;
    struct gpu_device *d = &g->v[g->n++];
    STR_COPY(d->id, id);
    STR_COPY(d->slice, slice);
}

int64_t gpus_whole(const struct gpus *g)
{
    int64_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += !g->v[i].slice[0];
    return n;
}

void gpus_number(struct gpus *g, int64_t n)
{
    struct gpus all = {0};
    char id[24];
    for (int64_t i = 0; i < n && i < GPUS_MAX; i++) {
        snprintf(id, sizeof(id), "%lld", (long long)i);
        add(&all, id, "");
    }
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].slice[0])
            add(&all, g->v[i].id, g->v[i].slice);
    *g = all;
}

/* "... (UUID: GPU-5d5b)": reads the value if it consists only of letters, digits, - and /. */
static bool read_uuid(const char *line, size_t n, char out[GPUS_ID_MAX])
{
    static const char mark[] = "(UUID: ";
    const char *at = memmem(line, n, mark, strlen(mark));
    if (!at)
        return false;
    const char *p = at + strlen(mark);
    size_t len = 0, left = n - (size_t)(p - line);
    for (; len < left && p[len] != ')'; len++)
        if (len + 1 == GPUS_ID_MAX ||
            !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-/", p[len]) ||
            !p[len])
            return false;
    if (len == 0 || len == left)
        return false;
    memcpy(out, p, len);
    out[len] = '\0';
    return true;
}

/* What has been read of the listing so far. */
struct reading {
    struct gpus whole, slices;
    char uuids[GPUS_MAX][GPUS_ID_MAX]; /* UUIDs of the GPUs in `whole` */
    bool is_sliced;                    /* the last GPU has slices, and is removed from `whole` */
};

static void read_line(struct reading *r, const char *line, size_t n)
{
    char word[GPUS_ID_MAX], slice[GPU_MODEL_MAX], uuid[GPUS_ID_MAX];
    size_t indent = strspn(line, " "), skip = indent + 4;
    if (n <= skip || !read_uuid(line, n, uuid))
        return;
    size_t len = strcspn(line + skip, indent ? " \n" : ":\n");
    if (len == 0 || len >= sizeof(word) || skip + len >= n)
        return;
    memcpy(word, line + skip, len);
    word[len] = '\0';
    if (indent == 0 && str_starts(line, "GPU ") && strspn(word, "0123456789") == len && len < 4 &&
        r->whole.n < GPUS_MAX) {
        STR_COPY(r->uuids[r->whole.n], uuid);
        add(&r->whole, word, "");
        r->is_sliced = false;
    } else if (indent > 0 && str_starts(line + indent, "MIG ") && r->whole.n + r->is_sliced > 0 &&
               gpu_slice(word, slice)) {
        r->whole.n -= !r->is_sliced;
        r->is_sliced = true;
        add(&r->slices, uuid, slice);
    }
}

void gpus_read(struct gpus *g, const char *listing)
{
    struct reading r = {.is_sliced = false};
    for (const char *p = listing; *p;) {
        size_t n = strcspn(p, "\n");
        read_line(&r, p, n);
        p += n + (p[n] == '\n');
    }
    *g = (struct gpus){0};
    for (size_t i = 0; i < r.whole.n; i++)
        add(g, r.slices.n > 0 ? r.uuids[i] : r.whole.v[i].id, "");
    for (size_t i = 0; i < r.slices.n; i++)
        add(g, r.slices.v[i].id, r.slices.v[i].slice);
}

int64_t gpus_memory_mib(const char *csv)
{
    int64_t least = 0;
    for (const char *p = csv; *p;) {
        long long mib;
        size_t n = strcspn(p, "\n");
        if (n > 0 && (sscanf(p, "%9lld", &mib) != 1 || mib <= 0))
            return 0;
        if (n > 0 && (least == 0 || mib < least))
            least = mib;
        p += n + (p[n] == '\n');
    }
    return (least + 1023) / 1024 * 1024;
}

void gpus_count_slices(const struct gpus *g, const struct counts *others, struct counts *ret_counts)
{
    struct counts c = {0};
    for (size_t i = 0; i < g->n; i++) {
        int64_t n = 0;
        for (size_t k = 0; k < g->n; k++)
            n += str_eq(g->v[k].slice, g->v[i].slice);
        if (g->v[i].slice[0] && counts_of(&c, g->v[i].slice) == 0)
            counts_add(&c, g->v[i].slice, n, NULL);
    }
    for (size_t i = 0; i < others->n; i++)
        if (counts_of(&c, others->v[i].name) == 0)
            counts_add(&c, others->v[i].name, others->v[i].n, NULL);
    *ret_counts = c;
}

/* ---- allotting ---- */

bool gpus_text_has(const char *text, const char *id)
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
        if (gpus_text_has(others[k], id))
            return false;
    return true;
}

/* Appends an id to a list separated by commas. False if it does not fit. */
static bool append(char text[GPUS_TEXT_MAX], const char *id)
{
    size_t n = strlen(text), len = strlen(id), comma = n > 0;
    if (n + comma + len >= GPUS_TEXT_MAX)
        return false;
    text[n] = ',';
    memcpy(text + n + comma, id, len + 1);
    return true;
}

static int64_t count(const struct gpus *g, const char *slice)
{
    int64_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += str_eq(g->v[i].slice, slice);
    return n;
}

/* Appends the ids of n free slices with this profile ("" = whole GPUs) to text. */
static int give(const struct gpus *g, const char *slice, int64_t n, const char *const *others,
    size_t n_others, char text[GPUS_TEXT_MAX], struct err *e)
{
    int64_t given = 0;
    for (size_t i = 0; i < g->n && given < n; i++)
        given += str_eq(g->v[i].slice, slice) && is_free(g->v[i].id, others, n_others) &&
                 append(text, g->v[i].id);
    if (given == n)
        return 0;
    return err_set(e, ERR_UNAVAILABLE,
        "it needs %lld GPUs%s%s of this node, which has %lld, of which %lld are free", (long long)n,
        slice[0] ? " with the profile " : "", slice, (long long)count(g, slice), (long long)given);
}

int gpus_allot(const struct gpus *g, const struct gpus_ask *ask, const char *const *others,
    size_t n_others, char out[GPUS_TEXT_MAX], struct err *e)
{
    char text[GPUS_TEXT_MAX] = "";
    const struct counts none = {0}, *wanted = ask->slices ? ask->slices : &none;
    struct counts all;
    int64_t whole = gpus_whole(g);
    gpus_count_slices(g, &none, &all);
    int rc =
        give(g, "", ask->all && ask->whole < whole ? whole : ask->whole, others, n_others, text, e);
    for (size_t i = 0; rc == 0 && i < all.n; i++) {
        int64_t n = counts_of(wanted, all.v[i].name);
        rc = give(g, all.v[i].name, ask->all && n < all.v[i].n ? all.v[i].n : n, others, n_others,
            text, e);
    }
    if (rc == 0)
        memcpy(out, text, sizeof(text));
    return rc;
}
