/* SPDX-License-Identifier: Apache-2.0
 *
 * The static driver against fake hosts: one claim per host, one host per token whatever call fails
 * and how, and no host that merely does not answer counts as gone.
 */
#include "base/json.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vtimers.h"
#include "cloud/static/protocol.h"
#include "outcome.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_HOSTS 3
#define SECRET "join-token-5f0c"

/* The fault of a host at the next claim or release. */
enum fault { NONE, NO_CONNECTION, REPLY_LOST, REPLY_CUT, TIMES_OUT, BUSY, DISK_FULL };

struct played {
    bool is_down; /* never answers */
    enum fault fault;
    int claims; /* started in total */
    struct static_claim claim, last;
};

struct run {
    struct rig *g;
    struct timer timer;
    char host[64];
    char *input;
    bool is_cancelled;
    runner_done_fn done;
    void *ctx;
};

struct rig {
    struct vtimers vt;
    struct runner runner;
    struct played hosts[N_HOSTS];
    int n_runs, n_under_way, next_id;
    bool is_silent;
    char key[64];
    struct static_options options;
    struct cloud_driver *driver;
    struct outcome got;
};

/* ---- the hosts ---- */

static json_t *claim_json(const struct static_claim *c)
{
    static const char *const states[] = {"starting", "running", "ended", "released"};
    if (!c->id[0])
        return json_null();
    return json_pack("{s:s, s:s, s:s, s:s, s:i}", "id", c->id, "token", c->token, "cluster",
        c->cluster, "state", states[c->state], "since_ms", 1000);
}

static void play_claim(struct rig *g, struct played *h, const json_t *q)
{
    const char *token = json_string_value(json_object_get(q, "token"));
    assert_non_null(strstr(json_string_value(json_object_get(q, "user_data")), SECRET));
    if (!h->claim.id[0]) {
        snprintf(h->claim.id, sizeof(h->claim.id), "%016x", ++g->next_id);
        STR_COPY(h->claim.token, token);
        STR_COPY(h->claim.cluster, json_string_value(json_object_get(q, "cluster")));
        h->claim.state = STATIC_STARTING;
    }
    if (str_eq(h->claim.token, token) && h->claim.state == STATIC_STARTING) {
        h->claim.state = STATIC_RUNNING;
        h->claims++;
    }
}

static int play_release(struct played *h, const json_t *q, struct buf *out)
{
    const char *id = json_string_value(json_object_get(q, "id"));
    if (str_eq(h->claim.id, id)) {
        h->last = h->claim;
        h->last.state = STATIC_RELEASED;
        h->claim = (struct static_claim){0};
    } else if (!str_eq(h->last.id, id)) {
        buf_adds(out, "{\"host\":1,\"error\":\"not-found\",\"text\":\"none\"}\n");
        return 1;
    }
    return 0;
}

/* Returns ssh's exit code. */
static int play(
    struct rig *g, struct played *h, const char *input, struct buf *out, struct buf *errors)
{
    json_t *q = NULL;
    struct err e;
    if (json_parse(input, strlen(input), 65536, &q, &e) != 0)
        fail_msg("%s", e.text);
    const char *what = json_string_value(json_object_get(q, "do"));
    enum fault f = str_eq(what, "list") ? NONE : h->fault;
    int code = 0;
    h->fault = str_eq(what, "list") ? h->fault : NONE;
    if (f == BUSY || f == DISK_FULL) {
        buf_printf(out, "{\"host\":1,\"error\":\"%s\",\"text\":\"x\"}",
            f == BUSY ? "unavailable" : "no-space");
        code = 1;
    } else if (f != NO_CONNECTION && !h->is_down) {
        if (str_eq(what, "claim"))
            play_claim(g, h, q);
        else if (str_eq(what, "release"))
            code = play_release(h, q, out);
        if (code == 0) {
            json_t *v = json_pack("{s:i, s:o, s:o}", "host", 1, "claim", claim_json(&h->claim),
                "last", claim_json(&h->last));
            char *text = json_dump_text(v);
            buf_adds(out, text);
            free(text);
            json_decref(v);
        }
        if (f == REPLY_CUT)
            buf_truncate(out, out->len / 2);
    }
    json_decref(q);
    if (f == NO_CONNECTION || f == REPLY_LOST || h->is_down) {
        buf_clear(out);
        buf_adds(errors, "banner\nssh: connect to host rack port 22: No route\r\n");
        return 255;
    }
    return code;
}

