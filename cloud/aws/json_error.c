/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/aws/json_error.h"

#include "base/json.h"
#include "base/str.h"
#include <string.h>

#define CODE_MAX 96
#define MESSAGE_MAX 400
#define ERROR_BYTES_MAX (16 * 1024 * 1024)

/* "com.amazonaws.pricing#AccessDeniedException:http://..." to "AccessDeniedException". */
static void bare_code(char *code)
{
    char *hash = strchr(code, '#');
    if (hash)
        memmove(code, hash + 1, strlen(hash + 1) + 1);
    code[strcspn(code, ":")] = '\0';
}

static bool is_code(const char *s)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    return *s && strspn(s, letters) == strlen(s);
}

/* False if it is not an error document. message is cut and sanitized for a log line. */
static bool read_error(const char *body, size_t n, char code[CODE_MAX], char message[MESSAGE_MAX])
{
    json_t *root;
    if (json_parse(body, n, ERROR_BYTES_MAX, &root, NULL) != 0)
        return false;
    const json_t *type = json_object_get(root, "__type"), *text = json_object_get(root, "Message");
    text = text ? text : json_object_get(root, "message");
    str_copy(code, CODE_MAX, json_is_string(type) ? json_string_value(type) : "");
    str_copy(message, MESSAGE_MAX, json_is_string(text) ? json_string_value(text) : "");
    json_decref(root);
    bare_code(code);
    return is_code(code);
}

int aws_json_error(const char *service, const struct refusal *table, int status, const char *body,
    size_t n, struct err *e)
{
    char code[CODE_MAX], message[MESSAGE_MAX];
    bool is_read = read_error(body, n, code, message);
    const struct refusal *r = is_read ? refusal_find(table, code) : NULL;
    enum err_kind kind = r ? r->kind : refusal_kind_of_status(table, status, ERR_CONFIG);
    if (!is_read)
        return refusal_set_stray(service, kind, status, body, n, "an unknown body", e);
    /* these repeat the canonical request, including the session token */
    if (strstr(code, "Signature"))
        message[0] = '\0';
    return refusal_set(service, kind, code, message, r, e);
}
