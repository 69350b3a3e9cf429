/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares of connections and bytes: which party is refused or gives way at which limit, that
 * everything given back is available again, and that no class takes from another. A long random
 * sequence is compared with a model that recounts a table of holders.
 */
#include "base/prng.h"
#include "base/str.h"
#include "base/uv/http_admission.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* after those above */
#include <cmocka.h>

#define SEED 1
#define STEPS 100000
#define HOLDERS 40
#define NAMES 5

static const struct http_class_limits limits_of[HTTP_CLASSES] = {
    [HTTP_STRANGER] = {.max_connections = 6, .max_bytes = 100},
    [HTTP_USER] = {.max_connections = 10,
        .max_connections_each = 4,
        .max_bytes = 200,
        .max_bytes_each = 80},
    [HTTP_NODE] = {.max_connections = 8,
        .max_connections_each = 3,
        .max_bytes = 300,
        .max_bytes_each = 120},
};

static void begin(struct http_admission *a)
{
    *a = (struct http_admission){0};
    for (int c = 0; c < HTTP_CLASSES; c++)
        a->classes[c].limits = limits_of[c];
}

static enum http_verdict enter(
    struct http_admission *a, struct http_holder *h, enum http_class class, const char *name)
{
    struct http_holder *victim = NULL;
    enum http_verdict v = http_admission_enter(a, h, class, name, &victim);
    assert_true((v == HTTP_GIVES_WAY) == (victim != NULL));
    return v;
}

static struct http_holder *victim_of_enter(
    struct http_admission *a, struct http_holder *h, enum http_class class, const char *name)
{
    struct http_holder *victim = NULL;
    assert_int_equal(http_admission_enter(a, h, class, name, &victim), HTTP_GIVES_WAY);
    return victim;
}

static enum http_verdict take(struct http_admission *a, struct http_holder *h, size_t n)
{
    struct http_holder *victim = NULL;
    enum http_verdict v = http_admission_take(a, h, n, &victim);
    assert_true((v == HTTP_GIVES_WAY) == (victim != NULL));
    return v;
}

static void leave_all(struct http_admission *a, struct http_holder *h, int n)
{
    for (int i = 0; i < n; i++)
        http_admission_leave(a, &h[i]);
}

static void assert_empty(struct http_admission *a)
{
    for (int c = 0; c < HTTP_CLASSES; c++) {
        assert_int_equal(a->classes[c].n_holders, 0);
        assert_int_equal(a->classes[c].bytes, 0);
        assert_true(list_is_empty(&a->classes[c].parties));
    }
    http_admission_deinit(a);
}

/* As many as one party may have, then none until one leaves. */
static void check_connections_of_one(enum http_class class)
{
    struct http_admission a;
    struct http_holder h[HOLDERS] = {0};
    const int most = limits_of[class].max_connections_each;
    begin(&a);
    for (int i = 0; i < most; i++)
        assert_int_equal(enter(&a, &h[i], class, "one"), HTTP_ADMITTED);
    assert_int_equal(enter(&a, &h[most], class, "one"), HTTP_PARTY_FULL);
    assert_null(h[most].party);
    assert_int_equal(enter(&a, &h[most + 1], class, "another"), HTTP_ADMITTED);
    assert_int_equal(enter(&a, &h[0], class, "one"), HTTP_ADMITTED); /* already in it */
    assert_int_equal(a.classes[class].n_holders, most + 1);
    h[1].may_give_way = true;
    assert_ptr_equal(victim_of_enter(&a, &h[most], class, "one"), &h[1]);
    http_admission_leave(&a, &h[1]);
    assert_int_equal(enter(&a, &h[most], class, "one"), HTTP_ADMITTED);
    leave_all(&a, h, HOLDERS);
    assert_empty(&a);
}

static void connections_per_user_and_node_are_limited(void **state)
{
    (void)state;
    check_connections_of_one(HTTP_USER);
    check_connections_of_one(HTTP_NODE);
}