static void on_timer(struct timer *t, void *ctx)
{
    struct run *r = ctx;
    struct rig *g = r->g;
    struct runner_result result = {0};
    struct err e = {0};
    (void)t;
    struct played *h = &g->hosts[r->host[4] - '1'];
    if (r->is_cancelled) {
        err_set(&e, ERR_CANCELLED, "cancelled");
    } else {
        enum fault f = h->fault;
        result.exit_code = play(g, h, r->input, &result.output, &result.errors);
        if (f == TIMES_OUT && !strstr(r->input, "\"list\""))
            err_set(&e, ERR_TIMEOUT, "did not end within 50000 ms");
    }
    g->n_under_way--;
    r->done(r->ctx, e.kind ? &e : NULL, e.kind ? NULL : &result);
    buf_deinit(&result.output);
    buf_deinit(&result.errors);
    free(r->input);
    free(r);
}

static struct run *fake_start(
    struct runner *api, const struct runner_command *c, runner_done_fn done, void *ctx)
{
    struct rig *g = LIST_ENTRY(api, struct rig, runner);
    struct run *r = mem_alloc(sizeof(*r));
    size_t n = 0;
    for (; c->argv[n]; n++)
        assert_null(strstr(c->argv[n], SECRET)); /* every user may read it */
    assert_string_equal(c->argv[0], "ssh");
    *r = (struct run){
        .g = g, .input = mem_strndup(c->input, c->input_len), .done = done, .ctx = ctx};
    STR_COPY(r->host, c->argv[n - 2]);
    timer_init(&r->timer, on_timer, r);
    g->n_runs++;
    g->n_under_way++;
    assert_true(g->n_under_way <= 16);
    if (!g->is_silent)
        timer_start(&g->vt.timers, &r->timer, 1);
    return r;
}

static void fake_cancel(struct runner *api, struct run *r)
{
    struct rig *g = LIST_ENTRY(api, struct rig, runner);
    r->is_cancelled = true;
    timer_start(&g->vt.timers, &r->timer, 0);
}

/* ---- the rig ---- */

static void create(struct rig *g)
{
    struct err e;
    if (static_driver_create(&g->options, &g->driver, &e) != 0)
        fail_msg("%s", e.text);
}

static int setup(void **state)
{
    struct rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, 1787400000000);
    g->runner = (struct runner){.start = fake_start, .cancel = fake_cancel};
    STR_COPY(g->key, "/tmp/belay-static-XXXXXX");
    close(mkstemp(g->key));
    g->options = (struct static_options){.hosts = "rack1\nrack2:2222\nrack3",
        .user = "belay",
        .key = g->key,
        .known_hosts = "/etc/belay/known_hosts",
        .runner = &g->runner,
        .timers = &g->vt.timers};
    create(g);
    *state = g;
    return 0;
}

static void destroy(struct rig *g)
{
    if (g->driver)
        g->driver->ops->destroy(g->driver);
    g->driver = NULL;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    destroy(g);
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->n_under_way, 0);
    vtimers_deinit(&g->vt);
    unlink(g->key);
    free(g);
    return 0;
}

static void start_launch(struct rig *g, const char *token)
{
    struct cloud_launch l = {.token = token,
        .region = "static",
        .zone = "static",
        .type = "static",
        .market = CLOUD_OWNED,
        .user_data = "token: " SECRET "\n",
        .cluster = "lab"};
    g->driver->ops->launch(g->driver, &l, outcome_launch, &g->got);
}

static void finish(struct rig *g, int expected)
{
    outcome_finish(&g->got, &g->vt, expected);
    assert_null(strstr(g->got.e.text, SECRET));
}

