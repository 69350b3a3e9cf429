/* SPDX-License-Identifier: Apache-2.0
 *
 * Directives and flags of jobs (see directives.h). job/attributes.c defines every flag, for #BELAY
 * lines, #SBATCH lines and the command line alike; the parsers are here. An unknown #SBATCH flag
 * that could change the meaning of the job is refused by name; harmless ones give a warning and are
 * ignored.
 */
#include "cli/flags/directives_private.h"

#include "job/daily.h"
#include "base/json.h"
#include "base/mem.h"
#include "job/pattern.h"
#include "job/secret_ref.h"
#include "base/names.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vformat.h"
#include "cli/flags/begin.h"
#include "cli/flags/depend.h"
#include "cli/flags/foreign.h"
#include "cli/flags/grace.h"
#include "cli/flags/notify.h"
#include "cli/flags/retry.h"
#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int (*apply_fn)(const struct directive_context *c, const char *value, struct err *e);

void directive_warn(const struct directive_context *c, const char *fmt, ...)
{
    struct buf text = {0};
    char line[512];
    VFORMAT(line, fmt);
    buf_printf(&text, "%s: %s", c->where, line);
    if (c->warn)
        c->warn(c->warn_ctx, buf_str(&text));
    buf_deinit(&text);
}

json_t *directive_object(json_t *spec, const char *key)
{
    json_t *o = json_object_get(spec, key);
    if (!o) {
        o = json_object();
        json_object_set_new(spec, key, o);
    }
    return o;
}

int directive_number(const struct directive_context *c, const char *key, const char *value,
    int64_t min, int64_t max, struct err *e)
{
    int64_t n;
    int rc = str_to_i64(value, min, max, key, &n, e);
    if (rc == 0)
        json_object_set_new(c->spec, key, json_integer(n));
    return rc;
}

/* ---- one function per flag ---- */

static int apply_name(const struct directive_context *c, const char *value, struct err *e)
{
    if (!str_is_utf8(value, strlen(value)) || strlen(value) > 63)
        return err_set(e, ERR_INVALID, "a job's name is at most 63 bytes of UTF-8");
    json_object_set_new(c->spec, "name", json_string(value));
    return 0;
}

static int apply_pool(const struct directive_context *c, const char *value, struct err *e)
{
    if (names_check(value, 64, "a pool's name", e) != 0)
        return ERR_INVALID;
    json_object_set_new(c->spec, "pool", json_string(value));
    return 0;
}

static int apply_time(const struct directive_context *c, const char *value, struct err *e)
{
    int64_t ms;
    if (str_eq(value, "UNLIMITED") || str_eq(value, "INFINITE"))
        return 0;
    /* The flag has Slurm's name, so its value means the same everywhere: a bare number is minutes.
     */
    int rc = time_parse_duration(value, true, &ms, e);
    if (rc == 0)
        json_object_set_new(c->spec, "time_limit_ms", json_integer(ms));
    return rc;
}

static int one_of(const char *value, const char *const *names, struct err *e)
{
    struct buf list = {0};
    for (size_t i = 0; names[i]; i++)
        if (str_eq(names[i], value))
            return 0;
    str_list_names(&list, value, names);
    int rc = err_set(e, ERR_INVALID, "expected %s, found %s", buf_str(&list), SHOWN(value));
    buf_deinit(&list);
    return rc;
}

static int apply_every(const struct directive_context *c, const char *value, struct err *e)
{
    int64_t ms = 0;
    int rc = str_eq(value, "auto") ? 0 : time_parse_duration(value, false, &ms, e);
    if (rc == 0 && ms != 0 && ms < 1000)
        rc = err_set(e, ERR_INVALID, "expected auto or at least 1s, found %s", SHOWN(value));
    if (rc == 0)
        json_object_set_new(directive_object(c->spec, "checkpoint"), "every_ms", json_integer(ms));
    return rc;
}

