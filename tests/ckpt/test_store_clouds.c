/* SPDX-License-Identifier: Apache-2.0
 *
 * The stores in Google's buckets, Azure's containers and third-party S3 servers: the contract of
 * every store and, where the server supports faults, every way in which it may fail.
 *
 *     test_store_clouds URL TOKEN CONTROL
 *
 * TOKEN is a bearer token, or a shared access signature if it has a '='; for s3:// it is ignored,
 * and the keys are in the environment. CONTROL is the address for ordering faults, "-" = none.
 * test_store_clouds.py and s3server.py start the servers.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/s3.h"
#include "ckpt/store/s3_op.h"
#include "ckpt/store/store_net.h"
#include "tests/ckpt/store_contract.h"
#include "tests/ckpt/tools.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_BYTES ((size_t)17 << 20) /* large enough for blocks at Azure */
#define PATIENCE_MS 20000

static const char *url, *token, *control;

struct world {
    struct store_net *net;
    struct store *store;
    atomic_int n_wanted;
};

#define NET (((struct world *)*state)->net)
#define STORE (((struct world *)*state)->store)
#define DO(op, ...) STORE->ops->op(STORE, __VA_ARGS__)

static enum store_keys_kind kind(void)
{
    if (str_starts(url, "s3://"))
        return STORE_KEYS_AWS;
    return str_starts(url, "gs://") ? STORE_KEYS_GOOGLE : STORE_KEYS_AZURE;
}

static void on_want(void *ctx, enum store_keys_kind wanted)
{
    assert_int_equal(wanted, kind());
    atomic_fetch_add(&((struct world *)ctx)->n_wanted, 1);
}

static void give(struct store_net *net, const char *text)
{
    struct store_keys k = {
        .expires = WALL_NONE, .kind = kind(), .is_signature = strchr(text, '=') != NULL};
    if (k.kind == STORE_KEYS_AWS) {
        assert_true(STR_COPY(k.access_key, getenv("AWS_ACCESS_KEY_ID")));
        assert_true(STR_COPY(k.secret_key, getenv("AWS_SECRET_ACCESS_KEY")));
    } else {
        assert_true(STR_COPY(k.token, text));
    }
    store_auth_set(store_net_auth(net, kind()), &k);
}

static struct store *open_at(struct store_net *net, const char *prefix)
{
    const struct store_options o = {.net = net};
    struct store *s;
    struct err e;
    const char *query = strchr(url, '?');
    int n = query ? (int)(query - url) : (int)strlen(url);
    char *whole = mem_printf("%.*s/%s%s", n, url, prefix, query ? query : "");
    OK(store_open(whole, &o, &s, &e));
    free(whole);
    return s;
}

/* The server with faults is here: it needs no pause before a retry. */
static void retry_soon(struct store_net *net)
{
    struct s3_location location;
    struct err e;
    OK(s3_location_parse(url, &location, &e));
    atomic_store(&store_net_facts(net, location.root)->backoff_ms, 1);
    s3_location_deinit(&location);
}

static int setup(void **state)
{
    static int n;
    char prefix[16];
    struct world *w = mem_alloc(sizeof(*w));
    w->net = store_net_create(on_want, w);
    give(w->net, token);
    if (!str_eq(control, "-"))
        retry_soon(w->net);
    snprintf(prefix, sizeof(prefix), "t%d", n++);
    w->store = open_at(w->net, prefix);
    *state = w;
    return 0;
}

/* how: see Faults in test_store_clouds.py. */
static void fault(struct store_net *net, const char *method, const char *how)
{
    char *body = mem_printf("%s %s", method, how);
    struct http_reply reply;
    struct err e;
    const struct http_request r = {.method = "POST",
        .url = control,
        .body = body,
        .body_len = strlen(body),
        .timeout_ms = PATIENCE_MS,
        .max_reply_bytes = 100};
    OK(http_blocking_run(store_net_http(net), &r, NULL, &reply, &e));
    assert_int_equal(reply.status, 200);
    http_reply_deinit(&reply);
    free(body);
}

static int teardown(void **state)
{
    if (!str_eq(control, "-"))
        fault(NET, "CLEAR", "-");
    store_close(STORE);
    store_net_destroy(NET);
    free(*state);
    return 0;
}

/* ---- The contract ---- */

static void an_object_comes_back_as_it_was_made(void **state)
{
    contract_bytes_come_back(STORE);
}

static void a_name_is_created_once(void **state)
{
    contract_a_name_is_created_once(STORE);
}

static void a_list_continues_over_pages(void **state)
{
    contract_a_list_is_ordered(STORE);
}

static void objects_are_removed_moved_and_linked(void **state)
{
    contract_remove_rename_link(STORE, kind() != STORE_KEYS_AZURE);
}

