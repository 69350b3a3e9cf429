/* SPDX-License-Identifier: Apache-2.0
 *
 * The last reply of a front under test, with its body as JSON.
 */
#ifndef BELAY_TESTS_EMULATOR_FRONT_ANSWER_H
#define BELAY_TESTS_EMULATOR_FRONT_ANSWER_H

#include "emulator/front.h"

struct front_answer {
    struct front_reply reply;
    json_t *json; /* NULL if the body is not JSON, or longer than allowed */
};

void front_answer_clear(struct front_answer *a); /* before the next call, and at the end */
void front_answer_parse(struct front_answer *a, size_t body_max);
/* Fails the test unless the reply has that status and its body contains text. The rest describes
 * the call; body may be NULL. */
void front_answer_expect(const struct front_answer *a, const char *method, const char *target,
    const char *body, int status, const char *text);
/* The text at a path such as "error/errors/0/code"; "" if absent. */
const char *front_answer_text(const struct front_answer *a, const char *path);

#endif