/* An address has no limit of its own: it gives way when others arrive. */
static void in_a_full_class_the_oldest_connection_of_the_largest_party_gives_way(void **state)
{
    (void)state;
    struct http_admission a;
    struct http_holder h[HOLDERS] = {0};
    begin(&a);
    for (int i = 0; i < 6; i++)
        assert_int_equal(enter(&a, &h[i], HTTP_STRANGER, i < 2 ? "small" : "large"), HTTP_ADMITTED);
    assert_int_equal(
        enter(&a, &h[6], HTTP_STRANGER, "new"), HTTP_CLASS_FULL); /* no connection may be closed */
    for (int i = 0; i < 6; i++)
        h[i].may_give_way = i != 2;
    assert_ptr_equal(victim_of_enter(&a, &h[6], HTTP_STRANGER, "new"), &h[3]);
    assert_ptr_equal(victim_of_enter(&a, &h[6], HTTP_STRANGER, "small"), &h[3]);
    assert_ptr_equal(victim_of_enter(&a, &h[6], HTTP_STRANGER, "large"), &h[3]); /* its own */
    assert_ptr_equal(http_admission_victim(&a, HTTP_STRANGER), &h[3]);
    assert_null(http_admission_victim(&a, HTTP_NODE));
    http_admission_leave(&a, &h[3]);
    assert_int_equal(enter(&a, &h[6], HTTP_STRANGER, "new"), HTTP_ADMITTED);
    leave_all(&a, h, HOLDERS);
    assert_empty(&a);
}

/* Lets others give way until h is admitted; the name of the party that lost last, "" if none. */
static const char *enter_at_once(
    struct http_admission *a, struct http_holder *h, const char *name, int max_victims)
{
    static char loser[HTTP_PARTY_NAME_MAX];
    struct http_holder *victim;
    loser[0] = '\0';
    for (int i = 0; http_admission_enter(a, h, HTTP_STRANGER, name, &victim) == HTTP_GIVES_WAY;
         i++) {
        assert_true(i < max_victims);
        STR_COPY(loser, victim->party->name);
        http_admission_leave(a, victim);
    }
    assert_non_null(h->party);
    return loser;
}

/* There is no cap per address: many clients behind one NAT may use all places if they are alone.
 * But a flood from one address does not lock out others: each address below its share gets a place
 * at once from those above theirs, and loses nothing within its share. */
static void an_address_gets_its_share_of_connections_at_once(void **state)
{
    (void)state;
    enum { PLACES = 60, ADDRESSES = 4, SHARE = PLACES / ADDRESSES };
    struct http_admission a;
    static struct http_holder flood[PLACES + 200], others[ADDRESSES - 1][SHARE];
    memset(flood, 0, sizeof(flood));
    memset(others, 0, sizeof(others));
    char name[16];
    int n_flood = 0;
    begin(&a);
    a.classes[HTTP_STRANGER].limits.max_connections = PLACES;
    for (; n_flood < PLACES; n_flood++) {
        flood[n_flood].may_give_way = true;
        assert_int_equal(enter(&a, &flood[n_flood], HTTP_STRANGER, "flood"), HTTP_ADMITTED);
    }
    for (int k = 0; k < SHARE; k++)
        for (int i = 0; i < ADDRESSES - 1; i++) {
            snprintf(name, sizeof(name), "a%d", i);
            others[i][k].may_give_way = true;
            assert_string_equal(enter_at_once(&a, &others[i][k], name, 1), "flood");
            /* and the continuing flood only takes from itself */
            flood[n_flood].may_give_way = true;
            assert_string_equal(enter_at_once(&a, &flood[n_flood++], "flood", 1), "flood");
        }
    for (int i = 0; i < 100; i++) {
        flood[n_flood].may_give_way = true;
        assert_string_equal(enter_at_once(&a, &flood[n_flood++], "flood", 1), "flood");
    }
    assert_int_equal(a.classes[HTTP_STRANGER].n_holders, PLACES);
    for (int i = 0; i < ADDRESSES - 1; i++)
        for (int k = 0; k < SHARE; k++)
            assert_non_null(others[i][k].party);
    leave_all(&a, flood, n_flood);
    for (int i = 0; i < ADDRESSES - 1; i++)
        leave_all(&a, others[i], SHARE);
    assert_empty(&a);
}

