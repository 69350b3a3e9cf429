/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/notify.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/notify_address.h"
#include <stdlib.h>
#include <string.h>

#define SENDMAIL "/usr/sbin/sendmail"
#define PAGERDUTY_URL "https://events.pagerduty.com/v2/enqueue"

static char *opt_path(struct yaml_reader *r, const char *key)
{
    const struct yaml_node *node = yaml_opt(r, key);
    const char *path = yaml_opt_str(r, key, 1024, NULL);
    if (path && path[0] != '/')
        yaml_reader_fail(r, node, "expected an absolute path, found %s",
            str_show(path, (char[STR_SHOW_MAX]){0}));
    return mem_strdup(path);
}

/* Returns the bit of an event's name, 0 if the name is unknown. */
static int32_t event_bit(const char *word)
{
    if (str_eq(word, "array-tasks"))
        return NOTIFY_ARRAY_TASKS;
    for (int k = 0; k < NOTIFY_EVENTS; k++)
        if (str_eq(word, notify_event_names[k]))
            return 1 << k;
    return 0;
}

static int32_t read_events(struct yaml_reader *r)
{
    const struct yaml_node *list = yaml_opt_seq(r, "events", NOTIFY_EVENTS + 1);
    int32_t events = 0;
    if (!list)
        return 1 << NOTIFY_BEGIN | 1 << NOTIFY_END | 1 << NOTIFY_FAIL | 1 << NOTIFY_REQUEUE |
               1 << NOTIFY_BUDGET | 1 << NOTIFY_BOOTS | 1 << NOTIFY_LATE | 1 << NOTIFY_IDLE_GPUS |
               1 << NOTIFY_NODE_DRAINED | 1 << NOTIFY_DIGEST | 1 << NOTIFY_SPEND;
    for (size_t i = 0; i < list->n_items && r->rc == 0; i++) {
        const struct yaml_node *item = list->items[i];
        int32_t bit = item->type == YAML_SCALAR ? event_bit(item->text) : 0;
        if (!bit)
            yaml_reader_fail(r, item,
                "events: expected begin, end, fail, requeue, time-limit, time-limit-50, -80, -90, "
                "invalid-depend, budget, boots-fail, late, idle-gpus, node-drained, digest, "
                "spend or array-tasks");
        events |= bit;
    }
    return events;
}

/* One destination: a URL, or an address, which takes mail only. */
static void check_destination(struct yaml_reader *r, const struct config_hook *f)
{
    struct err why;
    int n = (f->url != NULL) + (f->url_file != NULL) + (f->mail_to != NULL);
    if (r->rc == 0 && n != 1)
        yaml_reader_fail(
            r, NULL, "a webhook needs one of url, url_file (a file with it) and mail_to");
    if (r->rc == 0 && f->url && notify_check_url(f->url, NULL, &why) != 0)
        yaml_reader_fail(r, yaml_opt(r, "url"), "%s", why.text);
    if (r->rc == 0 && f->mail_to && notify_check_address(f->mail_to, &why) != 0)
        yaml_reader_fail(r, yaml_opt(r, "mail_to"), "%s", why.text);
    if (r->rc == 0 && f->mail_to && (f->format != NOTIFY_JSON || f->secret_file))
        yaml_reader_fail(r, yaml_opt(r, "mail_to"),
            "format, secret_file and routing_key_file are for URLs: leave them out");
}

/* The keys that go with the format. */
static void check_format(struct yaml_reader *r, struct config_hook *f)
{
    bool pages = f->format == NOTIFY_PAGERDUTY;
    if (r->rc == 0 && pages && !f->url && !f->url_file && !f->mail_to)
        f->url = mem_strdup(PAGERDUTY_URL);
    if (r->rc == 0 && pages && !f->key_file)
        yaml_reader_fail(r, NULL,
            "format pagerduty needs routing_key_file: a file of mode 0600 with the integration key "
            "of an Events API v2 integration");
    if (r->rc == 0 && !pages && f->key_file)
        yaml_reader_fail(r, yaml_opt(r, "routing_key_file"), "is for format pagerduty");
    if (r->rc == 0 && f->format != NOTIFY_JSON && f->secret_file)
        yaml_reader_fail(r, yaml_opt(r, "secret_file"),
            "is for format json: %s checks no signatures", notify_format_names[f->format]);
}

static void read_hook(struct yaml_reader *root, const struct yaml_node *node, struct notify_hook *h,
    struct config_hook *f)
{
    struct yaml_reader r;
    yaml_reader_init(&r, root->file, node, root->e);
    if (!str_is_name(node->key, CORE_NAME_MAX - 1))
        yaml_reader_fail(&r, node,
            "%s is not the name of a webhook: letters, digits, '.', '_', '-'",
            str_show(node->key, (char[STR_SHOW_MAX]){0}));
    STR_COPY(h->name, node->key);
    f->url = mem_strdup(yaml_opt_str(&r, "url", NOTIFY_URL_MAX, NULL));
    f->url_file = opt_path(&r, "url_file");
    f->mail_to = mem_strdup(yaml_opt_str(&r, "mail_to", NOTIFY_ADDRESS_MAX, NULL));
    f->secret_file = opt_path(&r, "secret_file");
    f->key_file = opt_path(&r, "routing_key_file");
    f->format = (enum notify_format)yaml_opt_enum(&r, "format", notify_format_names, NOTIFY_JSON);
    check_format(&r, f);
    h->events = read_events(&r);
    check_destination(&r, f);
    yaml_reader_finish_in(root, &r);
}