/* Converts a local time of today to UTC; both in minutes after midnight. */
static int minutes_in_utc(int minutes)
{
    time_t at = time(NULL);
    struct tm tm;
    localtime_r(&at, &tm);
    tm.tm_hour = minutes / 60;
    tm.tm_min = minutes % 60;
    tm.tm_isdst = -1;
    at = mktime(&tm);
    gmtime_r(&at, &tm);
    return tm.tm_hour * 60 + tm.tm_min;
}

static int apply_at(const struct directive_context *c, const char *value, struct err *e)
{
    struct daily d = {0};
    char text[DAILY_TEXT_MAX];
    const char *p = value;
    while (p) {
        size_t n = strcspn(p, ",");
        bool is_utc = n == 6 && p[5] == 'Z';
        int minutes;
        if (!daily_parse_time(p, is_utc ? 5 : n, &minutes))
            return err_set(e, ERR_INVALID,
                "expected times of the day, as 06:00,18:30, or 06:00Z for UTC, found %s",
                SHOWN(value));
        if (!daily_add(&d, is_utc ? minutes : minutes_in_utc(minutes)))
            return err_set(e, ERR_INVALID, "expected at most %d times of the day, found %s",
                DAILY_MAX, SHOWN(value));
        p = p[n] ? p + n + 1 : NULL;
    }
    daily_format(&d, text);
    json_object_set_new(directive_object(c->spec, "checkpoint"), "at", json_string(text));
    return 0;
}

static int apply_signal(const struct directive_context *c, const char *value, struct err *e)
{
    return grace_parse(value, c->spec, e);
}

static int apply_mail_type(const struct directive_context *c, const char *value, struct err *e)
{
    return notify_types_parse(value, c->spec, e);
}

static int apply_mail_user(const struct directive_context *c, const char *value, struct err *e)
{
    return notify_user_parse(value, c->spec, e);
}

static int apply_notify(const struct directive_context *c, const char *value, struct err *e)
{
    return notify_url_parse(value, c->spec, e);
}

static int apply_retry(const struct directive_context *c, const char *value, struct err *e)
{
    return retry_parse(value, c->spec, e);
}

static int apply_label(const struct directive_context *c, const char *value, struct err *e)
{
    const char *eq = strchr(value, '=');
    char *name = eq ? mem_strndup(value, (size_t)(eq - value)) : NULL;
    int rc = 0;
    if (!name || !str_is_name(name, 63))
        rc = err_set(e, ERR_INVALID, "expected NAME=VALUE, found %s", SHOWN(value));
    else
        json_object_set_new(directive_object(c->spec, "labels"), name, json_text(eq + 1));
    free(name);
    return rc;
}

static int apply_account(const struct directive_context *c, const char *value, struct err *e)
{
    if (!str_is_name(value, 63))
        return err_set(e, ERR_INVALID, "expected a team's name, found %s", SHOWN(value));
    json_object_set_new(c->spec, "team", json_text(value));
    json_object_set_new(directive_object(c->spec, "labels"), "account", json_text(value));
    return 0;
}

static int apply_nice(const struct directive_context *c, const char *value, struct err *e)
{
    if (value[0] != '-')
        return directive_number(c, "nice", value, 0, job_attribute_max("nice"), e);
    directive_warn(c, "a negative value cannot raise the priority of a job: it has no effect");
    return 0;
}

static int apply_chdir(const struct directive_context *c, const char *value, struct err *e)
{
    char here[PATH_MAX];
    if (!value[0])
        return err_set(e, ERR_INVALID, "expected a directory, found nothing");
    if (value[0] != '/' && !getcwd(here, sizeof(here)))
        return err_set(e, ERR_INVALID,
            "the current directory cannot be determined: expected an absolute path, found %s",
            SHOWN(value));
    char *path = value[0] == '/' ? mem_strdup(value) : mem_printf("%s/%s", here, value);
    json_object_set_new(c->spec, "cwd", json_text(path));
    free(path);
    return 0;
}

/* submission_upload reads "upload" and removes it: belayd knows uploaded directories by their hash.
 */
static int apply_workdir(const struct directive_context *c, const char *value, struct err *e)
{
    static const char *const names[] = {"shared", "upload", NULL};
    int rc = one_of(value, names, e);
    if (rc == 0 && str_eq(value, "upload"))
        json_object_set_new(c->spec, "workdir", json_string(value));
    else if (rc == 0)
        json_object_del(c->spec, "workdir");
    return rc;
}

