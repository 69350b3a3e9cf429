/* SPDX-License-Identifier: Apache-2.0
 *
 * belay token create|list|revoke
 */
#include "cli/list_table.h"
#include "cli/verbs.h"

#include "base/str.h"
#include "base/time.h"
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

enum { VAL_JOIN = 1, VAL_POOL, VAL_USER, VAL_ADMIN, VAL_ROLE, VAL_SCOPE, VAL_TTL };

static const struct list_column columns[] = {
    {"ID", "id", COLUMN_INT},
    {"KIND", "kind", COLUMN_TEXT},
    {"USER", "user", COLUMN_TEXT},
    {"ROLE", "role", COLUMN_TEXT},
    {"SCOPE", "scope", COLUMN_TEXT},
    {"POOL", "pool", COLUMN_TEXT},
    {"MADE", "created_at", COLUMN_AGO},
    {"USED", "used_at", COLUMN_AGO},
    {"EXPIRES", "expires_at", COLUMN_WHEN},
    {"REVOKED", "revoked", COLUMN_YES},
    {NULL, NULL, COLUMN_TEXT},
};

static int on_option(void *ctx, int val, const char *arg)
{
    static const char *const names[] = {
        [VAL_POOL] = "pool", [VAL_USER] = "user", [VAL_ROLE] = "role", [VAL_SCOPE] = "scope"};
    json_t *o = ctx;
    int64_t ms;
    struct err e;
    if (val == VAL_SCOPE && json_object_get(o, "scope")) {
        cli_error("--scope: a token has one scope: make a token for each");
        return CLI_USAGE;
    }
    if (val == VAL_JOIN)
        json_object_set_new(o, "kind", json_string("join"));
    else if (val == VAL_ADMIN)
        json_object_set_new(o, "admin", json_true());
    else if (val != VAL_TTL)
        json_object_set_new(o, names[val], json_text(arg));
    else if (time_parse_duration(arg, false, &ms, &e) != 0) {
        cli_error("--ttl: %s", e.text);
        return CLI_USAGE;
    } else {
        json_object_set_new(o, "ttl_ms", json_integer(ms));
    }
    return CLI_OK;
}

static int check_request(const json_t *request)
{
    bool join = str_eq(cli_text(request, "kind"), "join");
    bool has_user = json_object_get(request, "user") || json_object_get(request, "admin") ||
                    json_object_get(request, "role") || json_object_get(request, "scope");
    if (!join && json_object_get(request, "pool")) {
        cli_error("--pool is for join tokens: add --join, or for an API token that is for one pool "
                  "use --scope pool=NAME");
        return CLI_USAGE;
    }
    if (join && has_user) {
        cli_error(
            "--user, --admin, --role and --scope are for API tokens: leave them out, or leave "
            "out --join");
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* An unknown user is not an error, because it may exist on nodes only; but a mistyped name would be
 * noticed late. */
static void warn_of_user(const char *name)
{
    errno = 0;
    if (!getpwnam(name) && (errno == 0 || errno == ENOENT))
        cli_warn(
            "this machine has no user %s: jobs submitted with this token run only on nodes that "
            "have one",
            str_show(name, (char[STR_SHOW_MAX]){0}));
}

/* The token is shown only here: belayd keeps a hash of it. */
static int create(const json_t *request, bool json)
{
    char at[CLI_LOCAL_MAX];
    json_t *v = cli_post("/api/v1/tokens", request);
    const char *user = json_string_value(json_object_get(request, "user"));
    if (v && user)
        warn_of_user(user);
    if (v && json)
        cli_print_json(v);
    else if (v)
        printf("%s\n", cli_text(v, "token"));
    if (v && !json && isatty(STDERR_FILENO) && json_is_string(json_object_get(v, "expires_at")))
        fprintf(stderr, "token %lld expires at %s\n", (long long)cli_int(v, "id", 0),
            cli_when(v, "expires_at", at));
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

static int revoke_one(const char *word, bool json)
{
    int64_t id;
    struct err e;
    if (str_to_i64(word, 1, INT64_MAX, "token", &id, &e) != 0) {
        cli_error("%s (belay token list shows the numbers)", e.text);
        return CLI_USAGE;
    }
    json_t *v = cli_post(CLI_PATH("/api/v1/tokens/%lld/revoke", (long long)id), NULL);
    if (v && json)
        cli_print_json(v);
    else if (v)
        printf("token %lld revoked\n", (long long)id);
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    json_t *request = json_pack("{s:s}", "kind", "api");
    int rc = cli_parse(&verb_token, argc, argv, false, on_option, request, &a);
    if (rc == 0)
        rc = check_request(request);
    const char *action = a.n_rest > 0 ? a.rest[0] : "";
    if (rc == 0 && str_eq(action, "create") && a.n_rest == 1) {
        rc = create(request, a.json);
    } else if (rc == 0 && str_eq(action, "list") && a.n_rest == 1) {
        rc = list_print(&a, "/api/v1/tokens", "tokens", columns);
    } else if (rc == 0 && str_eq(action, "revoke") && a.n_rest == 2) {
        rc = revoke_one(a.rest[1], a.json);
    } else if (rc == 0) {
        cli_error("expected belay token create [--join --pool POOL], belay token list, or belay "
                  "token revoke ID");
        rc = CLI_USAGE;
    }
    json_decref(request);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"join", 0, POPT_ARG_NONE, NULL, VAL_JOIN,
        "create a one-use token with which a machine joins a reserved pool", NULL},
    {"pool", 'p', POPT_ARG_STRING, NULL, VAL_POOL, "with --join: the pool", "POOL"},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER, "user of the API token (default: you)", "NAME"},
    {"admin", 0, POPT_ARG_NONE, NULL, VAL_ADMIN,
        "create an API token with an administrator's rights", NULL},
    {"role", 0, POPT_ARG_STRING, NULL, VAL_ROLE,
        "give no more than this role: viewer, member, lead, operator or admin", "ROLE"},
    {"scope", 0, POPT_ARG_STRING, NULL, VAL_SCOPE,
        "only for this: read-only, metrics, ci, pool=NAME or cron=ENTRY", "SCOPE"},
    {"ttl", 0, POPT_ARG_STRING, NULL, VAL_TTL,
        "lifetime; 0 is unlimited (default: API 90d, join 1h)", "TIME"},
    POPT_TABLEEND,
};

const struct verb verb_token = {"token", "[OPTION...] create|list|revoke [ID]",
    "make, list and revoke tokens", run, options, false, .lists = true,
    .examples = "belay token create --user ann\n"
                "belay token create --join --pool base\n"
                "belay token list\n"};
