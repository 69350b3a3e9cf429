/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants: in-order traversal is the order of the keys; no element weighs more than its parent;
 * last is the last in order. If the tree has sums, each covers its subtree.
 */
#include "scheduler/core/model/tree.h"

#include <assert.h>

/* SplitMix64. Never 0, which means "in no tree". */
static uint64_t next_weight(struct tree *t)
{
    uint64_t z = t->seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) | 1;
}

/* Puts n in the place of old below parent (NULL: the root). */
static void replace_child(
    struct tree *t, struct tree_link *parent, const struct tree_link *old, struct tree_link *n)
{
    if (!parent)
        t->root = n;
    else if (parent->left == old)
        parent->left = n;
    else
        parent->right = n;
    if (n)
        n->up = parent;
}

/* Rotates n above its parent, keeping the order. */
static void rotate_up(struct tree *t, struct tree_link *n)
{
    struct tree_link *p = n->up, *inner;
    replace_child(t, p->up, p, n);
    if (p->left == n) {
        inner = n->right;
        p->left = inner;
        n->right = p;
    } else {
        inner = n->left;
        p->right = inner;
        n->left = p;
    }
    if (inner)
        inner->up = p;
    p->up = n;
}

static struct tree_link *rightmost(struct tree_link *x)
{
    while (x->right)
        x = x->right;
    return x;
}

/* Updates the sums of x and its ancestors: at least the first `least` of them, then up to the first
 * unchanged one. */
static void sum_up(struct tree_link *x, size_t least, tree_sum_fn sum)
{
    bool changes = true;
    for (; x && sum && (changes || least > 0); x = x->up) {
        changes = sum(x);
        least -= least > 0;
    }
}

/* Inserts n below p (NULL: empty tree), before it if c < 0. */
static void put(struct tree *t, struct tree_link *p, int c, struct tree_link *n, tree_sum_fn sum)
{
    *n = (struct tree_link){.up = p, .weight = next_weight(t)};
    if (p == t->last && c > 0)
        t->last = n;
    if (!p)
        t->root = n;
    else if (c < 0)
        p->left = n;
    else
        p->right = n;
    while ((p = n->up) && p->weight < n->weight) {
        rotate_up(t, n);
        if (sum)
            sum(p);
    }
    sum_up(n, 2, sum); /* n's own sum does not show that its parent changed */
    t->n++;
}

void tree_add_summed(
    struct tree *t, struct tree_link *n, const void *key, tree_cmp_fn cmp, tree_sum_fn sum)
{
    assert(!tree_has(n));
    struct tree_link *p = t->last;
    int c = p ? cmp(key, p) : 1;
    for (struct tree_link *x = c < 0 ? t->root : NULL; x; x = c < 0 ? x->left : x->right) {
        c = cmp(key, x);
        assert(c != 0);
        p = x;
    }
    assert(c != 0);
    put(t, p, c, n, sum);
}

void tree_add(struct tree *t, struct tree_link *n, const void *key, tree_cmp_fn cmp)
{
    tree_add_summed(t, n, key, cmp, NULL);
}

void tree_append(struct tree *t, struct tree_link *n)
{
    assert(!tree_has(n));
    put(t, t->last, 1, n, NULL);
}

void tree_remove_summed(struct tree *t, struct tree_link *n, tree_sum_fn sum)
{
    size_t lifted = 0; /* number of former ancestors now below n */
    if (!tree_has(n))
        return;
    if (t->last == n)
        t->last = n->left ? rightmost(n->left) : n->up;
    for (; n->left && n->right; lifted++)
        rotate_up(t, n->left->weight > n->right->weight ? n->left : n->right);
    replace_child(t, n->up, n, n->left ? n->left : n->right);
    sum_up(n->up, lifted + 1, sum);
    *n = (struct tree_link){0};
    t->n--;
}

void tree_remove(struct tree *t, struct tree_link *n)
{
    tree_remove_summed(t, n, NULL);
}

void tree_changed(struct tree_link *n, tree_sum_fn sum)
{
    sum_up(n, 1, sum);
}

bool tree_has(const struct tree_link *n)
{
    return n->weight != 0;
}

struct tree_link *tree_first(const struct tree *t)
{
    struct tree_link *x = t->root;
    while (x && x->left)
        x = x->left;
    return x;
}

struct tree_link *tree_next(const struct tree_link *n)
{
    if (n->right) {
        struct tree_link *x = n->right;
        while (x->left)
            x = x->left;
        return x;
    }
    while (n->up && n->up->right == n)
        n = n->up;
    return n->up;
}

struct tree_link *tree_at_least(const struct tree *t, const void *key, tree_cmp_fn cmp)
{
    struct tree_link *best = NULL;
    for (struct tree_link *x = t->root; x;) {
        if (cmp(key, x) <= 0) {
            best = x;
            x = x->left;
        } else {
            x = x->right;
        }
    }
    return best;
}
