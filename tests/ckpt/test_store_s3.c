/* SPDX-License-Identifier: Apache-2.0
 *
 * The store in S3 against the emulator, with every way in which a server may fail.
 */
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "ckpt/s3.h"
#include "ckpt/store/store_net.h"
#include "tests/ckpt/s3_server.h"
#include "tests/ckpt/store_contract.h"
#include "tests/ckpt/tools.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_BYTES ((size_t)17 << 20) /* large enough to be sent in parts */

struct world {
    struct s3_server server;
    struct store *store;
};

static struct world *start(const char *s3)
{
    struct world *w = mem_alloc(sizeof(*w));
    struct err e;
    s3_server_start(&w->server, s3);
    const struct store_options o = {.net = w->server.net};
    OK(store_open(s3_server_url(&w->server, "lab/x", ""), &o, &w->store, &e));
    return w;
}

static int setup(void **state)
{
    *state = start("page: 3");
    return 0;
}

static int setup_small(void **state)
{
    *state = start("page: 3, quota_bytes: 1000");
    return 0;
}

static int setup_three(void **state)
{
    *state = start("quota_bytes: 700000"); /* three of STATE_BYTES */
    return 0;
}

static int setup_unconditional(void **state)
{
    *state = start("conditional_writes: \"false\"");
    return 0;
}

static int setup_encrypted(void **state)
{
    *state = start("page: 3, require_encryption: \"aws:kms\"");
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    store_close(w->store);
    s3_server_stop(&w->server);
    free(w);
    return 0;
}

#define STORE (((struct world *)*state)->store)
#define SERVER (&((struct world *)*state)->server)
#define DO(op, ...) STORE->ops->op(STORE, __VA_ARGS__)

static void fault(struct s3_server *s, const char *kind, const char *action, const char *more)
{
    char *json =
        mem_printf("{\"%s\": {\"action\": \"%s\"%s%s}}", kind, action, more[0] ? ", " : "", more);
    s3_server_event(s, json);
    free(json);
}

/* ---- The contract of a store ---- */

static void an_object_comes_back_as_it_was_made(void **state)
{
    contract_bytes_come_back(STORE);
}

static void a_name_is_created_once(void **state)
{
    contract_a_name_is_created_once(STORE);
}

/* Three objects per page. */
static void a_list_continues_over_pages(void **state)
{
    contract_a_list_is_ordered(STORE);
}

static void objects_are_removed_moved_and_linked(void **state)
{
    contract_remove_rename_link(STORE, true);
}

static void many_objects_come_and_go(void **state)
{
    contract_many_objects(STORE, 50);
}

static void a_large_object_goes_in_parts(void **state)
{
    char *p = mem_alloc(LARGE_BYTES);
    struct buf out = {0};
    struct err e;
    for (size_t i = 0; i < LARGE_BYTES; i++)
        p[i] = (char)(i * 2654435761u >> 24);
    fault(SERVER, "drop_reply", "UploadPart", "");
    fault(SERVER, "drop_reply", "CompleteMultipartUpload", "");
    OK(DO(create, "large", p, LARGE_BYTES, &e));
    fault(SERVER, "drop_reply", "GetObject", "\"how\": \"torn\"");
    OK(DO(read, "large", LARGE_BYTES, &out, &e));
    assert_int_equal(out.len, LARGE_BYTES);
    assert_memory_equal(out.data, p, LARGE_BYTES);
    FAILS(ERR_CONFLICT, DO(create, "large", p, LARGE_BYTES, &e));
    fault(SERVER, "refuse", "UploadPart", "\"code\": \"AccessDenied\"");
    FAILS(ERR_DENIED, DO(create, "other", p, LARGE_BYTES, &e));
    assert_int_equal(s3_server_count(SERVER, "uploads"), 0);
    assert_int_equal(s3_server_count(SERVER, "bytes"), LARGE_BYTES);
    buf_deinit(&out);
    free(p);
}

