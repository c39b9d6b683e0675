/*
 * mode.c
 *		gpuhash_mode: in which sessions the library is active, and the NOTICE of
 *		CREATE EXTENSION about it.
 *
 * CREATE EXTENSION adds the SQL functions, which load the library where they are
 * called.  Joins are offloaded in sessions that have it from their start.
 */
#include "postgres.h"

#include "commands/extension.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

#include "compat.h"

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
announce(const char *mode)
{
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
}

Datum
gpuhash_mode(PG_FUNCTION_ARGS)
{
	const char *mode = active_mode();

	/* the extension's script calls it for this */
	if (creating_extension)
		announce(mode);
	PG_RETURN_TEXT_P(cstring_to_text(mode));
}
