/* SPDX-License-Identifier: Apache-2.0
 *
 * See updates.h.
 */
#include "cli/flags/updates.h"

#include "base/buf.h"
#include "base/str.h"
#include <string.h>
#include <strings.h>

static const struct updates_key keys[] = {{"name", "job-name", NULL},
    {"time", "time", "{\"time_limit_ms\": 0}"}, {"pool", "partition", "{\"pool\": \"\"}"},
    {"partition", "partition", "{\"pool\": \"\"}"}, {"market", "market", "{\"market\": \"any\"}"},
    {"team", "team", "{\"team\": \"\"}"}, {"account", "team", "{\"team\": \"\"}"},
    {"qos", "qos", "{\"qos\": \"\"}"}, {"nice", "nice", "{\"nice\": 0}"},
    {"begin", "begin", "{\"begin_at_ms\": 0}"}, {"window", "window", "{\"window\": \"\"}"},
    {"deadline", "deadline", "{\"deadline_at_ms\": null}"},
    {"finish-by", "finish-by", "{\"finish_by_ms\": null}"}, {"work", "work", "{\"work_ms\": null}"},
    {"max-usd", "max-usd", "{\"max_uusd\": 0}"},
    {"max-usd-per-hour", "max-usd-per-hour", "{\"max_uusd_per_hour\": 0}"},
    {"nodelist", "nodelist", "{\"nodelist\": \"\"}"}, {"exclude", "exclude", "{\"exclude\": \"\"}"},
    {"dependency", "dependency", "{\"depends\": []}"}, {"cpus", "cpus-per-task", NULL},
    {"mem", "mem", "{\"memory_mib\": 0}"},
    {"gpus", "gpus", "{\"gpus\": 0, \"gpu_model\": \"\", \"gpu_memory_mib\": 0}"},
    {"gres", "gres",
        "{\"gpus\": 0, \"gpu_model\": \"\", \"gpu_memory_mib\": 0, \"resources\": {}}"},
    {"gpu-memory", "gpu-memory", "{\"gpu_memory_mib\": 0}"}, {"nodes", "nodes", NULL},
    {"on-loss", "on-loss", NULL}, {"constraint", "constraint", "{\"constraint\": \"\"}"},
    {"region", "region", NULL}, {"zone", "zone", NULL}, {"input", "input", "{\"input\": null}"},
    {"licenses", "licenses", "{\"licences\": {}}"}, {"licences", "licenses", "{\"licences\": {}}"},
    {"exclusive", NULL, "{\"exclusive\": false}", "yes|no", "no other job on its nodes"},
    {"retries", "retries", NULL}, {"retry", "retry", NULL},
    {"requeue", NULL, NULL, "yes|no", "whether it is queued again when its node is lost"},
    {"at-once", NULL, "{\"at_once\": 0}", "N", "how many tasks of an array run at once"}};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

const struct updates_key *updates_key(size_t i, const char **ret_takes, const char **ret_help)
{
    const struct updates_key *k = i < N_KEYS ? &keys[i] : NULL;
    if (!k)
        return NULL;
    *ret_takes = k->takes;
    *ret_help = k->help;
    for (size_t n = 0; k->flag && n < directives_count(); n++) {
        const struct directive_flag *f = directives_flag(n);
        if (str_eq(f->name, k->flag)) {
            *ret_takes = f->value;
            *ret_help = f->help;
        }
    }
    return k;
}

static int unknown(const char *key, struct err *e)
{
    const char *names[N_KEYS + 1] = {NULL};
    char shown[STR_SHOW_MAX];
    for (size_t i = 0; i < N_KEYS; i++)
        names[i] = keys[i].key;
    struct buf list = {0};
    str_list_names(&list, key, names);
    int rc = err_set(e, ERR_INVALID, "expected %s, found %s", buf_str(&list), str_show(key, shown));
    buf_deinit(&list);
    return rc;
}

static int set_switch(json_t *changes, const char *key, const char *value, struct err *e)
{
    bool yes = str_eq(value, "yes") || str_eq(value, "1"),
         no = str_eq(value, "no") || str_eq(value, "0");
    char shown[STR_SHOW_MAX];
    if (!yes && !no)
        return err_set(
            e, ERR_INVALID, "%s: expected yes or no, found %s", key, str_show(value, shown));
    json_object_set_new(changes, key, json_boolean(yes));
    return 0;
}

static int set_at_once(json_t *changes, const char *value, struct err *e)
{
    int64_t n;
    int rc = str_to_i64(value, 0, 999999, "at-once", &n, e);
    if (rc == 0)
        json_object_set_new(changes, "at_once", json_integer(n));
    return rc;
}

static bool is_reset(const struct updates_key *k, const char *value)
{
    bool no_limit =
        str_eq(k->key, "time") && (strcasecmp(value, "unlimited") == 0 ||
                                      strcasecmp(value, "infinite") == 0 || str_eq(value, "0"));
    return !*value || strcasecmp(value, "none") == 0 || no_limit ||
           (str_eq(k->key, "mem") && str_eq(value, "0"));
}

/* What a program finds as BELAY_INPUT was given to it at the submit. */
static int set_data(json_t *changes, const char *value, bool slurm, directive_warn_fn warn,
    void *warn_ctx, struct err *e)
{
    if (!strstr(value, "://"))
        return err_set(e, ERR_INVALID,
            "input: expected data, such as s3://bucket/prefix,size=140G: standard input cannot be "
            "changed after the submit");
    int rc = directives_apply_flag("update", "input", value, slurm, changes, warn, warn_ctx, e);
    json_object_del(changes, "env");
    if (rc == 0 && warn)
        warn(warn_ctx, "input: offers are priced by this from now on; BELAY_INPUT of the job stays "
                       "what it was submitted with");
    return rc;
}

int updates_put(json_t *changes, const char *key, const char *value, bool slurm,
    directive_warn_fn warn, void *warn_ctx, struct err *e)
{
    const struct updates_key *k = NULL;
    for (size_t i = 0; i < N_KEYS && !k; i++)
        k = str_eq(keys[i].key, key) ? &keys[i] : NULL;
    if (!k)
        return unknown(key, e);
    if (is_reset(k, value)) {
        json_t *to = k->reset ? json_loads(k->reset, 0, NULL) : NULL;
        if (!to)
            return err_set(e, ERR_INVALID, "%s: expected a value", key);
        json_object_update(changes, to);
        json_decref(to);
        return 0;
    }
    if (str_eq(key, "constraint") && strchr(value, '['))
        return err_set(e, ERR_UNSUPPORTED,
            "constraint: [a|b] can be asked for at the submit, of one node, and not changed to");
    if (str_eq(key, "input"))
        return set_data(changes, value, slurm, warn, warn_ctx, e);
    if (k->flag)
        return directives_apply_flag("update", k->flag, value, slurm, changes, warn, warn_ctx, e);
    return str_eq(key, "at-once") ? set_at_once(changes, value, e)
                                  : set_switch(changes, key, value, e);
}

int updates_finish(json_t *changes, directive_warn_fn warn, void *warn_ctx, struct err *e)
{
    return directives_finish(changes, warn, warn_ctx, e);
}
