/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of operations, a table of failures, and every kind of store: whichever call fails, in
 * whichever way, or kills its caller, afterwards the newest committed checkpoint or the previous
 * one exists, bit for bit, and the operation can be repeated. Also, every byte of every object may
 * be damaged.
 *
 *     test_stores file|s3|swift|gs|az [thorough]
 */
#include "tests/ckpt/tools.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "ckpt/store/store_net.h"
#include "tests/ckpt/object_server.h"
#include "tests/ckpt/store_fault.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1u << 20)
#define PART_BYTES (MIB / 2) /* so that a chunk can have three */
#define CALLS_MAX 120        /* per operation; more means an endless loop */

/* ---- kinds of store ---- */

struct kind {
    const char *name;
    const char *url; /* of a server, followed by its port; NULL for files */
    enum store_keys_kind keys;
    bool is_unconditional;
    bool sweeps; /* kill at every request, not only at every sort */
    bool has_parts;
};

static const struct kind kinds[] = {
    {"file", NULL, 0, false, true, false},
    {"s3", "s3://jobs/lab?endpoint=http://127.0.0.1:", STORE_KEYS_AWS, false, true, true},
    {"swift", "s3://jobs/lab?endpoint=http://127.0.0.1:", STORE_KEYS_AWS, true, false, true},
    {"gs", "gs://jobs/lab?endpoint=http://127.0.0.1:", STORE_KEYS_GOOGLE, false, true, false},
    {"az", "az://lab1/jobs/lab?endpoint=http://127.0.0.1:", STORE_KEYS_AZURE, false, true, true},
};

struct world {
    const struct kind *kind;
    struct scratch s; /* s.job.store is reopened for each operation */
    struct object_server server;
    struct store_net *net;
    struct snapshot files; /* content of the store in files */
    char first[400];       /* the tree of checkpoint 1.1 */
    bool is_thorough;
    char sorts[SERVER_SORTS_MAX][64]; /* of an operation's requests */
    int n_rehearsed;
    struct smap tried;
};

static struct world world;

static struct doing { /* printed with a failure */
    const char *deed, *how;
    int at;
} doing;

static void open_store(struct world *w)
{
    struct store_keys k = {.expires = WALL_NONE,
        .kind = w->kind->keys,
        .access_key = "A",
        .secret_key = "S",
        .token = "t"};
    char url[400];
    struct err e;

    if (!w->kind->url) {
        snprintf(url, sizeof(url), "file://%s", w->s.store);
    } else {
        char root[64];

        w->net = store_net_create(NULL, NULL);
        store_auth_set(store_net_auth(w->net, k.kind), &k);
        snprintf(root, sizeof(root), "http://127.0.0.1:%d", w->server.port);
        atomic_store(&store_net_facts(w->net, root)->backoff_ms, 1);
        atomic_store(&store_net_facts(w->net, root)->part_bytes, PART_BYTES);
        snprintf(url, sizeof(url), "%s%d", w->kind->url, w->server.port);
    }
    OK(store_open(url, &(struct store_options){.net = w->net}, &w->s.job.store, &e));
}

static void close_store(struct world *w)
{
    store_close(w->s.job.store);
    store_net_destroy(w->net);
    w->s.job.store = NULL;
    w->net = NULL;
}

/* Records the initial state of every case of an operation. */
static void take(struct world *w)
{
    if (w->kind->url)
        object_server_take(&w->server);
    else
        snapshot_take(&w->s, &w->files);
}

static void put_back(struct world *w)
{
    if (w->kind->url)
        object_server_put_back(&w->server);
    else
        snapshot_put_back(&w->s, &w->files);
}

static void clear(struct world *w)
{
    struct err e;

    snapshot_deinit(&w->files);
    if (w->kind->url)
        object_server_clear(&w->server);
    else
        OK(fs_remove_tree(path_in(w->s.store, "lab"), &e));
}

/* ---- failures ---- */

/* With files a call fails, with servers a request. */
struct fault {
    const char *name;
    enum server_fault server;
    enum fault_mode file;
    enum err_kind file_kind;
    bool kills;
};

static const struct fault file_faults[] = {
    {"fails", 0, FAULT_ONCE, ERR_IO, false},
    {"full", 0, FAULT_ONCE, ERR_NO_SPACE, false},
    {"done, and fails", 0, FAULT_REPLY, ERR_IO, false},
    {"full from then on", 0, FAULT_ONWARD, ERR_NO_SPACE, false},
    {"kills", 0, FAULT_HOOK, ERR_IO, true},
    {NULL, 0, 0, 0, false},
};