static void read_hooks(struct yaml_reader *root, struct config_notify *c)
{
    const struct yaml_node *map = yaml_opt_map(root, "webhooks");
    if (map && root->rc == 0 && map->n_items > NOTIFY_HOOKS_MAX)
        yaml_reader_fail(
            root, map, "webhooks: at most %d, found %zu", NOTIFY_HOOKS_MAX, map->n_items);
    for (size_t i = 0; map && i < map->n_items && root->rc == 0; i++, c->n_hooks++)
        read_hook(root, map->items[i], &c->hooks[i], &c->files[i]);
}

static void read_mail(struct yaml_reader *root, struct config_notify *c)
{
    const struct yaml_node *map = yaml_opt_map(root, "mail");
    struct yaml_reader r;
    struct err why;
    c->from = mem_strdup("belay");
    c->sendmail = mem_strdup(SENDMAIL);
    if (!map || root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    const char *smtp = yaml_opt_str(&r, "smtp", 512, NULL),
               *user = yaml_opt_str(&r, "user", 256, NULL);
    const char *from = yaml_opt_str(&r, "from", NOTIFY_ADDRESS_MAX, "belay");
    if (r.rc == 0 && smtp && !str_starts(smtp, "smtp://") && !str_starts(smtp, "smtps://"))
        yaml_reader_fail(
            &r, yaml_opt(&r, "smtp"), "expected smtps://HOST[:PORT] or smtp://HOST[:PORT]");
    if (r.rc == 0 && smtp && strpbrk(smtp, "@\"' \\\t"))
        yaml_reader_fail(&r, yaml_opt(&r, "smtp"),
            "user and password are keys of their own: user, password_file");
    if (r.rc == 0 && notify_check_address(from, &why) != 0)
        yaml_reader_fail(&r, yaml_opt(&r, "from"), "%s", why.text);
    free(c->from);
    c->from = mem_strdup(from);
    c->smtp = mem_strdup(smtp);
    c->user = mem_strdup(user);
    c->password_file = opt_path(&r, "password_file");
    c->ca_file = opt_path(&r, "ca_file");
    char *sendmail = opt_path(&r, "sendmail");
    if (r.rc == 0 && smtp && sendmail)
        yaml_reader_fail(&r, yaml_opt(&r, "sendmail"),
            "mail goes by smtp or by sendmail: leave one of them out");
    if (r.rc == 0 && (user || c->password_file || c->ca_file) && !smtp)
        yaml_reader_fail(&r, NULL, "user, password_file and ca_file are for smtp");
    if (r.rc == 0 && !user != !c->password_file)
        yaml_reader_fail(&r, NULL,
            "user and password_file belong together: add %s, or leave both out for a server that "
            "asks for none",
            user ? "password_file, a file of mode 0600 with the password" : "user");
    if (sendmail) {
        free(c->sendmail);
        c->sendmail = sendmail;
        c->names_sendmail = true;
    }
    yaml_reader_finish_in(root, &r);
}

static void read_allow(struct yaml_reader *root, struct config_notify *c)
{
    const struct yaml_node *list = yaml_opt_seq(root, "notify_allow", NOTIFY_ALLOW_MAX);
    struct err why;
    for (size_t i = 0; list && i < list->n_items && root->rc == 0; i++)
        if (list->items[i]->type != YAML_SCALAR)
            yaml_reader_fail(
                root, list->items[i], "notify_allow: expected a host or a range of addresses");
        else if (notify_guard_add(&c->guard, list->items[i]->text, &why) != 0)
            yaml_reader_fail(root, list->items[i], "notify_allow: %s", why.text);
}

void config_read_notify(struct yaml_reader *root, struct config_notify *ret)
{
    *ret = (struct config_notify){0};
    read_hooks(root, ret);
    read_mail(root, ret);
    read_allow(root, ret);
}

void config_notify_deinit(struct config_notify *c)
{
    for (size_t i = 0; i < NOTIFY_HOOKS_MAX; i++) {
        free(c->files[i].url);
        free(c->files[i].url_file);
        free(c->files[i].mail_to);
        free(c->files[i].secret_file);
        free(c->files[i].key_file);
    }
    free(c->smtp);
    free(c->sendmail);
    free(c->from);
    free(c->user);
    free(c->password_file);
    free(c->ca_file);
    *c = (struct config_notify){0};
}