/* The same for bytes: 100 in all. */
static void an_address_gets_its_share_of_bytes_at_once(void **state)
{
    (void)state;
    struct http_admission a;
    struct http_holder flood[20] = {0}, other = {0}, *victim;
    begin(&a);
    a.classes[HTTP_STRANGER].limits.max_connections = 100;
    assert_int_equal(enter(&a, &other, HTTP_STRANGER, "other"), HTTP_ADMITTED);
    other.may_give_way = true;
    for (int i = 0; i < 20; i++) {
        flood[i].may_give_way = true;
        assert_int_equal(enter(&a, &flood[i], HTTP_STRANGER, "flood"), HTTP_ADMITTED);
    }
    for (int i = 0; i < 10; i++)
        assert_int_equal(take(&a, &flood[i], 10), HTTP_ADMITTED);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(http_admission_take(&a, &other, 10, &victim), HTTP_GIVES_WAY);
        assert_ptr_equal(victim, &flood[i]);
        http_admission_give_back(&a, victim, victim->bytes); /* its body is answered with 503 */
        assert_int_equal(take(&a, &other, 10), HTTP_ADMITTED);
    }
    for (int i = 10; i < 15; i++) { /* half each: the flood takes from itself */
        assert_int_equal(http_admission_take(&a, &flood[i], 10, &victim), HTTP_GIVES_WAY);
        assert_string_equal(victim->party->name, "flood");
        http_admission_give_back(&a, victim, victim->bytes);
        assert_int_equal(take(&a, &flood[i], 10), HTTP_ADMITTED);
    }
    assert_int_equal(other.bytes, 50);
    leave_all(&a, flood, 20);
    http_admission_leave(&a, &other);
    assert_empty(&a);
}

static void bytes_are_shared_like_connections(void **state)
{
    (void)state;
    struct http_admission a;
    struct http_holder h[4] = {0}, *victim = NULL;
    begin(&a);
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof(name), "u%d", i);
        assert_int_equal(enter(&a, &h[i], HTTP_USER, name), HTTP_ADMITTED);
    }
    assert_int_equal(take(&a, &h[0], 80), HTTP_ADMITTED);
    assert_int_equal(take(&a, &h[0], 1), HTTP_PARTY_FULL);
    assert_int_equal(take(&a, &h[1], 70), HTTP_ADMITTED);
    assert_int_equal(take(&a, &h[2], 50), HTTP_ADMITTED);
    assert_int_equal(take(&a, &h[3], 1), HTTP_CLASS_FULL);
    h[1].may_give_way = h[2].may_give_way = true;
    assert_int_equal(http_admission_take(&a, &h[3], 1, &victim), HTTP_GIVES_WAY);
    assert_ptr_equal(victim, &h[1]); /* h[0] has more, but may not be interrupted */
    http_admission_give_back(&a, &h[1], 70);
    assert_int_equal(take(&a, &h[3], 70), HTTP_ADMITTED);
    http_admission_add(&a, &h[3], 1000); /* bytes already present are counted beyond any limit */
    assert_int_equal(a.classes[HTTP_USER].bytes, 1200);
    assert_int_equal(take(&a, &h[3], 1), HTTP_PARTY_FULL);
    leave_all(&a, h, 4);
    assert_empty(&a);
}

/* Otherwise a reply larger than the limit could never be sent. */
static void a_lone_reply_may_exceed_the_limits(void **state)
{
    (void)state;
    struct http_admission a;
    struct http_holder h[3] = {0}, *victim = NULL;
    begin(&a);
    assert_int_equal(enter(&a, &h[0], HTTP_USER, "one"), HTTP_ADMITTED);
    assert_int_equal(enter(&a, &h[1], HTTP_USER, "one"), HTTP_ADMITTED);
    assert_int_equal(enter(&a, &h[2], HTTP_USER, "another"), HTTP_ADMITTED);
    assert_int_equal(take(&a, &h[0], 10), HTTP_ADMITTED); /* its request */
    assert_int_equal(http_admission_take_reply(&a, &h[0], 1000, &victim), HTTP_ADMITTED);
    assert_int_equal(http_admission_take_reply(&a, &h[1], 1, &victim), HTTP_PARTY_FULL);
    assert_int_equal(http_admission_take_reply(&a, &h[2], 1, &victim), HTTP_CLASS_FULL);
    h[0].may_give_way = true;
    assert_int_equal(http_admission_take_reply(&a, &h[2], 1, &victim), HTTP_GIVES_WAY);
    assert_ptr_equal(victim, &h[0]);
    http_admission_leave(&a, &h[0]);
    assert_int_equal(http_admission_take_reply(&a, &h[1], 80, &victim), HTTP_ADMITTED);
    leave_all(&a, h, 3);
    assert_empty(&a);
}

