/* SPDX-License-Identifier: Apache-2.0
 *
 * See compare.h. The command runs here, as its user and with the user's software: neither belayd
 * nor a node's agent runs user programs outside of jobs. Its standard output goes to our standard
 * error, so that --json stays JSON.
 */
#include "cli/reports/compare.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "cli/checkpoint_store.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANNOT_RUN 126 /* sh: 126 not executable, 127 not found, 128 + signal number */

/* ---- the undisturbed job ---- */

static int get_job(struct client *c, int64_t id, json_t **ret_job, struct err *e)
{
    int rc = client_json(c, "GET", CLI_PATH("/api/v1/jobs/%lld", (long long)id), NULL, ret_job, e);
    return rc;
}

static const char *method_of(const json_t *shown)
{
    return cli_text(json_object_get(json_object_get(shown, "job"), "checkpoint"), "method");
}

/* Whether script, arguments and checkpoint method are equal. The environment may differ, for
 * example in a path for output. */
static bool is_same_work(const json_t *one, const json_t *other)
{
    const json_t *a = json_object_get(one, "spec"), *b = json_object_get(other, "spec");
    return json_equal(json_object_get(a, "script"), json_object_get(b, "script")) &&
           json_equal(json_object_get(a, "args"), json_object_get(b, "args")) &&
           str_eq(method_of(one), method_of(other));
}

int compare_check(struct client *c, const struct compare *w, int64_t job, struct err *e)
{
    json_t *drilled = NULL, *other = NULL;
    int rc = get_job(c, job, &drilled, e);
    if (rc == 0)
        rc = get_job(c, w->against, &other, e);
    const json_t *ended = json_object_get(other, "job");
    if (rc == 0 &&
        (!str_eq(cli_text(ended, "end"), "succeeded") || cli_int(ended, "attempts", 0) != 1))
        rc = err_set(e, ERR_INVALID,
            "job %s (%s, %lld attempts) has not succeeded in a single attempt: --against takes "
            "an uninterrupted run of the same script: submit the script again, for example with "
            "--market on-demand, and wait for its end",
            w->against_name, cli_text(ended, "state"), (long long)cli_int(ended, "attempts", 0));
    else if (rc == 0 && (!json_is_object(json_object_get(drilled, "spec")) ||
                            !json_is_object(json_object_get(other, "spec"))))
        rc = err_set(e, ERR_DENIED,
            "jobs %s and %s are not both yours: only their user can compare them", w->job_name,
            w->against_name);
    else if (rc == 0 && !is_same_work(drilled, other))
        rc = err_set(e, ERR_INVALID,
            "jobs %s and %s differ in script, arguments or checkpoint method: their results "
            "cannot be compared",
            w->job_name, w->against_name);
    json_decref(drilled);
    json_decref(other);
    return rc;
}

/* ---- the command ---- */

static void exec_command(const char *command, const char *undisturbed, const char *resumed)
{
    char *script = mem_printf("%s \"$@\"", command);
    const char *argv[] = {"sh", "-c", script, "sh", undisturbed, resumed, NULL};
    setpgid(0, 0);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execv("/bin/sh", (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* *ret_code: the exit code, or 128 + signal number. */
static int run_command(const struct compare *w, const char *undisturbed, const char *resumed,
    int *ret_code, struct err *e)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        exec_command(w->command, undisturbed, resumed);
    int fd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0 && pid < 0)
        return err_errno(e, errno, "cannot start the command of --compare");
    setpgid(pid, pid); /* in both processes, to avoid a race */
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = fd < 0 ? 0 : poll(&p, 1, (int)w->limit_ms);
    kill(-pid, SIGKILL); /* including leftover processes */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return err_set(e, ERR_TIMEOUT,
            "the command of --compare did not end within %lld s, and was killed: --compare-limit "
            "raises the limit",
            (long long)w->limit_ms / 1000);
    *ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return *ret_code < CANNOT_RUN ? 0
                                  : err_set(e, ERR_INVALID,
                                        "the command of --compare could not be run to its end "
                                        "(exit code %d), so the results were not compared",
                                        *ret_code);
}

/* ---- both results ---- */

static int report(
    struct client *c, const struct compare *w, int64_t job, int64_t drill, int code, struct err *e)
{
    char text[64] = "";
    if (code != 0)
        snprintf(text, sizeof(text), "--compare ended with exit code %d", code);
    json_t *reply = NULL, *body = json_pack("{s:I,s:I,s:b,s:s}", "number", (json_int_t)drill,
                              "with", (json_int_t)w->against, "equal", code == 0, "text", text);
    const char *path = CLI_PATH("/api/v1/jobs/%lld/compared", (long long)job);
    int rc = client_json(c, "POST", path, body, &reply, e);
    json_decref(reply);
    json_decref(body);
    return rc;
}

static int fetch(
    int64_t job, const char *name, const char *dir, int64_t *ret_progress, struct err *e)
{
    int rc = checkpoints_get_newest(job, dir, ret_progress, e);
    if (rc == ERR_NOT_FOUND)
        return err_set(e, rc,
            "job %s has left no checkpoint to compare: the program has to commit its result as "
            "the last thing it does, and "
            "--checkpoints-after (last, all) has to keep it",
            name);
    return rc;
}

static int compare_in(struct client *c, const struct compare *w, int64_t job, int64_t drill,
    const char *dir, struct err *e)
{
    int64_t steps[2] = {-1, -1};
    int code = 0;
    char *undisturbed = mem_printf("%s/undisturbed", dir), *resumed = mem_printf("%s/resumed", dir);
    int rc = fetch(w->against, w->against_name, undisturbed, &steps[0], e);
    if (rc == 0)
        rc = fetch(job, w->job_name, resumed, &steps[1], e);
    if (rc == 0 && steps[0] != steps[1])
        rc = err_set(e, ERR_CONFLICT,
            "the last checkpoint of job %s is of step %lld and that of job %s of step %lld: "
            "the program has to commit its "
            "result as the last thing it does",
            w->against_name, (long long)steps[0], w->job_name, (long long)steps[1]);
    if (rc == 0)
        rc = run_command(w, undisturbed, resumed, &code, e);
    if (rc == 0)
        rc = report(c, w, job, drill, code, e);
    free(undisturbed);
    free(resumed);
    return rc;
}

int compare_run(
    struct client *c, const struct compare *w, int64_t job, int64_t drill, struct err *e)
{
    const char *base = getenv("TMPDIR");
    struct err ignored;
    char unique[17];
    random_hex(8, unique);
    char *dir = mem_printf("%s/belay-compare.%s", base && base[0] ? base : "/tmp", unique);
    int rc = mkdir(dir, 0700) != 0 ? err_errno(e, errno, "cannot make %s for the results", dir)
                                   : compare_in(c, w, job, drill, dir, e);
    fs_remove_tree(dir, &ignored);
    free(dir);
    return rc;
}
