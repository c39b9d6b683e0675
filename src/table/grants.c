/*
 * grants.c
 *		Who may do what with a named table, and the look-up by name that checks it.
 *
 * The owner may do everything; gpuhash_grant lets roles read, or read and write.
 * Members of a role may what it may.  Grants are part of the registry, not of the
 * catalogs: they go with the table.
 */
#include "postgres.h"

#include "access/parallel.h"
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
gh_privilege_of(const GhTableInfo *info, Oid role)
{
	GhPrivilege privilege = GH_MAY_NOTHING;

	if (OidIsValid(info->owner) ? has_privs_of_role(role, info->owner) : superuser_arg(role))
		return GH_MAY_OWN;
	for (int i = 0; i < info->ngrants; i++)
	{
		const GhGrant *grant = &info->grants[i];

		if (grant->privilege > privilege &&
			(grant->role == ACL_ID_PUBLIC || has_privs_of_role(role, grant->role)))
			privilege = grant->privilege;
	}
	return privilege;
}

void
gh_table_report_missing(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("hash table \"%s\" does not exist", name),
			 errhint("Create it with gpuhash_create.  Hash tables belong to a database, or to one session unless gpuhash is in \"shared_preload_libraries\".")));
	pg_unreachable();
}

/*
 * Workers and leader of a parallel query wait for each other nowhere in the lock
 * manager: the table's lock would not keep them apart.
 */
void
gh_refuse_parallel_worker(const char *name)
{
	if (IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot use hash table \"%s\" in a parallel worker", name),
				 errhint("Declare functions that call those of gpuhash as PARALLEL RESTRICTED or PARALLEL UNSAFE.")));
}

void
gh_table_lookup(const char *name, GhPrivilege need, GhTableInfo *info)
{
	static const char *const hints[] = {
		[GH_MAY_READ] = "Its owner can call gpuhash_grant for you, with \"read\".",
		[GH_MAY_WRITE] = "Its owner can call gpuhash_grant for you, with \"write\".",
		[GH_MAY_OWN] = "Only the role that created it, or a member of that role, may do that.",
	};

	gh_refuse_parallel_worker(name);
	if (!gh_names_find(MyDatabaseId, name, info) || !info->ready)
		gh_table_report_missing(name);
	if (gh_privilege_of(info, GetUserId()) < need)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for hash table \"%s\"", name),
				 errhint("%s", hints[need])));
}

void
gh_table_arg(FunctionCallInfo fcinfo, GhPrivilege need, GhTableInfo *info)
{
	gh_table_lookup(gh_table_name_arg(fcinfo, 0), need, info);
	if (info->lost)
		gh_table_report_lost(info->name);
}

/* ---------------------------------------------------------- grant and revoke */

typedef struct GrantWork
{
	GhGrant		grant;
	bool		full;			/* there was no room for one more */
} GrantWork;

static int
find_grant(const GhTableInfo *info, Oid role)
{
	for (int i = 0; i < info->ngrants; i++)
		if (info->grants[i].role == role)
			return i;
	return -1;
}

static void
do_grant(GhTableInfo *info, void *arg)
{
	GrantWork  *work = arg;
	int			at = find_grant(info, work->grant.role);

	if (at >= 0)
		info->grants[at].privilege = Max(info->grants[at].privilege, work->grant.privilege);
	else if (info->ngrants < GH_GRANTS_MAX)
		info->grants[info->ngrants++] = work->grant;
	else
		work->full = true;
}

/* Nothing is left of a privilege without those that it includes. */
static void
do_revoke(GhTableInfo *info, void *arg)
{
	GrantWork  *work = arg;
	int			at = find_grant(info, work->grant.role);

	if (at < 0)
		return;
	info->grants[at].privilege = Min(info->grants[at].privilege, work->grant.privilege - 1);
	if (info->grants[at].privilege == GH_MAY_NOTHING)
		info->grants[at] = info->grants[--info->ngrants];
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
change_grants(FunctionCallInfo fcinfo, void (*change) (GhTableInfo *info, void *arg))
{
	GrantWork	work = {{0}};
	GhTableInfo info;

	gh_table_lookup(gh_table_name_arg(fcinfo, 0), GH_MAY_OWN, &info);
	work.grant.privilege = privilege_arg(fcinfo, 2);
	work.grant.role = get_role_oid_or_public(NameStr(*PG_GETARG_NAME(1)));
	if (!gh_names_change(&info, change, &work))
		gh_table_report_missing(info.name);
	if (work.full)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("hash table \"%s\" is granted to %d roles already", info.name, GH_GRANTS_MAX),
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
gh_grants_array(const GhTableInfo *info)
{
	Datum		texts[GH_GRANTS_MAX];

	for (int i = 0; i < info->ngrants; i++)
	{
		const GhGrant *grant = &info->grants[i];
		char	   *role = grant->role == ACL_ID_PUBLIC ? pstrdup("public") :
			GetUserNameFromId(grant->role, true);

		if (role == NULL)
			role = psprintf("%u", grant->role);
		texts[i] = CStringGetTextDatum(psprintf("%s=%s", role,
												grant->privilege == GH_MAY_READ ? "read" : "write"));
	}
	return construct_array(texts, info->ngrants, TEXTOID, -1, false, TYPALIGN_INT);
}
