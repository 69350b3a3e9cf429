/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uv/http_turns.h"

static bool waits(const struct http_party *p)
{
    return !list_is_empty(&p->turns) || !list_is_empty(&p->events);
}

void http_turns_add(struct http_turns *t, struct http_holder *h, bool is_event)
{
    struct http_party *p = h->party;
    if (link_is_in(&h->turn))
        return;
    h->since = t->n_added++;
    list_push_back(is_event && p->class == HTTP_STRANGER ? &p->events : &p->turns, &h->turn);
    if (!link_is_in(&p->turn))
        list_push_back(&t->parties[p->class], &p->turn);
    t->n++;
}

void http_turns_remove(struct http_turns *t, struct http_holder *h)
{
    if (!link_is_in(&h->turn))
        return;
    link_remove(&h->turn);
    if (!waits(h->party))
        link_remove(&h->party->turn);
    t->n--;
}

static struct http_holder *holder_of(struct link *l)
{
    return l ? LIST_ENTRY(l, struct http_holder, turn) : NULL;
}

static struct http_holder *take(struct http_party *p)
{
    struct http_holder *h = holder_of(list_last(&p->events));
    if (!h || p->is_oldest_next) {
        struct http_holder *event = holder_of(list_first(&p->events));
        h = holder_of(list_first(&p->turns));
        if (!h || (event && event->since < h->since))
            h = event;
    }
    p->is_oldest_next = !p->is_oldest_next;
    link_remove(&h->turn);
    return h;
}

struct http_holder *http_turns_next(struct http_turns *t)
{
    for (int i = 0; i < HTTP_CLASSES; i++) {
        struct link *l = list_pop(&t->parties[t->next]);
        t->next = (enum http_class)((t->next + 1) % HTTP_CLASSES);
        if (!l)
            continue;
        struct http_party *p = LIST_ENTRY(l, struct http_party, turn);
        struct http_holder *h = take(p);
        if (waits(p))
            list_push_back(&t->parties[p->class], &p->turn);
        t->n--;
        return h;
    }
    return NULL;
}
