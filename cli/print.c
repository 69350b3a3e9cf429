/* SPDX-License-Identifier: Apache-2.0
 *
 * Printing: errors, JSON, and members of JSON for people.
 */
#include "cli/cli.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vformat.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void cli_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("belay: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
}

void cli_warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("belay: warning: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
}

void cli_print_json(const json_t *v)
{
    size_t escapes = isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0;
    json_dumpf(v, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY | escapes);
    fputc('\n', stdout);
}

void cli_print_empty(const char *text)
{
    if (isatty(STDOUT_FILENO))
        fprintf(stderr, "%s\n", text);
}

/* ---- members ---- */

const char *cli_string(const json_t *v)
{
    const char *s = json_string_value(v);
    if (s && str_has_control(s))
        str_sanitize((char *)(uintptr_t)s, strlen(s)); /* of the same length, so v stays valid */
    return s;
}

void cli_print_lines(const char *text, int indent)
{
    char *copy = mem_strdup(text), *rest = copy;
    while (rest && *rest) {
        char *line = strsep(&rest, "\n");
        str_sanitize(line, strlen(line));
        printf("%*s%s\n", line[0] ? indent : 0, "", line);
    }
    free(copy);
}

bool cli_is_remove(const char *word)
{
    static const char *const words[] = {"remove", "rm", "delete", NULL};
    return str_is_one_of(word, words);
}

const char *cli_text(const json_t *o, const char *key)
{
    const char *s = cli_string(json_object_get(o, key));
    return s && s[0] ? s : "-";
}

const char *cli_name(const char *name, char mem[CLI_NAME_MAX])
{
    snprintf(mem, CLI_NAME_MAX, "%s", name);
    str_sanitize(mem, strlen(mem));
    return mem;
}

void cli_words(const json_t *v, struct buf *out)
{
    size_t i, from = out->len;
    const char *name;
    char shown[CLI_NAME_MAX];
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)v, i, item)
        buf_printf(out, "%s%s", out->len > from ? "," : "", cli_string(item));
    json_object_foreach((json_t *)(uintptr_t)v, name, item) buf_printf(out, "%s%s:%lld",
        out->len > from ? "," : "", cli_name(name, shown), (long long)json_integer_value(item));
}

int64_t cli_int(const json_t *o, const char *key, int64_t fallback)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) ? json_integer_value(v) : fallback;
}

struct wall cli_time(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    struct wall at;
    return text && time_parse_iso(text, &at, NULL) == 0 ? at : WALL_NONE;
}

const char *cli_ago(const json_t *o, const char *key, char *mem, size_t size)
{
    struct wall then = cli_time(o, key);
    if (!wall_is_set(then))
        return "-";
    int64_t ms = clock_wall(&clock_system).ms - then.ms;
    time_format_duration(ms > 0 ? ms : 0, mem, size);
    return mem;
}

const char *cli_local(struct wall at, bool full, char mem[CLI_LOCAL_MAX])
{
    time_t then = (time_t)(at.ms / 1000), now = (time_t)(clock_wall(&clock_system).ms / 1000);
    struct tm tm, today;
    if (!wall_is_set(at) || !localtime_r(&then, &tm) || !localtime_r(&now, &today))
        return "-";
    bool is_today = tm.tm_year == today.tm_year && tm.tm_yday == today.tm_yday;
    const char *form = full ? "%Y-%m-%d %H:%M:%S" : is_today ? "%H:%M" : "%Y-%m-%d %H:%M";
    return strftime(mem, CLI_LOCAL_MAX, form, &tm) > 0 ? mem : "-";
}

const char *cli_when(const json_t *o, const char *key, char mem[CLI_LOCAL_MAX])
{
    return cli_local(cli_time(o, key), true, mem);
}

const char *cli_duration(int64_t ms, char *mem, size_t size)
{
    time_format_duration(ms, mem, size);
    return mem;
}

const char *cli_usd(int64_t uusd, char *mem, size_t size)
{
    str_format_usd(uusd, mem, size);
    return mem;
}

const char *cli_count(int64_t n, const char *one, char mem[CLI_COUNT_MAX])
{
    snprintf(mem, CLI_COUNT_MAX, "%lld %s%s", (long long)n, one, n == 1 ? "" : "s");
    return mem;
}

const char *cli_saved(int64_t cost_uusd, int64_t on_demand_uusd, char *mem, size_t size)
{
    long percent = lround(100.0 * (double)(on_demand_uusd - cost_uusd) / (double)on_demand_uusd);
    if (percent < 0)
        snprintf(mem, size, "%ld %% more", -percent);
    else
        snprintf(mem, size, "saved %ld %%", percent);
    return mem;
}