static void what_the_bucket_wants_encrypted_is_made_so_in_every_way(void **state)
{
    const struct store_options o = {.net = SERVER->net};
    char *p = mem_alloc(LARGE_BYTES);
    struct store *s;
    struct err e;
    FAILS(ERR_DENIED, DO(create, "n", "x", 1, &e)); /* the URL does not request it */
    OK(store_open(s3_server_url(SERVER, "lab/x", "&sse=s3"), &o, &s, &e));
    FAILS(ERR_DENIED, s->ops->create(s, "n", "x", 1, &e));
    store_close(s);
    OK(store_open(
        s3_server_url(SERVER, "lab/x", "&sse=kms&kms_key=arn:aws:kms:us-east-1:1:key/a-b"), &o, &s,
        &e));
    OK(s->ops->create(s, "n", "x", 1, &e));
    OK(s->ops->create(s, "large", p, LARGE_BYTES, &e));
    OK(s->ops->link(s, "n", "again", &e));
    OK(s->ops->rename(s, "n", "other", &e));
    assert_object(s, "other", "x");
    assert_object(s, "again", "x");
    store_close(s);
    free(p);
}

static void how_a_server_is_to_encrypt_is_in_the_headers(void **state)
{
    static const struct {
        const char *url, *names[S3_ENCRYPTION_HEADERS], *values[S3_ENCRYPTION_HEADERS];
    } all[] = {
        {"s3://abc", {NULL}, {NULL}},
        {"s3://abc?sse=s3", {"x-amz-server-side-encryption"}, {"AES256"}},
        {"s3://abc?sse=kms", {"x-amz-server-side-encryption"}, {"aws:kms"}},
        {"s3://abc?sse=kms&kms_key=alias%2Flab",
            {"x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id"},
            {"aws:kms", "alias/lab"}},
        {"gs://abc?kms_key=projects/p/locations/eu/keyRings/r/cryptoKeys/k",
            {"x-goog-encryption-kms-key-name"},
            {"projects/p/locations/eu/keyRings/r/cryptoKeys/k"}},
        {"az://account/abc?encryption_scope=lab-1", {"x-ms-encryption-scope"}, {"lab-1"}},
    };
    struct http_header h[S3_ENCRYPTION_HEADERS];
    struct s3_location p;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        OK(s3_location_parse(all[i].url, &p, &e));
        s3_encryption_headers(&p, h);
        for (size_t k = 0; k < S3_ENCRYPTION_HEADERS; k++)
            assert_true(str_eq(h[k].name, all[i].names[k]) && str_eq(h[k].value, all[i].values[k]));
        s3_location_deinit(&p);
    }
}

static void a_bucket_may_be_in_the_host_name(void **state)
{
    struct s3_server *server = SERVER;
    const struct store_options o = {.net = server->net};
    struct store *s;
    struct err e;
    char url[200];
    snprintf(url, sizeof(url), "s3://jobs?style=virtual&endpoint=http%%3A%%2F%%2Flocalhost:%d",
        server->port);
    OK(store_open(url, &o, &s, &e));
    OK(s->ops->create(s, "n", "x", 1, &e));
    assert_object(s, "n", "x");
    store_close(s);
}

/* ---- Failures ---- */

static void work_all(void **state, const char *tag)
{
    char a[40], b[40], c[40];
    const char *const gone[] = {b, c};
    struct buf out = {0};
    struct err e;
    snprintf(a, sizeof(a), "%s/a", tag);
    snprintf(b, sizeof(b), "%s/b", tag);
    snprintf(c, sizeof(c), "%s/c", tag);
    OK(DO(create, a, "content of a", 12, &e));
    OK(DO(link, a, b, &e));
    OK(DO(rename, a, c, &e));
    assert_object(STORE, b, "content of a");
    OK(DO(list, tag, append_name, &out, &e));
    OK(DO(remove, gone, 2, &e));
    FAILS(ERR_NOT_FOUND, DO(read, b, 100, &out, &e));
    buf_deinit(&out);
}

