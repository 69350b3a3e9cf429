/* SPDX-License-Identifier: Apache-2.0
 *
 * See notify.h. belayd checks the URL.
 */
#include "cli/flags/notify.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/flags/directives.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define URLS_MAX 4
#define URL_BYTES_MAX 2048
#define ADDRESS_MAX 254

static const struct {
    const char *name, *event; /* NULL if belay has no such event */
    bool in_all;
} types[] = {{"BEGIN", "begin", true}, {"END", "end", true}, {"FAIL", "fail", true},
    {"REQUEUE", "requeue", true}, {"INVALID_DEPEND", "invalid-depend", true},
    {"TIME_LIMIT", "time-limit", false}, {"TIME_LIMIT_50", "time-limit-50", false},
    {"TIME_LIMIT_80", "time-limit-80", false}, {"TIME_LIMIT_90", "time-limit-90", false},
    {"ARRAY_TASKS", "array-tasks", false}, {"STAGE_OUT", NULL, false}};

#define N_TYPES (sizeof(types) / sizeof(types[0]))

static int add_type(const char *word, bool wanted[N_TYPES], struct err *e)
{
    bool all = strcasecmp(word, "ALL") == 0, found = all;
    for (size_t i = 0; i < N_TYPES; i++)
        if (all ? types[i].in_all : strcasecmp(word, types[i].name) == 0)
            wanted[i] = found = true;
    if (found)
        return 0;
    return err_set(e, ERR_INVALID,
        "expected BEGIN, END, FAIL, REQUEUE, TIME_LIMIT, TIME_LIMIT_50, _80, _90, INVALID_DEPEND, "
        "ARRAY_TASKS, ALL or NONE, found %s",
        str_show(word, (char[STR_SHOW_MAX]){0}));
}

int notify_types_parse(const char *value, json_t *spec, struct err *e)
{
    char *copy = mem_strdup(value), *rest = copy;
    bool wanted[N_TYPES] = {0};
    int rc = 0;
    if (strcasecmp(value, "NONE") != 0)
        for (char *word; rc == 0 && (word = strsep(&rest, ","));)
            rc = add_type(word, wanted, e);
    free(copy);
    if (rc != 0)
        return rc;
    json_t *list = json_array();
    for (size_t i = 0; i < N_TYPES; i++)
        if (wanted[i] && types[i].event)
            json_array_append_new(list, json_string(types[i].event));
    json_object_set_new(directive_object(spec, "notify"), "mail_types", list);
    return 0;
}

int notify_user_parse(const char *value, json_t *spec, struct err *e)
{
    if (!*value || strlen(value) > ADDRESS_MAX || !str_is_utf8(value, strlen(value)))
        return err_set(e, ERR_INVALID, "expected one address, as ann@example.com, found %s",
            str_show(value, (char[STR_SHOW_MAX]){0}));
    json_object_set_new(directive_object(spec, "notify"), "mail_user", json_string(value));
    return 0;
}

static int add_url(const char *url, json_t *spec, struct err *e)
{
    json_t *notify = directive_object(spec, "notify"), *list = json_object_get(notify, "urls"),
           *item;
    size_t i;
    if ((!str_starts(url, "https://") && !str_starts(url, "http://")) ||
        strlen(url) > URL_BYTES_MAX || !str_is_utf8(url, strlen(url)))
        return err_set(e, ERR_INVALID, "expected https://HOST/PATH, or @FILE with such a line");
    if (!list) {
        list = json_array();
        json_object_set_new(notify, "urls", list);
    }
    json_array_foreach(list, i, item)
    {
        if (str_eq(json_string_value(item), url))
            return 0;
    }
    if (json_array_size(list) == URLS_MAX)
        return err_set(e, ERR_INVALID, "at most %d URLs", URLS_MAX);
    json_array_append_new(list, json_string(url));
    return 0;
}

int notify_url_parse(const char *value, json_t *spec, struct err *e)
{
    struct buf text = {0};
    if (value[0] != '@')
        return add_url(value, spec, e);
    int rc = fs_read(value + 1, 2 * URL_BYTES_MAX, &text, e);
    if (rc == 0) {
        char *line = mem_strndup(buf_str(&text), strcspn(buf_str(&text), "\r\n"));
        rc = add_url(line, spec, e);
        free(line);
    }
    buf_wipe(&text);
    return rc;
}

void notify_format(const json_t *spec, const char *user, struct buf *out)
{
    const json_t *notify = json_object_get(spec, "notify"),
                 *list = json_object_get(notify, "mail_types"), *item;
    const char *to = cli_string(json_object_get(notify, "mail_user"));
    size_t i;
    if (json_array_size(list) > 0)
        buf_printf(out, "mail to %s (", to && *to ? to : user);
    json_array_foreach(list, i, item)
    {
        buf_printf(out, "%s%s", i ? ", " : "", cli_string(item) ? cli_string(item) : "");
    }
    if (json_array_size(list) > 0)
        buf_addc(out, ')');
    json_array_foreach(json_object_get(notify, "hosts"), i, item)
    {
        buf_printf(out, "%s%s", out->len ? "; " : "", cli_string(item) ? cli_string(item) : "?");
    }
}
