/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uv/http_admission.h"
#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY_MAX (HTTP_PARTY_NAME_MAX + 4)

void http_admission_deinit(struct http_admission *a)
{
    assert(smap_size(&a->parties) == 0);
    smap_deinit(&a->parties);
}

static void make_key(enum http_class class, const char *name, char key[KEY_MAX])
{
    snprintf(key, KEY_MAX, "%d:%.*s", (int)class, HTTP_PARTY_NAME_MAX - 1, name);
}

static struct http_party *create_party(
    struct http_admission *a, enum http_class class, const char *name)
{
    char key[KEY_MAX];
    struct http_party *p = mem_alloc(sizeof(*p));
    p->class = class;
    STR_COPY(p->name, name);
    make_key(class, name, key);
    smap_put(&a->parties, key, p);
    list_push_back(&a->classes[class].parties, &p->link);
    return p;
}

static void destroy_party(struct http_admission *a, struct http_party *p)
{
    char key[KEY_MAX];
    assert(list_is_empty(&p->turns) && list_is_empty(&p->events) && !link_is_in(&p->turn));
    make_key(p->class, p->name, key);
    smap_remove(&a->parties, key);
    link_remove(&p->link);
    free(p);
}

/* The party's oldest connection that may give way, except h; NULL if none. with_bytes: only those
 * that hold bytes. */
static struct http_holder *oldest(
    const struct http_party *p, const struct http_holder *h, bool with_bytes)
{
    LIST_FOREACH (&p->holders, l) {
        struct http_holder *other = LIST_ENTRY(l, struct http_holder, link);
        if (other != h && other->may_give_way && (!with_bytes || other->bytes > 0))
            return other;
    }
    return NULL;
}

/* Picks from the party with the most. Ties go to the asking party, `own`, which has own_most. */
static struct http_holder *find_victim(const struct http_class_use *c, const struct http_holder *h,
    struct http_party *own, size_t own_most, bool by_bytes)
{
    struct http_party *largest = own;
    size_t most = own_most;
    LIST_FOREACH (&c->parties, l) {
        struct http_party *p = LIST_ENTRY(l, struct http_party, link);
        size_t has = by_bytes ? p->bytes : (size_t)p->n_holders;
        if (p != own && has > most && oldest(p, h, by_bytes)) {
            largest = p;
            most = has;
        }
    }
    return largest ? oldest(largest, h, by_bytes) : NULL;
}

static void enter(struct http_admission *a, struct http_holder *h, struct http_party *p)
{
    size_t bytes = h->bytes;
    http_admission_leave(a, h);
    h->party = p;
    h->bytes = bytes;
    list_push_back(&p->holders, &h->link);
    p->n_holders++;
    p->bytes += bytes;
    a->classes[p->class].n_holders++;
    a->classes[p->class].bytes += bytes;
}

enum http_verdict http_admission_enter(struct http_admission *a, struct http_holder *h,
    enum http_class class, const char *name, struct http_holder **ret_victim)
{
    struct http_class_use *c = &a->classes[class];
    char key[KEY_MAX];
    make_key(class, name, key);
    struct http_party *p = smap_get(&a->parties, key);
    if (p && h->party == p)
        return HTTP_ADMITTED;
    if (p && c->limits.max_connections_each > 0 && p->n_holders >= c->limits.max_connections_each) {
        *ret_victim = oldest(p, h, false);
        return *ret_victim ? HTTP_GIVES_WAY : HTTP_PARTY_FULL;
    }
    bool is_in_class = h->party && h->party->class == class;
    if (!is_in_class && c->n_holders >= c->limits.max_connections) {
        *ret_victim = find_victim(c, h, p, p ? (size_t)p->n_holders : 0, false);
        return *ret_victim ? HTTP_GIVES_WAY : HTTP_CLASS_FULL;
    }
    enter(a, h, p ? p : create_party(a, class, name));
    return HTTP_ADMITTED;
}

struct http_holder *http_admission_victim(const struct http_admission *a, enum http_class class)
{
    return find_victim(&a->classes[class], NULL, NULL, 0, false);
}

void http_admission_leave(struct http_admission *a, struct http_holder *h)
{
    struct http_party *p = h->party;
    if (!p)
        return;
    assert(!link_is_in(&h->turn));
    http_admission_give_back(a, h, h->bytes);
    link_remove(&h->link);
    h->party = NULL;
    a->classes[p->class].n_holders--;
    if (--p->n_holders == 0)
        destroy_party(a, p);
}

static bool exceeds_party(const struct http_admission *a, const struct http_holder *h, size_t n)
{
    size_t max = a->classes[h->party->class].limits.max_bytes_each;
    return max > 0 && h->party->bytes + n > max;
}

static bool exceeds_class(const struct http_admission *a, const struct http_holder *h, size_t n)
{
    const struct http_class_use *c = &a->classes[h->party->class];
    return c->bytes + n > c->limits.max_bytes;
}

static enum http_verdict take_in_class(
    struct http_admission *a, struct http_holder *h, size_t n, struct http_holder **ret_victim)
{
    struct http_party *p = h->party;
    if (exceeds_class(a, h, n)) {
        *ret_victim = find_victim(&a->classes[p->class], h, p, p->bytes, true);
        return *ret_victim ? HTTP_GIVES_WAY : HTTP_CLASS_FULL;
    }
    http_admission_add(a, h, n);
    return HTTP_ADMITTED;
}

enum http_verdict http_admission_take(
    struct http_admission *a, struct http_holder *h, size_t n, struct http_holder **ret_victim)
{
    return exceeds_party(a, h, n) ? HTTP_PARTY_FULL : take_in_class(a, h, n, ret_victim);
}

enum http_verdict http_admission_take_reply(
    struct http_admission *a, struct http_holder *h, size_t n, struct http_holder **ret_victim)
{
    if (exceeds_party(a, h, n) && h->party->bytes > h->bytes)
        return HTTP_PARTY_FULL;
    if (a->classes[h->party->class].bytes > h->bytes)
        return take_in_class(a, h, n, ret_victim);
    http_admission_add(a, h, n);
    return HTTP_ADMITTED;
}

void http_admission_add(struct http_admission *a, struct http_holder *h, size_t n)
{
    h->bytes += n;
    h->party->bytes += n;
    a->classes[h->party->class].bytes += n;
}

void http_admission_give_back(struct http_admission *a, struct http_holder *h, size_t n)
{
    if (n == 0)
        return;
    assert(h->bytes >= n && h->party->bytes >= n && a->classes[h->party->class].bytes >= n);
    h->bytes -= n;
    h->party->bytes -= n;
    a->classes[h->party->class].bytes -= n;
}