/* With every limit of strangers and users exhausted, nodes still get all of theirs, and no node
 * gives way to another class. */
static void limits_of_strangers_and_users_do_not_affect_nodes(void **state)
{
    (void)state;
    struct http_admission a;
    struct http_holder others[HOLDERS] = {0}, nodes[HOLDERS] = {0}, *victim;
    const int n_nodes = limits_of[HTTP_NODE].max_connections;
    char name[16];
    begin(&a);
    for (int i = 0; i < n_nodes; i++) {
        snprintf(name, sizeof(name), "n%d", i / 3);
        assert_int_equal(enter(&a, &nodes[i], HTTP_NODE, name), HTTP_ADMITTED);
        nodes[i].may_give_way = true;
    }
    for (int i = 0; i < HOLDERS; i++) {
        enum http_class class = i % 2 ? HTTP_USER : HTTP_STRANGER;
        snprintf(name, sizeof(name), "n%d", i % 12); /* same names as nodes: the class decides */
        victim = NULL;
        enum http_verdict v = http_admission_enter(&a, &others[i], class, name, &victim);
        if (v == HTTP_GIVES_WAY)
            assert_int_not_equal(victim->party->class, HTTP_NODE);
        for (int k = 0; others[i].party && k < 200; k++) {
            victim = NULL;
            if (http_admission_take(&a, &others[i], 7, &victim) == HTTP_GIVES_WAY)
                assert_int_not_equal(victim->party->class, HTTP_NODE);
        }
    }
    assert_int_equal(a.classes[HTTP_STRANGER].n_holders, limits_of[HTTP_STRANGER].max_connections);
    assert_int_equal(a.classes[HTTP_USER].n_holders, limits_of[HTTP_USER].max_connections);
    assert_int_equal(a.classes[HTTP_NODE].n_holders, n_nodes);
    for (int i = 0; i < n_nodes; i++)
        assert_int_equal(take(&a, &nodes[i], 300 / 8), HTTP_ADMITTED);
    for (int i = 0; i < 3; i++) { /* and places given back by nodes are for nodes */
        http_admission_leave(&a, &nodes[i]);
        for (int k = 0; k < HOLDERS; k++)
            if (!others[k].party)
                (void)http_admission_enter(
                    &a, &others[k], k % 2 ? HTTP_USER : HTTP_STRANGER, "x", &victim);
        assert_int_equal(enter(&a, &nodes[i], HTTP_NODE, "back"), HTTP_ADMITTED);
    }
    leave_all(&a, others, HOLDERS);
    leave_all(&a, nodes, HOLDERS);
    assert_empty(&a);
}

/* A connection begins as an address's and moves, with its bytes, to the authenticated party. */
static void authentication_frees_the_share_of_the_address(void **state)
{
    (void)state;
    struct http_admission a;
    struct http_holder h[HOLDERS] = {0};
    begin(&a);
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof(name), "node%d", i);
        assert_int_equal(enter(&a, &h[i], HTTP_STRANGER, "gateway"), HTTP_ADMITTED);
        assert_int_equal(take(&a, &h[i], 30), HTTP_ADMITTED);
        assert_int_equal(enter(&a, &h[i], HTTP_NODE, name), HTTP_ADMITTED);
        assert_int_equal(h[i].bytes, 30);
    }
    assert_int_equal(a.classes[HTTP_STRANGER].n_holders, 0);
    assert_int_equal(a.classes[HTTP_STRANGER].bytes, 0);
    assert_int_equal(a.classes[HTTP_NODE].bytes, 240);
    assert_int_equal(enter(&a, &h[8], HTTP_STRANGER, "gateway"), HTTP_ADMITTED);
    assert_int_equal(enter(&a, &h[8], HTTP_NODE, "node8"), HTTP_CLASS_FULL); /* unchanged */
    assert_int_equal(h[8].party->class, HTTP_STRANGER);
    leave_all(&a, h, HOLDERS);
    assert_empty(&a);
}

/* ---- against a model ---- */

struct model_holder {
    bool is_in, may_give_way;
    int class, name;
    size_t bytes;
    long order; /* order of arrival in its party */
};

struct model {
    struct model_holder h[HOLDERS];
    long next_order;
};

