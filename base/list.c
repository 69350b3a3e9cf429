/* SPDX-License-Identifier: Apache-2.0
 *
 * Intrusive circular list. A list whose head is zeroed and one whose head points to itself are both
 * empty; a link with NULL neighbours is in no list.
 */
#include "base/list.h"

#include <assert.h>

bool list_is_empty(const struct list *l)
{
    return !l->head.next || l->head.next == &l->head;
}

bool link_is_in(const struct link *n)
{
    return n->next != NULL;
}

static void close_ring(struct list *l)
{
    if (!l->head.next)
        l->head.next = l->head.prev = &l->head;
}

void list_insert_before(struct link *at, struct link *n)
{
    assert(link_is_in(at) && !link_is_in(n));
    n->prev = at->prev;
    n->next = at;
    at->prev->next = n;
    at->prev = n;
}

void list_push_back(struct list *l, struct link *n)
{
    close_ring(l);
    list_insert_before(&l->head, n);
}

void list_push_front(struct list *l, struct link *n)
{
    close_ring(l);
    list_insert_before(l->head.next, n);
}

void link_remove(struct link *n)
{
    if (!link_is_in(n))
        return;
    n->prev->next = n->next;
    n->next->prev = n->prev;
    *n = (struct link){0};
}

struct link *list_first(const struct list *l)
{
    return list_is_empty(l) ? NULL : l->head.next;
}

struct link *list_last(const struct list *l)
{
    return list_is_empty(l) ? NULL : l->head.prev;
}

struct link *list_next(const struct list *l, const struct link *n)
{
    assert(link_is_in(n));
    return n->next == &l->head ? NULL : n->next;
}

struct link *list_pop(struct list *l)
{
    struct link *n = list_first(l);
    if (n)
        link_remove(n);
    return n;
}