/* Third-party servers have pages of 1000; those without conditional writes (Swift) would take
 * minutes for that many. */
static void many_objects_come_and_go(void **state)
{
    struct s3_location location;
    struct err e;
    OK(s3_location_parse(url, &location, &e));
    OK(DO(create, "first", "x", 1, &e));
    bool is_slow = atomic_load(&store_net_facts(NET, location.root)->no_conditional_put);
    contract_many_objects(STORE, str_eq(control, "-") && !is_slow ? 1100 : 50);
    s3_location_deinit(&location);
}

static void a_large_object_comes_back(void **state)
{
    char *p = mem_alloc(LARGE_BYTES);
    struct buf out = {0};
    struct err e;
    for (size_t i = 0; i < LARGE_BYTES; i++)
        p[i] = (char)(i * 2654435761u >> 24);
    if (!str_eq(control, "-")) {
        fault(NET, "PUT", "throttle");
        fault(NET, "PUT", "drop");
        fault(NET, "GET", "torn");
    }
    OK(DO(create, "large", p, LARGE_BYTES, &e));
    OK(DO(read, "large", LARGE_BYTES, &out, &e));
    assert_int_equal(out.len, LARGE_BYTES);
    assert_memory_equal(out.data, p, LARGE_BYTES);
    FAILS(ERR_CONFLICT, DO(create, "large", p, LARGE_BYTES, &e));
    buf_deinit(&out);
    free(p);
}

static void fail_now_and_then(void *net)
{
    static const char *const methods[] = {"PUT", "GET", "HEAD", "DELETE"};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        fault(net, methods[i], "drop");
        fault(net, methods[i], "throttle");
        fault(net, methods[i], "torn");
    }
}

static void a_checkpoint_goes_and_comes(void **state)
{
    contract_checkpoints(STORE, str_eq(control, "-") ? NULL : fail_now_and_then, NET);
}

/* ---- Failures ---- */

static void work_all(void **state, const char *tag)
{
    char a[40], b[40];
    const char *const gone[] = {b};
    struct buf out = {0};
    struct err e;
    snprintf(a, sizeof(a), "%s/a", tag);
    snprintf(b, sizeof(b), "%s/b", tag);
    OK(DO(create, a, "content of a", 12, &e));
    OK(DO(rename, a, b, &e));
    assert_object(STORE, b, "content of a");
    OK(DO(list, "", append_name, &out, &e));
    OK(DO(remove, gone, 1, &e));
    FAILS(ERR_NOT_FOUND, DO(read, b, 100, &out, &e));
    buf_deinit(&out);
}

static void what_passes_is_tried_again(void **state)
{
    static const char *const methods[] = {"PUT", "GET", "HEAD", "DELETE"};
    static const char *const hows[] = {
        "throttle", "error", "done-error", "drop", "torn", "garbage"};
    for (size_t h = 0; h < sizeof(hows) / sizeof(hows[0]); h++) {
        for (size_t m = 0; m < sizeof(methods) / sizeof(methods[0]); m++)
            fault(NET, methods[m], hows[h]);
        work_all(state, hows[h]);
    }
}

static void a_create_whose_reply_was_lost_knows_its_own_object(void **state)
{
    struct err e;
    fault(NET, "PUT", "drop");
    OK(DO(create, "a", "ours", 4, &e));
    fault(NET, "PUT", "done-error");
    FAILS(ERR_CONFLICT, DO(create, "a", "more", 4, &e));
    fault(NET, "PUT", "drop");
    FAILS(ERR_CONFLICT, DO(create, "a", "longer", 6, &e));
    assert_object(STORE, "a", "ours");
}

static void what_does_not_pass_is_an_error_that_says_what_to_do(void **state)
{
    static const struct {
        const char *how;
        enum err_kind kind;
        const char *says;
    } cases[] = {
        {"denied", ERR_DENIED, "docs/how-to/clouds/"},
        {"no-bucket", ERR_CONFIG, "create it, or fix the store's URL"},
        {"moved", ERR_CONFIG, "endpoint="},
        {"bad", ERR_IO, "InvalidArgument"},
        {"full", ERR_NO_SPACE, "507"},
    };
    struct err e;
    int64_t size;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fault(NET, "PUT", cases[i].how);
        FAILS((int)cases[i].kind, DO(create, "n", "x", 1, &e));
        if (!strstr(e.text, cases[i].says))
            fail_msg("%s", e.text);
    }
    fault(NET, "HEAD", "denied");
    fault(NET, "GET", "denied");
    FAILS(ERR_DENIED, DO(stat, "n", &size, &e));
}

