/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shutdown.h"

#include "base/str.h"

#include <string.h>
#include <utmpx.h>

#define ANSWER_MS 3000
#define ANSWER_BYTES_MAX 256

enum shutdown_answer shutdown_read_answer(const char *text, size_t n)
{
    static const char *const up[] = {
        "initializing", "starting", "running", "degraded", "maintenance"};
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    if (n == strlen("stopping") && memcmp(text, "stopping", n) == 0)
        return SHUTDOWN_YES;
    for (size_t i = 0; i < sizeof(up) / sizeof(up[0]); i++)
        if (n == strlen(up[i]) && memcmp(text, up[i], n) == 0)
            return SHUTDOWN_NO;
    return SHUTDOWN_UNKNOWN;
}

/* For inits that record a run level. */
static bool run_level_is_down(void)
{
    const struct utmpx query = {.ut_type = RUN_LVL};
    setutxent();
    const struct utmpx *found = getutxid(&query);
    char level = found ? (char)(found->ut_pid & 0xff) : 'N';
    endutxent();
    return level == '0' || level == '6';
}

static void on_answer(void *ctx, const struct err *e, const struct runner_result *result)
{
    struct shutdown *s = ctx;
    enum shutdown_answer answer = SHUTDOWN_UNKNOWN;
    s->run = NULL;
    if (e && e->kind == ERR_CANCELLED) {
        s->done(s->ctx, false, "cancelled");
        return;
    }
    if (result)
        answer = shutdown_read_answer(buf_str(&result->output), result->output.len);
    if (e && e->kind == ERR_TIMEOUT)
        s->done(s->ctx, true, "systemctl does not answer");
    else if (answer == SHUTDOWN_UNKNOWN)
        s->done(s->ctx, run_level_is_down(), "by the run level");
    else
        s->done(s->ctx, answer == SHUTDOWN_YES, "by systemd");
}

void shutdown_ask(struct shutdown *s, struct runner *runner, shutdown_fn done, void *ctx)
{
    static const char *const argv[] = {"systemctl", "is-system-running", NULL};
    const struct runner_command c = {
        .argv = argv, .timeout_ms = ANSWER_MS, .max_output_bytes = ANSWER_BYTES_MAX};
    s->done = done;
    s->ctx = ctx;
    s->run = runner_start(runner, &c, on_answer, s);
}
