/* SPDX-License-Identifier: Apache-2.0
 *
 * Slurm's formats of lists and times (see slurm.h). Pure, except for the machine's time zone.
 */
#include "cli/slurm/slurm.h"

#include "job/gpu.h"
#include "job/hosts.h"
#include "base/mem.h"
#include "base/str.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define SHOWN(text) str_show((text), (char[STR_SHOW_MAX]){0})

/* ---- lists ---- */

/* Up to a comma outside brackets: "42_[1,3],43". */
static size_t item_length(const char *p)
{
    size_t n = 0;
    for (bool inside = false; p[n] && (inside || p[n] != ','); n++)
        inside = p[n] == '[' || (inside && p[n] != ']');
    return n;
}

bool slurm_next_item(const char **list, struct buf *out)
{
    const char *p = *list;
    buf_clear(out);
    while (*p == ',' || isspace((unsigned char)*p))
        p++;
    size_t n = item_length(p);
    *list = p + n;
    while (n > 0 && isspace((unsigned char)p[n - 1]))
        n--;
    buf_add(out, p, n);
    buf_adds(out, "");
    return n > 0;
}

bool slurm_list_has(const char *list, const char *word)
{
    struct buf item = {0};
    bool found = !list;
    while (!found && slurm_next_item(&list, &item))
        found = strcasecmp(buf_str(&item), word) == 0;
    buf_deinit(&item);
    return found;
}

typedef bool (*has_fn)(const char *list, const char *word);

static bool list_has_any(const char *list, const char *words, has_fn has)
{
    struct buf item = {0};
    bool found = !list;
    while (!found && slurm_next_item(&words, &item))
        found = has(list, buf_str(&item));
    buf_deinit(&item);
    return found;
}

bool slurm_lists_intersect(const char *list, const char *words)
{
    return list_has_any(list, words, slurm_list_has);
}

static bool names_node(const char *hosts, const char *name)
{
    return slurm_list_has(hosts, name) || hosts_has(hosts, name);
}

bool slurm_hosts_intersect(const char *hosts, const char *names)
{
    return list_has_any(hosts, names, names_node);
}

bool slurm_is_hosts(const char *program, const char *text)
{
    struct err e;
    if (hosts_check(text, NULL, &e) == 0)
        return true;
    slurm_error(program, "Invalid node name specified: %s", e.text);
    return false;
}

bool slurm_is_this_cluster(const char *names)
{
    return strcasecmp(names, "all") == 0;
}

void slurm_each_index(const char *indexes, void (*on_index)(void *ctx, int64_t index), void *ctx)
{
    const char *p = indexes;
    while (*p >= '0' && *p <= '9') {
        char *end;
        int64_t from = strtoll(p, &end, 10), to = from, step = 1;
        if (*end == '-')
            to = strtoll(end + 1, &end, 10);
        if (*end == ':')
            step = strtoll(end + 1, &end, 10);
        for (int64_t i = from; i <= to && step > 0; i += step)
            on_index(ctx, i);
        p = *end == ',' ? end + 1 : end;
    }
}

void slurm_hosts_fold(const char *names, struct buf *out)
{
    struct err e;
    if (hosts_fold_into(names, out, &e) != 0)
        buf_adds(out, names);
}

/* Without the empty items that Slurm passes over and belay refuses: "a,,b," is "a,b". */
static void drop_empty_items(const char *list, struct buf *out)
{
    int depth = 0;
    for (const char *at = list; *at; at++) {
        depth += (*at == '[') - (*at == ']');
        bool ends_nothing = out->len == 0 || out->data[out->len - 1] == ',';
        if (*at != ',' || depth > 0 || !ends_nothing)
            buf_addc(out, *at);
    }
    if (out->len > 0 && out->data[out->len - 1] == ',')
        buf_truncate(out, out->len - 1);
}

int slurm_hosts_expand(const char *list, struct buf *out, struct err *e)
{
    struct hosts_at at = {0};
    struct buf items = {0};
    char name[HOSTS_NAME_MAX];
    drop_empty_items(list, &items);
    int rc = hosts_check(buf_str(&items), NULL, e);
    while (rc == 0 && hosts_next(buf_str(&items), &at, name))
        buf_printf(out, "%s\n", name);
    buf_deinit(&items);
    return rc;
}

/* ---- times ---- */

void slurm_time_used(int64_t ms, bool long_form, struct buf *out)
{
    if (ms == TIME_NONE_MS || ms < 0) {
        buf_adds(out, "INVALID");
        return;
    }
    long long s = ms / 1000, days = s / 86400, hours = s / 3600 % 24, minutes = s / 60 % 60;
    s %= 60;
    if (days > 0)
        buf_printf(out, "%lld-%02lld:%02lld:%02lld", days, hours, minutes, s);
    else if (long_form)
        buf_printf(out, "%02lld:%02lld:%02lld", hours, minutes, s);
    else if (hours > 0)
        buf_printf(out, "%lld:%02lld:%02lld", hours, minutes, s);
    else
        buf_printf(out, "%lld:%02lld", minutes, s);
}

