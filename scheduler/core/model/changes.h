/* SPDX-License-Identifier: Apache-2.0
 *
 * How rows change: each change of a row goes through a function that marks the row as changed. Also
 * appends rows of the history and of the ledger.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_CHANGES_H
#define BELAY_SCHEDULER_CORE_MODEL_CHANGES_H

#include "base/mem.h"
#include "scheduler/core/model/model.h"
#include <string.h>

struct model;
struct budget;
struct cron_entry;

/* Appends a zeroed element to an array and yields its address. The capacity doubles when the count
 * reaches a power of two. */
#define GROW(array, n)                                                                             \
    ((array) = ((n) & ((n)-1)) == 0 ? mem_resize((array), (n) ? 2 * (n) : 1, sizeof *(array))      \
                                    : (array),                                                     \
        memset(&(array)[n], 0, sizeof *(array)), &(array)[(n)++])

/* Appends an element to an array of the change set, not zeroed. The memory is reused from tick to
 * tick, since one tick may change thousands of rows. */
#define CHANGED(m, rows)                                                                           \
    ((m)->changes.out.rows = changes_grow((m)->changes.out.rows, (m)->changes.out.n_##rows,        \
         &(m)->changes.out.cap.rows, sizeof *(m)->changes.out.rows),                               \
        &(m)->changes.out.rows[(m)->changes.out.n_##rows++])
void *changes_grow(void *rows, size_t n, size_t *cap, size_t size); /* grows rows for one more */

void touch_job(struct model *m, struct job *j);
void touch_attempt(struct model *m, struct attempt *a);
void touch_node(struct model *m, struct node *n);
void touch_instance(struct model *m, struct instance *i);
void touch_pool(struct model *m, struct pool *p);
void touch_offer(struct model *m, struct offer *o);
void touch_account(struct model *m, struct account *a);
/* no-op for the cap of a job, which has no row */
void touch_budget(struct model *m, struct budget *b);
void touch_cron(struct model *m, struct cron_entry *c);
/* Writes the last version of the row and frees the object. The object must be in no index. */
void retire_job(struct model *m, struct job *j);
void retire_attempt(struct model *m, struct attempt *a);
void retire_node(struct model *m, struct node *n);
void retire_instance(struct model *m, struct instance *i);

/* History: fmt gives the text of the row; NULL members give no id. */
struct history_of {
    const struct job *job;
    const struct attempt *attempt;
    const struct node *node;
    const struct instance *instance;
    int64_t a, b;
};
void history(struct model *m, struct stamp now, const char *kind, struct history_of of,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void ledger_add(struct model *m, const struct ledger_row *row); /* ignores rows of 0 ms */

#endif
