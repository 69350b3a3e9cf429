/* SPDX-License-Identifier: Apache-2.0
 *
 *     belay reservation add NAME --nodes n[1-4]|--pool POOL [--from TIME] --for DURATION
 *     belay reservation [list]
 *     belay reservation show NAME
 *     belay reservation remove NAME
 *
 * The time zone of a reservation is that of its times, of its weekly repetition, and of what is
 * printed about it: --tz, else that of this machine (TZ, or /etc/localtime).
 */
#include "cli/flags/begin.h"
#include "cli/list_table.h"
#include "cli/verbs.h"

#include "base/str.h"
#include "base/zone.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    VAL_NODES = 1,
    VAL_POOL,
    VAL_FROM,
    VAL_FOR,
    VAL_EVERY,
    VAL_REASON,
    VAL_USER,
    VAL_TEAM,
    VAL_TZ
};

static const struct list_column columns[] = {
    {"ID", "id", COLUMN_INT, .is_extra = true},
    {"NAME", "name", COLUMN_TEXT, .is_name = true},
    {"STATE", "state", COLUMN_TEXT},
    {"NODES", "nodes", COLUMN_TEXT},
    {"POOL", "pool", COLUMN_TEXT},
    {"FROM", "from", COLUMN_WHEN},
    {"UNTIL", "until", COLUMN_WHEN},
    {"EVERY", "every", COLUMN_TEXT},
    {"JOBS", "jobs", COLUMN_INT},
    {"USERS", "users", COLUMN_WORDS, .is_extra = true},
    {"TEAMS", "teams", COLUMN_WORDS, .is_extra = true},
    {"BY", "by", COLUMN_TEXT, .is_extra = true},
    {"REASON", "reason", COLUMN_TEXT, .is_sentence = true},
    {NULL, NULL, COLUMN_TEXT},
};

struct reservation_options {
    json_t *request;
};

/* The limits of belayd (MAINTENANCE_MIN_MS, MAINTENANCE_AHEAD_MAX_MS). */
#define FOR_MIN_MS INT64_C(60000)
#define FOR_MAX_MS (366 * INT64_C(86400000))

static int take_duration(json_t *request, const char *arg)
{
    struct err e;
    int64_t ms;
    char shown[STR_SHOW_MAX];
    if (time_parse_duration(arg, false, &ms, &e) != 0) {
        cli_error("--for: %s", e.text);
        return CLI_USAGE;
    }
    if (ms < FOR_MIN_MS || ms > FOR_MAX_MS) {
        cli_error("--for: a reservation lasts from 1m to 366d, found %s", str_show(arg, shown));
        return CLI_USAGE;
    }
    json_object_set_new(request, "for_ms", json_integer(ms));
    return CLI_OK;
}

static int on_option(void *ctx, int val, const char *arg)
{
    static const char *const keys[] = {[VAL_NODES] = "nodes",
        [VAL_POOL] = "pool",
        [VAL_EVERY] = "every",
        [VAL_REASON] = "reason",
        [VAL_USER] = "users",
        [VAL_TEAM] = "teams"};
    struct reservation_options *o = ctx;
    if (val == VAL_FROM || val == VAL_TZ) {
        json_object_set_new(o->request, val == VAL_FROM ? "from" : "zone", json_text(arg));
    } else if (val == VAL_FOR) {
        return take_duration(o->request, arg);
    } else if (val == VAL_EVERY && !str_eq(arg, "week")) {
        cli_error("--every: expected week, found %s", str_show(arg, (char[STR_SHOW_MAX]){0}));
        return CLI_USAGE;
    } else if (val == VAL_USER || val == VAL_TEAM) {
        json_t *list = json_object_get(o->request, keys[val]);
        if (!list)
            json_object_set_new(o->request, keys[val], list = json_array());
        json_array_append_new(list, json_text(arg));
    } else {
        json_object_set_new(o->request, keys[val], json_text(arg));
    }
    return CLI_OK;
}

/* ---- add ---- */

/* This machine's zone by name; UTC if it has none. */
static void local_zone(char out[ZONE_NAME_MAX])
{
    char path[512];
    const char *tz = getenv("TZ"), *at;
    ssize_t n = tz ? -1 : readlink("/etc/localtime", path, sizeof(path) - 1);
    if (n > 0) {
        path[n] = '\0';
        at = strstr(path, "/zoneinfo/");
        tz = at ? at + strlen("/zoneinfo/") : NULL;
    }
    tz = tz && tz[0] == ':' ? tz + 1 : tz;
    str_copy(out, ZONE_NAME_MAX, tz && zone_is_name(tz, strlen(tz)) ? tz : ZONE_UTC);
}