void slurm_gres(const json_t *row, const char *before, struct buf *out)
{
    const char *name;
    json_t *n;
    size_t from = out->len;
    char slice[GPU_MODEL_MAX], shown[CLI_NAME_MAX];
    if (cli_int(row, "gpus", 0) > 0)
        buf_printf(out, "%sgpu:%s%s%lld", before,
            json_string_value(json_object_get(row, "gpu_model")) ? cli_text(row, "gpu_model") : "",
            json_string_value(json_object_get(row, "gpu_model")) ? ":" : "",
            (long long)cli_int(row, "gpus", 0));
    json_object_foreach(json_object_get(row, "resources"), name, n) buf_printf(out, "%s%s%s%s:%lld",
        out->len > from ? "," : "", before, gpu_slice(name, slice) ? "gpu:" : "",
        cli_name(name, shown), (long long)json_integer_value(n));
}

void slurm_time_limit(int64_t ms, bool long_form, struct buf *out)
{
    if (ms <= 0)
        buf_adds(out, "UNLIMITED");
    else
        slurm_time_used(ms, long_form, out);
}

void slurm_time_at(struct wall at, const char *fallback, struct buf *out)
{
    char text[64];
    struct tm tm;
    time_t t = (time_t)(at.ms / 1000);
    if (!wall_is_set(at) || !localtime_r(&t, &tm) ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        buf_adds(out, fallback);
    else
        buf_adds(out, text);
}

static struct wall from_tm(struct tm tm)
{
    tm.tm_isdst = -1;
    time_t t = mktime(&tm);
    return t == (time_t)-1 ? WALL_NONE : (struct wall){(int64_t)t * 1000};
}

/* Applies strptime to the whole text, on top of tm's current fields. */
static bool matches(const char *text, const char *form, struct tm *tm)
{
    struct tm copy = *tm;
    const char *end = strptime(text, form, &copy);
    if (!end || *end)
        return false;
    *tm = copy;
    return true;
}

/* "now", "now-2hours", "now+30" (seconds) */
static bool read_now(const char *text, struct wall now, struct wall *ret_at)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"second", 1000}, {"seconds", 1000}, {"m", 60000},
        {"minute", 60000}, {"minutes", 60000}, {"h", 3600000}, {"hour", 3600000},
        {"hours", 3600000}, {"d", 86400000}, {"day", 86400000}, {"days", 86400000},
        {"w", 604800000}, {"week", 604800000}, {"weeks", 604800000}};
    if (strncasecmp(text, "now", 3) != 0)
        return false;
    *ret_at = now;
    if (!text[3])
        return true;
    char digits[12] = "";
    size_t n = strspn(text + 4, "0123456789");
    if ((text[3] != '+' && text[3] != '-') || n == 0 || n > 9)
        return false;
    memcpy(digits, text + 4, n);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcasecmp(text + 4 + n, units[i].name) == 0) {
            int64_t by = strtoll(digits, NULL, 10) * units[i].ms;
            ret_at->ms += text[3] == '+' ? by : -by;
            return true;
        }
    return false;
}

static bool read_day_name(const char *text, struct tm today, struct wall *ret_at)
{
    static const struct {
        const char *name;
        int days, hour;
    } names[] = {{"today", 0, 0}, {"midnight", 0, 0}, {"noon", 0, 12}, {"elevenses", 0, 11},
        {"fika", 0, 15}, {"teatime", 0, 16}, {"yesterday", -1, 0}, {"tomorrow", 1, 0}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(text, names[i].name) == 0) {
            today.tm_mday += names[i].days;
            today.tm_hour = names[i].hour;
            *ret_at = from_tm(today);
            return true;
        }
    return false;
}

int slurm_time_parse(const char *text, struct wall now, struct wall *ret_at, struct err *e)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d",
        "%H:%M:%S", "%H:%M", "%m%d%y", "%m/%d/%y", "%m.%d.%y", "%m/%d", "%m.%d", "%m%d",
        "%m/%d-%H:%M:%S", "%m/%d-%H:%M", "%m/%d/%y-%H:%M:%S", "%m/%d/%y-%H:%M"};
    struct tm today;
    time_t t = (time_t)(now.ms / 1000);
    localtime_r(&t, &today);
    today.tm_hour = today.tm_min = today.tm_sec = 0;
    if (read_now(text, now, ret_at) || read_day_name(text, today, ret_at))
        return 0;
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; isdigit((unsigned char)*text) && i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm tm = today;
        if (!text[digits] && digits != (str_eq(forms[i], "%m%d") ? 4 : 6))
            continue; /* strptime accepts fewer digits */
        if (matches(text, forms[i], &tm)) {
            struct wall at = from_tm(tm);
            if (!wall_is_set(at))
                break;
            *ret_at = at;
            return 0;
        }
    }
    return err_set(e, ERR_INVALID,
        "expected a time like 2026-11-21T20:44, 20:44, now-2hours or today, found %s", SHOWN(text));
}