/* belayd checks the value. */
static int apply_image(const struct directive_context *c, const char *value, struct err *e)
{
    if (!*value || !str_is_utf8(value, strlen(value)))
        return err_set(e, ERR_INVALID,
            "expected an image, such as docker.io/library/python:3.12 or /shared/tools.sif, found "
            "%s",
            SHOWN(value));
    json_object_set_new(directive_object(c->spec, "launch"), "image", json_text(value));
    return 0;
}

/* Each adds one. belayd checks whether there is such a secret. */
static int apply_secret(const struct directive_context *c, const char *value, struct err *e)
{
    json_t *launch = directive_object(c->spec, "launch"),
           *list = json_object_get(launch, "secrets");
    struct secret_ref ref;
    int rc = secret_ref_parse(value, &ref, e);
    if (rc != 0)
        return rc;
    if (!list) {
        list = json_array();
        json_object_set_new(launch, "secrets", list);
    }
    json_array_append_new(list, json_text(value));
    return 0;
}

static int apply_dependency(const struct directive_context *c, const char *value, struct err *e)
{
    return depend_parse(value, c->spec, e);
}

/* a temporary key that directives_finish removes: the time of the day that finish_by_ms was
 * computed from */
#define FINISH_OF_DAY "finish_of_day"

/* A duration other than 0. */
static int read_some_time(const char *value, int64_t *ret_ms, struct err *e)
{
    int rc = time_parse_duration(value, true, ret_ms, e);
    return rc == 0 && *ret_ms < 1000
               ? err_set(e, ERR_INVALID, "expected at least one second, found %s", SHOWN(value))
               : rc;
}

/* A time as for --begin, or "+8h" from the submit on. */
static int apply_finish_by(const struct directive_context *c, const char *value, struct err *e)
{
    bool from_submit = *value == '+';
    struct wall at;
    int64_t in_ms;
    int minute;
    int rc = from_submit ? read_some_time(value + 1, &in_ms, e)
                         : begin_parse_finish(value, clock_wall(&clock_system), &at, e);
    if (rc != 0)
        return rc;
    json_object_del(c->spec, FINISH_OF_DAY);
    json_object_del(c->spec, from_submit ? "finish_by_ms" : "finish_in_ms");
    if (daily_parse_time(value, strlen(value), &minute))
        json_object_set_new(c->spec, FINISH_OF_DAY, json_string(value));
    json_object_set_new(c->spec, from_submit ? "finish_in_ms" : "finish_by_ms",
        json_integer(from_submit ? in_ms : at.ms));
    return 0;
}

static int set_file(
    const struct directive_context *c, const char *key, const char *value, struct err *e)
{
    if (!*value)
        return err_set(e, ERR_INVALID, "expected a file, found nothing");
    if (!str_is_utf8(value, strlen(value)) || strlen(value) > PATTERN_PATH_MAX)
        return err_set(
            e, ERR_INVALID, "a file's name is at most %d bytes of UTF-8", PATTERN_PATH_MAX);
    json_object_set_new(directive_object(c->spec, "launch"), key, json_text(value));
    return 0;
}

static int apply_output(const struct directive_context *c, const char *value, struct err *e)
{
    return set_file(c, "output", value, e);
}

static int apply_error(const struct directive_context *c, const char *value, struct err *e)
{
    return set_file(c, "error", value, e);
}

static int apply_input(const struct directive_context *c, const char *value, struct err *e)
{
    return strstr(value, "://") ? directive_data(c, value, e) : set_file(c, "input", value, e);
}

static int apply_stdin(const struct directive_context *c, const char *value, struct err *e)
{
    (void)value;
    return set_file(c, "input", "-", e);
}

static int apply_open_mode(const struct directive_context *c, const char *value, struct err *e)
{
    static const char *const names[] = {"append", "truncate", NULL};
    const char *mode = str_eq(value, "a") ? "append" : str_eq(value, "t") ? "truncate" : value;
    int rc = one_of(mode, names, e);
    if (rc == 0)
        json_object_set_new(directive_object(c->spec, "launch"), "open_mode", json_string(mode));
    return rc;
}