/* Makes --from a time, by the clock of the reservation's zone. */
static int read_from(json_t *request)
{
    char zone[ZONE_NAME_MAX], iso[TIME_ISO_MAX];
    const char *from = json_string_value(json_object_get(request, "from")),
               *tz = json_string_value(json_object_get(request, "zone"));
    struct wall at;
    struct err e;
    if (!tz) {
        local_zone(zone);
        json_object_set_new(request, "zone", json_text(zone));
    } else {
        setenv("TZ", tz, 1);
        tzset();
    }
    if (!from || str_eq(from, "now")) {
        json_object_del(request, "from");
        return CLI_OK;
    }
    if (begin_parse(from, clock_wall(&clock_system), &at, &e) != 0) {
        cli_error("--from: %s", e.text);
        return CLI_USAGE;
    }
    time_format_iso(at, iso);
    json_object_set_new(request, "from", json_string(iso));
    return CLI_OK;
}

static void print_place(const json_t *r)
{
    bool is_pool = json_is_string(json_object_get(r, "pool"));
    printf("%s%s", is_pool ? "pool " : "", cli_text(r, is_pool ? "pool" : "nodes"));
}

static void warn_of_jobs(const json_t *r)
{
    const json_t *jobs = json_object_get(r, "in_the_way"), *job;
    struct buf text = {0};
    size_t i, n = json_array_size(jobs);
    json_array_foreach(jobs, i, job)
        buf_printf(&text, "%s%s", i ? ", " : "", json_string_value(job));
    if (n > 0)
        cli_warn("job%s %s cannot be saved and may still run at its start: %s not stopped",
            n > 1 ? "s" : "", buf_str(&text), n > 1 ? "they are" : "it is");
    buf_deinit(&text);
}

static int add(struct reservation_options *o, const char *name, bool json)
{
    int rc = CLI_OK;
    bool has_nodes = json_object_get(o->request, "nodes") != NULL;
    if (has_nodes == (json_object_get(o->request, "pool") != NULL)) {
        cli_error(has_nodes ? "a reservation is of --nodes or of a --pool, not of both: make two"
                            : "say what is reserved: --nodes or --pool");
        return CLI_USAGE;
    }
    if (!json_object_get(o->request, "for_ms")) {
        cli_error("say for how long: --for, as --for 2h");
        return CLI_USAGE;
    }
    rc = read_from(o->request);
    if (rc != CLI_OK)
        return rc;
    json_object_set_new(o->request, "name", json_text(name));
    json_t *r = cli_post("/api/v1/reservations", o->request);
    if (r && json) {
        cli_print_json(r);
    } else if (r) {
        printf("reservation %s: ", cli_text(r, "name"));
        print_place(r);
        printf(" from %s%s\n", cli_text(r, "period"),
            json_is_string(json_object_get(r, "every")) ? ", every week" : "");
        warn_of_jobs(r);
    }
    json_decref(r);
    return r ? CLI_OK : CLI_FAILED;
}

/* ---- the others ---- */

static void print_reservation(const json_t *r)
{
    struct buf who = {0};
    const json_t *users = json_object_get(r, "users"), *teams = json_object_get(r, "teams");
    printf("reservation  %s (%s)\nreserves     ", cli_text(r, "name"), cli_text(r, "state"));
    print_place(r);
    printf(": %lld node%s, with %lld running job%s\n", (long long)cli_int(r, "n_nodes", 0),
        cli_int(r, "n_nodes", 0) == 1 ? "" : "s", (long long)cli_int(r, "jobs", 0),
        cli_int(r, "jobs", 0) == 1 ? "" : "s");
    printf("time         %s%s\n", cli_text(r, "period"),
        json_is_string(json_object_get(r, "every")) ? ", every week" : "");
    if (json_is_string(json_object_get(r, "reason")))
        printf("reason       %s\n", cli_text(r, "reason"));
    cli_words(users, &who);
    if (json_array_size(users) > 0)
        printf(
            "open to      %s%s\n", json_array_size(users) > 1 ? "users " : "user ", buf_str(&who));
    buf_clear(&who);
    cli_words(teams, &who);
    if (json_array_size(teams) > 0)
        printf(
            "open to      %s%s\n", json_array_size(teams) > 1 ? "teams " : "team ", buf_str(&who));
    buf_deinit(&who);
    printf("made by      %s\n", cli_text(r, "by"));
    warn_of_jobs(r);
}

