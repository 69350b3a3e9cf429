/* SPDX-License-Identifier: Apache-2.0
 *
 * belay nodes [--racks] [drain|undrain|remove NODE...]
 */
#include "cli/list_table.h"
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VAL_ALL = 1, VAL_RACKS, VAL_REASON };

struct node_options {
    bool all, racks;
    char *reason; /* of a drain; owned, NULL = none */
};

const struct list_column node_columns[] = {
    {"ID", "id", COLUMN_INT},
    {"NODE", "name", COLUMN_TEXT, .is_name = true},
    {"POOL", "pool", COLUMN_TEXT},
    {"STATE", "state", COLUMN_TEXT},
    {"CPUS", "cpus", COLUMN_INT},
    {"MIB", "memory_mib", COLUMN_INT, .is_extra = true},
    {"GPUS", "gpus", COLUMN_INT},
    {"MODEL", "gpu_model", COLUMN_TEXT, .is_extra = true},
    {"CPUS USED", "usage", COLUMN_CPUS_USED, .is_extra = true},
    {"MEMORY USED", "usage", COLUMN_MEMORY_USED, .is_extra = true},
    {"MARKET", "market", COLUMN_TEXT},
    {"PRICE/H", "price_uusd_h", COLUMN_USD_H},
    {"CRIU", "criu", COLUMN_TEXT, .is_extra = true},
    {"NOTICE", "notice", COLUMN_TEXT, .is_extra = true},
    {"RACK", "rack", COLUMN_TEXT, .is_extra = true},
    {"WATTS", "watts", COLUMN_INT, .is_extra = true},
    {"THROTTLED", "throttled", COLUMN_TEXT, .is_extra = true},
    {"DISK", "disk", COLUMN_TEXT, .is_extra = true},
    {"UP SINCE", "joined_at", COLUMN_AGO},
    {"RESOURCES", "resources", COLUMN_WORDS, .is_extra = true},
    {"FEATURES", "features", COLUMN_WORDS, .is_extra = true},
    {"RESERVED", "reservation_text", COLUMN_TEXT, .before = "reservation", .is_sentence = true},
    {"DRAINED BECAUSE", "drain_text", COLUMN_TEXT, .is_sentence = true},
    {NULL, NULL, COLUMN_TEXT},
};

static const struct list_column rack_columns[] = {
    {"RACK", "name", COLUMN_TEXT},
    {"MAX W", "max_watts", COLUMN_INT},
    {"NOW W", "watts", COLUMN_INT},
    {"IDLE W", "idle_watts", COLUMN_INT},
    {"NODES", "nodes", COLUMN_INT},
    {"JOINED", "joined", COLUMN_INT},
    {NULL, NULL, COLUMN_TEXT},
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct node_options *w = ctx;
    if (val == VAL_ALL)
        w->all = true;
    else if (val == VAL_RACKS)
        w->racks = true;
    if (val == VAL_REASON) {
        free(w->reason);
        w->reason = mem_strdup(arg);
    }
    return CLI_OK;
}

enum { DRAIN, UNDRAIN, DELETE };
static const char *const actions[] = {"drain", "undrain", "remove", NULL};
static const char *const routes[] = {"drain", "undrain", "delete"};

/* A node's number, by its number or name. 0 after a report. */
static int64_t node_id(const char *word)
{
    int64_t id = 0;
    size_t i;
    json_t *row, *v;
    if (str_to_i64(word, 1, INT64_MAX, "node", &id, NULL) == 0)
        return id;
    if (!*word || strchr(word, ',')) {
        cli_error("expected names or numbers of nodes, separated by spaces, found \"%s\"", word);
        return 0;
    }
    v = cli_get("/api/v1/nodes");
    json_array_foreach(json_object_get(v, "nodes"), i, row)
    {
        if (str_eq(cli_text(row, "name"), word))
            id = cli_int(row, "id", 0);
    }
    if (v && id == 0)
        cli_error("there is no node \"%s\" (belay nodes lists them)", word);
    json_decref(v);
    return id;
}

