/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a request's JSON: values by path, with Azure's refusals.
 */
#include "base/str.h"
#include "emulator/arm/parts.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define KEY_MAX 64
#define TAG_KEY_MAX 512
#define TAG_VALUE_MAX 256

const json_t *arm_at(const json_t *v, const char *path)
{
    while (v && *path) {
        char key[KEY_MAX];
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof(key), "%.*s", (int)n, path);
        v = json_object_get(v, key);
        path += n + (path[n] == '.');
    }
    return json_is_null(v) ? NULL : v;
}

const char *arm_str_at(const json_t *v, const char *path, const char *fallback)
{
    const char *text = json_string_value(arm_at(v, path));
    return text ? text : fallback;
}

static const char *last_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

int arm_may_str(struct arm_call *c, const char *path, size_t max, const char **ret_text)
{
    const json_t *v = arm_at(c->body, path);
    *ret_text = NULL;
    if (!v)
        return 0;
    if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
        return arm_fail(c, "InvalidRequestContent",
            "Error converting value to type 'String'. Path '%s'.", path);
    if (json_string_length(v) == 0 || json_string_length(v) > max)
        return arm_fail(c, "InvalidParameter",
            "The value of parameter %s is invalid: it must have 1 to %zu characters.",
            last_of(path), max);
    *ret_text = json_string_value(v);
    return 0;
}

int arm_need_str(struct arm_call *c, const char *path, size_t max, const char **ret_text)
{
    if (arm_may_str(c, path, max, ret_text) < 0)
        return -1;
    if (!*ret_text)
        return arm_fail(c, "InvalidParameter",
            "Required parameter '%s' is missing (null). Path '%s'.", last_of(path), path);
    return 0;
}

int arm_may_choice(
    struct arm_call *c, const char *path, const char *const *names, int fallback, int *ret_choice)
{
    const char *text;
    if (arm_may_str(c, path, KEY_MAX, &text) < 0)
        return -1;
    *ret_choice = fallback;
    if (!text)
        return 0;
    for (int i = 0; names[i]; i++)
        if (strcasecmp(names[i], text) == 0) {
            *ret_choice = i;
            return 0;
        }
    return arm_fail(c, "InvalidParameter", "The value '%.60s' of parameter '%s' is invalid.", text,
        last_of(path));
}

int arm_check_members(
    struct arm_call *c, const char *path, const json_t *value, const char *const *names)
{
    const char *key;
    json_t *member;
    if (!value)
        return 0;
    if (!json_is_object(value))
        return arm_fail(c, "InvalidRequestContent", "Expected an object. Path '%s'.", path);
    json_object_foreach((json_t *)value, key, member)
    {
        size_t i = 0;
        while (names[i] && !str_eq(names[i], key))
            i++;
        if (!names[i])
            return arm_fail(c, "InvalidRequestContent",
                "Could not find member '%.60s' on object. Path '%s%s%.60s'.", key, path,
                path[0] ? "." : "", key);
    }
    return 0;
}

int arm_check_tags(struct arm_call *c, const json_t *tags)
{
    const char *key;
    json_t *value;
    if (!tags)
        return 0;
    if (!json_is_object(tags))
        return arm_fail(c, "InvalidRequestContent", "Expected an object. Path 'tags'.");
    if (json_object_size(tags) > ARM_TAGS_MAX)
        return arm_fail(c, "InvalidTags", "A resource may have at most %d tags.", ARM_TAGS_MAX);
    json_object_foreach((json_t *)tags, key, value)
    {
        if (!json_is_string(value) || json_string_length(value) > TAG_VALUE_MAX ||
            strlen(json_string_value(value)) != json_string_length(value))
            return arm_fail(c, "InvalidTagValue",
                "The value of tag '%.100s' must be a text of at most %d characters.", key,
                TAG_VALUE_MAX);
        if (!key[0] || strlen(key) > TAG_KEY_MAX || strpbrk(key, "<>%&\\?/"))
            return arm_fail(c, "InvalidTagNameCharacters",
                "The tag name '%.100s' is not valid: it must have 1 to %d characters and none of "
                "<>%%&\\?/.",
                key, TAG_KEY_MAX);
    }
    return 0;
}

int arm_check_location(struct arm_call *c)
{
    const char *location = json_string_value(arm_at(c->body, "location"));
    if (!json_is_object(c->body))
        return arm_fail(
            c, "InvalidRequestContent", "The request content was invalid: an object is required.");
    if (!location || !location[0])
        return arm_fail(
            c, "LocationRequired", "The location property is required for this definition.");
    if (strcasecmp(location, c->arm->region->o->name) != 0)
        return arm_fail(c, "LocationNotAvailableForResourceType",
            "The provided location '%.60s' is not available for resource type. List of available "
            "regions for the resource type is '%s'.",
            location, c->arm->region->o->name);
    return 0;
}

int arm_check_resource_name(struct arm_call *c, size_t max)
{
    size_t n = strlen(c->name);
    if (n > max || !str_is_name(c->name, max) || c->name[n - 1] == '-' || c->name[n - 1] == '.')
        return arm_fail(c, "InvalidResourceName",
            "Resource name %.100s is invalid. The name can be up to %zu characters long. It must "
            "begin with a letter or a number, and it must end with a letter, a number or with '_'.",
            c->name, max);
    return 0;
}

bool arm_is_id(const struct arm *a, const char *id, const char *type)
{
    /* any group and name */
    struct buf text = {0};
    buf_printf(&text, "/subscriptions/%s/resourceGroups/", a->account->subscription);
    size_t n = text.len;
    bool is_ours = strncasecmp(id, buf_str(&text), n) == 0;
    buf_clear(&text);
    if (is_ours) {
        const char *rest = strchr(id + n, '/');
        buf_printf(&text, "/providers/%s/", type);
        is_ours = rest && rest > id + n && strncasecmp(rest, buf_str(&text), text.len) == 0 &&
                  rest[text.len];
    }
    buf_deinit(&text);
    return is_ours;
}

bool arm_is_subnet(const struct arm *a, const char *id)
{
    const char *child = strstr(id, "/subnets/");
    return arm_is_id(a, id, "Microsoft.Network/virtualNetworks") && child &&
           child[strlen("/subnets/")];
}