static int count(const struct model *m, int class, int name)
{
    int n = 0;
    for (int i = 0; i < HOLDERS; i++)
        n += m->h[i].is_in && m->h[i].class == class && (name < 0 || m->h[i].name == name);
    return n;
}

static size_t sum(const struct model *m, int class, int name)
{
    size_t n = 0;
    for (int i = 0; i < HOLDERS; i++)
        if (m->h[i].is_in && m->h[i].class == class && (name < 0 || m->h[i].name == name))
            n += m->h[i].bytes;
    return n;
}

/* The oldest of that party that can give way, other than `self`; -1 if none. */
static int oldest(const struct model *m, int class, int name, int self, bool by_bytes)
{
    int found = -1;
    for (int i = 0; i < HOLDERS; i++) {
        const struct model_holder *h = &m->h[i];
        if (h->is_in && h->class == class && h->name == name && i != self && h->may_give_way &&
            (!by_bytes || h->bytes > 0) && (found < 0 || h->order < m->h[found].order))
            found = i;
    }
    return found;
}

/* Whether some party can give way to that one: itself, or one that has more. */
static bool somebody_can(const struct model *m, int class, int own, int self, bool by_bytes)
{
    size_t own_has = by_bytes ? sum(m, class, own) : (size_t)count(m, class, own);
    for (int name = 0; name < NAMES; name++) {
        size_t has = by_bytes ? sum(m, class, name) : (size_t)count(m, class, name);
        if ((name == own || has > own_has) && oldest(m, class, name, self, by_bytes) >= 0)
            return true;
    }
    return false;
}

/* Checks the class, that it is the oldest of its party, and that no party that can give way has
 * more. */
static void check_victim(
    const struct model *m, int class, int own, int self, bool by_bytes, int victim)
{
    const struct model_holder *v = &m->h[victim];
    size_t has = by_bytes ? sum(m, class, v->name) : (size_t)count(m, class, v->name);
    assert_true(v->is_in && v->class == class && v->may_give_way);
    assert_int_equal(victim, oldest(m, class, v->name, self, by_bytes));
    for (int name = 0; name < NAMES; name++) {
        size_t other = by_bytes ? sum(m, class, name) : (size_t)count(m, class, name);
        if (name != own && name != v->name && oldest(m, class, name, self, by_bytes) >= 0)
            assert_true(other <= has);
    }
}

static enum http_verdict model_enter(
    const struct model *m, int i, int class, int name, bool *ret_by_party)
{
    const struct http_class_limits *l = &limits_of[class];
    const struct model_holder *h = &m->h[i];
    *ret_by_party = false;
    if (h->is_in && h->class == class && h->name == name)
        return HTTP_ADMITTED;
    if (l->max_connections_each > 0 && count(m, class, name) >= l->max_connections_each) {
        *ret_by_party = true;
        return oldest(m, class, name, i, false) >= 0 ? HTTP_GIVES_WAY : HTTP_PARTY_FULL;
    }
    if (!(h->is_in && h->class == class) && count(m, class, -1) >= l->max_connections)
        return somebody_can(m, class, name, i, false) ? HTTP_GIVES_WAY : HTTP_CLASS_FULL;
    return HTTP_ADMITTED;
}

/* A reply may exceed a limit if its holder has everything counted. */
static enum http_verdict model_take(const struct model *m, int i, size_t n, bool is_reply)
{
    const struct model_holder *h = &m->h[i];
    const struct http_class_limits *l = &limits_of[h->class];
    size_t of_party = sum(m, h->class, h->name), of_class = sum(m, h->class, -1);
    if (l->max_bytes_each > 0 && of_party + n > l->max_bytes_each &&
        !(is_reply && of_party == h->bytes))
        return HTTP_PARTY_FULL;
    if (of_class + n > l->max_bytes && !(is_reply && of_class == h->bytes))
        return somebody_can(m, h->class, h->name, i, true) ? HTTP_GIVES_WAY : HTTP_CLASS_FULL;
    return HTTP_ADMITTED;
}

