/* SPDX-License-Identifier: Apache-2.0
 *
 * See updates.h.
 */
#include "cli/flags/updates.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The row of the flag that parses the value; NULL if the key matches no flag. */
static const struct job_attribute *flag_of(const struct job_attribute *a)
{
    return a->key_takes ? NULL : a->key_flag ? job_attribute_by_flag(a->key_flag) : a;
}

const struct job_attribute *updates_next(
    const struct job_attribute *a, struct updates_shown *ret_shown)
{
    const struct job_attribute *end = job_attributes + job_attributes_count;
    for (a = a ? a + 1 : job_attributes; a < end; a++) {
        const struct job_attribute *flag = flag_of(a);
        if (!a->key)
            continue;
        ret_shown->takes = flag ? flag->takes : a->key_takes;
        ret_shown->help = a->key_help ? a->key_help : flag->help;
        return a;
    }
    return NULL;
}

static int unknown(const char *key, struct err *e)
{
    const char **names = mem_array(job_attributes_count + 1, sizeof(*names));
    struct updates_shown unused;
    struct buf list = {0};
    char shown[STR_SHOW_MAX];
    size_t n = 0;
    for (const struct job_attribute *a = NULL; (a = updates_next(a, &unused));)
        names[n++] = a->key;
    names[n] = NULL;
    const char *near = str_nearest(key, names);
    str_list_names(&list, NULL, names);
    int rc =
        near ? err_set(e, ERR_INVALID,
                   "there is no key %s; did you mean \"%s\"? belay update --help lists the keys",
                   str_show(key, shown), near)
             : err_set(
                   e, ERR_INVALID, "expected %s, found %s", buf_str(&list), str_show(key, shown));
    buf_deinit(&list);
    free(names);
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
    int rc = str_to_i64(value, 0, job_attribute_max("at_once"), "at-once", &n, e);
    if (rc == 0)
        json_object_set_new(changes, "at_once", json_integer(n));
    return rc;
}

static bool is_reset(const struct job_attribute *k, const char *value)
{
    bool no_limit =
        str_eq(k->key, "time") && (strcasecmp(value, "unlimited") == 0 ||
                                      strcasecmp(value, "infinite") == 0 || str_eq(value, "0"));
    return !*value || strcasecmp(value, "none") == 0 || no_limit ||
           (str_eq(k->key, "mem") && str_eq(value, "0"));
}

/* BELAY_INPUT stays as it was set at the submit: running programs see it. */
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
        warn(warn_ctx, "input: offers are priced by this value from now on; BELAY_INPUT of the job "
                       "stays as submitted");
    return rc;
}

int updates_put(json_t *changes, const char *key, const char *value, bool slurm,
    directive_warn_fn warn, void *warn_ctx, struct err *e)
{
    const struct job_attribute *k = job_attribute_by_key(key), *flag = k ? flag_of(k) : NULL;
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
            "constraint: [a|b] can be given at the submit only: change to one feature, or to "
            "(a|b)");
    if (str_eq(key, "input"))
        return set_data(changes, value, slurm, warn, warn_ctx, e);
    if (flag)
        return directives_apply_flag(
            "update", flag->flag, value, slurm, changes, warn, warn_ctx, e);
    return str_eq(key, "at-once") ? set_at_once(changes, value, e)
                                  : set_switch(changes, key, value, e);
}

int updates_finish(json_t *changes, directive_warn_fn warn, void *warn_ctx, struct err *e)
{
    return directives_finish(changes, warn, warn_ctx, e);
}
