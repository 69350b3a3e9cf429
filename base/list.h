/* SPDX-License-Identifier: Apache-2.0
 *
 * Intrusive doubly linked list. The link lives inside the element; a zeroed link is in no list. A
 * list that has had an element must not be copied or moved: its elements point to its head.
 */
#ifndef BELAY_BASE_LIST_H
#define BELAY_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct link {
    struct link *prev, *next;
};

struct list {
    struct link head; /* zeroed is valid and empty */
};

#define LIST_ENTRY(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

bool list_is_empty(const struct list *l);
bool link_is_in(const struct link *n);
void list_push_back(struct list *l, struct link *n); /* n must be in no list */
void list_push_front(struct list *l, struct link *n);
void list_insert_before(struct link *at, struct link *n);           /* at is in a list, n in none */
void link_remove(struct link *n);                                   /* no-op if n is in no list */
struct link *list_first(const struct list *l);                      /* NULL when empty */
struct link *list_last(const struct list *l);                       /* NULL when empty */
struct link *list_next(const struct list *l, const struct link *n); /* NULL at the end */
struct link *list_pop(struct list *l); /* removes and returns the first; NULL when empty */

/* Walks the list; the body may remove `it` but no other element. */
#define LIST_FOREACH(l, it)                                                                        \
    for (struct link *it = list_first(l), *it##_next = it ? list_next(l, it) : NULL; it;           \
         it = it##_next, it##_next = it ? list_next(l, it) : NULL)

#endif
