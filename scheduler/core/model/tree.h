/* SPDX-License-Identifier: Apache-2.0
 *
 * Intrusive ordered tree (a treap, balanced by weights from a seeded generator: Seidel and Aragon,
 * 1996). The link lives inside the element; a zeroed link is in no tree, a zeroed tree is valid and
 * empty. Nothing is allocated. Elements must differ in the order. Finding, adding and removing take
 * O(log n), adding behind all others O(1).
 *
 * The elements of a tree may know something of all that are below them, a sum, by which a search
 * passes over those: who has such a tree walks down from its root itself, and changes it with the
 * functions that take what makes the sums.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_TREE_H
#define BELAY_SCHEDULER_CORE_MODEL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tree_link {
    struct tree_link *up, *left, *right;
    uint64_t weight; /* 0: in no tree */
};

struct tree {
    struct tree_link *root, *last;
    size_t n;
    uint64_t seed;
};

/* < 0, 0, > 0 as key comes before, is, comes after n. */
typedef int (*tree_cmp_fn)(const void *key, const struct tree_link *n);

/* That of numbers. */
static inline int tree_order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

#define TREE_ENTRY(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* key is that of n under cmp; n must be in no tree. */
void tree_add(struct tree *t, struct tree_link *n, const void *key, tree_cmp_fn cmp);
/* Likewise, for one whose key comes after all others. */
void tree_append(struct tree *t, struct tree_link *n);
/* n must be in t, or in no tree (then harmless). Works whatever became of n's key since it was
 * added. */
void tree_remove(struct tree *t, struct tree_link *n);
bool tree_has(const struct tree_link *n); /* n is in a tree */

/* Makes n's sum anew, of itself and of those of n->left and n->right (NULL: there is none). False:
 * it is what it was. */
typedef bool (*tree_sum_fn)(struct tree_link *n);

/* The same, and every sum is right again. */
void tree_add_summed(
    struct tree *t, struct tree_link *n, const void *key, tree_cmp_fn cmp, tree_sum_fn sum);
void tree_remove_summed(struct tree *t, struct tree_link *n, tree_sum_fn sum);
/* what is summed of n itself has; n is in a tree */
void tree_changed(struct tree_link *n, tree_sum_fn sum);

struct tree_link *tree_first(const struct tree *t);     /* or NULL */
struct tree_link *tree_next(const struct tree_link *n); /* or NULL */
struct tree_link *tree_at_least(
    const struct tree *t, const void *key, tree_cmp_fn cmp); /* first not before key */

#endif
