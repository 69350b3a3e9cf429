/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/windows.h"

#include "job/cron.h"
#include "job/daily.h"
#include "scheduler/config/readers.h"
#include "base/mem.h"
#include "base/str.h"
#include <string.h>

/* Reads days as in a crontab: "mon-fri", "sat,sun". */
static void read_days(struct yaml_reader *r, struct window *w)
{
    const struct yaml_node *node = yaml_opt(r, "days");
    const char *text = yaml_opt_str(r, "days", 64, "*");
    char schedule[96] = "0 0 * * ", shown[STR_SHOW_MAX];
    struct cron c;
    struct err why;
    if (r->rc != 0)
        return;
    strncat(schedule, text, 64);
    if (strpbrk(text, " \t") || cron_parse(schedule, &c, &why) != 0)
        yaml_reader_fail(
            r, node, "expected days such as mon-fri or sat,sun, found %s", str_show(text, shown));
    else
        w->days = c.weekdays;
}

static int opt_minutes(struct yaml_reader *r, const char *key)
{
    const struct yaml_node *node = yaml_opt(r, key);
    const char *text = yaml_req_str(r, key, 16);
    char shown[STR_SHOW_MAX];
    int minutes = 0;
    if (r->rc == 0 && !daily_parse_time(text, strlen(text), &minutes))
        yaml_reader_fail(r, node, "expected a time of the day such as \"20:00\", found %s",
            str_show(text, shown));
    return minutes;
}

void config_read_window(struct yaml_reader *r, const struct yaml_node *node,
    struct window *ret_window, char ret_tz[ZONE_NAME_MAX])
{
    config_is_named(r, node, "a window", WINDOW_NAME_MAX - 1);
    STR_COPY(ret_window->name, node->key);
    read_days(r, ret_window);
    ret_window->from_min = opt_minutes(r, "from");
    ret_window->to_min = opt_minutes(r, "to");
    config_opt_zone(r, ret_tz);
}

static void read_window(
    struct yaml_reader *root, const struct yaml_node *node, struct config_window *c)
{
    struct yaml_reader r;
    yaml_reader_init(&r, root->file, node, root->e);
    config_read_window(&r, node, &c->window, c->tz);
    yaml_reader_finish_in(root, &r);
}

void config_read_windows(
    struct yaml_reader *root, struct config_window **ret_windows, size_t *ret_n)
{
    const struct yaml_node *map = config_opt_entries(root, "windows", CONFIG_WINDOWS_MAX);
    *ret_windows = NULL;
    *ret_n = 0;
    if (!map)
        return;
    *ret_windows = mem_array(map->n_items, sizeof(**ret_windows));
    for (size_t k = 0; k < map->n_items && root->rc == 0; k++)
        read_window(root, map->items[k], &(*ret_windows)[(*ret_n)++]);
}