/* Each action fails once in each transient way; every operation still succeeds. */
static void what_passes_is_tried_again(void **state)
{
    static const char *const actions[] = {
        "PutObject", "GetObject", "HeadObject", "ListObjectsV2", "DeleteObjects", "CopyObject"};
    static const char *const faults[][2] = {
        {"throttle", ""},
        {"refuse", "\"code\": \"InternalError\""},
        {"refuse", "\"code\": \"RequestTimeTooSkewed\""},
        {"drop_reply", ""},
        {"drop_reply", "\"how\": \"error\""},
        {"drop_reply", "\"how\": \"torn\""},
    };
    char tag[40];
    for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++) {
        for (size_t a = 0; a < sizeof(actions) / sizeof(actions[0]); a++)
            fault(SERVER, faults[f][0], actions[a], faults[f][1]);
        snprintf(tag, sizeof(tag), "t%zu", f);
        work_all(state, tag);
        s3_server_event(SERVER, "{\"clear\": {}}");
    }
    fault(SERVER, "refuse", "DeleteObjects/key", "\"code\": \"InternalError\"");
    work_all(state, "t");
}

/* S3 asks for fewer requests in the body of a 200. Each retry waits for at least half of the first
 * pause. */
static void a_removal_that_is_throttled_in_a_200_is_retried_after_a_pause(void **state)
{
    const char *const names[] = {"a"};
    int64_t pause_ms = atomic_load(&store_net_facts(SERVER->net, "")->backoff_ms) / 2; /* default */
    struct err e;
    int64_t began_ms, size;
    OK(DO(create, "a", "x", 1, &e));
    fault(SERVER, "refuse", "DeleteObjects/key", "\"code\": \"SlowDown\", \"count\": 6");
    began_ms = clock_mono(&clock_system).ms;
    OK(DO(remove, names, 1, &e));
    assert_true(pause_ms > 0 && clock_mono(&clock_system).ms - began_ms >= 6 * pause_ms);
    FAILS(ERR_NOT_FOUND, DO(stat, "a", &size, &e));
    fault(SERVER, "refuse", "DeleteObjects/key", "\"code\": \"AccessDenied\"");
    FAILS(ERR_DENIED, DO(remove, names, 1, &e));
}

/* After a lost reply our own object is no conflict; another's is. */
static void a_create_whose_reply_was_lost_knows_its_own_object(void **state)
{
    struct err e;
    fault(SERVER, "drop_reply", "PutObject", "");
    OK(DO(create, "a", "ours", 4, &e));
    fault(SERVER, "drop_reply", "PutObject", "\"how\": \"error\"");
    FAILS(ERR_CONFLICT, DO(create, "a", "more", 4, &e));
    fault(SERVER, "drop_reply", "PutObject", "\"how\": \"error\"");
    FAILS(ERR_CONFLICT, DO(create, "a", "longer", 6, &e));
    assert_object(STORE, "a", "ours");
}

static void what_does_not_pass_is_an_error_that_says_what_to_do(void **state)
{
    static const struct {
        const char *code;
        enum err_kind kind;
        const char *says;
    } cases[] = {
        {"AccessDenied", ERR_DENIED, "docs/how-to/clouds/aws.md"},
        {"QuotaExceeded", ERR_NO_SPACE, "QuotaExceeded"},
        {"InsufficientStorage", ERR_NO_SPACE, "507"},
        {"PermanentRedirect", ERR_CONFIG, "region="},
        {"NoSuchBucket", ERR_CONFIG, "no bucket jobs"},
        {"InvalidRequest", ERR_IO, "InvalidRequest"},
    };
    struct err e;
    int64_t size;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *code = mem_printf("\"code\": \"%s\"", cases[i].code);
        fault(SERVER, "refuse", "PutObject", code);
        FAILS((int)cases[i].kind, DO(create, "n", "x", 1, &e));
        if (!strstr(e.text, cases[i].says))
            fail_msg("%s", e.text);
        free(code);
    }
    /* HEAD has no body; the error is requested with GET */
    fault(SERVER, "refuse", "HeadObject", "\"code\": \"AccessDenied\"");
    fault(SERVER, "refuse", "GetObject", "\"code\": \"AccessDenied\"");
    FAILS(ERR_DENIED, DO(stat, "n", &size, &e));
}