/* A new reference; NULL after a report. */
static json_t *find(const char *name)
{
    json_t *v = cli_get("/api/v1/reservations"), *r, *found = NULL;
    size_t i;
    json_array_foreach(json_object_get(v, "reservations"), i, r)
    {
        if (str_eq(cli_text(r, "name"), name))
            found = json_incref(r);
    }
    if (v && !found)
        cli_error("there is no reservation \"%.63s\" (belay reservation lists them)", name);
    json_decref(v);
    return found;
}

static int show(const char *name, bool json)
{
    json_t *r = find(name);
    if (r && json)
        cli_print_json(r);
    else if (r)
        print_reservation(r);
    json_decref(r);
    return r ? CLI_OK : CLI_FAILED;
}

static int remove_it(const char *name, bool json)
{
    json_t *r = find(name), *v = NULL;
    if (r)
        v = cli_post(
            CLI_PATH("/api/v1/reservations/%lld/remove", (long long)cli_int(r, "id", 0)), NULL);
    if (v && json)
        cli_print_json(v);
    else if (v)
        printf("reservation %s removed\n", name);
    json_decref(r);
    json_decref(v);
    return v ? CLI_OK : CLI_FAILED;
}

static int act(struct reservation_options *o, const struct cli_args *a)
{
    const char *action = a->n_rest > 0 ? a->rest[0] : "list";
    if (str_eq(action, "list") && a->n_rest <= 1)
        return list_print(a, "/api/v1/reservations", "reservations", columns);
    if (a->n_rest == 2 && str_eq(action, "add"))
        return add(o, a->rest[1], a->json);
    if (a->n_rest == 2 && str_eq(action, "show"))
        return show(a->rest[1], a->json);
    if (a->n_rest == 2 && cli_is_remove(action))
        return remove_it(a->rest[1], a->json);
    cli_error("expected belay reservation add|show|remove NAME with one name, or belay reservation "
              "[list]");
    return CLI_USAGE;
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    struct reservation_options o = {.request = json_object()};
    int rc = cli_parse(&verb_reservation, argc, argv, false, on_option, &o, &a);
    if (rc == 0)
        rc = act(&o, &a);
    json_decref(o.request);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"nodes", 0, POPT_ARG_STRING, NULL, VAL_NODES, "with add: these nodes, such as n1,n[3-5]",
        "LIST"},
    {"pool", 'p', POPT_ARG_STRING, NULL, VAL_POOL, "with add: all nodes of this pool", "NAME"},
    {"from", 0, POPT_ARG_STRING, NULL, VAL_FROM,
        "with add: when it begins, in the forms of --begin (default: now)", "TIME"},
    {"for", 0, POPT_ARG_STRING, NULL, VAL_FOR, "with add: how long it lasts, such as 2h",
        "DURATION"},
    {"every", 0, POPT_ARG_STRING, NULL, VAL_EVERY,
        "with add: repeat it every week, at the same time of the day", "week"},
    {"reason", 0, POPT_ARG_STRING, NULL, VAL_REASON, "with add: shown to users", "TEXT"},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER,
        "with add: jobs of this user may run there meanwhile; may be repeated", "NAME"},
    {"team", 0, POPT_ARG_STRING, NULL, VAL_TEAM,
        "with add: jobs of this team may run there meanwhile; may be repeated", "NAME"},
    {"tz", 0, POPT_ARG_STRING, NULL, VAL_TZ,
        "with add: time zone of its times, such as Europe/Berlin (default: this machine's)",
        "ZONE"},
    POPT_TABLEEND,
};

const struct verb verb_reservation = {"reservation",
    "[OPTION...] [add|list|show|remove [RESERVATION]]", "reserve nodes for maintenance", run,
    options, false, .lists = true,
    .examples = "belay reservation add disks --nodes n[1-4] --from 02:00 --for 2h\n"
                "belay reservation remove disks\n"};
