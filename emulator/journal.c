/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal is for people and tests; the emulator does not read it.
 */
#include "emulator/journal.h"
#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

void journal_deinit(struct journal *j)
{
    for (size_t i = 0; i < j->n; i++)
        json_decref(j->entries[i]);
    free(j->entries);
    *j = (struct journal){0};
}

static void forget_half(struct journal *j)
{
    size_t drop = j->n / 2;
    for (size_t i = 0; i < drop; i++)
        json_decref(j->entries[i]);
    memmove(j->entries, j->entries + drop, (j->n - drop) * sizeof(*j->entries));
    j->n -= drop;
}

void journal_add(struct journal *j, struct wall at, const char *what, json_t *details)
{
    char iso[TIME_ISO_MAX];
    time_format_iso(at, iso);
    json_t *entry = json_object();
    json_object_set_new(entry, "seq", json_integer(++j->last_seq));
    json_object_set_new(entry, "at", json_string(iso));
    json_object_set_new(entry, "at_ms", json_integer(at.ms));
    json_object_set_new(entry, "what", json_string(what));
    if (details) {
        json_object_update(entry, details);
        json_decref(details);
    }
    if (j->n == JOURNAL_MAX)
        forget_half(j);
    j->entries = mem_resize(j->entries, j->n + 1, sizeof(*j->entries));
    j->entries[j->n++] = entry;
}

json_t *journal_after(const struct journal *j, int64_t after, size_t max)
{
    json_t *list = json_array();
    int64_t first_seq = j->last_seq - (int64_t)j->n + 1;
    size_t i = after >= first_seq ? (size_t)(after - first_seq + 1) : 0;
    for (; i < j->n && json_array_size(list) < max; i++)
        json_array_append(list, j->entries[i]);
    return list;
}