static void print_change(int action, const json_t *v)
{
    const char *state = cli_text(v, "state");
    long long jobs = cli_int(v, "jobs", 0);
    printf("node %lld (%s): ", (long long)cli_int(v, "id", 0), cli_text(v, "name"));
    if (action == DELETE)
        printf("removed%s\n",
            json_is_true(json_object_get(v, "elastic")) ? ", its instance is being ended" : "");
    else if (action == DRAIN && jobs > 0)
        printf("takes no more work; %lld job%s being saved to run elsewhere\n", jobs,
            jobs == 1 ? " is" : "s are");
    else if (action == DRAIN)
        printf("takes no more work, and is empty\n");
    else if (str_eq(state, "up"))
        printf("takes work again\n");
    else
        printf("no longer drained, but %s\n", state);
}

static int change(int action, const char *node, const char *reason, bool json)
{
    int64_t id = node_id(node);
    if (id == 0)
        return CLI_FAILED;
    json_t *body = reason ? json_pack("{s:o}", "reason", json_text(reason)) : NULL,
           *v = cli_post(CLI_PATH("/api/v1/nodes/%lld/%s", (long long)id, routes[action]), body);
    json_decref(body);
    if (v && json)
        cli_print_json(v);
    else if (v)
        print_change(action, v);
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

static int change_all(const struct node_options *w, const struct cli_args *a)
{
    int rc = CLI_OK, action = 0;
    while (actions[action] && !str_eq(actions[action], a->rest[0]) &&
           !(action == DELETE && cli_is_remove(a->rest[0])))
        action++;
    if (!actions[action] || a->n_rest < 2) {
        cli_error("expected belay nodes, or belay nodes drain|undrain|remove NODE..., found \"%s\"",
            a->rest[0]);
        return CLI_USAGE;
    }
    if (w->reason && action != DRAIN) {
        cli_error("--reason is for belay nodes drain");
        return CLI_USAGE;
    }
    for (int i = 1; i < a->n_rest; i++) {
        int one = change(action, a->rest[i], w->reason, a->json);
        rc = one > rc ? one : rc;
    }
    return rc;
}

static int list_all(const struct cli_args *a)
{
    struct client *c;
    struct err e;
    json_t *v = NULL;
    int rc = client_create(&c, &e);
    if (rc == 0) {
        rc = client_pages(c, "/api/v1/nodes?state=all", "nodes", &v, &e);
        client_destroy(c);
    }
    if (rc != 0) {
        cli_error("%s", e.text);
        return CLI_FAILED;
    }
    return list_print_reply(a, v, "nodes", node_columns);
}

static int run(int argc, const char **argv)
{
    struct node_options w = {0};
    struct cli_args a;
    int rc = cli_parse(&verb_nodes, argc, argv, false, on_option, &w, &a);
    if (rc == 0 && a.n_rest > 0)
        rc = change_all(&w, &a);
    else if (rc == 0 && w.racks)
        rc = list_print(&a, "/api/v1/racks", "racks", rack_columns);
    else if (rc == 0 && w.all)
        rc = list_all(&a);
    else if (rc == 0)
        rc = list_print(&a, "/api/v1/nodes", "nodes", node_columns);
    free(w.reason);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"all", 'a', POPT_ARG_NONE, NULL, VAL_ALL, "include nodes that are gone", NULL},
    {"racks", 0, POPT_ARG_NONE, NULL, VAL_RACKS,
        "list racks with their power limits and current power", NULL},
    {"reason", 0, POPT_ARG_STRING, NULL, VAL_REASON,
        "with drain: shown in the list, in events and to whoever waits for the node", "TEXT"},
    POPT_TABLEEND,
};

const struct verb verb_nodes = {"nodes", "[OPTION...] [drain|undrain|remove NODE...]",
    "list, drain or remove nodes", run, options, false, .lists = true,
    .examples = "belay nodes\n"
                "belay nodes drain --reason 'disk is swapped' gpu-07\n"};
