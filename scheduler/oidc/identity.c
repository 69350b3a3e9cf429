/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims of an ID token (see identity.h).
 */
#include "scheduler/oidc/identity.h"

#include "base/names.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>

#define SECONDS_LAST 253402300799LL /* 9999-12-31 */
#define AUDIENCES_MAX 64
#define GROUPS_MAX 10000

static const char *text_of(const json_t *claims, const char *name)
{
    return json_string_value(json_object_get(claims, name));
}

/* ---- whether the token is good ---- */

/* Times may have a fraction (RFC 7519, NumericDate). */
static int read_time(const json_t *claims, const char *name, bool needed, bool *ret_has,
    int64_t *ret_ms, struct err *e)
{
    const json_t *v = json_object_get(claims, name);
    *ret_has = v != NULL;
    if (!v && !needed)
        return 0;
    double s = json_is_number(v) ? json_number_value(v) : -1;
    if (!(s >= 0 && s <= (double)SECONDS_LAST))
        return err_set(e, ERR_DENIED, "%s: expected a time in seconds since 1970", name);
    *ret_ms = (int64_t)(s * 1000);
    return 0;
}

static int check_times(const json_t *claims, struct wall now, struct err *e)
{
    int64_t exp = 0, iat = 0, nbf = 0;
    bool has_exp, has_iat, has_nbf;
    char at[TIME_ISO_MAX];
    int rc = read_time(claims, "exp", true, &has_exp, &exp, e);
    if (rc == 0)
        rc = read_time(claims, "iat", true, &has_iat, &iat, e);
    if (rc == 0)
        rc = read_time(claims, "nbf", false, &has_nbf, &nbf, e);
    if (rc != 0)
        return rc;
    if (exp + OIDC_LEEWAY_MS <= now.ms) {
        time_format_iso((struct wall){exp}, at);
        return err_set(e, ERR_DENIED, "exp: it expired at %s", at);
    }
    if (iat - OIDC_LEEWAY_MS > now.ms || (has_nbf && nbf - OIDC_LEEWAY_MS > now.ms)) {
        time_format_iso((struct wall){iat - OIDC_LEEWAY_MS > now.ms ? iat : nbf}, at);
        return err_set(e, ERR_DENIED,
            "%s: it is valid from %s, in the future: compare the clocks of belayd's machine and of "
            "the provider",
            iat - OIDC_LEEWAY_MS > now.ms ? "iat" : "nbf", at);
    }
    return 0;
}

static int check_audience(const struct config_oidc *o, const json_t *claims, struct err *e)
{
    const json_t *aud = json_object_get(claims, "aud"), *item;
    const json_t *azp = json_object_get(claims, "azp");
    char shown[STR_SHOW_MAX];
    size_t i, n = json_is_array(aud) ? json_array_size(aud) : 1;
    bool found = json_is_string(aud) && str_eq(json_string_value(aud), o->audience);
    if (n > AUDIENCES_MAX)
        return err_set(e, ERR_DENIED, "aud: at most %d, found %zu", AUDIENCES_MAX, n);
    json_array_foreach(aud, i, item) found =
        found || (json_is_string(item) && str_eq(json_string_value(item), o->audience));
    if (!found) {
        const char *other = json_string_value(json_is_array(aud) ? json_array_get(aud, 0) : aud);
        return err_set(e, ERR_DENIED,
            "aud: it is for %s%s, not for %s (audience, or client_id, of oidc:)",
            str_show(other, shown), n > 1 ? " and others" : "", o->audience);
    }
    if ((azp || n > 1) && !(json_is_string(azp) && str_eq(json_string_value(azp), o->client_id)))
        return err_set(e, ERR_DENIED, "azp: it was issued to %s, not to %s (client_id of oidc:)",
            str_show(json_string_value(azp), shown), o->client_id);
    return 0;
}

static int check_claims(const struct config_oidc *o, const json_t *claims, const char *nonce,
    struct wall now, struct err *e)
{
    char shown[STR_SHOW_MAX];
    const char *iss = text_of(claims, "iss"), *sub = text_of(claims, "sub");
    const char *sent = text_of(claims, "nonce");
    if (!str_eq(iss, o->issuer))
        return err_set(e, ERR_DENIED, "iss: it is from %s, not from %s (issuer of oidc:)",
            str_show(iss, shown), o->issuer);
    if (!sub || !sub[0] || strlen(sub) >= OIDC_SUBJECT_MAX)
        return err_set(
            e, ERR_DENIED, "sub: expected a text of 1 to %d bytes", OIDC_SUBJECT_MAX - 1);
    int rc = check_audience(o, claims, e);
    if (rc == 0)
        rc = check_times(claims, now, e);
    if (rc == 0 && nonce && !(sent && str_secret_eq(sent, nonce)))
        rc =
            err_set(e, ERR_DENIED, "nonce: %s: the token was made for another sign-in: begin again",
                sent ? "it is not the one that was sent" : "it has none");
    return rc;
}

/* ---- who it is ---- */

