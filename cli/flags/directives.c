/* SPDX-License-Identifier: Apache-2.0
 *
 * Directives and flags of jobs (see directives.h). One table says what every flag means, for #BELAY
 * lines, #SBATCH lines and the command line alike. A #SBATCH flag that would change what the job
 * means and is not known here is refused by name; harmless ones are told and passed over.
 */
#include "cli/flags/directives_private.h"

#include "job/daily.h"
#include "base/json.h"
#include "base/mem.h"
#include "job/pattern.h"
#include "base/names.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/flags/begin.h"
#include "cli/flags/depend.h"
#include "cli/flags/foreign.h"
#include "cli/flags/grace.h"
#include "cli/flags/notify.h"
#include "cli/flags/retry.h"
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int (*apply_fn)(const struct directive_context *c, const char *value, struct err *e);

struct flag {
    struct directive_flag shown;
    apply_fn apply;
};

void directive_warn(const struct directive_context *c, const char *fmt, ...)
{
    struct buf text = {0};
    char line[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
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

/* ---- one function a flag ---- */

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
    /* The flag has Slurm's name, so its value means the same wherever it stands: a bare number is
     * minutes. */
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

static int apply_market(const struct directive_context *c, const char *value, struct err *e)
{
    static const char *const names[] = {"any", "spot", "on-demand", NULL};
    int rc = one_of(value, names, e);
    if (rc == 0)
        json_object_set_new(c->spec, "market", json_string(value));
    return rc;
}

static int apply_checkpoint(const struct directive_context *c, const char *value, struct err *e)
{
    static const char *const names[] = {"none", "signal", "coop", "criu", NULL};
    int rc = one_of(value, names, e);
    if (rc == 0)
        json_object_set_new(directive_object(c->spec, "checkpoint"), "method", json_string(value));
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

static int apply_drill(const struct directive_context *c, const char *value, struct err *e)
{
    (void)value, (void)e;
    json_object_set_new(c->spec, "drill", json_true());
    return 0;
}

/* What the clock shows in UTC when it shows this here, on this day. */
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

static int apply_keep(const struct directive_context *c, const char *value, struct err *e)
{
    int64_t n;
    int rc = str_to_i64(value, 1, 1000, "keep", &n, e);
    if (rc == 0)
        json_object_set_new(directive_object(c->spec, "checkpoint"), "keep", json_integer(n));
    return rc;
}

static int apply_keep_every(const struct directive_context *c, const char *value, struct err *e)
{
    int64_t n;
    int rc = str_to_i64(value, 1, 1000000, "keep-every", &n, e);
    if (rc == 0)
        json_object_set_new(directive_object(c->spec, "checkpoint"), "keep_every", json_integer(n));
    return rc;
}

static int apply_on_loss(const struct directive_context *c, const char *value, struct err *e)
{
    static const char *const names[] = {"shrink", "wait", NULL};
    int rc = one_of(value, names, e);
    if (rc == 0)
        json_object_set_new(c->spec, "on_loss", json_string(value));
    return rc;
}

static int apply_after(const struct directive_context *c, const char *value, struct err *e)
{
    static const char *const names[] = {"auto", "delete", "last", "all", NULL};
    int rc = one_of(value, names, e);
    if (rc == 0)
        json_object_set_new(directive_object(c->spec, "checkpoint"), "after", json_string(value));
    return rc;
}

static int apply_signal(const struct directive_context *c, const char *value, struct err *e)
{
    return grace_parse(value, c->spec, e);
}

/* The short form of --retry failed=N. */
static int apply_retries(const struct directive_context *c, const char *value, struct err *e)
{
    int64_t n;
    int rc = str_to_i64(value, 0, 1000, "retries", &n, e);
    if (rc == 0)
        json_object_set_new(directive_object(c->spec, "retry"), "failed", json_integer(n));
    return rc;
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

static int apply_requeue(const struct directive_context *c, const char *value, struct err *e)
{
    (void)value, (void)e;
    json_object_set_new(c->spec, "requeue", json_true());
    return 0;
}

static int apply_no_requeue(const struct directive_context *c, const char *value, struct err *e)
{
    (void)value, (void)e;
    json_object_set_new(c->spec, "requeue", json_false());
    return 0;
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

static int apply_window(const struct directive_context *c, const char *value, struct err *e)
{
    if (!str_is_name(value, 63))
        return err_set(e, ERR_INVALID, "expected a window's name, found %s", SHOWN(value));
    json_object_set_new(c->spec, "window", json_text(value));
    return 0;
}

static int apply_team(const struct directive_context *c, const char *value, struct err *e)
{
    if (!str_is_name(value, 63))
        return err_set(e, ERR_INVALID, "expected a team's name, found %s", SHOWN(value));
    json_object_set_new(c->spec, "team", json_text(value));
    return 0;
}

static int apply_account(const struct directive_context *c, const char *value, struct err *e)
{
    int rc = apply_team(c, value, e);
    if (rc == 0)
        json_object_set_new(directive_object(c->spec, "labels"), "account", json_text(value));
    return rc;
}

static int apply_qos(const struct directive_context *c, const char *value, struct err *e)
{
    if (!str_is_name(value, 31))
        return err_set(e, ERR_INVALID, "expected the name of a QOS, found %s", SHOWN(value));
    json_object_set_new(c->spec, "qos", json_text(value));
    return 0;
}

static int apply_nice(const struct directive_context *c, const char *value, struct err *e)
{
    if (value[0] != '-')
        return directive_number(c, "nice", value, 0, 10000000, e);
    directive_warn(c, "a job cannot be made to come earlier by this: it has no effect");
    return 0;
}

static int apply_chdir(const struct directive_context *c, const char *value, struct err *e)
{
    char here[PATH_MAX];
    if (!value[0])
        return err_set(e, ERR_INVALID, "expected a directory, found nothing");
    if (value[0] != '/' && !getcwd(here, sizeof(here)))
        return err_set(e, ERR_INVALID,
            "the current directory cannot be named: expected an absolute path, found %s",
            SHOWN(value));
    char *path = value[0] == '/' ? mem_strdup(value) : mem_printf("%s/%s", here, value);
    json_object_set_new(c->spec, "cwd", json_text(path));
    free(path);
    return 0;
}

/* "upload" is what submission_bring reads, and takes out: belayd knows directories that were sent
 * by their hash. */
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

/* What it may be, belayd says. */
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

static int apply_dependency(const struct directive_context *c, const char *value, struct err *e)
{
    return depend_parse(value, c->spec, e);
}

static int apply_begin(const struct directive_context *c, const char *value, struct err *e)
{
    struct wall at;
    int rc = begin_parse(value, clock_wall(&clock_system), &at, e);
    if (rc == 0)
        json_object_set_new(c->spec, "begin_at_ms", json_integer(at.ms));
    return rc;
}

static int apply_deadline(const struct directive_context *c, const char *value, struct err *e)
{
    struct wall at;
    int rc = begin_parse(value, clock_wall(&clock_system), &at, e);
    if (rc == 0)
        json_object_set_new(c->spec, "deadline_at_ms", json_integer(at.ms));
    return rc;
}

/* a key of the specification that directives_finish takes out again: the time of the day that
 * finish_by_ms was told as */
#define FINISH_OF_DAY "finish_of_day"

/* One that 0 is not. */
static int read_some_time(const char *value, int64_t *ret_ms, struct err *e)
{
    int rc = time_parse_duration(value, true, ret_ms, e);
    return rc == 0 && *ret_ms < 1000
               ? err_set(e, ERR_INVALID, "expected a second at least, found %s", SHOWN(value))
               : rc;
}

/* As --begin takes it, or "+8h": so long from the submit. */
static int apply_finish_by(const struct directive_context *c, const char *value, struct err *e)
{
    bool from_submit = *value == '+';
    struct wall at;
    int64_t in_ms;
    int minute;
    int rc = from_submit ? read_some_time(value + 1, &in_ms, e)
                         : begin_parse(value, clock_wall(&clock_system), &at, e);
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

static int apply_work(const struct directive_context *c, const char *value, struct err *e)
{
    int64_t ms;
    int rc = read_some_time(value, &ms, e);
    if (rc == 0)
        json_object_set_new(c->spec, "work_ms", json_integer(ms));
    return rc;
}

#define USD_MAX 1000000000LL

static int apply_usd(
    const struct directive_context *c, const char *key, const char *value, struct err *e)
{
    int64_t uusd;
    char shown[STR_SHOW_MAX];
    int rc = str_to_uusd(value, &uusd, e);
    if (rc == 0 && (uusd <= 0 || uusd > USD_MAX * 1000000))
        rc = err_set(e, ERR_INVALID, "expected more than 0 and at most %lld dollars, found %s",
            USD_MAX, str_show(value, shown));
    if (rc == 0)
        json_object_set_new(c->spec, key, json_integer(uusd));
    return rc;
}

static int apply_max_usd(const struct directive_context *c, const char *value, struct err *e)
{
    return apply_usd(c, "max_uusd", value, e);
}

static int apply_max_usd_per_hour(
    const struct directive_context *c, const char *value, struct err *e)
{
    return apply_usd(c, "max_uusd_per_hour", value, e);
}

static int apply_kill_on_invalid_dep(
    const struct directive_context *c, const char *value, struct err *e)
{
    static const char *const names[] = {"yes", "no", NULL};
    int rc = one_of(value, names, e);
    if (rc == 0)
        json_object_set_new(c->spec, "kill_on_invalid_dep", json_boolean(str_eq(value, "yes")));
    return rc;
}

/* What it may be, belayd says. */
static int apply_array(const struct directive_context *c, const char *value, struct err *e)
{
    (void)e;
    json_object_set_new(c->spec, "array", json_text(value));
    return 0;
}

static int apply_hold(const struct directive_context *c, const char *value, struct err *e)
{
    (void)value, (void)e;
    json_object_set_new(c->spec, "hold", json_true());
    return 0;
}

static int apply_nothing(const struct directive_context *c, const char *value, struct err *e)
{
    (void)value, (void)e;
    (void)c;
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

/* ---- the table ---- */

static const struct flag flags[] = {
    {{"job-name", 'J', "NAME", "the job's name"}, apply_name},
    {{"partition", 'p', "POOL,...",
         "the pool to run in, or several: whichever lets it start first (default: any)"},
        apply_pool},
    {{"pool", 0, "POOL,...", "the same"}, apply_pool},
    {{"cpus-per-task", 'c', "N", "CPUs (default 1)"}, directive_cpus},
    {{"gpus", 'G', "N|MODEL:N", "GPUs (default 0), of this model: a100:2; or slices: 1g.10gb:2"},
        directive_gpus_of_job},
    {{"gpu-memory", 0, "SIZE", "that each GPU has at least: 40G"}, directive_gpu_memory},
    {{"gres", 0, "gpu:N,NAME:N",
         "the same, as Slurm writes it, and what nodes have by other names"},
        directive_gres},
    {{"constraint", 'C', "FEATURES", "only nodes that have these features: a100&(ib|roce)"},
        directive_constraint},
    {{"region", 0, "NAME,...",
         "only nodes in one of these regions of a provider: us-east-1,us-east-2"},
        directive_region},
    {{"zone", 0, "NAME,...", "only nodes in one of these zones: us-east-1a,us-east-1b"},
        directive_zone},
    {{"licenses", 'L', "NAME:N,...", "not before so many of the cluster's licences are free"},
        directive_licences},
    {{"licences", 0, "NAME:N,...", "the same"}, directive_licences},
    {{"exclusive", 0, NULL,
         "nobody else on its nodes, with all that they have; cpus, memory and GPUs are the least"},
        directive_exclusive},
    {{"gpus-per-node", 0, "N", "the same"}, directive_gpus},
    {{"gpus-per-task", 0, "N", "the same for each of --ntasks"}, directive_gpus_per_task},
    {{"cpus-per-gpu", 0, "N", "CPUs for each GPU"}, directive_cpus_per_gpu},
    {{"mem", 0, "SIZE", "memory: 512M, 4G (a bare number is MiB)"}, directive_memory},
    {{"mem-per-cpu", 0, "SIZE", "the same for each CPU"}, directive_memory_per_cpu},
    {{"mem-per-gpu", 0, "SIZE", "the same for each GPU"}, directive_memory_per_gpu},
    {{"time", 't', "LIMIT",
         "time limit of one attempt: 90m, 2h, 1:30:00; a bare number is minutes"},
        apply_time},
    {{"market", 0, "any|spot|on-demand", "which capacity may be bought (default any)"},
        apply_market},
    {{"checkpoint", 0, "none|signal|coop|criu",
         "how the program takes part in checkpoints (default none)"},
        apply_checkpoint},
    {{"checkpoint-every", 0, "auto|TIME", "time between periodic saves (default auto)"},
        apply_every},
    {{"checkpoint-at", 0, "HH:MM,...",
         "save at these times of the day as well, by this machine's clock; 06:00Z: UTC"},
        apply_at},
    {{"keep", 0, "N", "checkpoints kept (default 3)"}, apply_keep},
    {{"keep-every", 0, "K", "keep every K-th checkpoint of an attempt as well"}, apply_keep_every},
    {{"checkpoints-after", 0, "auto|delete|last|all",
         "what of them stays when the job has ended (default auto: all for some days)"},
        apply_after},
    {{"drill", 0, NULL,
         "once it has saved or got somewhere, save, kill and resume it, and certify that it comes "
         "back"},
        apply_drill},
    {{"signal", 0, "[B:]SIG[@SECONDS]",
         "sent once, so long before the time limit (default 60); B: to the script only. What "
         "--checkpoint signal sends (default "
         "USR1)"},
        apply_signal},
    {{"retries", 0, "N", "how often a failed program is tried again (default 0)"}, apply_retries},
    {{"label", 0, "NAME=VALUE", "a label, for the bill; may be repeated"}, apply_label},
    {{"account", 'A', "NAME", "the team whose share it uses; also --label account=NAME"},
        apply_account},
    {{"team", 0, "NAME", "the team whose share it uses"}, apply_team},
    {{"qos", 'q', "NAME", "the class of the job, as belayd's configuration has them"}, apply_qos},
    {{"nice", 0, "MINUTES", "it stands in the queue as if submitted so much later", "100"},
        apply_nice},
    {{"export", 0, "A,B=VALUE", "environment variables that the job gets; nothing else is passed"},
        directive_export},
    {{"chdir", 'D', "DIR", "working directory (default: the current one)"}, apply_chdir},
    {{"workdir", 0, "shared|upload",
         "upload: send what is in it along, but for what .gitignore and .belayignore name; default "
         "shared: nodes have it"},
        apply_workdir},
    {{"image", 0, "IMAGE",
         "run the script in this container image, with podman or apptainer: "
         "docker.io/library/python:3.12, or a .sif file"},
        apply_image},
    {{"container-image", 0, "IMAGE", "the same"}, apply_image},
    {{"array", 'a', "INDEXES",
         "a job of tasks, 0-99, 1,3,7 or 0-20:5, and %10: at most ten at once"},
        apply_array},
    {{"dependency", 'd', "KIND:JOB...",
         "not before other jobs: afterok:17:18,afterany:19, afternotok:17, after:17+MINUTES, "
         "aftercorr:17, singleton; ? "
         "for any of them"},
        apply_dependency},
    {{"begin", 'b', "TIME", "not before: now+1hour, 16:00, tomorrow, 2026-12-01T10:00"},
        apply_begin},
    {{"kill-on-invalid-dep", 0, "yes|no",
         "end it when what it depends on can never come true (default), or let it wait"},
        apply_kill_on_invalid_dep},
    {{"deadline", 0, "TIME",
         "end it if it waits when it could not have ended by then any more, by its time limit"},
        apply_deadline},
    {{"finish-by", 0, "TIME",
         "to be done by then, for the least money: on spot while there is time, else on-demand: "
         "07:00 (of a cron entry each day's, in its zone), +8h, now+2days"},
        apply_finish_by},
    {{"work", 0, "TIME",
         "with --finish-by: how long it would run undisturbed (default: --time); 48h, 90m"},
        apply_work},
    {{"max-usd", 0, "USD",
         "it may cost so much in all: it is saved and parked before it does, until that is raised"},
        apply_max_usd},
    {{"max-usd-per-hour", 0, "USD",
         "only on nodes that cost no more an hour together: it waits for a lower price"},
        apply_max_usd_per_hour},
    {{"window", 0, "NAME",
         "only in this window of belayd's configuration; saved and parked at its end"},
        apply_window},
    {{"hold", 'H', NULL, "not before belay release"}, apply_hold},
    {{"nodes", 'N', "N|MIN-MAX",
         "nodes, all of which start the job at once (default 1): as many as there are, from MIN to "
         "MAX"},
        directive_nodes},
    {{"nodelist", 'w', "NODES", "only on these nodes: n[1-3,7]"}, directive_nodelist},
    {{"nodefile", 'F', "FILE", "only on the nodes that are named in this file"},
        directive_nodefile},
    {{"exclude", 'x', "NODES", "on none of these nodes"}, directive_exclude},
    {{"on-loss", 0, "shrink|wait",
         "when one of MIN-MAX nodes is lost, go on with the others or wait for another (default "
         "shrink)"},
        apply_on_loss},
    {{"script-on", 0, "each|first",
         "the script starts on each of several nodes (default), or on the first, where srun starts "
         "tasks on all"},
        directive_script_on},
    {{"ntasks", 'n', "N",
         "tasks that the script starts itself, with srun; CPUs are for each (default 1)"},
        directive_tasks},
    {{"ntasks-per-node", 0, "N", "the same"}, directive_tasks_per_node},
    {{"ntasks-per-gpu", 0, "N", "the same for each GPU; with --ntasks: so many GPUs as that takes"},
        directive_tasks_per_gpu},
    {{"mincpus", 0, "N", "CPUs of each node, at least"}, directive_mincpus},
    {{"output", 'o', "FILE",
         "write the output there too; %j the job's number, %x its name (docs/reference/slurm.md "
         "has all)"},
        apply_output},
    {{"error", 'e', "FILE", "and what goes to standard error there, instead"}, apply_error},
    {{"input", 'i', "FILE|URI,size=SIZE",
         "standard input (default: none); or data that the program reads, whose way to an offer is "
         "part of that one's price: "
         "s3://bucket/prefix,size=140G,place=aws/us-east-1"},
        apply_input},
    {{"stdin", 0, NULL, "its standard input stays open for belay attach"}, apply_stdin},
    {{"comment", 0, "TEXT", "accepted for Slurm's scripts; no effect"}, apply_nothing},
    {{"retry", 0, "END=N,...",
         "how often it is queued again after an end as failed, timeout, node-lost, reclaimed, "
         "evicted, drained: a number, or "
         "unlimited"},
        apply_retry},
    {{"requeue", 0, NULL,
         "queue it again after what the world does to it, whatever belayd's configuration says"},
        apply_requeue},
    {{"no-requeue", 0, NULL, "never queue it again, but for what --retry says"}, apply_no_requeue},
    {{"mail-type", 0, "WHEN,...",
         "mail at BEGIN, END, FAIL, REQUEUE, TIME_LIMIT, TIME_LIMIT_50, _80, _90; ALL, NONE; "
         "ARRAY_TASKS: of each task"},
        apply_mail_type},
    {{"mail-user", 0, "ADDRESS", "to whom (default: you)"}, apply_mail_user},
    {{"notify", 0, "URL|@FILE",
         "a POST with JSON there at the changes of its state; may be repeated"},
        apply_notify},
    {{"open-mode", 0, "append|truncate",
         "of --output at each attempt (default: truncate at the first, then append)"},
        apply_open_mode},
    {{"test-only", 0, NULL,
         "say when and where it would start and what it would cost; nothing is submitted (command "
         "line only)"},
        apply_nothing},
    {{"parsable", 0, NULL, "print the job's number and nothing else (command line only)"},
        apply_nothing},
};
#define N_FLAGS (sizeof(flags) / sizeof(flags[0]))

static const struct flag *find(const char *name)
{
    for (size_t i = 0; name && i < N_FLAGS; i++)
        if (str_eq(flags[i].shown.name, name) ||
            (name[0] && !name[1] && flags[i].shown.letter == name[0]))
            return &flags[i];
    return NULL;
}

size_t directives_count(void)
{
    return N_FLAGS;
}

const struct directive_flag *directives_flag(size_t i)
{
    return &flags[i].shown;
}

bool directives_takes_value(const char *name)
{
    const struct flag *f = find(name);
    const struct foreign *other = f ? NULL : foreign_find(name);
    const char *value = f ? f->shown.value : other ? other->value : NULL;
    return value && value[0] != '?';
}

static int refuse_unknown(const struct directive_context *c, const char *name, struct err *e)
{
    const char *names[N_FLAGS + 1];
    for (size_t i = 0; i < N_FLAGS; i++)
        names[i] = flags[i].shown.name;
    names[N_FLAGS] = NULL;
    const char *near = str_nearest(name, names);
    char flag[80];
    snprintf(flag, sizeof(flag), "%s%s", name[0] && !name[1] ? "-" : "--", name);
    if (foreign_find(name))
        return err_set(e, ERR_INVALID,
            "%s: %s is not supported: take it out if the job is right without it", c->where,
            SHOWN(flag));
    return err_set(e, ERR_INVALID, "%s: %s is not known%s%s%s", c->where, SHOWN(flag),
        near ? "; did you mean --" : " (belay submit --help lists the flags)", near ? near : "",
        near ? "?" : "");
}

static int apply(
    const struct directive_context *c, const char *name, const char *value, struct err *e)
{
    const struct flag *f = find(name);
    const struct foreign *other = f ? NULL : foreign_find(name);
    if (other && other->kind != FOREIGN_REFUSED) {
        if (other->kind == FOREIGN_TOLD)
            directive_warn(c, "--%s has no effect in belay", other->name);
        return 0;
    }
    if (!f)
        return refuse_unknown(c, name, e);
    value = value ? value : f->shown.bare;
    if (f->shown.value && !value)
        return err_set(
            e, ERR_INVALID, "%s: --%s needs a value (%s)", c->where, f->shown.name, f->shown.value);
    if (!f->shown.value && value)
        return err_set(e, ERR_INVALID, "%s: --%s takes no value, found %s", c->where, f->shown.name,
            SHOWN(value));
    int rc = f->apply(c, value, e);
    return rc == 0 ? 0 : err_wrap(e, "%s: --%s", c->where, f->shown.name);
}

int directives_apply_flag(const char *where, const char *name, const char *value, bool sbatch,
    json_t *spec, directive_warn_fn warn_fn, void *warn_ctx, struct err *e)
{
    struct directive_context c = {
        .where = where, .sbatch = sbatch, .spec = spec, .warn = warn_fn, .warn_ctx = warn_ctx};
    return apply(&c, name, value, e);
}

/* One that asks for checkpoints has another use. */
static void tell_grace(const struct directive_context *c)
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
        directive_warn(c, "--signal: the time limit is no longer than what it is to be sent "
                          "before: it comes at the start");
}

void directives_be_repeated(json_t *spec)
{
    json_t *of_day = json_object_get(spec, FINISH_OF_DAY);
    if (!of_day)
        return;
    json_object_set(spec, "finish_at", of_day);
    json_object_del(spec, "finish_by_ms");
}

int directives_finish(json_t *spec, directive_warn_fn warn_fn, void *warn_ctx, struct err *e)
{
    const struct directive_context told = {
        .where = "command line", .spec = spec, .warn = warn_fn, .warn_ctx = warn_ctx};
    json_object_del(spec, FINISH_OF_DAY);
    directives_finish_env(spec, warn_fn, warn_ctx);
    int rc = grace_check(spec, e);
    if (rc == 0)
        tell_grace(&told);
    rc = rc ? rc : directives_finish_nodes(spec, e);
    return rc ? rc : directives_finish_resources(spec, e);
}

/* ---- lines ---- */

/* The next word of *p, with shell quotes, into out. False at the end. */
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

/* Behind one that needs no value it is a number. */
static bool next_is_value(const char *name, const char *rest)
{
    const struct flag *f = find(name);
    return directives_takes_value(name) &&
           (!f || !f->shown.bare || isdigit((unsigned char)rest[strspn(rest, " \t")]));
}

/* The flags of one line; a value may also be the next word. */
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
            break; /* the first command ends them, as in Slurm */
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