static const struct fault *fault_at(const struct world *w, size_t i, struct fault *buffer)
{
    if (!w->kind->url)
        return file_faults[i].name ? &file_faults[i] : NULL;
    enum server_fault f = SERVER_FINE + 1 + (enum server_fault)i;
    *buffer = (struct fault){.name = f < SERVER_FAULTS ? server_fault_names[f] : NULL,
        .server = f,
        .kills = f == SERVER_KILL_BEFORE || f == SERVER_KILL_AFTER};
    return buffer->name ? buffer : NULL;
}

static void die(void *ctx)
{
    (void)ctx;
    kill(getpid(), SIGKILL);
}

/* ---- operations ---- */

struct deed {
    const char *name;
    void (*prepare)(struct world *w);
    int (*act)(struct world *w, struct err *e);
    /* Checks the state, without faults. is_done: the operation returned success. */
    void (*check)(struct world *w, bool is_done);
    bool needs_parts;
};

static int keep_one(struct world *w, int64_t attempt, int newest, struct err *e)
{
    return ckpt_clean(&w->s.job, attempt, (struct ckpt_keep){.newest = newest}, NULL, NULL, e);
}

static struct ckpt_restored restored(struct world *w, int64_t before)
{
    struct ckpt_restored r;
    struct err e;

    OK(ckpt_restore(&w->s.job, before, w->s.out, NULL, &r, &e));
    return r;
}

static void save_tree(struct world *w, int64_t attempt, int64_t sequence, int64_t number)
{
    make_tree(w->s.tree, number);
    save(&w->s, attempt, sequence);
}

static void prepare_one(struct world *w)
{
    struct err e;

    OK(ckpt_fence(&w->s.job, 1, &e));
    save_tree(w, 1, 1, 1);
    make_tree(w->s.tree, 2);
}

static int act_save(struct world *w, struct err *e)
{
    struct ckpt_stats stats;

    return ckpt_save(&w->s.job, (struct ckpt_id){1, 2}, w->s.tree, 2, NULL, &stats, e);
}

static void check_is_one_of(struct world *w, struct ckpt_id newest, bool is_newest)
{
    struct ckpt_restored r = restored(w, newest.attempt + 1);

    assert_int_equal(r.damaged, 0);
    if (is_newest || (r.id.attempt == newest.attempt && r.id.sequence == newest.sequence)) {
        assert_int_equal(r.id.attempt, newest.attempt);
        assert_int_equal(r.id.sequence, newest.sequence);
        assert_tree_is(w->s.out, 2);
    } else {
        assert_int_equal(r.id.attempt, 1);
        assert_int_equal(r.id.sequence, 1);
        assert_tree_is(w->s.out, 1);
    }
}

/* Repeats the save with the next number, as an agent does. */
static void check_save(struct world *w, bool is_done)
{
    check_is_one_of(w, (struct ckpt_id){1, 2}, is_done);
    if (is_done)
        return;
    save(&w->s, 1, 3);
    check_is_one_of(w, (struct ckpt_id){1, 3}, true);
}

static void prepare_second(struct world *w)
{
    struct err e;

    prepare_one(w);
    write_text(w->s.tree, "new", "x");
    /* in a separate chunk, not shared with the other file */
    write_random(w->s.tree, "large", MIB, 1);
    save(&w->s, 1, 2);
    OK(ckpt_fence(&w->s.job, 2, &e));
}

/* Content saved by an earlier attempt. */
static int act_link(struct world *w, struct err *e)
{
    struct ckpt_stats stats;

    return ckpt_save(&w->s.job, (struct ckpt_id){2, 1}, w->s.tree, 2, NULL, &stats, e);
}

static void check_link(struct world *w, bool is_done)
{
    struct ckpt_restored r = restored(w, 3);

    assert_int_equal(r.damaged, 0);
    assert_same_tree(w->s.tree, w->s.out);
    if (is_done || r.id.attempt == 2)
        assert_int_equal(r.id.attempt, 2);
    else
        assert_int_equal(r.id.sequence, 2);
}

static int act_fence(struct world *w, struct err *e)
{
    return ckpt_fence(&w->s.job, 2, e);
}

static void check_fence(struct world *w, bool is_done)
{
    struct err e;

    if (!is_done)
        OK(ckpt_fence(&w->s.job, 2, &e));
    FAILS(ERR_CONFLICT, act_save(w, &e));
    assert_int_equal(restored(w, 2).id.sequence, 1);
    assert_tree_is(w->s.out, 1);
}