static void launch(struct rig *g, const char *token, int expected)
{
    start_launch(g, token);
    finish(g, expected);
}

static void list(struct rig *g, int expected)
{
    g->driver->ops->list(g->driver, "static", "lab", outcome_list, &g->got);
    finish(g, expected);
}

static void terminate(struct rig *g, const char *id, int expected)
{
    g->driver->ops->terminate(g->driver, "static", &id, 1, outcome_done, &g->got);
    finish(g, expected);
}

static int claims_of(const struct rig *g, const char *token)
{
    int n = 0;
    for (int i = 0; i < N_HOSTS; i++)
        n += str_eq(g->hosts[i].claim.token, token);
    return n;
}

/* The host tried first for a token. */
static struct played *first_for(struct rig *g, const char *token)
{
    launch(g, token, 0);
    struct played *h = &g->hosts[g->got.instance.id[4] - '1'];
    h->claim = (struct static_claim){0};
    h->claims = 0;
    return h;
}

/* ---- claims ---- */

static void each_token_has_one_host_until_none_is_free(void **state)
{
    struct rig *g = *state;
    char first[CLOUD_NAME_MAX];
    launch(g, "a", 0);
    STR_COPY(first, g->got.instance.id);
    assert_string_equal(g->got.instance.token, "a");
    assert_string_equal(g->got.instance.zone, "static");
    launch(g, "a", 0);
    assert_string_equal(g->got.instance.id, first);
    launch(g, "b", 0);
    assert_string_not_equal(g->got.instance.id, first);
    launch(g, "c", 0);
    launch(g, "d", ERR_NO_CAPACITY);
    assert_non_null(strstr(g->got.e.text, "none of the pool's 3 hosts is free"));
    for (int i = 0; i < N_HOSTS; i++)
        assert_int_equal(g->hosts[i].claims, 1);
    terminate(g, first, 0);
    terminate(g, first, 0); /* again */
    launch(g, "d", 0);
    assert_int_equal(claims_of(g, "d"), 1);
}

static void launches_at_once_take_different_hosts(void **state)
{
    struct rig *g = *state;
    const char *const tokens[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++)
        start_launch(g, tokens[i]);
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->got.completions, 4);
    for (int i = 0; i < N_HOSTS; i++)
        assert_int_equal(g->hosts[i].claims, 1);
}

static void a_host_that_does_not_answer_is_skipped(void **state)
{
    struct rig *g = *state;
    g->hosts[0].is_down = g->hosts[2].is_down = true;
    launch(g, "a", 0);
    assert_true(str_starts(g->got.instance.id, "rack2:2222#"));
    launch(g, "b", ERR_NO_CAPACITY);
    assert_non_null(strstr(g->got.e.text, "2 cannot be used"));
}

static void whatever_happens_to_a_claim_its_token_has_one_host(void **state)
{
    static const enum fault faults[] = {NO_CONNECTION, REPLY_LOST, REPLY_CUT, TIMES_OUT, BUSY};
    struct rig *g = *state;
    char token[] = "t0";
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        token[1] = (char)('0' + i);
        struct played *h = first_for(g, token);
        h->fault = faults[i];
        launch(g, token, ERR_UNAVAILABLE);
        h->is_down = true; /* not even queried elsewhere */
        launch(g, token, ERR_UNAVAILABLE);
        assert_true(claims_of(g, token) <= 1);
        h->is_down = false;
        launch(g, token, 0);
        assert_int_equal(claims_of(g, token), 1);
        assert_int_equal(h->claims, 1);
        terminate(g, g->got.instance.id, 0);
        for (int k = 0; k < N_HOSTS; k++)
            g->hosts[k].last = (struct static_claim){0};
    }
}

static void a_host_that_cannot_take_a_claim_is_passed_over(void **state)
{
    struct rig *g = *state;
    struct played *h = first_for(g, "a");
    h->fault = DISK_FULL;
    launch(g, "a", 0);
    assert_int_equal(h->claims, 0);
    assert_int_equal(claims_of(g, "a"), 1);
}