/* The part of an address before the @, if the domain is right and the provider has verified it. */
static int read_email(
    const struct config_oidc *o, const json_t *claims, const char *email, char *out, struct err *e)
{
    char shown[STR_SHOW_MAX];
    const char *at = strrchr(email, '@');
    if (!at || strcasecmp(at + 1, o->email_domain) != 0)
        return err_set(e, ERR_DENIED, "email: %s is not an address of %s (email_domain of oidc:)",
            str_show(email, shown), o->email_domain);
    if (!json_is_true(json_object_get(claims, "email_verified")))
        return err_set(e, ERR_DENIED, "email_verified: the provider has not verified the address");
    size_t n = (size_t)(at - email);
    if (n >= CORE_NAME_MAX)
        n = CORE_NAME_MAX - 1;
    memcpy(out, email, n);
    out[n] = '\0';
    return 0;
}

static int read_user(
    const struct config_oidc *o, const json_t *claims, char user[CORE_NAME_MAX], struct err *e)
{
    const char *text = text_of(claims, o->user_claim);
    char shown[STR_SHOW_MAX];
    int rc = 0;
    if (!text)
        return err_set(e, ERR_DENIED,
            "%s: the token does not have the claim with the user's name: add its scope to scopes "
            "of oidc:, or set another user_claim",
            o->user_claim);
    if (str_eq(o->user_claim, "email"))
        rc = read_email(o, claims, text, user, e);
    else if (!str_copy(user, CORE_NAME_MAX, text))
        user[0] = '\0';
    if (rc == 0 && !str_is_name(user, CORE_NAME_MAX - 1))
        rc = err_set(e, ERR_DENIED,
            "%s: %s is not a user's name (letters, digits, '.', '_', '-', at most %d): set another "
            "user_claim in oidc:",
            o->user_claim, str_show(text, shown), CORE_NAME_MAX - 1);
    if (rc == 0 && str_eq(user, "root"))
        rc = err_set(e, ERR_DENIED, "%s: nobody signs in as root", o->user_claim);
    return rc;
}

/* A claim may be one group or a list. */
static bool is_in(const json_t *groups, const char *group)
{
    const json_t *item;
    size_t i;
    if (json_is_string(groups))
        return str_eq(json_string_value(groups), group);
    json_array_foreach(groups, i,
        item) if (json_is_string(item) && str_eq(json_string_value(item), group)) return true;
    return false;
}

static int add_team(
    const struct config_oidc *o, const char *team, struct oidc_identity *id, struct err *e)
{
    const size_t used = strlen(id->teams);
    if (names_has(id->teams, team))
        return 0;
    if (used + strlen(team) + 2 > sizeof(id->teams))
        return err_set(e, ERR_DENIED, "%s: too many teams: at most %zu bytes in all",
            o->groups_claim, sizeof(id->teams) - 1);
    snprintf(id->teams + used, sizeof(id->teams) - used, "%s%s", used ? "," : "", team);
    return 0;
}

static void raise_role(struct oidc_identity *id, enum role role)
{
    if (!id->has_role || id->role < role)
        id->role = role;
    id->has_role = true;
}

static int read_groups(
    const struct config_oidc *o, const json_t *claims, struct oidc_identity *id, struct err *e)
{
    const json_t *groups = o->groups_claim ? json_object_get(claims, o->groups_claim) : NULL;
    bool any = false;
    if (json_array_size(groups) > GROUPS_MAX)
        return err_set(e, ERR_DENIED, "%s: at most %d groups", o->groups_claim, GROUPS_MAX);
    for (size_t i = 0; i < o->n_teams; i++) {
        const struct config_oidc_group *g = &o->teams[i];
        char leads[CORE_NAME_MAX + sizeof(POLICY_LEADS)];
        if (!is_in(groups, g->group))
            continue;
        any = true;
        snprintf(leads, sizeof(leads), "%s" POLICY_LEADS, g->team);
        int rc = add_team(o, g->team, id, e);
        if (rc == 0 && g->role == ROLE_LEAD)
            rc = add_team(o, leads, id, e);
        if (rc != 0)
            return rc;
        if (g->role == ROLE_LEAD)
            raise_role(id, ROLE_LEAD);
    }
    for (size_t i = 0; i < o->n_roles; i++) {
        if (!is_in(groups, o->roles[i].group))
            continue;
        any = true;
        raise_role(id, o->roles[i].role);
    }
    if (o->requires_a_group && !any)
        return err_set(e, ERR_DENIED,
            "%s: %s is in no group that may sign in (teams, leads and roles of oidc:): ask an "
            "administrator",
            o->groups_claim ? o->groups_claim : "groups_claim", id->user);
    return 0;
}

int oidc_identify(const struct config_oidc *o, const json_t *claims, const char *nonce,
    struct wall now, struct oidc_identity *ret, struct err *e)
{
    struct oidc_identity id = {.role = ROLE_VIEWER};
    int rc = check_claims(o, claims, nonce, now, e);
    if (rc == 0)
        rc = read_user(o, claims, id.user, e);
    if (rc == 0)
        rc = read_groups(o, claims, &id, e);
    if (rc != 0)
        return rc;
    STR_COPY(id.subject, text_of(claims, "sub"));
    *ret = id;
    return 0;
}
