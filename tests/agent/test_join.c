/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining, renewing the certificate, and the errors of both.
 */
#include "world.h"

#include "base/mem.h"
#include "base/str.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has_reported(struct world *w, int64_t n)
{
    return w->n_status > n;
}

static char *token_file(struct world *w, mode_t mode)
{
    char *path = mem_printf("%s/token", w->dir);
    world_write(path, "secret-of-the-file\n");
    chmod(path, mode);
    return path;
}

static void add_config(struct world *w, const char *key, const char *value)
{
    char *old = world_read(w->config);
    char *text = mem_printf("%s%s: %s\n", old, key, value);
    world_write(w->config, text);
    free(old);
    free(text);
}

static void a_token_file_is_deleted_after_the_join(void **state)
{
    struct world *w = world_create(state, "");
    char *path = token_file(w, 0600);
    add_config(w, "token_file", path);
    world_start_agent(w);
    world_until(w, has_reported, 0, "the node is there");
    assert_string_equal(w->join.token, "secret-of-the-file");
    assert_true(access(path, F_OK) < 0);
    assert_false(world_log_has(w, "secret-of-the-file"));
    free(path);
}

static void a_token_that_others_may_read_is_refused(void **state)
{
    struct world *w = world_create(state, "");
    char *path = token_file(w, 0644);
    add_config(w, "token_file", path);
    world_start_agent(w);
    world_until_said(w, "others may read it");
    assert_int_equal(w->n_joins, 0);
    free(path);
}

static void a_configuration_that_others_may_read_is_refused(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    chmod(w->config, 0640);
    world_start_agent(w);
    assert_int_equal(world_wait_agent(w), 2);
    assert_true(world_log_has(w, "chmod 600"));
}

static void a_mistake_in_the_configuration_names_its_line(void **state)
{
    struct world *w = world_create(state, "tokn: t\n");
    world_start_agent(w);
    assert_int_equal(world_wait_agent(w), 2);
    assert_true(world_log_has(w, "agent.yaml:5"));
    assert_true(world_log_has(w, "token"));
}

static void a_used_token_is_reported_and_tried_again(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    w->refuse_join = true;
    world_start_agent(w);
    world_until_said(w, "the join token was already used");
    w->refuse_join = false;
    world_until(w, has_reported, 0, "the node is there");
    assert_int_equal(w->n_joins, 1);
}

static void without_a_token_the_agent_says_where_to_get_one(void **state)
{
    struct world *w = world_create(state, "");
    world_start_agent(w);
    world_until_said(w, "belay token create --join");
}

static void a_server_of_another_authority_is_not_trusted(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char *dir = mem_printf("%s/other", w->dir), *config;
    struct ca *other;
    struct err e;
    mkdir(dir, 0700);
    assert_int_equal(ca_open(dir, "other", &clock_system, &other, &e), 0);
    config = mem_printf("server: %s\ntoken: t\ndir: %s/node\nca: |\n", w->server_url, w->dir);
    struct buf text = {0};
    buf_adds(&text, config);
    for (const char *p = ca_pem(other); *p;) {
        size_t n = strcspn(p, "\n");
        buf_printf(&text, "  %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
    world_write(w->config, text.data);
    world_start_agent(w);
    world_until_said(w, "joining the cluster failed");
    world_until_said(w, "certificate");
    assert_int_equal(w->n_joins, 0);
    buf_deinit(&text);
    ca_close(other);
    free(config);
    free(dir);
}

static bool has_renewed(struct world *w, int64_t n)
{
    return w->n_renews >= n;
}

static void a_certificate_is_renewed_before_it_ends(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    w->cert_life_ms = 6000;
    world_start_agent(w);
    world_until(w, has_reported, 0, "the node is there");
    w->cert_life_ms = 3600000;
    world_until(w, has_renewed, 1, "the certificate is renewed");
    int n = w->n_status;
    world_go(w);
    world_until(w, has_reported, n, "the link works with it");
    assert_int_equal(w->n_joins, 1);
    assert_int_equal(w->n_refused, 0);
}

static bool has_joined_twice(struct world *w, int64_t unused)
{
    (void)unused;
    return w->n_joins >= 2;
}

static bool is_refused(struct world *w, int64_t unused)
{
    (void)unused;
    return w->n_refused >= 1;
}

/* The agent slept through the time for a renewal. */
static void expire(struct world *w)
{
    w->cert_life_ms = 1000;
    world_start_agent(w);
    world_until_said(w, "joined cluster=lab");
    world_kill_agent(w, SIGKILL);
    int64_t until = clock_wall(&clock_system).ms + 3000;
    while (clock_wall(&clock_system).ms < until)
        world_iterate(w);
    w->cert_life_ms = 3600000;
    world_start_agent(w);
}

static void an_expired_certificate_leads_to_another_join(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    expire(w);
    world_until(w, has_joined_twice, 0, "the node joins again");
    int n = w->n_status;
    world_until(w, has_reported, n, "the link works again");
    assert_true(w->n_refused >= 1);
}

static void an_expired_certificate_without_a_token_is_reported(void **state)
{
    struct world *w = world_create(state, "");
    char *path = token_file(w, 0600);
    add_config(w, "token_file", path);
    expire(w);
    world_until(w, is_refused, 0, "belayd refuses it");
    world_until_said(w, "belayd refuses this node's certificate");
    assert_int_equal(w->n_joins, 1);
    free(path);
}

static void an_instance_that_its_cluster_does_not_know_ends(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    world_want(w, 1, 1, "#!/bin/sh\nsleep 1000\n");
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    w->disown = true;
    world_go(w);
    assert_int_equal(world_wait_agent(w), 3);
    world_forget_reports(w);
    assert_true(is_forgotten(w, 1));
}

static bool is_known(struct world *w, int64_t unused)
{
    (void)unused;
    w->disown = w->n_joins < 2;
    return !w->disown && w->parked;
}

static void a_reserved_node_that_was_deleted_joins_again_without_its_tasks(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, "#!/bin/sh\nsleep 1000\n");
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    world_forget(w, 1);
    w->disown = true;
    world_go(w);
    world_until(w, is_known, 0, "the node joins again");
    world_until(w, is_forgotten, 1, "its tasks are gone");
}

static void the_instance_s_identity_goes_into_the_join(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    world_start_agent(w);
    world_until(w, has_reported, 0, "the node is there");
    assert_string_equal(w->join.provider, "aws");
    assert_string_equal(w->join.instance_id, "i-0abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_token_file_is_deleted_after_the_join),
        world_test(a_token_that_others_may_read_is_refused),
        world_test(a_configuration_that_others_may_read_is_refused),
        world_test(a_mistake_in_the_configuration_names_its_line),
        world_test(a_used_token_is_reported_and_tried_again),
        world_test(without_a_token_the_agent_says_where_to_get_one),
        world_test(a_server_of_another_authority_is_not_trusted),
        world_test(a_certificate_is_renewed_before_it_ends),
        world_test(an_expired_certificate_leads_to_another_join),
        world_test(an_expired_certificate_without_a_token_is_reported),
        world_test(an_instance_that_its_cluster_does_not_know_ends),
        world_test(a_reserved_node_that_was_deleted_joins_again_without_its_tasks),
        world_test(the_instance_s_identity_goes_into_the_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