static void prepare_two(struct world *w)
{
    prepare_one(w);
    write_random(w->s.tree, "large", MIB + 1, 2);
    save(&w->s, 1, 2);
}

static int act_restore(struct world *w, struct err *e)
{
    struct ckpt_restored r = {0};
    int rc = ckpt_restore(&w->s.job, 2, w->s.out, NULL, &r, e);

    return rc || r.id.sequence == 2 ? rc
                                    : err_set(e, ERR_CORRUPT, "restored %d", (int)r.id.sequence);
}

/* The store is intact, so nothing is set aside, and the newest is restored. */
static void check_restore(struct world *w, bool is_done)
{
    if (is_done || fs_exists(w->s.out))
        assert_same_tree(w->s.tree, w->s.out);
    struct ckpt_restored r = restored(w, 2);
    assert_int_equal(r.damaged, 0);
    assert_int_equal(r.id.sequence, 2);
    assert_same_tree(w->s.tree, w->s.out);
}

static void change_object(struct world *w, const char *name, const void *p, size_t n)
{
    struct store *s = w->s.job.store;
    struct err e;

    OK(s->ops->remove(s, &name, 1, &e));
    OK(s->ops->create(s, name, p, n, &e));
}

static void prepare_damaged(struct world *w)
{
    prepare_two(w);
    change_object(w, "lab/jobs/7/manifests/0000000001-0000000002.json", "{}", 2);
}

static int act_fall_back(struct world *w, struct err *e)
{
    struct ckpt_restored r;

    return ckpt_restore(&w->s.job, 2, w->s.out, NULL, &r, e);
}

static void check_fall_back(struct world *w, bool is_done)
{
    struct err e;

    if (is_done)
        assert_tree_is(w->s.out, 1);
    assert_int_equal(restored(w, 2).id.sequence, 1);
    assert_tree_is(w->s.out, 1);
    FAILS(ERR_NOT_FOUND, ckpt_verify(&w->s.job, (struct ckpt_id){1, 2}, &e));
}

/* Two checkpoints of one attempt, the first of them pinned, and one of the next attempt. */
static void prepare_many(struct world *w)
{
    struct err e;

    prepare_one(w);
    save(&w->s, 1, 2);
    OK(ckpt_pin(&w->s.job, (struct ckpt_id){1, 1}, &e));
    OK(ckpt_fence(&w->s.job, 2, &e));
    save_tree(w, 2, 1, 3);
}

static int act_clean(struct world *w, struct err *e)
{
    return keep_one(w, 2, 1, e);
}

static int count_names(void *ctx, const char *name, int64_t size_bytes)
{
    (void)size_bytes;
    *(int *)ctx += strstr(name, "/fences/") == NULL;
    return 0;
}

/* Expects n checkpoints with a manifest and a chunk each, and one pin. */
static void assert_only(struct world *w, int n_checkpoints)
{
    struct store *s = w->s.job.store;
    struct err e;
    int n = 0;

    OK(s->ops->list(s, "lab/jobs/7/", count_names, &n, &e));
    assert_int_equal(n, 2 * n_checkpoints + 1);
}

static void check_clean(struct world *w, bool is_done)
{
    struct err e;

    OK(ckpt_verify(&w->s.job, (struct ckpt_id){1, 1}, &e));
    OK(ckpt_verify(&w->s.job, (struct ckpt_id){2, 1}, &e));
    if (!is_done)
        OK(act_clean(w, &e));
    assert_only(w, 2);
    assert_int_equal(restored(w, 3).id.attempt, 2);
    assert_tree_is(w->s.out, 3);
}

static int act_end(struct world *w, struct err *e)
{
    int rc = ckpt_fence(&w->s.job, CKPT_CLOSED, e);

    return rc ? rc : keep_one(w, CKPT_CLOSED, 0, e);
}

static void check_end(struct world *w, bool is_done)
{
    struct err e;

    OK(ckpt_verify(&w->s.job, (struct ckpt_id){1, 1}, &e));
    if (!is_done)
        OK(act_end(w, &e));
    assert_only(w, 1);
    FAILS(ERR_CONFLICT, act_save(w, &e));
}

/* Its chunk is sent in parts, like a manifest of very many files. */
static void prepare_large(struct world *w)
{
    prepare_one(w);
    write_random(w->s.tree, "large", 3 * PART_BYTES - 1, 1);
}

