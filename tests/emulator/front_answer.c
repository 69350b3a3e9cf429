/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/front_answer.h"
#include "base/json.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

void front_answer_clear(struct front_answer *a)
{
    buf_deinit(&a->reply.body);
    json_decref(a->json);
    *a = (struct front_answer){.reply = {.status = 200}};
}

void front_answer_parse(struct front_answer *a, size_t body_max)
{
    if (a->reply.body.len > 0)
        json_parse(buf_str(&a->reply.body), a->reply.body.len, body_max, &a->json, NULL);
}

void front_answer_expect(const struct front_answer *a, const char *method, const char *target,
    const char *body, int status, const char *text)
{
    if (a->reply.status != status || !strstr(buf_str(&a->reply.body), text))
        fail_msg("%s %s %s: expected %d with \"%s\", got %d: %s", method, target, body ? body : "",
            status, text, a->reply.status, buf_str(&a->reply.body));
}

const char *front_answer_text(const struct front_answer *a, const char *path)
{
    const json_t *v = a->json;
    char name[64];
    for (const char *p = path; v && *p;) {
        size_t n = strcspn(p, "/");
        snprintf(name, sizeof(name), "%.*s", (int)n, p);
        v = json_is_array(v) ? json_array_get(v, (size_t)strtoul(name, NULL, 10))
                             : json_object_get(v, name);
        p += n + (p[n] == '/');
    }
    return json_is_string(v) ? json_string_value(v) : "";
}
