/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/digest.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/daily.h"
#include "job/notify_address.h"
#include "scheduler/config/readers.h"
#include <stdlib.h>
#include <string.h>

#define AT_DEFAULT "07:00"
#define AT_DEFAULT_MINUTE (7 * 60)

static void read_at(struct yaml_reader *r, struct digest_options *o)
{
    const char *at = yaml_opt_str(r, "at", 16, AT_DEFAULT);
    char shown[STR_SHOW_MAX];
    int minute = 0;
    if (r->rc == 0 && !daily_parse_time(at, strlen(at), &minute))
        yaml_reader_fail(r, yaml_opt(r, "at"),
            "expected a time of the day, \"HH:MM\" in quotes, found %s", str_show(at, shown));
    o->at_minute = minute;
}

static void read_mails(struct yaml_reader *r, struct config_digest *c)
{
    const struct yaml_node *seq = yaml_opt_seq(r, "mail", DIGEST_MAILS_MAX);
    struct err why;
    for (size_t k = 0; seq && k < seq->n_items && r->rc == 0; k++) {
        const struct yaml_node *item = seq->items[k];
        if (item->type != YAML_SCALAR)
            yaml_reader_fail(r, item, "mail: expected an address");
        else if (notify_check_address(item->text, &why) != 0)
            yaml_reader_fail(r, item, "mail: %s", why.text);
        else
            c->mails[c->options.n_mails++] = mem_strdup(item->text);
    }
}

void config_read_digest(struct yaml_reader *root, struct config_digest *ret)
{
    const struct yaml_node *map = yaml_opt_map(root, "digest");
    struct yaml_reader r;
    *ret = (struct config_digest){.options.at_minute = AT_DEFAULT_MINUTE, .tz = ZONE_UTC};
    if (!map || root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    ret->is_set = true;
    read_at(&r, &ret->options);
    config_opt_zone(&r, ret->tz);
    read_mails(&r, ret);
    ret->when_empty = config_opt_truth(&r, "when_empty", false);
    yaml_reader_finish_in(root, &r);
}

void config_digest_deinit(struct config_digest *c)
{
    for (int k = 0; k < DIGEST_MAILS_MAX; k++)
        free(c->mails[k]);
    *c = (struct config_digest){0};
}
