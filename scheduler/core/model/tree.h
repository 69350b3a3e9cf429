/* SPDX-License-Identifier: Apache-2.0
 *
 * Intrusive ordered tree: a treap, balanced by weights from a seeded generator (Seidel and Aragon,
 * 1996). The link lives inside the element; a zeroed link is in no tree, a zeroed tree is valid and
 * empty. No allocation. Keys must be distinct. Find, add and remove take O(log n), append O(1).
 *
 * Elements may store a sum over their subtree, which lets a search skip subtrees. The user of such
 * a tree descends from its root itself, and changes it only with the functions that take a
 * tree_sum_fn.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_TREE_H
#define BELAY_SCHEDULER_CORE_MODEL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tree_link {
    struct tree_link *up, *left, *right;
    uint64_t weight; /* 0 = in no tree */
};

struct tree {
    struct tree_link *root, *last;
    size_t n;
    uint64_t seed;
};

/* < 0, 0, > 0: key is before, equal to, after that of n. */
typedef int (*tree_cmp_fn)(const void *key, const struct tree_link *n);

/* Order of integers. */
static inline int tree_order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

#define TREE_ENTRY(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* key is n's under cmp; n must be in no tree. */
void tree_add(struct tree *t, struct tree_link *n, const void *key, tree_cmp_fn cmp);
/* As tree_add, for a key after all others. */
void tree_append(struct tree *t, struct tree_link *n);
/* n must be in t or in no tree (no-op). n's key may have changed since it was added. */
void tree_remove(struct tree *t, struct tree_link *n);
bool tree_has(const struct tree_link *n); /* n is in a tree */

/* Recomputes n's sum from n itself and the sums of n->left and n->right (may be NULL). Returns
 * false if it is unchanged. */
typedef bool (*tree_sum_fn)(struct tree_link *n);

/* As the functions above, keeping all sums correct. */
void tree_add_summed(
    struct tree *t, struct tree_link *n, const void *key, tree_cmp_fn cmp, tree_sum_fn sum);
void tree_remove_summed(struct tree *t, struct tree_link *n, tree_sum_fn sum);
/* n's own part of the sum changed; n is in a tree */
void tree_changed(struct tree_link *n, tree_sum_fn sum);

struct tree_link *tree_first(const struct tree *t);     /* may return NULL */
struct tree_link *tree_next(const struct tree_link *n); /* may return NULL */
struct tree_link *tree_at_least(
    const struct tree *t, const void *key, tree_cmp_fn cmp); /* first element not before key */

#endif
