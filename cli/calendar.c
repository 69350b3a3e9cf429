/* SPDX-License-Identifier: Apache-2.0
 *
 *     belay calendar set CALENDAR DAY...|--ics FILE
 *     belay calendar [list]
 *     belay calendar show CALENDAR
 *     belay calendar remove CALENDAR
 *
 * set reads iCalendar files itself (job/ics.h), sends belayd the days, and prints them.
 */
#include "cli/list_table.h"
#include "cli/verbs.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/ics.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VAL_ICS = 1 };

static const struct list_column columns[] = {
    {"NAME", "name", COLUMN_TEXT, .is_name = true},
    {"SOURCE", "source", COLUMN_TEXT},
    {"DAYS", "n_days", COLUMN_INT},
    {"CRONS", "crons", COLUMN_INT},
    {"SET", "set_at", COLUMN_AGO},
    {"BY", "set_by", COLUMN_TEXT},
    {NULL, NULL, COLUMN_TEXT},
};

struct calendar_options {
    char *ics; /* a file */
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct calendar_options *o = ctx;
    (void)val;
    free(o->ics);
    o->ics = mem_strdup(arg);
    return CLI_OK;
}

/* ---- set ---- */

static int read_ics(const char *path, struct calendar *c, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read(path, ICS_BYTES_MAX, &text, e);
    if (rc == 0 && (rc = ics_read(buf_str(&text), text.len, c, e)) != 0)
        err_wrap(e, "%s", path);
    buf_deinit(&text);
    return rc;
}

/* Words, each a day, a range, or several of them with commas. */
static int read_words(const char *const *words, int n, struct calendar *c, struct err *e)
{
    struct buf list = {0};
    for (int i = 0; i < n; i++)
        buf_printf(&list, "%s%s", i > 0 ? "," : "", words[i]);
    int rc = calendar_read_list(buf_str(&list), c, e);
    if (rc == 0)
        calendar_normalize(c);
    buf_deinit(&list);
    return rc;
}

static void print_days(const json_t *c)
{
    size_t i;
    const json_t *day;
    json_array_foreach(json_object_get(c, "days"), i, day) printf("  %s\n", json_string_value(day));
}

static void print_set(const json_t *c)
{
    char days[CLI_COUNT_MAX], crons[CLI_COUNT_MAX];
    int64_t n = cli_int(c, "crons", 0);
    printf(
        "calendar %s has %s", cli_text(c, "name"), cli_count(cli_int(c, "n_days", 0), "day", days));
    snprintf(crons, sizeof crons, "%lld cron entr%s", (long long)n, n == 1 ? "y" : "ies");
    if (n > 0)
        printf("; %s %s it", crons, n == 1 ? "names" : "name");
    printf("\n");
}

static int set(const struct calendar_options *o, const struct cli_args *a)
{
    struct calendar c = {0};
    char text[CALENDAR_TEXT_MAX];
    struct err e;
    if ((o->ics != NULL) == (a->n_rest > 2)) {
        cli_error("expected days, such as 2026-12-25 or 2026-12-24..2027-01-02, or --ics FILE");
        return CLI_USAGE;
    }
    int rc = o->ics ? read_ics(o->ics, &c, &e) : read_words(a->rest + 2, a->n_rest - 2, &c, &e);
    if (rc != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    json_t *days = json_array();
    for (size_t k = 0; k < c.n; k++) {
        calendar_format_days(&c.days[k], text);
        json_array_append_new(days, json_string(text));
    }
    json_t *body = json_pack("{s:o,s:o}", "name", json_text(a->rest[1]), "days", days),
           *v = cli_post("/api/v1/calendars", body);
    if (v && a->json)
        cli_print_json(v);
    else if (v)
        print_set(v);
    if (v && !a->json)
        print_days(v);
    json_decref(body);
    json_decref(v);
    free(c.days);
    return v ? CLI_OK : CLI_FAILED;
}

/* ---- the others ---- */

/* A new reference; NULL after a report. */
static json_t *find(const char *name)
{
    json_t *v = cli_get("/api/v1/calendars"), *c, *found = NULL;
    size_t i;
    json_array_foreach(json_object_get(v, "calendars"), i, c)
    {
        if (str_eq(cli_text(c, "name"), name))
            found = json_incref(c);
    }
    if (v && !found)
        cli_error("there is no calendar \"%.63s\" (belay calendar lists them)", name);
    json_decref(v);
    return found;
}

static int show(const char *name, bool json)
{
    json_t *c = find(name);
    if (c && json) {
        cli_print_json(c);
    } else if (c) {
        bool is_stored = str_eq(cli_text(c, "source"), "stored");
        print_set(c);
        print_days(c);
        if (is_stored)
            printf("set by %s\n", cli_text(c, "set_by"));
        else
            printf("of belayd's configuration%s\n",
                json_is_true(json_object_get(c, "hides_stored"))
                    ? ", which hides a stored calendar of this name"
                    : "");
    }
    json_decref(c);
    return c ? CLI_OK : CLI_FAILED;
}

static int remove_it(const char *name, bool json)
{
    json_t *body = json_pack("{s:o}", "name", json_text(name)),
           *v = cli_post("/api/v1/calendars/remove", body);
    if (v && json)
        cli_print_json(v);
    else if (v)
        printf("calendar %s removed\n", name);
    json_decref(body);
    json_decref(v);
    return v ? CLI_OK : CLI_FAILED;
}

static int act(const struct calendar_options *o, const struct cli_args *a)
{
    const char *action = a->n_rest > 0 ? a->rest[0] : "list";
    if (a->n_rest >= 2 && str_eq(action, "set"))
        return set(o, a);
    if (o->ics) {
        cli_error("--ics is for belay calendar set CALENDAR");
        return CLI_USAGE;
    }
    if (str_eq(action, "list") && a->n_rest <= 1)
        return list_print(a, "/api/v1/calendars", "calendars", columns);
    if (a->n_rest == 2 && str_eq(action, "show"))
        return show(a->rest[1], a->json);
    if (a->n_rest == 2 && cli_is_remove(action))
        return remove_it(a->rest[1], a->json);
    cli_error("expected belay calendar set CALENDAR DAY..., show|remove CALENDAR, or belay "
              "calendar [list]");
    return CLI_USAGE;
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    struct calendar_options o = {0};
    int rc = cli_parse(&verb_calendar, argc, argv, false, on_option, &o, &a);
    if (rc == 0)
        rc = act(&o, &a);
    free(o.ics);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"ics", 0, POPT_ARG_STRING, NULL, VAL_ICS,
        "with set: take the days from the events of this iCalendar file", "FILE"},
    POPT_TABLEEND,
};

const struct verb verb_calendar = {"calendar",
    "[OPTION...] [set|list|show|remove [CALENDAR [DAY...]]]",
    "set days on which cron entries do not run, or only run", run, options, false, .lists = true,
    .examples = "belay calendar set holidays 2026-12-25..2026-12-28 2027-01-01\n"
                "belay calendar set holidays --ics holidays.ics\n"
                "belay calendar remove holidays\n"};
