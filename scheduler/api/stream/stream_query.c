/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/api/stream/stream_query.h"

#include "base/str.h"
#include <stdio.h>
#include <string.h>

const char *const stream_kind_names[] = {
    "job", "node", "instance", "pool", "cron", "budget", "summary", "log", "event", NULL};

#define KINDS_TEXT "job, node, instance, pool, cron, budget, summary, log, event"

static int find_kind(const char *name, size_t n)
{
    for (int k = 0; k < STREAM_KINDS; k++)
        if (strlen(stream_kind_names[k]) == n && memcmp(stream_kind_names[k], name, n) == 0)
            return k;
    return -1;
}

int stream_types_parse(const char *text, uint32_t *ret_types, struct err *e)
{
    char shown[STR_SHOW_MAX];
    uint32_t types = 0;
    if (strlen(text) > STREAM_TYPES_MAX)
        return err_set(e, ERR_INVALID, "types: more than %d bytes", STREAM_TYPES_MAX);
    for (const char *at = text;;) {
        size_t n = strcspn(at, ",");
        int kind = find_kind(at, n);
        if (kind < 0)
            return err_set(e, ERR_INVALID, "types: expected a list of " KINDS_TEXT ", found %s",
                str_show(text, shown));
        types |= 1u << kind;
        if (at[n] == '\0')
            break;
        at += n + 1;
    }
    *ret_types = types;
    return 0;
}

void stream_position_format(struct stream_position p, char out[STREAM_POSITION_MAX])
{
    snprintf(out, STREAM_POSITION_MAX, "%lld-%lld", (long long)p.epoch, (long long)p.event);
}

int stream_position_parse(const char *text, struct stream_position *ret_position, struct err *e)
{
    char epoch[24], shown[STR_SHOW_MAX];
    struct stream_position p;
    size_t n = strcspn(text, "-");
    if (n > 0 && n < sizeof(epoch) && text[n] == '-') {
        memcpy(epoch, text, n);
        epoch[n] = '\0';
        if (str_to_i64(epoch, 0, INT64_MAX, "epoch", &p.epoch, NULL) == 0 &&
            str_to_i64(text + n + 1, 0, INT64_MAX, "event", &p.event, NULL) == 0) {
            *ret_position = p;
            return 0;
        }
    }
    return err_set(e, ERR_INVALID, "Last-Event-ID: expected the id of an event, found %s",
        str_show(text, shown));
}
