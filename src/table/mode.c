/*
 * mode.c
 *		gpuhash_mode: in which sessions the library is active, and the NOTICE of
 *		CREATE EXTENSION about it.
 *
 * CREATE EXTENSION adds the SQL functions, which load the library where they are
 * called.  Joins are offloaded in sessions that have it from their start.
 *
 * While an extension's script runs, PostgreSQL lets no NOTICE through.  Ours
 * waits for the commit, when the extension is there for good.
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

#include "compat.h"
#include "service/service.h"

#define GH_LIBRARY "gpuhash"

PG_FUNCTION_INFO_V1(gpuhash_mode);

/* Is gpuhash, with or without a folder and .so, in a list of libraries? */
static bool
names_library(const char *setting)
{
	List	   *libraries = NIL;
	ListCell   *cell;

	if (setting == NULL ||
		!SplitDirectoriesString(pstrdup(setting), ',', &libraries))
		return false;
	foreach(cell, libraries)
	{
		char	   *name = lfirst(cell);
		char	   *slash = strrchr(name, '/');
		size_t		length;

		if (slash != NULL)
			name = slash + 1;
		length = strlen(name);
		if (length > strlen(DLSUFFIX) && strcmp(name + length - strlen(DLSUFFIX), DLSUFFIX) == 0)
			name[length - strlen(DLSUFFIX)] = '\0';
		if (strcmp(name, GH_LIBRARY) == 0)
			return true;
	}
	return false;
}

static const char *
active_mode(void)
{
	if (names_library(shared_preload_libraries_string))
		return "shared_preload_libraries";
	if (names_library(session_preload_libraries_string))
		return "session_preload_libraries";
	if (names_library(local_preload_libraries_string))
		return "local_preload_libraries";
	return "session";
}

static void
announce(void)
{
	const char *mode = active_mode();

	if (strcmp(mode, "shared_preload_libraries") == 0)
		ereport(NOTICE,
				(errmsg("gpuhash is active in every session"),
				 errdetail("It is in \"%s\".", mode)));
	else if (strcmp(mode, "session") != 0)
		ereport(NOTICE,
				(errmsg("gpuhash is active in sessions that start with it"),
				 errdetail("It is in \"%s\" of this session.", mode)));
	else
		ereport(NOTICE,
				(errmsg("gpuhash is active in this session only"),
				 errhint("Add it to \"session_preload_libraries\" or \"shared_preload_libraries\" to offload the joins of other sessions.")));
	gh_service_report_unserved();
}

/* Was the extension created in this transaction, and not yet announced? */
static bool announcement_due = false;

static void
announce_at_commit(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			/* a rollback to a savepoint may have taken it away again */
			if (announcement_due && OidIsValid(get_extension_oid(GH_LIBRARY, true)))
				announce();
			announcement_due = false;
			break;
		case XACT_EVENT_ABORT:
			announcement_due = false;
			break;
		default:
			break;
	}
}

Datum
gpuhash_mode(PG_FUNCTION_ARGS)
{
	static bool registered = false;

	/* the extension's script calls it for this */
	if (creating_extension)
	{
		if (!registered)
			RegisterXactCallback(announce_at_commit, NULL);
		registered = true;
		announcement_due = true;
	}
	PG_RETURN_TEXT_P(cstring_to_text(active_mode()));
}