static void another_region_is_named(void **state)
{
    const struct store_options o = {.net = SERVER->net};
    struct store *s;
    struct err e;
    OK(store_open(s3_server_url(SERVER, "", "&region=eu-west-1"), &o, &s, &e));
    FAILS(ERR_CONFIG, s->ops->create(s, "n", "x", 1, &e));
    assert_non_null(strstr(e.text, "region=us-east-1"));
    store_close(s);
}

static void a_clock_that_is_off_is_corrected_by_the_servers(void **state)
{
    char root[64];
    struct err e;
    snprintf(root, sizeof(root), "http://127.0.0.1:%d", SERVER->port);
    struct store_facts *facts = store_net_facts(SERVER->net, root);
    atomic_store(&facts->clock_ahead_ms, SECONDS_MS(3600));
    OK(DO(create, "n", "x", 1, &e));
    assert_in_range(atomic_load(&facts->clock_ahead_ms) + 5000, 0, 10000);
}

static void a_full_store_is_no_space(void **state)
{
    static char large[2000];
    struct err e;
    FAILS(ERR_NO_SPACE, DO(create, "n", large, sizeof(large), &e));
    OK(DO(create, "n", large, 900, &e));
}

static int n_said;
static void count_line(void *ctx, enum log_level level, const char *line)
{
    (void)ctx, (void)level;
    n_said += strstr(line, "no conditional writes") != NULL;
    assert_null(strstr(line, S3_SERVER_SECRET));
}

static void without_conditional_writes_names_are_looked_up(void **state)
{
    struct err e;
    n_said = 0;
    log_set_sink(count_line, NULL);
    OK(DO(create, "a", "x", 1, &e));
    OK(DO(create, "b", "x", 1, &e));
    FAILS(ERR_CONFLICT, DO(create, "a", "y", 1, &e));
    assert_object(STORE, "a", "x");
    OK(DO(link, "a", "c", &e));
    FAILS(ERR_CONFLICT, DO(link, "a", "b", &e));
    log_set_sink(NULL, NULL);
    assert_int_equal(n_said, 2); /* once for writes, once for copies */
    char *p = mem_alloc(LARGE_BYTES);
    OK(DO(create, "large", p, LARGE_BYTES, &e));
    FAILS(ERR_CONFLICT, DO(create, "large", p, LARGE_BYTES, &e));
    assert_int_equal(s3_server_count(SERVER, "uploads"), 0);
    free(p);
}

/* ---- Credentials ---- */

static void *set_later(void *ctx)
{
    struct s3_server *s = ctx;
    while (atomic_load(&s->n_wanted) == 0)
        sched_yield();
    s3_server_keys(s, S3_SERVER_ACCESS, S3_SERVER_SECRET);
    return NULL;
}

static void refused_credentials_are_replaced(void **state)
{
    pthread_t thread;
    struct err e;
    s3_server_keys(SERVER, "AKIDOLD", "whatever");
    assert_int_equal(pthread_create(&thread, NULL, set_later, SERVER), 0);
    OK(DO(create, "n", "x", 1, &e));
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&SERVER->n_wanted), 1);
}

static void *fail_later(void *ctx)
{
    struct s3_server *s = ctx;
    struct err e;
    while (atomic_load(&s->n_wanted) == 0)
        sched_yield();
    err_set(&e, ERR_CONFIG, "this instance has no role");
    store_auth_fail(store_net_auth(s->net, STORE_KEYS_AWS), &e);
    return NULL;
}

static void missing_credentials_are_reported_with_the_cause(void **state)
{
    pthread_t thread;
    struct err e;
    s3_server_keys(SERVER, "AKIDOLD", "whatever");
    assert_int_equal(pthread_create(&thread, NULL, fail_later, SERVER), 0);
    FAILS(ERR_CONFIG, DO(create, "n", "x", 1, &e));
    assert_non_null(strstr(e.text, "no role"));
    assert_null(strstr(e.text, "whatever"));
    pthread_join(thread, NULL);
    s3_server_keys(SERVER, S3_SERVER_ACCESS, "wrong");
    FAILS(ERR_DENIED, DO(create, "n", "x", 1, &e));
    assert_non_null(strstr(e.text, "SignatureDoesNotMatch"));
    assert_null(strstr(e.text, "wrong"));
}