static void a_doubted_host_that_another_has_taken_is_none(void **state)
{
    struct rig *g = *state;
    struct played *h = first_for(g, "a");
    h->fault = NO_CONNECTION;
    launch(g, "a", ERR_UNAVAILABLE);
    h->claim = (struct static_claim){
        .id = "00000000000000ff", .token = "x", .cluster = "other", .state = STATIC_RUNNING};
    launch(g, "a", 0);
    assert_string_equal(h->claim.token, "x");
    assert_int_equal(claims_of(g, "a"), 1);
}

static void after_a_restart_the_same_host_is_tried_first(void **state)
{
    struct rig *g = *state;
    struct played *h = first_for(g, "a");
    h->fault = NO_CONNECTION;
    launch(g, "a", ERR_UNAVAILABLE);
    destroy(g);
    create(g); /* drops the doubt */
    launch(g, "a", 0);
    assert_int_equal(h->claims, 1);
}

static void a_claim_that_was_cut_off_goes_on_where_it_began(void **state)
{
    struct rig *g = *state;
    g->hosts[2].claim = (struct static_claim){
        .id = "00000000000000ff", .token = "a", .cluster = "lab", .state = STATIC_STARTING};
    launch(g, "a", 0);
    assert_string_equal(g->got.instance.id, "rack3#00000000000000ff");
    assert_int_equal(g->hosts[2].claims, 1);
}

static void a_token_whose_claim_was_released_is_gone(void **state)
{
    struct rig *g = *state;
    launch(g, "a", 0);
    terminate(g, g->got.instance.id, 0);
    launch(g, "a", 0);
    assert_int_equal(g->got.instance.state, CLOUD_GONE);
    assert_int_equal(claims_of(g, "a"), 0);
}

/* ---- listings ---- */

static void a_listing_shows_our_claims_and_what_was_released(void **state)
{
    struct rig *g = *state;
    launch(g, "a", 0);
    launch(g, "b", 0);
    terminate(g, g->got.instance.id, 0);
    for (int i = 0; i < N_HOSTS; i++)
        if (!g->hosts[i].claim.id[0] && !g->hosts[i].last.id[0])
            g->hosts[i].claim = (struct static_claim){.id = "00000000000000ff",
                .token = "x",
                .cluster = "other",
                .state = STATIC_RUNNING};
    list(g, 0);
    assert_int_equal(g->got.n, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            g->got.list[i].state, str_eq(g->got.list[i].token, "a") ? CLOUD_RUNNING : CLOUD_GONE);
    for (int i = 0; i < N_HOSTS; i++)
        if (str_eq(g->hosts[i].claim.token, "a"))
            g->hosts[i].claim.state = STATIC_ENDED;
    list(g, 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            g->got.list[i].state, str_eq(g->got.list[i].token, "a") ? CLOUD_STOPPING : CLOUD_GONE);
    assert_false(g->got.list[0].reclaimed || g->got.list[1].reclaimed);
}

static void what_does_not_answer_is_hidden_not_gone(void **state)
{
    struct rig *g = *state;
    char id[CLOUD_NAME_MAX];
    launch(g, "a", 0);
    STR_COPY(id, g->got.instance.id);
    struct played *h = &g->hosts[id[4] - '1'];
    list(g, 0);
    assert_false(g->driver->ops->hides(g->driver, id));
    h->is_down = true;
    list(g, 0);
    assert_int_equal(g->got.n, 0);
    assert_true(g->driver->ops->hides(g->driver, id));
    terminate(g, id, ERR_UNAVAILABLE);
    assert_false(g->driver->ops->hides(g->driver, "rack9#00000000000000ff"));
    assert_false(g->driver->ops->hides(g->driver, "rack1"));
    destroy(g);
    create(g); /* a belayd that never saw it */
    list(g, 0);
    assert_true(g->driver->ops->hides(g->driver, id));
    h->is_down = false;
    list(g, 0);
    assert_int_equal(g->got.n, 1);
    assert_false(g->driver->ops->hides(g->driver, id));
    for (int i = 0; i < N_HOSTS; i++)
        g->hosts[i].is_down = true;
    list(g, ERR_UNAVAILABLE);
}