/* ---- options of a generic type ---- */

/* "checkpoint.keep" is a member of an object. */
static void put(const struct directive_context *c, const char *name, json_t *v)
{
    const char *dot = strchr(name, '.');
    char outer[32];
    snprintf(outer, sizeof(outer), "%.*s", dot ? (int)(dot - name) : 0, name);
    json_object_set_new(dot ? directive_object(c->spec, outer) : c->spec, dot ? dot + 1 : name, v);
}

static int read_usd(
    const struct job_attribute *a, const char *value, int64_t *ret_uusd, struct err *e)
{
    int rc = str_to_uusd(value, ret_uusd, e);
    return rc == 0 && (*ret_uusd <= 0 || *ret_uusd > a->max)
               ? err_set(e, ERR_INVALID, "expected more than 0 and at most %lld dollars, found %s",
                     (long long)(a->max / 1000000), SHOWN(value))
               : rc;
}

static int read_number(
    const struct job_attribute *a, const char *value, int64_t *ret_number, struct err *e)
{
    struct wall at;
    int rc;
    switch (a->type) {
    case JOB_TYPE_DURATION:
        return read_some_time(value, ret_number, e);
    case JOB_TYPE_MONEY:
        return read_usd(a, value, ret_number, e);
    case JOB_TYPE_MOMENT:
        rc = begin_parse(value, clock_wall(&clock_system), &at, e);
        *ret_number = rc == 0 ? at.ms : 0;
        return rc;
    default:
        return str_to_i64(
            value, a->flag_min ? a->flag_min : a->min, a->max, a->flag, ret_number, e);
    }
}

static int apply_typed(const struct job_attribute *a, const struct directive_context *c,
    const char *value, struct err *e)
{
    static const char *const yes_no[] = {"yes", "no", NULL};
    int64_t number;
    int rc = 0;
    switch (a->type) {
    case JOB_TYPE_IGNORED:
        return 0;
    case JOB_TYPE_TRUE:
    case JOB_TYPE_FALSE:
        put(c, a->name, json_boolean(a->type == JOB_TYPE_TRUE));
        return 0;
    case JOB_TYPE_BOOL:
        if ((rc = one_of(value, yes_no, e)) == 0)
            put(c, a->name, json_boolean(str_eq(value, "yes")));
        return rc;
    case JOB_TYPE_TEXT:
    case JOB_TYPE_NAME:
    case JOB_TYPE_URL:
    case JOB_TYPE_ENUM:
        if ((rc = job_attribute_check(a, value, e)) == 0)
            put(c, a->name, json_text(value));
        return rc;
    default:
        if ((rc = read_number(a, value, &number, e)) == 0)
            put(c, a->name, json_integer(number));
        return rc;
    }
}

/* ---- options with their own parser ---- */

static const struct {
    const char *flag;
    apply_fn apply;
} structured[] = {
    {"job-name", apply_name},
    {"name", apply_name},
    {"partition", apply_pool},
    {"pool", apply_pool},
    {"cpus-per-task", directive_cpus},
    {"cpus", directive_cpus},
    {"gpus", directive_gpus_of_job},
    {"gpu-memory", directive_gpu_memory},
    {"gres", directive_gres},
    {"constraint", directive_constraint},
    {"region", directive_region},
    {"zone", directive_zone},
    {"licenses", directive_licences},
    {"licences", directive_licences},
    {"gpus-per-node", directive_gpus},
    {"gpus-per-task", directive_gpus_per_task},
    {"cpus-per-gpu", directive_cpus_per_gpu},
    {"mem", directive_memory},
    {"mem-per-cpu", directive_memory_per_cpu},
    {"mem-per-gpu", directive_memory_per_gpu},
    {"time", apply_time},
    {"checkpoint-every", apply_every},
    {"checkpoint-at", apply_at},
    {"signal", apply_signal},
    {"label", apply_label},
    {"account", apply_account},
    {"nice", apply_nice},
    {"export", directive_export},
    {"chdir", apply_chdir},
    {"workdir", apply_workdir},
    {"secret", apply_secret},
    {"image", apply_image},
    {"container-image", apply_image},
    {"dependency", apply_dependency},
    {"finish-by", apply_finish_by},
    {"nodes", directive_nodes},
    {"nodelist", directive_nodelist},
    {"nodefile", directive_nodefile},
    {"exclude", directive_exclude},
    {"script-on", directive_script_on},
    {"ntasks", directive_tasks},
    {"ntasks-per-node", directive_tasks_per_node},
    {"ntasks-per-gpu", directive_tasks_per_gpu},
    {"mincpus", directive_mincpus},
    {"output", apply_output},
    {"error", apply_error},
    {"input", apply_input},
    {"stdin", apply_stdin},
    {"retry", apply_retry},
    {"mail-type", apply_mail_type},
    {"mail-user", apply_mail_user},
    {"notify", apply_notify},
    {"open-mode", apply_open_mode},
};
#define N_STRUCTURED (sizeof(structured) / sizeof(structured[0]))