static void a_holder_gives_nothing_that_has_ended(void **state)
{
    struct store_auth *a = store_auth_create(NULL, NULL);
    struct store_keys k = {.access_key = "A", .expires = {1}}, got;
    struct err e;
    (void)state;
    FAILS(ERR_CONFIG, store_auth_get(a, 0, 1000, NULL, &got, &e));
    store_auth_set(a, &k);
    FAILS(ERR_DENIED, store_auth_get(a, 0, 1000, NULL, &got, &e));
    k.expires = (struct wall){clock_wall(&clock_system).ms + SECONDS_MS(3600)};
    store_auth_set(a, &k);
    OK(store_auth_get(a, 0, 1000, NULL, &got, &e));
    assert_int_equal(got.number, 2);
    FAILS(ERR_DENIED, store_auth_get(a, 2, 1000, NULL, &got, &e));
    store_auth_destroy(a);
}

/* All operations of a store with the credentials of one job's session, and none outside that job's
 * part. */
static void a_session_reaches_its_jobs_part_only(void **state)
{
    struct store_auth *a = store_net_auth(SERVER->net, STORE_KEYS_AWS);
    const struct store_options o = {.net = SERVER->net};
    const char *names[] = {"foreign"};
    struct store_keys k;
    struct store *other;
    struct buf bytes = {0};
    struct err e;
    int64_t size;
    OK(store_open(s3_server_url(SERVER, "lab/y", ""), &o, &other, &e));
    OK(other->ops->create(other, "foreign", "x", 1, &e));
    s3_server_assume(SERVER, "lab/x/", 900, &k);
    store_auth_set(a, &k);
    contract_a_list_is_ordered(STORE);
    for (int i = 0; i < 2; i++) {
        struct store *below;
        OK(store_open(s3_server_url(SERVER, i ? "lab/x/1" : "lab/x/0", ""), &o, &below, &e));
        if (i)
            contract_remove_rename_link(below, true);
        else
            contract_bytes_come_back(below);
        store_close(below);
    }
    char *large = mem_alloc(LARGE_BYTES);
    OK(DO(create, "large", large, LARGE_BYTES, &e));
    FAILS(ERR_DENIED, other->ops->create(other, "n", "x", 1, &e));
    FAILS(ERR_DENIED, other->ops->create(other, "n", large, LARGE_BYTES, &e));
    FAILS(ERR_DENIED, other->ops->read(other, "foreign", 10, &bytes, &e));
    FAILS(ERR_DENIED, other->ops->stat(other, "nothing", &size, &e));
    FAILS(ERR_DENIED, other->ops->list(other, "", NULL, NULL, &e));
    FAILS(ERR_DENIED, other->ops->remove(other, names, 1, &e));
    store_close(other);
    free(large);
    buf_deinit(&bytes);
}

/* The holder has no others: the operation fails with that reason, and works again when there are
 * new ones. */
static void a_session_that_has_ended_is_refused(void **state)
{
    struct store_keys k;
    struct err e;
    int64_t size;
    s3_server_assume(SERVER, "lab/x/", 1, &k);
    k.expires = WALL_NONE; /* only the server knows that they have expired */
    struct store *s;
    struct store_net *alone = store_net_create(NULL, NULL);
    store_auth_set(store_net_auth(alone, STORE_KEYS_AWS), &k);
    OK(store_open(
        s3_server_url(SERVER, "lab/x", ""), &(struct store_options){.net = alone}, &s, &e));
    int rc;
    do
        rc = s->ops->stat(s, "n", &size, &e);
    while (rc == ERR_NOT_FOUND);
    assert_int_equal(rc, ERR_DENIED);
    s3_server_assume(SERVER, "lab/x/", 900, &k);
    store_auth_set(store_net_auth(alone, STORE_KEYS_AWS), &k);
    FAILS(ERR_NOT_FOUND, s->ops->stat(s, "n", &size, &e));
    store_close(s);
    store_net_destroy(alone);
}