static void ids_that_are_not_ours_are_refused(void **state)
{
    struct rig *g = *state;
    terminate(g, "rack9#00000000000000ff", ERR_CONFIG);
    terminate(g, "rack1", ERR_CONFIG);
    terminate(g, "rack1#", ERR_CONFIG);
    terminate(g, "rack1#00000000000000ff", ERR_NOT_FOUND);
}

static void a_driver_that_is_closed_cancels(void **state)
{
    struct rig *g = *state;
    g->is_silent = true;
    start_launch(g, "a");
    g->driver->ops->list(g->driver, "static", "lab", outcome_list, &g->got);
    vtimers_advance(&g->vt, 10);
    assert_int_equal(g->n_under_way, 2 * N_HOSTS);
    destroy(g);
    assert_int_equal(g->got.completions, 2);
    assert_int_equal(g->got.e.kind, ERR_CANCELLED);
}

/* ---- bytes ---- */

static void ssh_asks_nothing_and_takes_nothing_from_elsewhere(void **state)
{
    static const char *const wanted[] = {"BatchMode=yes", "StrictHostKeyChecking=yes",
        "IdentitiesOnly=yes", "IdentityAgent=none", "ClearAllForwardings=yes",
        "GlobalKnownHostsFile=/dev/null", "UserKnownHostsFile=/etc/belay/known_hosts", NULL};
    struct rig *g = *state;
    struct static_ssh s;
    struct buf line = {0};
    g->options.dir = "/srv/belay";
    static_ssh_init(&s, &g->options, "rack1", 2201);
    for (size_t i = 0; s.argv[i]; i++)
        buf_printf(&line, "%s%s", i ? " " : "", s.argv[i]);
    assert_true(str_starts(buf_str(&line), "ssh -F none -T -a -x -o "));
    for (size_t i = 0; wanted[i]; i++)
        assert_non_null(strstr(buf_str(&line), wanted[i]));
    assert_true(
        str_ends(buf_str(&line), " -p 2201 -l belay -- rack1 belay-agent host --dir /srv/belay"));
    static_ssh_deinit(&s);
    buf_deinit(&line);
}

static void hosts_are_names_and_addresses(void **state)
{
    static const char *const wrong[] = {"", "-oProxyCommand=x", "a b", "a;b", "a:", "a:0",
        "a:65536", "a:b", "[::1", "[]", "[::1]x", "[::1]:", "a/b", "a#b", "user@a", "::1",
        "a23456789012345678901234567890123456789012345678901234567890", NULL};
    char name[STATIC_HOST_MAX + 1];
    int port;
    (void)state;
    assert_int_equal(static_parse_host("rack1.lab", name, &port, NULL), 0);
    assert_string_equal(name, "rack1.lab");
    assert_int_equal(port, 0);
    assert_int_equal(static_parse_host("[fd00::7]:2222", name, &port, NULL), 0);
    assert_string_equal(name, "fd00::7");
    assert_int_equal(port, 2222);
    assert_int_equal(static_parse_host("[::1]", name, &port, NULL), 0);
    for (size_t i = 0; wrong[i]; i++)
        if (static_parse_host(wrong[i], name, &port, NULL) != ERR_CONFIG)
            fail_msg("taken: \"%s\"", wrong[i]);
}

static void refused(struct rig *g, const struct static_options *o, const char *words)
{
    struct cloud_driver *d;
    struct err e;
    (void)g;
    assert_int_equal(static_driver_create(o, &d, &e), ERR_CONFIG);
    if (!strstr(e.text, words))
        fail_msg("\"%s\" is not in: %s", words, e.text);
}