static int apply_attribute(const struct job_attribute *a, const struct directive_context *c,
    const char *value, struct err *e)
{
    for (size_t i = 0; a->type == JOB_TYPE_STRUCTURED && i < N_STRUCTURED; i++)
        if (str_eq(structured[i].flag, a->flag))
            return structured[i].apply(c, value, e);
    assert(a->type != JOB_TYPE_STRUCTURED);
    return apply_typed(a, c, value, e);
}

const struct job_attribute *directives_next(const struct job_attribute *a)
{
    const struct job_attribute *end = job_attributes + job_attributes_count;
    for (a = a ? a + 1 : job_attributes; a < end; a++)
        if (a->flag)
            return a;
    return NULL;
}

bool directives_takes_value(const char *name)
{
    const struct job_attribute *a = job_attribute_by_flag(name);
    const struct foreign *other = a ? NULL : foreign_find(name);
    const char *value = a ? a->takes : other ? other->value : NULL;
    return value && value[0] != '?';
}

static bool is_known(const struct directive_context *c, const struct job_attribute *a)
{
    return !c->sbatch || !(a->masks & JOB_NOT_SLURM);
}

/* A flag as it was written: "-p", "--partition". */
struct written {
    char s[80];
};

static struct written as_written(const char *name)
{
    struct written w;
    snprintf(w.s, sizeof(w.s), "%s%s", name[0] && !name[1] ? "-" : "--", name);
    return w;
}

static void note_written(
    const struct directive_context *c, const struct job_attribute *a, const char *name)
{
    bool by_itself = str_eq(c->where, COMMAND_LINE);
    if (a->name)
        json_object_set_new(directive_object(c->spec, WRITTEN), a->name,
            json_pack("[s,o]", as_written(name).s, by_itself ? json_null() : json_text(c->where)));
}

json_t *directives_take_written(json_t *spec)
{
    json_t *written = json_incref(json_object_get(spec, WRITTEN));
    json_object_del(spec, WRITTEN);
    return written ? written : json_object();
}

static int refuse_unknown(const struct directive_context *c, const char *name, struct err *e)
{
    const char **names = mem_array(job_attributes_count + 1, sizeof(*names));
    size_t n = 0;
    for (const struct job_attribute *a = NULL; (a = directives_next(a));)
        if (is_known(c, a))
            names[n++] = a->flag;
    names[n] = NULL;
    const char *near = str_nearest(name, names);
    free(names);
    const struct written flag = as_written(name);
    if (foreign_find(name))
        return err_set(e, ERR_INVALID,
            "%s: %s is not supported: leave it out if the job is right without it", c->where,
            SHOWN(flag.s));
    return err_set(e, ERR_INVALID, "%s: %s is not known%s%s%s", c->where, SHOWN(flag.s),
        near ? "; did you mean --" : " (belay submit --help lists the flags)", near ? near : "",
        near ? "?" : "");
}