static void cancel_ends_what_waits(void **state)
{
    atomic_int cancel = 1;
    const struct store_options o = {.net = SERVER->net, .cancel = &cancel};
    struct store *s;
    struct err e;
    fault(SERVER, "throttle", "PutObject", "\"count\": 100");
    OK(store_open(s3_server_url(SERVER, "", ""), &o, &s, &e));
    FAILS(ERR_CANCELLED, s->ops->create(s, "n", "x", 1, &e));
    store_close(s);
}

/* ---- Checkpoints ---- */

static void fail_now_and_then(void *server)
{
    static const char *const actions[] = {
        "PutObject", "GetObject", "HeadObject", "ListObjectsV2", "DeleteObjects", "CopyObject"};
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        fault(server, "drop_reply", actions[i], "");
        fault(server, "throttle", actions[i], "");
        fault(server, "drop_reply", actions[i], "\"how\": \"torn\"");
    }
}

static void a_checkpoint_goes_and_comes_though_everything_fails_now_and_then(void **state)
{
    contract_checkpoints(STORE, fail_now_and_then, SERVER);
}

#define STATE_BYTES 200000

static int save_random(struct scratch *s, int sequence, int keep, struct err *e)
{
    const struct ckpt_save_with with = {.keep.newest = keep};
    struct ckpt_stats stats;
    write_random(s->tree, "state", STATE_BYTES, (uint64_t)sequence);
    return ckpt_save_with(
        &s->job, (struct ckpt_id){1, sequence}, s->tree, -1, NULL, &with, &stats, e);
}

/* There is space for three checkpoints. */
static void a_full_store_gives_up_the_oldest_that_would_go_anyway(void **state)
{
    struct scratch s;
    struct err e;
    scratch_init(&s);
    store_close(s.job.store);
    s.job.store = STORE;
    OK(ckpt_fence(&s.job, 1, &e));
    for (int i = 1; i <= 3; i++)
        OK(save_random(&s, i, 3, &e));
    OK(save_random(&s, 4, 3, &e));
    FAILS(ERR_NOT_FOUND, ckpt_verify(&s.job, (struct ckpt_id){1, 1}, &e));
    for (int i = 2; i <= 4; i++)
        OK(ckpt_verify(&s.job, (struct ckpt_id){1, i}, &e));
    FAILS(ERR_NO_SPACE, save_random(&s, 5, 4, &e)); /* four should be kept, so none is removed */
    for (int i = 2; i <= 4; i++)
        OK(ckpt_verify(&s.job, (struct ckpt_id){1, i}, &e));
    assert_int_equal(restore(&s, 2).id.sequence, 4);
    OK(fs_remove_tree(s.dir, &e));
}

/* Neither the previous checkpoint nor a pinned one is ever removed. */
static void a_full_store_keeps_the_last_and_what_is_pinned(void **state)
{
    struct scratch s;
    struct err e;
    scratch_init(&s);
    store_close(s.job.store);
    s.job.store = STORE;
    OK(ckpt_fence(&s.job, 1, &e));
    for (int i = 1; i <= 3; i++) {
        OK(save_random(&s, i, 0, &e));
        OK(ckpt_pin(&s.job, (struct ckpt_id){1, i}, &e));
    }
    FAILS(ERR_NO_SPACE, save_random(&s, 4, 1, &e));
    FAILS(ERR_NO_SPACE, save_random(&s, 5, 2, &e));
    for (int i = 1; i <= 3; i++)
        OK(ckpt_verify(&s.job, (struct ckpt_id){1, i}, &e));
    OK(ckpt_unpin(&s.job, (struct ckpt_id){1, 1}, &e));
    OK(ckpt_unpin(&s.job, (struct ckpt_id){1, 2}, &e));
    FAILS(ERR_NO_SPACE, save_random(&s, 6, 1, &e));
    for (int i = 1; i <= 3; i++)
        OK(ckpt_verify(&s.job, (struct ckpt_id){1, i}, &e));
    OK(fs_remove_tree(s.dir, &e));
}