static void a_refused_removal_among_many_is_reported(void **state)
{
    char texts[20][20];
    const char *names[20];
    struct buf out = {0};
    struct err e;
    for (int i = 0; i < 20; i++) {
        snprintf(texts[i], sizeof(texts[i]), "n%d", i);
        names[i] = texts[i];
        OK(DO(create, names[i], "x", 1, &e));
    }
    fault(NET, "DELETE", "throttle");
    fault(NET, "DELETE", "denied");
    fault(NET, "DELETE", "drop");
    FAILS(ERR_DENIED, DO(remove, names, 20, &e));
    OK(DO(remove, names, 20, &e));
    OK(DO(list, "", append_name, &out, &e));
    assert_string_equal(buf_str(&out), "");
    buf_deinit(&out);
}

/* A malformed page is requested again; if it stays malformed, the store is unavailable. */
static void a_malformed_list_is_asked_for_again(void **state)
{
    static const char *const hows[] = {"list-html", "list-other", "list-size"};
    struct buf out = {0};
    struct err e;
    OK(DO(create, "n", "x", 1, &e));
    for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
        buf_clear(&out);
        fault(NET, "GET", hows[i]);
        fault(NET, "GET", hows[i]);
        OK(DO(list, "", append_name, &out, &e));
        assert_string_equal(buf_str(&out), "n=1 ");
    }
    for (int i = 0; i < S3_OP_TRIES; i++)
        fault(NET, "GET", "list-html");
    FAILS(ERR_UNAVAILABLE, DO(list, "", append_name, &out, &e));
    assert_non_null(strstr(e.text, "the reply cannot be read"));
    for (int i = 0; i < S3_OP_TRIES + 1; i++) /* the first page counts */
        fault(NET, "GET", "list-again");
    FAILS(ERR_UNAVAILABLE, DO(list, "", append_name, &out, &e));
    assert_non_null(strstr(e.text, "the next page is this one"));
    buf_deinit(&out);
}

static void *give_later(void *ctx)
{
    struct world *w = ctx;
    while (atomic_load(&w->n_wanted) == 0)
        sched_yield();
    give(w->net, token);
    return NULL;
}

static void assert_no_secret(void *ctx, enum log_level level, const char *line)
{
    (void)ctx, (void)level;
    assert_null(strstr(line, "0ldt0ken"));
    assert_null(strstr(line, token));
}

static void refused_tokens_are_replaced(void **state)
{
    pthread_t thread;
    struct err e;
    log_set_sink(assert_no_secret, NULL);
    give(NET, strchr(token, '=') ? "sv=1&sig=0ldt0ken" : "0ldt0ken");
    assert_int_equal(pthread_create(&thread, NULL, give_later, *state), 0);
    OK(DO(create, "n", "x", 1, &e));
    pthread_join(thread, NULL);
    log_set_sink(NULL, NULL);
}

static void credentials_of_another_kind_are_refused_here(void **state)
{
    struct store_keys k = {
        .expires = WALL_NONE, .kind = STORE_KEYS_AWS, .access_key = "A", .secret_key = "S3cret"};
    struct err e;
    store_auth_set(store_net_auth(NET, kind()), &k);
    FAILS(ERR_CONFIG, DO(create, "n", "x", 1, &e));
    assert_null(strstr(e.text, "S3cret"));
    give(NET, "two\nlines");
    FAILS(ERR_INVALID, DO(create, "n", "x", 1, &e));
    assert_null(strstr(e.text, "lines\n"));
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: test_store_clouds URL TOKEN CONTROL\n");
        return 2;
    }
    url = argv[1], token = argv[2], control = argv[3];
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest contract[] = {
        TEST(an_object_comes_back_as_it_was_made),
        TEST(a_name_is_created_once),
        TEST(a_list_continues_over_pages),
        TEST(objects_are_removed_moved_and_linked),
        TEST(many_objects_come_and_go),
        TEST(a_large_object_comes_back),
        TEST(a_checkpoint_goes_and_comes),
    };
    const struct CMUnitTest tokens[] = {TEST(credentials_of_another_kind_are_refused_here)};
    const struct CMUnitTest faults[] = {
        TEST(refused_tokens_are_replaced),
        TEST(what_passes_is_tried_again),
        TEST(a_create_whose_reply_was_lost_knows_its_own_object),
        TEST(what_does_not_pass_is_an_error_that_says_what_to_do),
        TEST(a_refused_removal_among_many_is_reported),
        TEST(a_malformed_list_is_asked_for_again),
    };
    int n_failed = cmocka_run_group_tests(contract, NULL, NULL);
    if (kind() != STORE_KEYS_AWS)
        n_failed += cmocka_run_group_tests(tokens, NULL, NULL);
    if (!str_eq(control, "-"))
        n_failed += cmocka_run_group_tests(faults, NULL, NULL);
    return n_failed > 0;
}
