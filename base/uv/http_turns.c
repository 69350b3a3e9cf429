/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uv/http_turns.h"

static bool waits(const struct http_party *p)
{
    return !list_is_empty(&p->turns) || !list_is_empty(&p->events);
}

/* Called when a class begins to wait: sets its use to at least the least use of the classes that
 * wait, so that it saves up no turns while it is idle. */
static void forget_saved(struct http_turns *t, enum http_class class)
{
    int64_t least_us = INT64_MAX;
    for (int i = 0; i < HTTP_CLASSES; i++)
        if (!list_is_empty(&t->parties[i]) && t->used_us[i] < least_us)
            least_us = t->used_us[i];
    if (least_us != INT64_MAX && t->used_us[class] < least_us)
        t->used_us[class] = least_us;
}

void http_turns_add(struct http_turns *t, struct http_holder *h, bool is_event)
{
    struct http_party *p = h->party;
    if (link_is_in(&h->turn))
        return;
    h->since = t->n_added++;
    list_push_back(is_event && p->class == HTTP_STRANGER ? &p->events : &p->turns, &h->turn);
    if (list_is_empty(&t->parties[p->class]))
        forget_saved(t, p->class);
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

/* The waiting class with the least use, in turn if equal; HTTP_CLASSES if none waits. */
static enum http_class next_class(const struct http_turns *t)
{
    enum http_class least = HTTP_CLASSES;
    for (int i = 0; i < HTTP_CLASSES; i++) {
        enum http_class class = (enum http_class)(((int)t->next + i) % HTTP_CLASSES);
        if (!list_is_empty(&t->parties[class]) &&
            (least == HTTP_CLASSES || t->used_us[class] < t->used_us[least]))
            least = class;
    }
    return least;
}

struct http_holder *http_turns_next(struct http_turns *t)
{
    enum http_class class = next_class(t);
    if (class == HTTP_CLASSES)
        return NULL;
    struct http_party *p = LIST_ENTRY(list_pop(&t->parties[class]), struct http_party, turn);
    struct http_holder *h = take(p);
    if (waits(p))
        list_push_back(&t->parties[class], &p->turn);
    t->next = (enum http_class)((class + 1) % HTTP_CLASSES);
    t->n--;
    return h;
}

void http_turns_used(struct http_turns *t, int64_t us)
{
    t->used_us[(t->next + HTTP_CLASSES - 1) % HTTP_CLASSES] += us;
}