/* A proxy's reply instead of a manifest is not damage in the store: nothing is set aside, and the
 * newest checkpoint is used. */
static void a_reply_that_is_damaged_on_its_way_sets_nothing_aside(void **state)
{
    struct buf aside = {0};
    struct scratch s;
    struct err e;
    scratch_init(&s);
    store_close(s.job.store);
    s.job.store = STORE;
    OK(ckpt_fence(&s.job, 1, &e));
    for (int i = 1; i <= 2; i++) {
        make_tree(s.tree, i);
        save(&s, 1, i);
    }
    fault(SERVER, "drop_reply", "GetObject", "\"how\": \"garbage\", \"count\": 3");
    assert_int_equal(restore(&s, 2).id.sequence, 2);
    s3_server_event(SERVER, "{\"clear\": {}}");
    fault(SERVER, "drop_reply", "GetObject", "\"how\": \"garbage\", \"count\": 1000");
    struct ckpt_restored r;
    FAILS(ERR_UNAVAILABLE, ckpt_restore(&s.job, 2, s.out, NULL, &r, &e));
    assert_non_null(strstr(e.text, "damaged in transit"));
    s3_server_event(SERVER, "{\"clear\": {}}");
    OK(DO(list, "lab/jobs/7/damaged/", append_name, &aside, &e));
    assert_string_equal(buf_str(&aside), "");
    assert_int_equal(restore(&s, 2).damaged, 0);
    buf_deinit(&aside);
    OK(fs_remove_tree(s.dir, &e));
}

/* ---- URLs ---- */

