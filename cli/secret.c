/* SPDX-License-Identifier: Apache-2.0
 *
 *     belay secret set NAME [--file FILE]
 *     belay secret list
 *     belay secret show NAME
 *     belay secret grant NAME --user|--team|--pool WHO... [--revoke]
 *     belay secret remove NAME
 *
 * A value is read from standard input or a file, never from the command line, which every user of
 * the machine can read; and no call shows one.
 */
#include "cli/list_table.h"
#include "cli/verbs.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/secret_ref.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { VAL_FILE = 1, VAL_OWNER, VAL_USER, VAL_TEAM, VAL_POOL, VAL_REVOKE };

static const struct list_column columns[] = {
    {"NAME", "name", COLUMN_TEXT},
    {"OWNER", "owner", COLUMN_TEXT},
    {"BYTES", "bytes", COLUMN_INT},
    {"SET", "set_at", COLUMN_AGO},
    {"BY", "set_by", COLUMN_TEXT},
    {"GRANTED", "grants", COLUMN_WORDS},
    {NULL, NULL, COLUMN_TEXT},
};

struct secret_options {
    char *file;
    json_t *request, *grants;
    bool revokes;
};

static int on_option(void *ctx, int val, const char *arg)
{
    static const char *const kinds[] = {
        [VAL_USER] = "user", [VAL_TEAM] = "team", [VAL_POOL] = "pool"};
    struct secret_options *o = ctx;
    if (val == VAL_FILE) {
        free(o->file);
        o->file = mem_strdup(arg);
    } else if (val == VAL_OWNER) {
        json_object_set_new(o->request, "owner", json_text(arg));
    } else if (val == VAL_REVOKE) {
        o->revokes = true;
    } else {
        char *grant = mem_printf("%s:%s", kinds[val], arg);
        json_array_append_new(o->grants, json_text(grant));
        free(grant);
    }
    return CLI_OK;
}

/* ---- the value ---- */

/* strchr("\r\n", c) would also find the zero byte that a key may end with. */
static bool is_newline(char c)
{
    return c == '\r' || c == '\n';
}

static int read_all(int fd, struct buf *out, struct err *e)
{
    ssize_t n;
    buf_reserve(out, SECRET_BYTES_MAX + 2); /* growing would leave copies */
    while (out->len <= SECRET_BYTES_MAX) {
        char piece[4096];
        n = read(fd, piece, sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, errno, "read the value from standard input");
        if (n == 0)
            break;
        buf_add(out, piece, (size_t)n);
        explicit_bzero(piece, sizeof(piece));
    }
    while (out->len > 0 && is_newline(out->data[out->len - 1])) /* of echo */
        buf_truncate(out, out->len - 1);
    return 0;
}

/* On a terminal the value is a line, which is not shown as it is typed. */
static int read_typed(struct buf *out, struct err *e)
{
    struct termios was, quiet;
    char line[4096];
    bool is_set = tcgetattr(STDIN_FILENO, &was) == 0;
    quiet = was;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    fprintf(stderr, "value: ");
    if (is_set)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    ssize_t n = read(STDIN_FILENO, line, sizeof(line));
    if (is_set)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &was);
    fprintf(stderr, "\n");
    if (n < 0)
        return err_errno(e, errno, "read the value from the terminal");
    buf_add(out, line, (size_t)n - (n > 0 && line[n - 1] == '\n'));
    explicit_bzero(line, sizeof(line));
    return 0;
}

static int set(struct secret_options *o, bool json)
{
    struct buf value = {0};
    struct err e;
    int rc = o->file                ? fs_read(o->file, SECRET_BYTES_MAX + 1, &value, &e)
             : isatty(STDIN_FILENO) ? read_typed(&value, &e)
                                    : read_all(STDIN_FILENO, &value, &e);
    if (rc == 0 && value.len > SECRET_BYTES_MAX)
        rc = err_set(&e, ERR_INVALID, "the value has more than %u bytes", SECRET_BYTES_MAX);
    if (rc == 0 && value.len == 0)
        rc = err_set(&e, ERR_INVALID,
            "the value is empty: give it on standard input, or name a file of it with --file");
    if (rc != 0) {
        cli_error("%s", e.text);
        buf_wipe(&value);
        return CLI_USAGE;
    }
    char *hex = mem_alloc(2 * value.len + 1);
    str_hex(value.data, value.len, hex);
    json_object_set_new(o->request, "value_hex", json_string(hex));
    explicit_bzero(hex, 2 * value.len);
    free(hex);
    buf_wipe(&value);
    json_t *v = cli_post("/api/v1/secrets", o->request);
    if (v && json)
        cli_print_json(v);
    else if (v)
        printf("secret %s set\n", cli_text(v, "name"));
    json_decref(v);
    return v ? CLI_OK : CLI_FAILED;
}

