/* SPDX-License-Identifier: Apache-2.0
 *
 * Accounts on the nodes of a pool (see run_as.h). None may be root's: a job is never given more
 * than its user has.
 */
#include "scheduler/config/run_as.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

/* The least is the lowest that is a person's: a node runs no jobs of system users. */
#define UID_LEAST 1000
#define UID_MOST 2000000000

static void read_account(
    struct yaml_reader *r, const struct yaml_node *node, char account[CORE_NAME_MAX])
{
    const char *name = node->type == YAML_SCALAR ? node->text : "";
    char shown[STR_SHOW_MAX];
    if (str_eq(name, "root"))
        yaml_reader_fail(r, node, "run_as: jobs of users do not run as root: name another account");
    else if (!str_is_name(name, CORE_NAME_MAX - 1))
        yaml_reader_fail(r, node, "run_as: expected the name of an account on the nodes, found %s",
            node->type == YAML_SCALAR ? str_show(name, shown) : "something else");
    else
        str_copy(account, CORE_NAME_MAX, name);
}

static void read_user(struct yaml_reader *r, const struct yaml_node *node, struct run_as *o)
{
    char shown[STR_SHOW_MAX];
    if (str_eq(node->key, "*")) {
        read_account(r, node, o->others);
        return;
    }
    struct run_as_user *u = &o->users[o->n_users++];
    if (!str_is_name(node->key, CORE_NAME_MAX - 1))
        yaml_reader_fail(r, node, "run_as: expected the name of a user or *, found %s",
            str_show(node->key, shown));
    STR_COPY(u->user, node->key);
    read_account(r, node, u->account);
}

void config_read_run_as(struct yaml_reader *r, struct run_as *ret_run_as)
{
    const struct yaml_node *node = yaml_opt(r, "run_as");
    struct run_as o = {0};
    if (node && r->rc == 0 && node->type != YAML_MAPPING)
        read_account(r, node, o.others);
    else if (node && r->rc == 0 && node->n_items > RUN_AS_USERS_MAX)
        yaml_reader_fail(
            r, node, "run_as: at most %d users, found %zu", RUN_AS_USERS_MAX, node->n_items);
    else if (node && r->rc == 0) {
        o.users = mem_array(node->n_items, sizeof(*o.users));
        for (size_t i = 0; i < node->n_items && r->rc == 0; i++)
            read_user(r, node->items[i], &o);
    }
    *ret_run_as = o;
}

void run_as_deinit(struct run_as *o)
{
    free(o->users);
    *o = (struct run_as){0};
}

const char *run_as_account(const struct run_as *o, const char *user)
{
    for (size_t i = 0; i < o->n_users; i++)
        if (str_eq(o->users[i].user, user))
            return o->users[i].account;
    return o->others[0] ? o->others : user;
}

static void read_new_account(
    struct yaml_reader *r, const struct yaml_node *node, struct new_accounts *o)
{
    struct new_account *a = &o->a[o->n];
    char shown[STR_SHOW_MAX];
    struct err e;
    if (!str_is_name(node->key, CORE_NAME_MAX - 1) || str_eq(node->key, "root"))
        yaml_reader_fail(r, node, "create_accounts: expected the name of an account, found %s",
            str_show(node->key, shown));
    else if (node->type != YAML_SCALAR ||
             str_to_i64(node->text, UID_LEAST, UID_MOST, "uid", &a->uid, &e) != 0)
        yaml_reader_fail(r, node,
            "create_accounts: expected the number (uid) of %s, %d to %d, found %s", node->key,
            UID_LEAST, UID_MOST,
            node->type == YAML_SCALAR ? str_show(node->text, shown) : "something else");
    STR_COPY(a->name, node->key);
    for (size_t i = 0; i < o->n && r->rc == 0; i++)
        if (o->a[i].uid == a->uid)
            yaml_reader_fail(
                r, node, "create_accounts: %s and %s have the same number", o->a[i].name, a->name);
    o->n++;
}

void config_read_new_accounts(struct yaml_reader *r, struct new_accounts *ret_accounts)
{
    const struct yaml_node *node = yaml_opt(r, "create_accounts");
    struct new_accounts o = {0};
    if (node && r->rc == 0 && node->type != YAML_MAPPING)
        yaml_reader_fail(
            r, node, "create_accounts: expected accounts with their numbers, as {ann: 2001}");
    else if (node && r->rc == 0 && node->n_items > CREATE_ACCOUNTS_MAX)
        yaml_reader_fail(r, node,
            "create_accounts: at most %d accounts, found %zu: let users share one (run_as), or "
            "make an image with all",
            CREATE_ACCOUNTS_MAX, node->n_items);
    else if (node && r->rc == 0) {
        o.a = mem_array(node->n_items, sizeof(*o.a));
        for (size_t i = 0; i < node->n_items && r->rc == 0; i++)
            read_new_account(r, node->items[i], &o);
    }
    *ret_accounts = o;
}

void new_accounts_deinit(struct new_accounts *o)
{
    free(o->a);
    *o = (struct new_accounts){0};
}
