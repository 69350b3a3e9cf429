/* SPDX-License-Identifier: Apache-2.0
 *
 * The flags for the job's environment (see directives_private.h).
 */
#include "cli/flags/directives_private.h"

#include "base/mem.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* a temporary key that directives_finish_env removes */
#define EXPORT_ALL "export_all"
#define ENV_MAX 1000
#define ENV_VALUE_MAX 65536

static bool is_env_name(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && !s[n] && !isdigit((unsigned char)s[0]);
}

static int set_variable(const struct directive_context *c, const char *item, struct err *e)
{
    const char *eq = strchr(item, '=');
    char *name = mem_strndup(item, eq ? (size_t)(eq - item) : strlen(item));
    const char *value = eq ? eq + 1 : getenv(name);
    int rc = 0;
    if (!is_env_name(name))
        rc = err_set(e, ERR_INVALID, "expected NAME or NAME=VALUE, found %s", SHOWN(item));
    else if (!value)
        directive_warn(c, "%s is not set here: the job will not have it", name);
    else
        json_object_set_new(directive_object(c->spec, "env"), name, json_text(value));
    free(name);
    return rc;
}

/* NONE, or A,B=VALUE,...: only named variables are passed, so that no secret is passed by accident.
 */
int directive_export(const struct directive_context *c, const char *value, struct err *e)
{
    char *copy = mem_strdup(value), *save = NULL;
    bool is_slurms = json_object_get(c->spec, EXPORT_ALL);
    int rc = 0;
    if (is_slurms)
        json_object_set_new(c->spec, EXPORT_ALL, json_false());
    for (char *item = strtok_r(copy, ",", &save); item && rc == 0;
         item = strtok_r(NULL, ",", &save)) {
        if (str_eq(item, "ALL") && is_slurms)
            json_object_set_new(c->spec, EXPORT_ALL, json_true());
        else if (str_eq(item, "ALL"))
            directive_warn(c, "--export ALL is ignored: a job's environment is stored, so name the "
                              "variables that it needs (--export A,B=1)");
        else if (!str_eq(item, "NONE") && !str_eq(item, "NIL"))
            rc = set_variable(c, item, e);
    }
    free(copy);
    return rc;
}

/* Typical names of secrets: they must not be passed, because a job's environment is stored. */
static bool may_be_secret(const char *name)
{
    static const char *const parts[] = {"SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE",
        "CREDENTIAL", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY"};
    if (str_ends(name, "_FILE") || str_ends(name, "_PATH") || str_ends(name, "_DIR"))
        return false;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strcasestr(name, parts[i]))
            return true;
    return false;
}

/* Variables that describe the submitting shell, or the job that it runs in: the new job has its
 * own. */
static bool is_of_this_process(const char *name)
{
    static const char *const own[] = {"_", "PWD", "OLDPWD", "SHLVL", "MASTER_ADDR", "MASTER_PORT",
        "WORLD_SIZE", "RANK", "LOCAL_RANK", NULL};
    static const char *const to_belayd[] = {
        "BELAY_HOME", "BELAY_SERVER", "BELAY_SOCKET", "BELAY_TOKEN_FILE", "BELAY_CA_FILE", NULL};
    const char *const *names = str_starts(name, "BELAY_") ? to_belayd : own;
    size_t i = 0;
    if (str_starts(name, "SLURM_") || str_starts(name, "SLURMD_") || str_starts(name, "SBATCH_"))
        return true;
    while (names[i] && !str_eq(names[i], name))
        i++;
    return (names == own) == (names[i] != NULL);
}

/* Adds variables of the user's environment that no flag has set. */
static void export_all(json_t *spec, directive_warn_fn warn_fn, void *warn_ctx)
{
    const struct directive_context c = {
        .where = "command line", .spec = spec, .warn = warn_fn, .warn_ctx = warn_ctx};
    json_t *env = directive_object(spec, "env");
    struct buf secrets = {0};
    for (char **p = environ; *p && json_object_size(env) < ENV_MAX; p++) {
        const char *eq = strchr(*p, '=');
        char *name = eq ? mem_strndup(*p, (size_t)(eq - *p)) : NULL;
        if (name && is_env_name(name) && !is_of_this_process(name) && !json_object_get(env, name)) {
            if (may_be_secret(name))
                buf_printf(&secrets, "%s%s", secrets.len ? ", " : "", name);
            else if (strlen(eq + 1) <= ENV_VALUE_MAX && str_is_utf8(eq + 1, strlen(eq + 1)))
                json_object_set_new(env, name, json_string(eq + 1));
        }
        free(name);
    }
    if (secrets.len)
        directive_warn(&c,
            "a job's environment is stored, so what looks like a secret is not passed: %s "
            "(--export ALL,NAME passes one)",
            buf_str(&secrets));
    buf_deinit(&secrets);
}

void directives_finish_env(json_t *spec, directive_warn_fn warn, void *warn_ctx)
{
    bool all = json_is_true(json_object_get(spec, EXPORT_ALL));
    json_object_del(spec, EXPORT_ALL);
    if (all)
        export_all(spec, warn, warn_ctx);
}

void directives_begin_slurm(json_t *spec)
{
    json_object_set_new(spec, EXPORT_ALL, json_true());
    json_object_set_new(directive_object(spec, "launch"), "slurm", json_true());
}