static void options_are_checked(void **state)
{
    struct rig *g = *state;
    struct static_options o = g->options;
    o.user = "a b";
    refused(g, &o, "user");
    o = g->options;
    o.known_hosts = "relative";
    refused(g, &o, "known_hosts");
    o = g->options;
    o.key = "/no%h/key";
    refused(g, &o, "key");
    o.key = "/nonexistent";
    refused(g, &o, "cannot be read");
    o = g->options;
    o.hosts = "a\na";
    refused(g, &o, "listed twice");
    o.hosts = "-oProxyCommand=x";
    refused(g, &o, "hosts");
    chmod(g->key, 0644);
    refused(g, &g->options, "chmod 600");
}

static int parse(
    int code, const char *output, const char *errors, struct static_report *r, struct err *e)
{
    struct runner_result result = {.exit_code = code};
    buf_adds(&result.output, output);
    buf_adds(&result.errors, errors);
    int rc = static_parse_reply(&result, r, e);
    buf_deinit(&result.output);
    buf_deinit(&result.errors);
    return rc;
}

static void replies_that_are_not_whole_are_errors(void **state)
{
    static const char *const wrong[] = {"", "{", "[]", "{}", "{\"host\":1}",
        "{\"host\":2,\"claim\":null,\"last\":null}", "{\"host\":1,\"claim\":null}",
        "{\"host\":1,\"last\":null}", "{\"host\":1,\"claim\":7,\"last\":null}",
        "{\"host\":1,\"claim\":{},\"last\":null}",
        "{\"host\":1,\"claim\":{\"id\":\"../../../../../"
        "e\",\"token\":\"t\",\"cluster\":\"c\",\"state\":\"running\","
        "\"since_ms\":1},\"last\":null}",
        "{\"host\":1,\"claim\":{\"id\":\"0123456789abcdef\",\"token\":\"t\",\"cluster\":\"c\","
        "\"state\":\"dancing\",\"since_ms\":1},\"last\":null}",
        "Welcome to rack1!\n{\"host\":1,\"claim\":null,\"last\":null}", NULL};
    struct static_report r;
    struct err e;
    (void)state;
    assert_int_equal(
        parse(0, "{\"host\":1,\"claim\":null,\"last\":null,\"more\":1}\n", "", &r, &e), 0);
    assert_string_equal(r.claim.id, "");
    for (size_t i = 0; wrong[i]; i++)
        if (parse(0, wrong[i], "", &r, &e) != ERR_INVALID)
            fail_msg("taken: %s", wrong[i]);
    assert_int_equal(parse(255, "", "Host key verification failed.\r\n", &r, &e), ERR_UNAVAILABLE);
    assert_string_equal(e.text, "ssh: Host key verification failed.");
    assert_int_equal(parse(127, "", "sh: belay-agent: not found\n", &r, &e), ERR_CONFIG);
    assert_int_equal(
        parse(1, "{\"host\":1,\"error\":\"denied\",\"text\":\"no\"}", "", &r, &e), ERR_DENIED);
    assert_int_equal(parse(1, "{\"host\":1,\"error\":\"fun\"}", "", &r, &e), ERR_INVALID);
    assert_int_equal(parse(137, "", "", &r, &e), ERR_INVALID);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_token_has_one_host_until_none_is_free),
        TEST(launches_at_once_take_different_hosts),
        TEST(a_host_that_does_not_answer_is_skipped),
        TEST(whatever_happens_to_a_claim_its_token_has_one_host),
        TEST(a_host_that_cannot_take_a_claim_is_passed_over),
        TEST(a_doubted_host_that_another_has_taken_is_none),
        TEST(after_a_restart_the_same_host_is_tried_first),
        TEST(a_claim_that_was_cut_off_goes_on_where_it_began),
        TEST(a_token_whose_claim_was_released_is_gone),
        TEST(a_listing_shows_our_claims_and_what_was_released),
        TEST(what_does_not_answer_is_hidden_not_gone),
        TEST(ids_that_are_not_ours_are_refused),
        TEST(a_driver_that_is_closed_cancels),
        TEST(ssh_asks_nothing_and_takes_nothing_from_elsewhere),
        TEST(hosts_are_names_and_addresses),
        TEST(options_are_checked),
        TEST(replies_that_are_not_whole_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
