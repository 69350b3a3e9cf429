/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/calendars.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/config/readers.h"
#include <stdlib.h>

static void read_calendar(
    struct yaml_reader *root, const struct yaml_node *node, struct calendar *c)
{
    struct err why;
    if (!config_is_named(root, node, "a calendar", CALENDAR_NAME_MAX - 1))
        return;
    STR_COPY(c->name, node->key);
    if (node->type != YAML_SEQUENCE || node->n_items == 0 || node->n_items > CALENDAR_DAYS_MAX) {
        yaml_reader_fail(
            root, node, "expected a list of 1 to %d days, such as [2026-12-25]", CALENDAR_DAYS_MAX);
        return;
    }
    c->days = mem_array(node->n_items, sizeof(*c->days));
    for (size_t k = 0; root->rc == 0 && k < node->n_items; k++) {
        const struct yaml_node *item = node->items[k];
        if (calendar_parse(item->type == YAML_SCALAR ? item->text : "", &c->days[k], &why) != 0)
            yaml_reader_fail(root, item, "%s", why.text);
        c->n++;
    }
}

void config_read_calendars(struct yaml_reader *root, struct calendar **ret_calendars, size_t *ret_n)
{
    const struct yaml_node *map = config_opt_entries(root, "calendars", CONFIG_CALENDARS_MAX);
    *ret_calendars = NULL;
    *ret_n = 0;
    if (!map)
        return;
    *ret_calendars = mem_array(map->n_items, sizeof(**ret_calendars));
    for (size_t k = 0; k < map->n_items && root->rc == 0; k++)
        read_calendar(root, map->items[k], &(*ret_calendars)[(*ret_n)++]);
}

void config_calendars_free(struct calendar *calendars, size_t n)
{
    for (size_t k = 0; k < n; k++)
        free(calendars[k].days);
    free(calendars);
}