static void step_enter(
    struct http_admission *a, struct model *m, struct http_holder *h, int i, int class, int name)
{
    struct http_holder *victim = NULL;
    char text[16];
    bool by_party, was_there = m->h[i].is_in && m->h[i].class == class && m->h[i].name == name;
    snprintf(text, sizeof(text), "p%d", name);
    enum http_verdict want = model_enter(m, i, class, name, &by_party);
    assert_int_equal(http_admission_enter(a, &h[i], class, text, &victim), want);
    if (want == HTTP_GIVES_WAY && by_party)
        assert_int_equal(victim - h, oldest(m, class, name, i, false));
    else if (want == HTTP_GIVES_WAY)
        check_victim(m, class, name, i, false, (int)(victim - h));
    if (want != HTTP_ADMITTED || was_there)
        return;
    m->h[i].is_in = true;
    m->h[i].class = class;
    m->h[i].name = name;
    m->h[i].order = m->next_order++;
}

static void step_take(struct http_admission *a, struct model *m, struct http_holder *h, int i,
    size_t n, bool is_reply)
{
    struct http_holder *victim = NULL;
    enum http_verdict want = model_take(m, i, n, is_reply);
    enum http_verdict v = is_reply ? http_admission_take_reply(a, &h[i], n, &victim)
                                   : http_admission_take(a, &h[i], n, &victim);
    assert_int_equal(v, want);
    if (want == HTTP_GIVES_WAY)
        check_victim(m, m->h[i].class, m->h[i].name, i, true, (int)(victim - h));
    if (want == HTTP_ADMITTED)
        m->h[i].bytes += n;
}

static void step(struct http_admission *a, struct model *m, struct http_holder *h, struct prng *r)
{
    int i = (int)prng_below(r, HOLDERS);
    struct model_holder *x = &m->h[i];
    size_t n = (size_t)prng_below(r, 40);
    switch (prng_below(r, 6)) {
    case 0:
    case 1:
        step_enter(a, m, h, i, (int)prng_below(r, HTTP_CLASSES), (int)prng_below(r, NAMES));
        break;
    case 2:
        if (x->is_in)
            step_take(a, m, h, i, n * (prng_chance(r, 0.05) ? 10 : 1), prng_chance(r, 0.4));
        break;
    case 3:
        n = n < x->bytes ? n : x->bytes;
        if (x->is_in)
            http_admission_give_back(a, &h[i], n);
        x->bytes -= x->is_in ? n : 0;
        break;
    case 4:
        x->may_give_way = h[i].may_give_way = prng_chance(r, 0.5);
        break;
    default:
        http_admission_leave(a, &h[i]); /* no-op if it is in none */
        x->is_in = false;
        x->bytes = 0;
    }
}

static void check_sums(
    const struct http_admission *a, const struct model *m, const struct http_holder *h)
{
    size_t n_parties = 0;
    for (int c = 0; c < HTTP_CLASSES; c++) {
        assert_int_equal(a->classes[c].n_holders, count(m, c, -1));
        assert_int_equal(a->classes[c].bytes, sum(m, c, -1));
        for (int name = 0; name < NAMES; name++)
            n_parties += count(m, c, name) > 0;
    }
    assert_int_equal(smap_size(&a->parties), n_parties);
    for (int i = 0; i < HOLDERS; i++) {
        assert_int_equal(h[i].party != NULL, m->h[i].is_in);
        assert_int_equal(h[i].bytes, m->h[i].bytes);
    }
}

static void random_sequences_agree_with_the_model(void **state)
{
    (void)state;
    struct http_admission a;
    struct http_holder h[HOLDERS] = {0};
    struct model m = {0};
    struct prng r;
    prng_init(&r, SEED);
    begin(&a);
    for (int i = 0; i < STEPS; i++) {
        step(&a, &m, h, &r);
        check_sums(&a, &m, h);
    }
    leave_all(&a, h, HOLDERS);
    assert_empty(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_per_user_and_node_are_limited),
        cmocka_unit_test(in_a_full_class_the_oldest_connection_of_the_largest_party_gives_way),
        cmocka_unit_test(an_address_gets_its_share_of_connections_at_once),
        cmocka_unit_test(an_address_gets_its_share_of_bytes_at_once),
        cmocka_unit_test(bytes_are_shared_like_connections),
        cmocka_unit_test(a_lone_reply_may_exceed_the_limits),
        cmocka_unit_test(limits_of_strangers_and_users_do_not_affect_nodes),
        cmocka_unit_test(authentication_frees_the_share_of_the_address),
        cmocka_unit_test(random_sequences_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
