/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uv/http_turns.h"

void http_turns_add(struct http_turns *t, struct http_holder *h, bool is_event)
{
    struct http_party *p = h->party;
    if (link_is_in(&h->turn))
        return;
    if (is_event && p->class == HTTP_STRANGER)
        list_push_front(&p->turns, &h->turn);
    else
        list_push_back(&p->turns, &h->turn);
    if (!link_is_in(&p->turn))
        list_push_back(&t->parties[p->class], &p->turn);
    t->n++;
}

void http_turns_remove(struct http_turns *t, struct http_holder *h)
{
    if (!link_is_in(&h->turn))
        return;
    link_remove(&h->turn);
    if (list_is_empty(&h->party->turns))
        link_remove(&h->party->turn);
    t->n--;
}

struct http_holder *http_turns_next(struct http_turns *t)
{
    for (int i = 0; i < HTTP_CLASSES; i++) {
        struct link *l = list_pop(&t->parties[t->next]);
        t->next = (enum http_class)((t->next + 1) % HTTP_CLASSES);
        if (!l)
            continue;
        struct http_party *p = LIST_ENTRY(l, struct http_party, turn);
        struct http_holder *h = LIST_ENTRY(list_pop(&p->turns), struct http_holder, turn);
        if (!list_is_empty(&p->turns))
            list_push_back(&t->parties[p->class], &p->turn);
        t->n--;
        return h;
    }
    return NULL;
}
