/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/model/rows.h"

#include "base/mem.h"
#include <stdlib.h>

struct job_texts job_texts_copy(const struct job_texts *s)
{
    return (struct job_texts){
        .script = mem_strdup(s->script),
        .args_json = mem_strdup(s->args_json),
        .env_json = mem_strdup(s->env_json),
        .cwd = mem_strdup(s->cwd),
        .labels_json = mem_strdup(s->labels_json),
        .launch_json = mem_strdup(s->launch_json),
        .constraints = mem_strdup(s->constraints),
        .notify_json = mem_strdup(s->notify_json),
        .document_json = mem_strdup(s->document_json),
        .finish_of_day = s->finish_of_day,
    };
}

void job_texts_deinit(struct job_texts *s)
{
    free((char *)s->script);
    free((char *)s->args_json);
    free((char *)s->env_json);
    free((char *)s->cwd);
    free((char *)s->labels_json);
    free((char *)s->launch_json);
    free((char *)s->constraints);
    free((char *)s->notify_json);
    free((char *)s->document_json);
    *s = (struct job_texts){0};
}
