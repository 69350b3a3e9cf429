/* SPDX-License-Identifier: Apache-2.0
 *
 * See grace.h.
 */
#include "cli/flags/grace.h"

#include "base/str.h"
#include "cli/flags/directives.h"
#include "job/attributes.h"
#include <signal.h>
#include <string.h>
#include <strings.h>

#define SECONDS_DEFAULT 60
#define SECONDS_MAX 65535

static const struct {
    const char *name;
    int number;
} signals[] = {{"HUP", SIGHUP}, {"INT", SIGINT}, {"QUIT", SIGQUIT}, {"ABRT", SIGABRT},
    {"KILL", SIGKILL}, {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
    {"URG", SIGURG}, {"CONT", SIGCONT}, {"STOP", SIGSTOP}, {"TSTP", SIGTSTP}, {"TTIN", SIGTTIN},
    {"TTOU", SIGTTOU}, {"WINCH", SIGWINCH}};

int grace_signal(const char *name)
{
    int64_t n;
    if (str_to_i64(name, 1, job_attribute_max("checkpoint.signal"), "signal", &n, NULL) == 0)
        return (int)n;
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (strcasecmp(signals[i].name, name) == 0)
            return signals[i].number;
    return 0;
}

static bool can_be_handled(int number)
{
    return number != SIGKILL && number != SIGSTOP;
}

/* Reads the n bytes before the colon. */
static int parse_flags(const char *value, size_t n, bool *ret_script_only, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (value[i] == 'R' || value[i] == 'r')
            return err_set(e, ERR_UNSUPPORTED,
                "R: is for reservations, which belay does not have: leave R out");
    if (n == 0)
        return 0;
    if (n > 1 || (value[0] != 'B' && value[0] != 'b'))
        return err_set(e, ERR_INVALID, "expected [B:]SIGNAL[@SECONDS], found %s",
            str_show(value, (char[STR_SHOW_MAX]){0}));
    *ret_script_only = true;
    return 0;
}

int grace_parse(const char *value, json_t *spec, struct err *e)
{
    const char *colon = strchr(value, ':'), *start = colon ? colon + 1 : value;
    size_t n = strcspn(start, "@");
    char name[16] = "";
    bool script_only = false;
    int64_t seconds = SECONDS_DEFAULT;
    int rc = colon ? parse_flags(value, (size_t)(colon - value), &script_only, e) : 0;
    if (rc)
        return rc;
    if (n < sizeof(name))
        memcpy(name, start, n);
    int number = grace_signal(name);
    if (number == 0)
        return err_set(e, ERR_INVALID, "expected a signal, as USR1 or 10, found %s",
            str_show(value, (char[STR_SHOW_MAX]){0}));
    if (start[n] &&
        str_to_i64(start + n + 1, 0, SECONDS_MAX, "the seconds after @", &seconds, e) != 0)
        return ERR_INVALID;
    json_object_set_new(directive_object(spec, "launch"), "grace",
        json_pack("{s:i,s:I,s:b}", "signal", number, "before_ms", (json_int_t)(1000 * seconds),
            "script_only", (int)script_only));
    if (can_be_handled(number))
        json_object_set_new(directive_object(spec, "checkpoint"), "signal", json_integer(number));
    return 0;
}

static int number_in(const json_t *launch)
{
    return (int)json_integer_value(json_object_get(json_object_get(launch, "grace"), "signal"));
}

int grace_check(const json_t *spec, struct err *e)
{
    const char *method =
        json_string_value(json_object_get(json_object_get(spec, "checkpoint"), "method"));
    int number = number_in(json_object_get(spec, "launch"));
    if (method && str_eq(method, "signal") && !can_be_handled(number))
        return err_set(e, ERR_INVALID,
            "--signal: with --checkpoint signal it must be a signal that a program can handle, "
            "such as USR1");
    return 0;
}

void grace_format(const json_t *launch, struct buf *out)
{
    const json_t *grace = json_object_get(launch, "grace");
    int number = number_in(launch);
    const char *name = NULL;
    if (!json_is_object(grace))
        return;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (signals[i].number == number)
            name = signals[i].name;
    buf_adds(out, json_is_true(json_object_get(grace, "script_only")) ? "B:" : "");
    if (name)
        buf_adds(out, name);
    else
        buf_printf(out, "%d", number);
    buf_printf(
        out, "@%lld", (long long)(json_integer_value(json_object_get(grace, "before_ms")) / 1000));
}
