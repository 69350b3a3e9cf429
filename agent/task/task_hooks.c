/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/task_hooks.h"

#include "agent/task/task_private.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTPUT_MAX (64u << 10) /* bytes of standard output, which are not used */

/* ---- who can change it ---- */

static int check_one(const char *path, bool is_file, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return err_set(e, ERR_CONFIG, "%s: %s", path, strerror(errno));
    if (is_file && !S_ISREG(st.st_mode))
        return err_set(e, ERR_CONFIG, "%s is not a regular file", path);
    if (is_file && access(path, X_OK) < 0)
        return err_set(e, ERR_CONFIG, "%s cannot be executed: chmod +x", path);
    bool others = (st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & 0002) ||
                  ((st.st_mode & 0020) && st.st_gid != 0);
    bool is_sticky =
        S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX) && (st.st_uid == 0 || st.st_uid == geteuid());
    if (others && !is_sticky)
        return err_set(e, ERR_CONFIG,
            "others than root and the agent's user can change %s: chown root, chmod go-w", path);
    return 0;
}

int task_hooks_check(const char *program, struct err *e)
{
    char *path = realpath(program, NULL); /* the target of a link is what runs */
    int rc = path ? check_one(path, true, e)
                  : err_set(e, ERR_CONFIG, "%s: %s", program, strerror(errno));
    while (rc == 0 && path[1]) {
        char *slash = strrchr(path, '/');
        slash[slash == path] = '\0';
        rc = check_one(path, false, e);
    }
    free(path);
    return rc;
}

/* ---- running ---- */

/* Its last line of errors, without control characters. */
static void last_line(const struct buf *errors, char out[128])
{
    size_t end = errors->len, from, n = 0;
    while (end > 0 && (errors->data[end - 1] == '\n' || errors->data[end - 1] == ' '))
        end--;
    for (from = end; from > 0 && errors->data[from - 1] != '\n';)
        from--;
    for (; from < end && n + 1 < 128; from++)
        out[n++] = iscntrl((unsigned char)errors->data[from]) ? '?' : errors->data[from];
    out[n] = '\0';
}

/* "" if it succeeded. */
static void describe(
    const char *what, const struct err *e, const struct runner_result *r, char out[256])
{
    char line[128] = "";
    out[0] = '\0';
    if (e) {
        snprintf(out, 256, "the %s failed: %.200s", what, e->text);
    } else if (r->exit_code != 0) {
        last_line(&r->errors, line);
        snprintf(out, 256, "the %s failed with exit code %d%s%s", what, r->exit_code,
            line[0] ? ": " : "", line);
    }
}

/* False, with the reason, if it cannot be started. */
static bool start(
    struct task *t, const char *what, const char *program, runner_done_fn done, char why[256])
{
    char job[24], attempt[24];
    struct err e;
    why[0] = '\0';
    if (task_hooks_check(program, &e) != 0) {
        snprintf(why, 256, "the %s was not run: %.200s", what, e.text);
        return false;
    }
    snprintf(job, sizeof(job), "%" PRId64, t->job);
    snprintf(attempt, sizeof(attempt), "%" PRId64, t->attempt);
    const char *const argv[] = {program, what, job, attempt, t->spec->user, t->state.gpus, NULL};
    const struct runner_command c = {
        .argv = argv, .timeout_ms = t->common->hook_timeout_ms, .max_output_bytes = OUTPUT_MAX};
    t->hooks.run = runner_start(t->common->runner, &c, done, t);
    return true;
}

static void on_prolog(void *ctx, const struct err *e, const struct runner_result *result)
{
    struct task *t = ctx;
    char why[256];
    t->hooks.run = NULL;
    if (t->released)
        return;
    describe("prolog", e, result, why);
    t->hooks.has_prolog_run = why[0] == '\0';
    t->hooks.prolog_done(t, why[0] ? why : NULL);
}

bool task_hooks_prolog(struct task *t, void (*done)(struct task *t, const char *why))
{
    char why[256];
    if (!t->common->prolog || t->hooks.has_prolog_run)
        return false;
    t->hooks.prolog_done = done;
    if (!t->hooks.run && !start(t, "prolog", t->common->prolog, on_prolog, why))
        done(t, why);
    return true;
}

void task_hooks_cancel_prolog(struct task *t)
{
    if (!t->hooks.has_epilog_begun)
        runner_cancel(t->common->runner, t->hooks.run);
}

static void epilog_over(struct task *t, const char *why)
{
    if (why[0])
        t->common->node_faulty(t->common->ctx, why);
    task_end_now(t, t->hooks.end, t->hooks.code, t->hooks.text);
}

static void on_epilog(void *ctx, const struct err *e, const struct runner_result *result)
{
    struct task *t = ctx;
    char why[256];
    t->hooks.run = NULL;
    if (t->released)
        return;
    describe("epilog", e, result, why);
    epilog_over(t, why);
}

bool task_hooks_epilog(struct task *t, enum wire_end end, int64_t code, const char *text)
{
    char why[256];
    if (t->hooks.has_epilog_begun)
        return t->hooks.run != NULL;
    if (!t->common->epilog || !t->supervision.has_exit || t->common->notice->kind == NOTICE_RECLAIM)
        return false;
    t->hooks.has_epilog_begun = true;
    t->hooks.end = end;
    t->hooks.code = code;
    STR_SHORTEN(t->hooks.text, text);
    if (!start(t, "epilog", t->common->epilog, on_epilog, why))
        epilog_over(t, why);
    return true;
}

void task_hooks_release(struct task *t)
{
    runner_cancel(t->common->runner, t->hooks.run);
}