static void check_large(struct world *w, bool is_done)
{
    struct ckpt_restored r = restored(w, 2);

    assert_int_equal(r.damaged, 0);
    assert_in_range(r.id.sequence, is_done ? 2 : 1, 2);
    if (r.id.sequence == 2)
        assert_same_tree(w->s.tree, w->s.out);
    else
        assert_tree_is(w->s.out, 1);
    if (is_done)
        return;
    save(&w->s, 1, 3);
    assert_int_equal(restored(w, 2).id.sequence, 3);
    assert_same_tree(w->s.tree, w->s.out);
}

/* Of the first pack little is live by now: its rest is stored again, and cleaning removes it. */
static void prepare_sparse(struct world *w)
{
    prepare_one(w);
    save(&w->s, 1, 2);
    make_tree(w->s.tree, 3);
}

static int act_compact(struct world *w, struct err *e)
{
    struct ckpt_stats stats;
    int rc = ckpt_save(&w->s.job, (struct ckpt_id){1, 3}, w->s.tree, 3, NULL, &stats, e);

    return rc ? rc : keep_one(w, 1, 1, e);
}

static void check_compact(struct world *w, bool is_done)
{
    struct ckpt_restored r = restored(w, 2);
    struct store *s = w->s.job.store;
    struct err e;
    int n = 0;

    assert_int_equal(r.damaged, 0);
    assert_in_range(r.id.sequence, is_done ? 3 : 2, 3);
    assert_tree_is(w->s.out, r.id.sequence);
    if (!is_done)
        save(&w->s, 1, 4);
    OK(keep_one(w, 1, 1, &e));
    assert_int_equal(restored(w, 2).id.sequence, is_done ? 3 : 4);
    assert_tree_is(w->s.out, 3);
    OK(s->ops->list(s, "lab/jobs/7/chunks/", count_names, &n, &e));
    assert_int_equal(n, 1);
}

static const struct deed deeds[] = {
    {"save", prepare_one, act_save, check_save},
    {"save what another attempt has", prepare_second, act_link, check_link},
    {"fence", prepare_one, act_fence, check_fence},
    {"restore", prepare_two, act_restore, check_restore},
    {"restore with damage", prepare_damaged, act_fall_back, check_fall_back},
    {"compact", prepare_sparse, act_compact, check_compact},
    {"clean", prepare_many, act_clean, check_clean},
    {"end", prepare_many, act_end, check_end},
    {"save in parts", prepare_large, act_save, check_large, .needs_parts = true},
};

/* ---- every fault at every call of every operation ---- */

/* In a child, which may be killed. */
static bool act_in_child(struct world *w, const struct deed *d, const struct fault *f, int at)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct store_fault file;
        struct err e;

        open_store(w);
        if (w->kind->url) {
            atomic_store(&w->server.orders->victim, getpid());
            object_server_order(&w->server, f->server, at);
        } else {
            store_fault_init(&file, w->s.job.store, f->file, at);
            file.hook = die;
            w->s.job.store = &file.base;
        }
        _exit(d->act(w, &e) != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    return WIFSIGNALED(status);
}

/* True if the fault occurred. */
static bool act_here(
    struct world *w, const struct deed *d, const struct fault *f, int at, int *ret_rc)
{
    struct store_fault file;
    struct err e;
    bool struck;

    open_store(w);
    if (w->kind->url)
        object_server_order(&w->server, f->server, at);
    store_fault_init(&file, w->s.job.store, f->file, at);
    file.kind = f->file_kind;
    if (!w->kind->url)
        w->s.job.store = &file.base;
    *ret_rc = d->act(w, &e);
    w->s.job.store = file.inner;
    struck =
        w->kind->url ? atomic_load(&w->server.orders->n_struck) > 0 : atomic_load(&file.struck) > 0;
    w->n_rehearsed = w->kind->url ? atomic_load(&w->server.orders->n) : atomic_load(&file.calls);
    if (*ret_rc && !struck)
        check_ok(*ret_rc, &e, d->name, __FILE__, __LINE__);
    close_store(w);
    return struck;
}

static bool run_case(struct world *w, const struct deed *d, const struct fault *f, int at)
{
    bool struck;
    struct err e;
    int rc = 0;

    put_back(w);
    OK(fs_remove_tree(w->s.out, &e));
    OK(fs_remove_tree(path_in(w->s.dir, "out.restoring"), &e));
    struck = f->kills ? act_in_child(w, d, f, at) : act_here(w, d, f, at, &rc);
    if (w->kind->url)
        object_server_order(&w->server, SERVER_FINE, 0);
    open_store(w);
    d->check(w, f->kills ? !struck : rc == 0);
    close_store(w);
    return struck;
}