/* The flag says which option it is: "--cpus: expected ...", not "--cpus: cpus: expected ...". */
static void drop_member(const struct job_attribute *a, struct err *e)
{
    const char *const words[] = {a->name ? a->name : a->flag, a->flag};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i]);
        if (str_starts(e->text, words[i]) && str_starts(e->text + n, ": "))
            memmove(e->text, e->text + n + 2, strlen(e->text + n + 2) + 1);
    }
}

static int apply(
    const struct directive_context *c, const char *name, const char *value, struct err *e)
{
    const struct job_attribute *a = job_attribute_by_flag(name);
    if (a && !is_known(c, a))
        a = NULL;
    const struct foreign *other = a ? NULL : foreign_find(name);
    if (other && other->kind != FOREIGN_REFUSED) {
        if (other->kind == FOREIGN_WARNED)
            directive_warn(c, "--%s has no effect in belay", other->name);
        return 0;
    }
    if (!a)
        return refuse_unknown(c, name, e);
    value = value ? value : a->bare;
    if (a->takes && !value)
        return err_set(
            e, ERR_INVALID, "%s: %s needs a value (%s)", c->where, as_written(name).s, a->takes);
    if (!a->takes && value)
        return err_set(e, ERR_INVALID, "%s: %s takes no value, found %s", c->where,
            as_written(name).s, SHOWN(value));
    int rc = apply_attribute(a, c, value, e);
    if (rc == 0)
        note_written(c, a, name);
    else
        drop_member(a, e);
    return rc == 0 ? 0 : err_wrap(e, "%s: %s", c->where, as_written(name).s);
}

int directives_apply_flag(const char *where, const char *name, const char *value, bool sbatch,
    json_t *spec, directive_warn_fn warn_fn, void *warn_ctx, struct err *e)
{
    struct directive_context c = {
        .where = where, .sbatch = sbatch, .spec = spec, .warn = warn_fn, .warn_ctx = warn_ctx};
    return apply(&c, name, value, e);
}

/* Warns of --signal without a time limit before which it could be sent. With --checkpoint signal it
 * also requests checkpoints, and needs no limit. */
static void warn_of_grace(const struct directive_context *c)
{
    const json_t *grace = json_object_get(json_object_get(c->spec, "launch"), "grace");
    const char *method =
        json_string_value(json_object_get(json_object_get(c->spec, "checkpoint"), "method"));
    int64_t limit_ms = json_integer_value(json_object_get(c->spec, "time_limit_ms"));
    if (!grace || (method && str_eq(method, "signal")))
        return;
    if (limit_ms == 0)
        directive_warn(c, "--signal has no effect without --time: there is no limit before which "
                          "it could be sent");
    else if (json_integer_value(json_object_get(grace, "before_ms")) >= limit_ms)
        directive_warn(c, "--signal: its lead time is not shorter than the time limit, so it is "
                          "sent at the start");
}

void directives_keep_time_of_day(json_t *spec)
{
    json_t *of_day = json_object_get(spec, FINISH_OF_DAY);
    if (!of_day)
        return;
    json_object_set(spec, "finish_at", of_day);
    json_object_del(spec, "finish_by_ms");
}

int directives_finish(json_t *spec, directive_warn_fn warn_fn, void *warn_ctx, struct err *e)
{
    const struct directive_context context = {
        .where = COMMAND_LINE, .spec = spec, .warn = warn_fn, .warn_ctx = warn_ctx};
    json_object_del(spec, FINISH_OF_DAY);
    json_object_del(spec, WRITTEN);
    directives_finish_env(spec, warn_fn, warn_ctx);
    int rc = grace_check(spec, e);
    if (rc == 0)
        warn_of_grace(&context);
    rc = rc ? rc : directives_finish_nodes(spec, e);
    return rc ? rc : directives_finish_resources(spec, e);
}

/* ---- lines ---- */

/* Reads the next word of *p, with shell quotes, into out. False at the end. */
static bool next_word(const char **p, struct buf *out, bool *ret_open_quote)
{
    const char *s = *p;
    char quote = 0;
    buf_clear(out);
    while (*s == ' ' || *s == '\t')
        s++;
    if (!*s || *s == '#')
        return false;
    buf_adds(out, "");
    for (; *s && (quote || (*s != ' ' && *s != '\t')); s++) {
        if (quote ? *s == quote : (*s == '"' || *s == '\''))
            quote = quote ? 0 : *s;
        else
            buf_addc(out, *s);
    }
    *ret_open_quote = quote != 0;
    *p = s;
    return true;
}