/* ---- the others ---- */

static int change(struct secret_options *o, bool removes, bool json)
{
    if (!removes && json_array_size(o->grants) == 0) {
        cli_error("say to whom: --user, --team or --pool");
        return CLI_USAGE;
    }
    if (!removes)
        json_object_set(o->request, o->revokes ? "remove" : "add", o->grants);
    json_t *v = cli_post(removes ? "/api/v1/secrets/remove" : "/api/v1/secrets/grant", o->request);
    if (v && json)
        cli_print_json(v);
    else if (v)
        printf("secret %s %s\n", cli_text(v, "name"),
            removes      ? "removed"
            : o->revokes ? "is no longer granted to them"
                         : "granted");
    json_decref(v);
    return v ? CLI_OK : CLI_FAILED;
}

static const char *list_path(const struct secret_options *o, struct buf *path)
{
    const char *owner = json_string_value(json_object_get(o->request, "owner"));
    buf_adds(path, "/api/v1/secrets");
    if (owner)
        cli_add_parameter(path, "owner", owner);
    return buf_str(path);
}

static int show(const struct secret_options *o, const char *name, bool json)
{
    struct buf path = {0};
    json_t *v = cli_get(list_path(o, &path)), *found = json_array(), *item;
    size_t i;
    int rc = v ? CLI_OK : CLI_FAILED;
    json_array_foreach(json_object_get(v, "secrets"), i, item)
    {
        if (str_eq(cli_text(item, "name"), name))
            json_array_append(found, item);
    }
    if (v && json_array_size(found) == 0) {
        cli_error("there is no secret %s of yours: belay secret list shows them", name);
        rc = CLI_FAILED;
    } else if (v && json) {
        cli_print_json(json_array_get(found, 0));
    } else if (v) {
        list_table(found, columns);
    }
    json_decref(found);
    json_decref(v);
    buf_deinit(&path);
    return rc;
}

static int list(const struct secret_options *o, const struct cli_args *a)
{
    struct buf path = {0};
    int rc = list_print(a, list_path(o, &path), "secrets", columns);
    buf_deinit(&path);
    return rc;
}

static int act(struct secret_options *o, const struct cli_args *a)
{
    const char *action = a->n_rest > 0 ? a->rest[0] : "list";
    if (str_eq(action, "list") && a->n_rest <= 1)
        return list(o, a);
    if (a->n_rest == 2) {
        json_object_set_new(o->request, "name", json_text(a->rest[1]));
        if (str_eq(action, "set"))
            return set(o, a->json);
        if (str_eq(action, "show"))
            return show(o, a->rest[1], a->json);
        if (str_eq(action, "grant"))
            return change(o, false, a->json);
        if (cli_is_remove(action))
            return change(o, true, a->json);
    }
    cli_error(
        "expected belay secret set|show|grant|remove NAME, or belay secret list; a value is read "
        "from standard input or --file");
    return CLI_USAGE;
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    struct secret_options o = {.request = json_object(), .grants = json_array()};
    int rc = cli_parse(&verb_secret, argc, argv, false, on_option, &o, &a);
    if (rc == 0)
        rc = act(&o, &a);
    free(o.file);
    json_wipe(o.request);
    json_decref(o.grants);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"file", 'f', POPT_ARG_STRING, NULL, VAL_FILE,
        "with set: read the value from this file (default: standard input)", "FILE"},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER, "with grant: jobs of this user may use it",
        "NAME"},
    {"team", 0, POPT_ARG_STRING, NULL, VAL_TEAM, "with grant: jobs of this team may use it",
        "NAME"},
    {"pool", 'p', POPT_ARG_STRING, NULL, VAL_POOL,
        "with grant: jobs that run only in this pool may use it", "NAME"},
    {"revoke", 0, POPT_ARG_NONE, NULL, VAL_REVOKE, "with grant: take these grants back", NULL},
    {"owner", 0, POPT_ARG_STRING, NULL, VAL_OWNER,
        "for administrators: act on this user's secrets (default: yours; list shows all)", "NAME"},
    POPT_TABLEEND,
};

const struct verb verb_secret = {"secret", "[OPTION...] set|list|show|grant|remove [NAME]",
    "keep secrets for jobs: set, list, grant and remove them", run, options, false, .lists = true,
    .examples = "belay secret set wandb < key.txt\n"
                "belay secret grant wandb --team vision\n"};