/* Transient faults are retried in one place, so they hit every sort of request only once. Faults
 * that end the operation hit every request: kills with every kind of store, the others with one. */
static bool is_new(struct world *w, const struct fault *f, int at, int n)
{
    char text[200];

    if (!w->kind->url || w->is_thorough || at > n ||
        (f->server == SERVER_KILL_AFTER && w->kind->sweeps) ||
        (f->server == SERVER_DENIED_ONWARD && w->kind == &kinds[1]))
        return true;
    snprintf(text, sizeof(text), "%s: %s", f->name, w->sorts[at - 1]);
    if (smap_get(&w->tried, text))
        return false;
    smap_put(&w->tried, text, w);
    return true;
}

/* Records the operation's requests without faults; returns their number. */
static int rehearse(struct world *w, const struct deed *d)
{
    static const struct fault none = {.name = "none"};

    run_case(w, d, &none, 0);
    memcpy(w->sorts, w->server.orders->sorts, sizeof(w->sorts));
    return w->n_rehearsed;
}

static void run_deed(struct world *w, const struct deed *d)
{
    struct fault buffer;
    const struct fault *f;
    int at, n_cases = 0, n = 0;

    open_store(w);
    d->prepare(w);
    take(w);
    close_store(w);
    if (w->kind->url)
        n = rehearse(w, d);
    for (size_t i = 0; (f = fault_at(w, i, &buffer)); i++) {
        for (at = 1; at < CALLS_MAX; at++) {
            doing = (struct doing){d->name, f->name, at};
            if (!is_new(w, f, at, n))
                continue;
            n_cases++;
            if (!run_case(w, d, f, at))
                break;
        }
        assert_in_range(at, 2, CALLS_MAX - 1);
    }
    doing.deed = NULL;
    print_message("%s, %s: %d calls, %d cases\n", w->kind->name, d->name, n ? n : at - 1, n_cases);
    clear(w);
}

/* ---- every byte of every object ---- */

#define SAMPLES 6 /* bytes of an object: the first, the last, and others */
#define OBJECTS_MAX 16

struct listed {
    char names[OBJECTS_MAX][200];
    size_t n;
};

static int note_name(void *ctx, const char *name, int64_t size_bytes)
{
    struct listed *l = ctx;

    (void)size_bytes;
    assert_true(l->n < OBJECTS_MAX);
    snprintf(l->names[l->n++], sizeof(l->names[0]), "%s", name);
    return 0;
}

static bool is_corrupt(struct world *w, int64_t sequence)
{
    struct err e;
    int rc = ckpt_verify(&w->s.job, (struct ckpt_id){1, sequence}, &e);

    if (rc != ERR_CORRUPT)
        check_ok(rc, &e, "verify", __FILE__, __LINE__);
    return rc == ERR_CORRUPT;
}

static void prepare_for_damage(struct world *w)
{
    struct err e;

    prepare_one(w);
    write_random(w->s.tree, "large", MIB + 1, 2);
    write_text(w->s.tree, "sub/noise", "the second has a chunk of its own for this");
    save(&w->s, 1, 2);
    OK(ckpt_pin(&w->s.job, (struct ckpt_id){1, 1}, &e));
    make_tree(w->first, 1);
}

/* Damage is set aside and reported, and the previous checkpoint is used; checkpoints other than the
 * newest are not read. */
static void check_damage(struct world *w, bool first_is_bad, bool second_is_bad)
{
    struct ckpt_restored r = restored(w, 2);
    struct store *s = w->s.job.store;
    struct err e;
    int n_aside = 0, bad = second_is_bad + (second_is_bad && first_is_bad);

    assert_int_equal(r.damaged, bad);
    assert_int_equal(r.damage[0] != '\0', bad > 0);
    assert_int_equal(r.id.sequence, !second_is_bad ? 2 : !first_is_bad ? 1 : 0);
    OK(s->ops->list(s, "lab/jobs/7/damaged/manifests/", count_names, &n_aside, &e));
    assert_int_equal(n_aside, bad);
    if (r.id.sequence)
        assert_same_tree(r.id.sequence == 2 ? w->s.tree : w->first, w->s.out);
    assert_int_equal(restored(w, 2).damaged, 0);
}