static void urls_are_read_strictly(void **state)
{
    static const char *const bad[] = {"s3://", "s3://ab", "s3://Bucket", "s3://a..b", "s3://-abc",
        "s3://abc/../x", "s3://abc/a b", "s3://abc/.x", "s3://abc?", "s3://abc?nothing",
        "s3://abc?regoin=x", "s3://abc?region=", "s3://abc?region=a/b", "s3://abc?style=round",
        "s3://abc?endpoint=http://example.com", "s3://abc?endpoint=https://user:pw@example.com",
        "s3://abc?endpoint=https://example.com/path", "gs://abc?endpoint=https://exam\nple.com",
        "s3://abc?endpoint=https://exam%0d%0aple.com",
        "s3://abc?endpoint=https://ex\xc3\xa4mple.com", "s3://abc?endpoint=%zz", "s3://a_c",
        "gs://", "gs://Abc", "gs://abc?region=x", "gs://abc?style=path", "az://", "az://account",
        "az://account/", "az://Account/abc", "az://ac/abc", "az://account/a.c", "az://account/a--c",
        "az://account/abc/.x", "az://account/abc?region=x",
        "az://account/abc?endpoint=http://example.com", "r2://abc", "s3://abc?sse=aes",
        "s3://abc?sse=", "s3://abc?kms_key=x", "s3://abc?sse=s3&kms_key=x",
        "s3://abc?sse=kms&kms_key=", "s3://abc?sse=kms&kms_key=a%0Ab",
        "s3://abc?encryption_scope=x", "gs://abc?sse=s3", "gs://abc?kms_key=alias/x",
        "az://account/abc?encryption_scope=x", "az://account/abc?encryption_scope=a_b",
        "az://account/abc?kms_key=x"};
    struct s3_location p;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (!str_eq(bad[i], "s3://abc?"))
            FAILS(ERR_INVALID, store_check_url(bad[i], &e));
    OK(s3_location_parse("s3://my-bucket/a/b//?region=eu-west-1", &p, &e));
    assert_string_equal(p.root, "https://my-bucket.s3.eu-west-1.amazonaws.com");
    assert_string_equal(p.prefix, "a/b/");
    assert_string_equal(p.dir, "");
    s3_location_deinit(&p);
    OK(s3_location_parse("s3://my.bucket", &p, &e));
    assert_string_equal(p.root, "https://s3.us-east-1.amazonaws.com");
    assert_string_equal(p.dir, "/my.bucket");
    assert_string_equal(p.prefix, "");
    s3_location_deinit(&p);
    OK(s3_location_parse("s3://abc/x?endpoint=https%3A%2F%2Fs3.example%3A9000", &p, &e));
    assert_string_equal(p.root, "https://s3.example:9000");
    assert_string_equal(p.host, "s3.example:9000");
    s3_location_deinit(&p);
    OK(s3_location_parse("gs://my_bucket/a/", &p, &e));
    assert_string_equal(p.root, "https://storage.googleapis.com");
    assert_string_equal(p.dir, "/my_bucket");
    assert_string_equal(p.prefix, "a/");
    assert_string_equal(p.shown, "gs://my_bucket");
    s3_location_deinit(&p);
    OK(s3_location_parse("az://lab1/checkpoints/a", &p, &e));
    assert_string_equal(p.root, "https://lab1.blob.core.windows.net");
    assert_string_equal(p.dir, "/checkpoints");
    assert_string_equal(p.prefix, "a/");
    assert_string_equal(p.shown, "az://lab1/checkpoints");
    s3_location_deinit(&p);
    OK(s3_location_parse("az://lab1/abc?endpoint=https://lab1.blob.core.chinacloudapi.cn", &p, &e));
    assert_string_equal(p.dir, "/abc");
    s3_location_deinit(&p);
    OK(s3_location_parse("az://lab1/abc?endpoint=http://127.0.0.1:10000", &p, &e));
    assert_string_equal(p.dir, "/lab1/abc");
    s3_location_deinit(&p);
    OK(store_check_url("file:///srv/x", &e));
    FAILS(ERR_UNSUPPORTED, store_open("s3://abc", NULL, &(struct store *){NULL}, &e));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_object_comes_back_as_it_was_made),
        TEST(a_name_is_created_once),
        TEST(a_list_continues_over_pages),
        TEST(objects_are_removed_moved_and_linked),
        TEST(many_objects_come_and_go),
        TEST(a_large_object_goes_in_parts),
        TEST(how_a_server_is_to_encrypt_is_in_the_headers),
        cmocka_unit_test_setup_teardown(
            what_the_bucket_wants_encrypted_is_made_so_in_every_way, setup_encrypted, teardown),
        TEST(a_bucket_may_be_in_the_host_name),
        TEST(what_passes_is_tried_again),
        TEST(a_removal_that_is_throttled_in_a_200_is_retried_after_a_pause),
        TEST(a_create_whose_reply_was_lost_knows_its_own_object),
        TEST(what_does_not_pass_is_an_error_that_says_what_to_do),
        TEST(another_region_is_named),
        TEST(a_clock_that_is_off_is_corrected_by_the_servers),
        cmocka_unit_test_setup_teardown(a_full_store_is_no_space, setup_small, teardown),
        cmocka_unit_test_setup_teardown(
            without_conditional_writes_names_are_looked_up, setup_unconditional, teardown),
        TEST(refused_credentials_are_replaced),
        TEST(missing_credentials_are_reported_with_the_cause),
        cmocka_unit_test(a_holder_gives_nothing_that_has_ended),
        TEST(a_session_reaches_its_jobs_part_only),
        TEST(a_session_that_has_ended_is_refused),
        TEST(cancel_ends_what_waits),
        TEST(a_checkpoint_goes_and_comes_though_everything_fails_now_and_then),
        cmocka_unit_test_setup_teardown(
            a_full_store_gives_up_the_oldest_that_would_go_anyway, setup_three, teardown),
        cmocka_unit_test_setup_teardown(
            a_full_store_keeps_the_last_and_what_is_pinned, setup_three, teardown),
        TEST(a_reply_that_is_damaged_on_its_way_sets_nothing_aside),
        cmocka_unit_test(urls_are_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