/* "--name", "--name=value", "-x", "-xvalue". */
static void split_flag(const char *word, char *name, size_t size, const char **ret_value)
{
    size_t dashes = word[1] == '-' ? 2 : 1;
    size_t n = dashes == 2 ? strcspn(word + 2, "=") : 1;
    const char *rest = word + dashes + n;
    snprintf(name, size, "%.*s", (int)(n < size ? n : size - 1), word + dashes);
    *ret_value = *rest == '=' ? rest + 1 : *rest ? rest : NULL;
}

/* Whether the next word is the flag's value: for a flag whose value is optional, only a number. */
static bool next_is_value(const char *name, const char *rest)
{
    const struct job_attribute *a = job_attribute_by_flag(name);
    return directives_takes_value(name) &&
           (!a || !a->bare || isdigit((unsigned char)rest[strspn(rest, " \t")]));
}

/* Parses the flags of one line; a value may also be the next word. */
static int apply_line(const struct directive_context *c, const char *line, struct err *e)
{
    struct buf word = {0}, next = {0};
    char name[64];
    const char *value;
    bool open_quote = false;
    int rc = 0;
    while (rc == 0 && next_word(&line, &word, &open_quote)) {
        const char *w = buf_str(&word);
        if (w[0] != '-' || !w[1]) {
            rc = err_set(
                e, ERR_INVALID, "%s: expected flags like --time 2h, found %s", c->where, SHOWN(w));
            break;
        }
        split_flag(w, name, sizeof(name), &value);
        if (!value && next_is_value(name, line) && next_word(&line, &next, &open_quote))
            value = buf_str(&next);
        if (open_quote)
            rc =
                err_set(e, ERR_INVALID, "%s: the quote after %s is not closed", c->where, SHOWN(w));
        else
            rc = apply(c, name, value, e);
    }
    buf_deinit(&word);
    buf_deinit(&next);
    return rc;
}

static bool begins(const char *line, size_t len, const char *word)
{
    size_t n = strlen(word);
    return len >= n && memcmp(line, word, n) == 0;
}

static bool is_command(const char *line, size_t len)
{
    size_t i = 0;
    while (i < len && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r'))
        i++;
    return i < len && line[i] != '#';
}

int directives_apply_script(const char *file, const char *script, size_t n, json_t *spec,
    directive_warn_fn warn_fn, void *warn_ctx, struct err *e)
{
    char line[DIRECTIVE_LINE_MAX], where[600];
    int number = 0, found = 0, rc = 0;
    for (const char *p = script, *end = script + n, *eol; p < end && rc == 0; p = eol + 1) {
        eol = memchr(p, '\n', (size_t)(end - p));
        eol = eol ? eol : end;
        size_t len = (size_t)(eol - p);
        bool sbatch = begins(p, len, "#SBATCH");
        size_t skip = sbatch ? 7 : 6;
        number++;
        if (is_command(p, len))
            break; /* the first command ends the directives, as in Slurm */
        if (!sbatch && !begins(p, len, "#BELAY"))
            continue;
        snprintf(where, sizeof(where), "%s:%d", file, number);
        if (len >= sizeof(line) || ++found > DIRECTIVES_MAX)
            return err_set(e, ERR_INVALID,
                "%s: a directive is at most %d bytes, and a script has at most %d of them", where,
                DIRECTIVE_LINE_MAX - 1, DIRECTIVES_MAX);
        snprintf(line, sizeof(line), "%.*s", (int)(len - skip), p + skip);
        line[strcspn(line, "\r")] = '\0';
        struct directive_context c = {
            .where = where, .sbatch = sbatch, .spec = spec, .warn = warn_fn, .warn_ctx = warn_ctx};
        rc = apply_line(&c, line, e);
    }
    return rc;
}