/* The names alone of fences and pins are effective. */
static void check_claims(struct world *w)
{
    struct err e;

    OK(keep_one(w, 1, 1, &e));
    OK(ckpt_verify(&w->s.job, (struct ckpt_id){1, 1}, &e));
    FAILS(ERR_CONFLICT, ckpt_remove(&w->s.job, (struct ckpt_id){1, 1}, &e));
    OK(ckpt_fence(&w->s.job, 1, &e));
    OK(ckpt_fence(&w->s.job, 2, &e));
    FAILS(ERR_CONFLICT, act_save(w, &e));
}

static void damage(struct world *w, const char *name, const void *p, size_t n)
{
    bool first, second, is_claim = strstr(name, "/fences/") || strstr(name, "/pins/");

    put_back(w);
    open_store(w);
    change_object(w, name, p, n);
    first = is_corrupt(w, 1);
    second = is_corrupt(w, 2);
    if (is_claim)
        assert_false(first || second);
    if (strstr(name, "/manifests/"))
        assert_true(first != second);
    check_damage(w, first, second);
    if (is_claim)
        check_claims(w);
    close_store(w);
}

static void damage_object(struct world *w, const char *name, struct prng *prng)
{
    struct buf b = {0};
    struct err e;

    put_back(w);
    open_store(w);
    OK(w->s.job.store->ops->read(w->s.job.store, name, 1 << 24, &b, &e));
    close_store(w);
    buf_addc(&b, 'x');
    damage(w, name, b.data, b.len--);
    for (size_t i = 0; i < SAMPLES && b.len > 0; i++) {
        size_t at = i == 0 ? 0 : i == 1 ? b.len - 1 : prng_below(prng, b.len);
        int bit = 1 << prng_below(prng, 8);

        damage(w, name, b.data, at);
        b.data[at] = (char)(b.data[at] ^ bit);
        damage(w, name, b.data, b.len);
        b.data[at] = (char)(b.data[at] ^ bit);
    }
    buf_deinit(&b);
}

static void when_any_byte_of_any_object_is_damaged_the_previous_checkpoint_is_used(void **state)
{
    struct world *w = &world;
    struct listed all = {.n = 0};
    struct prng prng;
    struct err e;

    (void)state;
    discard_log();
    prng_init(&prng, 7);
    open_store(w);
    prepare_for_damage(w);
    OK(w->s.job.store->ops->list(w->s.job.store, "", note_name, &all, &e));
    take(w);
    close_store(w);
    assert_int_equal(all.n, 3 + 2 + 1 + 1); /* two packs, a large file, manifests, a fence, a pin */
    for (size_t i = 0; i < all.n; i++) {
        doing = (struct doing){"damage", all.names[i], 0};
        damage_object(w, all.names[i], &prng);
    }
    doing.deed = NULL;
    clear(w);
    log_set_sink(NULL, NULL);
}

/* ---- */

static void whichever_call_fails_the_newest_or_the_previous_checkpoint_remains(void **state)
{
    (void)state;
    discard_log();
    for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++)
        if (world.kind->has_parts || !deeds[i].needs_parts)
            run_deed(&world, &deeds[i]);
    log_set_sink(NULL, NULL);
}

static int setup(void **state)
{
    (void)state;
    scratch_init(&world.s);
    store_close(world.s.job.store);
    world.s.job.store = NULL;
    snprintf(world.first, sizeof(world.first), "%s/first", world.s.dir);
    if (world.kind->url) {
        object_server_start(&world.server);
        atomic_store(&world.server.orders->unconditional, world.kind->is_unconditional);
    }
    return 0;
}

static int teardown(void **state)
{
    struct err e;

    (void)state;
    if (doing.deed)
        print_message("the last: %s, %s, call %d\n", doing.deed, doing.how, doing.at);
    if (world.s.job.store)
        close_store(&world);
    if (world.kind->url)
        object_server_stop(&world.server);
    snapshot_deinit(&world.files);
    smap_deinit(&world.tried);
    OK(fs_remove_tree(world.s.dir, &e));
    return 0;
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(whichever_call_fails_the_newest_or_the_previous_checkpoint_remains),
        TEST(when_any_byte_of_any_object_is_damaged_the_previous_checkpoint_is_used),
    };

    world.is_thorough = argc == 3 && str_eq(argv[2], "thorough");
    for (size_t i = 0; argc == 2 + world.is_thorough && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (str_eq(argv[1], kinds[i].name))
            world.kind = &kinds[i];
    if (!world.kind) {
        fprintf(stderr, "usage: test_stores file|s3|swift|gs|az [thorough]\n");
        return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
