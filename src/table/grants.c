/*
 * grants.c
 *		Who may do what with a named table, and the look-up by name that checks it.
 *
 * The owner may do everything; gpuhash_grant lets roles read, or read and write.
 * Members of a role may what it may.  Grants are part of what is stored, not of the
 * catalogs: they go with the table.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "compat.h"
#include "table/table.h"

PG_FUNCTION_INFO_V1(gpuhash_grant);
PG_FUNCTION_INFO_V1(gpuhash_revoke);

/* ------------------------------------------------------------------ look-up */

void
gh_table_key(GhStoreKey *key, const char *name)
{
	memset(key, 0, sizeof(*key));
	key->database = MyDatabaseId;
	key->kind = GH_STORE_TABLE;
	strlcpy(key->name, name, NAMEDATALEN);
}

char *
gh_table_name_arg(FunctionCallInfo fcinfo, int argno)
{
	char	   *name;

	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("name of a hash table must not be null"),
				 errhint("Give the name that gpuhash_create was called with.")));
	name = text_to_cstring(PG_GETARG_TEXT_PP(argno));
	if (name[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("name of a hash table must not be empty"),
				 errhint("Use 1 to %d bytes.", NAMEDATALEN - 1)));
	if (strlen(name) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("name of hash table \"%s\" is too long", name),
				 errhint("Use 1 to %d bytes.", NAMEDATALEN - 1)));
	return name;
}

GhPrivilege
gh_privilege_of(const GhRights *rights, Oid role)
{
	GhPrivilege privilege = GH_MAY_NOTHING;

	if (OidIsValid(rights->owner) ? has_privs_of_role(role, rights->owner) : superuser_arg(role))
		return GH_MAY_OWN;
	for (int i = 0; i < rights->ngrants; i++)
	{
		const GhGrant *grant = &rights->grants[i];

		if (grant->privilege > privilege &&
			(grant->role == ACL_ID_PUBLIC || has_privs_of_role(role, grant->role)))
			privilege = grant->privilege;
	}
	return privilege;
}

void
gh_table_lookup(const char *name, GhPrivilege need, GhStoredInfo *info)
{
	static const char *const hints[] = {
		[GH_MAY_READ] = "Its owner can call gpuhash_grant for you, with \"read\".",
		[GH_MAY_WRITE] = "Its owner can call gpuhash_grant for you, with \"write\".",
		[GH_MAY_OWN] = "Only the role that created it, or a member of that role, may do that.",
	};

	GhStoreKey	key;
	GhRights	rights;

	gh_store_refuse_parallel_worker(name);
	gh_table_key(&key, name);
	if (!gh_store_find(&key, info, &rights) || !info->ready)
		gh_table_report_missing(name);
	if (gh_privilege_of(&rights, GetUserId()) < need)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for hash table \"%s\"", name),
				 errhint("%s", hints[need])));
}

void
gh_table_arg(FunctionCallInfo fcinfo, GhPrivilege need, GhStoredInfo *info)
{
	gh_table_lookup(gh_table_name_arg(fcinfo, 0), need, info);
	if (info->lost)
		gh_table_report_lost(info->key.name);
}

/* ---------------------------------------------------------- grant and revoke */

typedef struct GrantWork
{
	GhGrant		grant;
	bool		full;			/* there was no room for one more */
} GrantWork;

static int
find_grant(const GhRights *rights, Oid role)
{
	for (int i = 0; i < rights->ngrants; i++)
		if (rights->grants[i].role == role)
			return i;
	return -1;
}

static void
do_grant(void *extra, void *arg)
{
	GhRights   *rights = extra;
	GrantWork  *work = arg;
	int			at = find_grant(rights, work->grant.role);

	if (at >= 0)
		rights->grants[at].privilege = Max(rights->grants[at].privilege, work->grant.privilege);
	else if (rights->ngrants < GH_GRANTS_MAX)
		rights->grants[rights->ngrants++] = work->grant;
	else
		work->full = true;
}

/* Nothing is left of a privilege without those that it includes. */
static void
do_revoke(void *extra, void *arg)
{
	GhRights   *rights = extra;
	GrantWork  *work = arg;
	int			at = find_grant(rights, work->grant.role);

	if (at < 0)
		return;
	rights->grants[at].privilege = Min(rights->grants[at].privilege, work->grant.privilege - 1);
	if (rights->grants[at].privilege == GH_MAY_NOTHING)
		rights->grants[at] = rights->grants[--rights->ngrants];
}

static GhPrivilege
privilege_arg(FunctionCallInfo fcinfo, int argno)
{
	char	   *privilege;

	if (PG_ARGISNULL(1) || PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("role and privilege must not be null"),
				 errhint("Give the name of a role, or \"public\", and \"read\" or \"write\".")));
	privilege = text_to_cstring(PG_GETARG_TEXT_PP(argno));
	if (pg_strcasecmp(privilege, "read") == 0)
		return GH_MAY_READ;
	if (pg_strcasecmp(privilege, "write") == 0)
		return GH_MAY_WRITE;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized privilege on hash tables: \"%s\"", privilege),
			 errhint("Privileges are \"read\", and \"write\", which includes it.")));
	return GH_MAY_NOTHING;
}

/* Both functions: name, role, privilege. */
static GrantWork
change_grants(FunctionCallInfo fcinfo, void (*change) (void *extra, void *arg))
{
	GrantWork	work = {{0}};
	GhStoredInfo info;

	gh_table_lookup(gh_table_name_arg(fcinfo, 0), GH_MAY_OWN, &info);
	work.grant.privilege = privilege_arg(fcinfo, 2);
	work.grant.role = get_role_oid_or_public(NameStr(*PG_GETARG_NAME(1)));
	if (!gh_store_change(&info, change, &work))
		gh_table_report_missing(info.key.name);
	if (work.full)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("hash table \"%s\" is granted to %d roles already", info.key.name, GH_GRANTS_MAX),
				 errhint("Grant it to a role that the others are members of.")));
	return work;
}

Datum
gpuhash_grant(PG_FUNCTION_ARGS)
{
	(void) change_grants(fcinfo, do_grant);
	PG_RETURN_VOID();
}

Datum
gpuhash_revoke(PG_FUNCTION_ARGS)
{
	(void) change_grants(fcinfo, do_revoke);
	PG_RETURN_VOID();
}

ArrayType *
gh_grants_array(const GhRights *rights)
{
	Datum		texts[GH_GRANTS_MAX];

	for (int i = 0; i < rights->ngrants; i++)
	{
		const GhGrant *grant = &rights->grants[i];
		char	   *role = grant->role == ACL_ID_PUBLIC ? pstrdup("public") :
			GetUserNameFromId(grant->role, true);

		if (role == NULL)
			role = psprintf("%u", grant->role);
		texts[i] = CStringGetTextDatum(psprintf("%s=%s", role,
												grant->privilege == GH_MAY_READ ? "read" : "write"));
	}
	return construct_array(texts, rights->ngrants, TEXTOID, -1, false, TYPALIGN_INT);
}
