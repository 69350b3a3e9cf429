/* SPDX-License-Identifier: Apache-2.0
 *
 * Boot diagnostics: a machine's serial console output. An API call returns the URL of a blob, whose
 * query is its own credential for some minutes: a signature over path, expiry and rights. Real
 * storage is on another host; here it is another path.
 */
#include "base/b64.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/arm/parts.h"
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#define BLOB_ROOT "/bootdiagnostics/"
#define BLOB_END ".serialconsole.log"
#define LOG_MAX (1024 * 1024) /* kept from the end */
#define MINUTES_USUAL 120
#define MINUTES_MAX 1440
#define MAC_BYTES 32
#define XML_TYPE "application/xml"

/* ---- Signatures ---- */

static void sign(const struct arm *a, const char *path, const char *end, struct buf *out)
{
    unsigned char mac[MAC_BYTES];
    unsigned n_mac = sizeof(mac);
    struct buf text = {0};
    buf_printf(&text, "blob\n%s\n%s\nr", path, end);
    HMAC(EVP_sha256(), a->auth->key, sizeof(a->auth->key), (const unsigned char *)buf_str(&text),
        text.len, mac, &n_mac);
    b64_encode(out, mac, sizeof(mac));
    buf_deinit(&text);
}

static char *make_url(
    struct arm_call *c, const struct arm_resource *vm, const char *suffix, const char *end)
{
    struct buf url = {0}, sig = {0};
    char *path = mem_printf(BLOB_ROOT "%s/%s%s", vm->uuid, vm->name, suffix);
    sign(c->arm, path, end, &sig);
    buf_printf(&url, "%s%s?sv=2018-03-28&sr=b&sp=r&se=", c->q->base, path);
    str_url_encode(&url, end, strlen(end));
    buf_adds(&url, "&sig=");
    str_url_encode(&url, buf_str(&sig), sig.len);
    free(path);
    buf_deinit(&sig);
    return buf_take(&url);
}

/* ---- The API's call ---- */

static bool is_kept(const struct arm_resource *vm)
{
    return json_is_true(arm_at(vm->body, "properties.diagnosticsProfile.bootDiagnostics.enabled"));
}

static int read_minutes(struct arm_call *c, int64_t *ret_minutes)
{
    const char *text = form_get(&c->form, "sasUriExpirationTimeInMinutes");
    *ret_minutes = MINUTES_USUAL;
    if (text && str_to_i64(text, 1, MINUTES_MAX, "minutes", ret_minutes, NULL) < 0)
        return arm_fail(c, "InvalidParameter",
            "The value of parameter sasUriExpirationTimeInMinutes must be 1 to %d.", MINUTES_MAX);
    return 0;
}

int arm_boot_diagnostics(struct arm_call *c)
{
    const struct arm_resource *vm = arm_find(c->arm, ARM_KIND_VM, c->group, c->name);
    int64_t minutes;
    char end[TIME_ISO_MAX];
    if (!vm)
        return arm_fail(c, "ResourceNotFound",
            "The Resource 'Microsoft.Compute/virtualMachines/%.80s' under resource group '%s' was "
            "not found.",
            c->name, c->group);
    if (read_minutes(c, &minutes) < 0)
        return -1;
    if (!is_kept(vm))
        return arm_fail(c, "OperationNotAllowed",
            "Boot diagnostics is not enabled on VM '%s' with a managed storage account.", vm->name);
    time_format_iso((struct wall){c->now.ms + SECONDS_MS(60 * minutes)}, end);
    char *shot = make_url(c, vm, ".screenshot.bmp", end), *log = make_url(c, vm, BLOB_END, end);
    json_t *o = json_object();
    json_object_set_new(o, "consoleScreenshotBlobUri", json_text(shot));
    json_object_set_new(o, "serialConsoleLogBlobUri", json_text(log));
    c->reply->body = o;
    free(shot);
    free(log);
    return 0;
}

/* ---- The storage ---- */

bool arm_console_is_blob(const struct arm_request *q)
{
    return str_starts(q->path, BLOB_ROOT);
}

static int refuse(struct buf *body, const char **ret_type, int status, const char *code)
{
    *ret_type = XML_TYPE;
    buf_printf(
        body, "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code></Error>", code);
    return status;
}

/* Whether the query signs this path and has not expired. */
static bool is_signed(
    const struct arm *a, const struct arm_request *q, struct form *form, struct wall now)
{
    const char *end = form_get(form, "se"), *sig = form_get(form, "sig");
    struct buf expected = {0};
    struct wall until;
    sign(a, q->path, end ? end : "", &expected);
    bool is_ours = end && sig && str_eq(form_get(form, "sp"), "r") &&
                   time_parse_iso(end, &until, NULL) == 0 && now.ms <= until.ms &&
                   str_secret_eq(buf_str(&expected), sig);
    buf_deinit(&expected);
    return is_ours;
}

static const struct arm_resource *find_machine(const struct arm *a, const char *path)
{
    for (size_t i = 0; i < a->n_resources; i++) {
        const struct arm_resource *v = a->resources[i];
        char *own = mem_printf(BLOB_ROOT "%s/%s" BLOB_END, v->uuid, v->name);
        bool is_it = v->kind == ARM_KIND_VM && str_eq(own, path);
        free(own);
        if (is_it)
            return v;
    }
    return NULL;
}

int arm_console_blob(struct arm *a, const struct arm_request *q, struct wall now,
    struct buf *ret_body, const char **ret_type)
{
    struct form form = {0};
    arm_advance(a, now);
    bool is_form = form_parse(q->query, strlen(q->query), &form, NULL) == 0;
    bool is_allowed = is_form && is_signed(a, q, &form, now);
    form_deinit(&form);
    if (!str_eq(q->method, "GET"))
        return refuse(ret_body, ret_type, 405, "UnsupportedHttpVerb");
    if (q->authorization) /* a token for the API is not valid for storage */
        return refuse(ret_body, ret_type, 400, "InvalidAuthenticationInfo");
    if (!is_allowed)
        return refuse(ret_body, ret_type, 403, "AuthenticationFailed");
    const struct arm_resource *vm = find_machine(a, q->path);
    if (!vm || !vm->instance || !a->console)
        return refuse(ret_body, ret_type, 404, "BlobNotFound");
    a->console(a->console_ctx, vm->instance, ret_body);
    if (ret_body->len > LOG_MAX)
        buf_remove_front(ret_body, ret_body->len - LOG_MAX);
    *ret_type = "application/octet-stream";
    return 200;
}
