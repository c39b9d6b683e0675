/*
 * remember.c
 *		The file with the list of relations that have pages on devices; and one that is there while columns are made.
 *
 * It lies in the data directory, and is replaced as a whole.  What is in it only chooses what is loaded; who
 * loads it looks at each relation anew.  Yet anybody may have written to it, or a part of it only: it is
 * taken as a whole or not at all, by its length and its checksum.
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "pgstat.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

#include "store/remember.h"

#define GH_REMEMBERED_FILE "gpuhash.resident"
#define GH_REMEMBERED_MAGIC 0x67685253
/* Another one with each change of GhRemembered or Header. */
#define GH_REMEMBERED_VERSION 1

typedef struct Header
{
	uint32		magic;
	uint32		version;
	uint32		count;
	uint32		loading;		/* 1: yes */
	uint32		unused;			/* 0 */
	pg_crc32c	crc;			/* of what is before it, and of all entries */
} Header;

static pg_crc32c
checksum(const Header *header, const GhRemembered *entries)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, header, offsetof(Header, crc));
	COMP_CRC32C(crc, entries, header->count * sizeof(GhRemembered));
	FIN_CRC32C(crc);
	return crc;
}

/* -------------------------------------------------------------------- read */

/* What is wrong with a file of that header and length; NULL: nothing. */
static const char *
check_header(const Header *header, off_t bytes)
{
	if (header->magic != GH_REMEMBERED_MAGIC)
		return "it is another kind of file";
	if (header->version != GH_REMEMBERED_VERSION)
		return "it is of another version";
	if (header->count > GH_REMEMBERED_MAX)
		return "it names too many relations";
	if (bytes != (off_t) (sizeof(Header) + header->count * sizeof(GhRemembered)))
		return "it has another length than it says";
	return NULL;
}

/* A clock may have been set back since. */
static bool
check_entry(GhRemembered *entry)
{
	entry->used = Max(Min(entry->used, GetCurrentTimestamp()), 0);
	return entry->device >= 0 && OidIsValid(entry->database) && OidIsValid(entry->tablespace) &&
		entry->number != 0 && OidIsValid(entry->relid) && entry->blocks > 0 && entry->blocks <= MaxBlockNumber;
}

/* Fills the list; not NULL: what is wrong, and the list is empty. */
static const char *
read_list(FILE *file, off_t bytes, GhRememberedList *list)
{
	Header		header;
	GhRemembered *entries;
	const char *wrong;

	if (bytes < (off_t) sizeof(header) || fread(&header, sizeof(header), 1, file) != 1)
		return "it is too short";
	wrong = check_header(&header, bytes);
	if (wrong != NULL)
		return wrong;
	entries = palloc(Max(header.count, 1) * sizeof(GhRemembered));
	if (fread(entries, sizeof(GhRemembered), header.count, file) != header.count)
		wrong = "it cannot be read";
	else if (checksum(&header, entries) != header.crc)
		wrong = "its checksum is wrong";
	for (uint32 i = 0; i < header.count && wrong == NULL; i++)
		if (!check_entry(&entries[i]))
			wrong = "it names what is no relation";
	if (wrong != NULL)
	{
		pfree(entries);
		return wrong;
	}
	list->entries = entries;
	list->count = (int) header.count;
	list->loading = header.loading != 0;
	return NULL;
}

/*
 * The list that was written last, in the current context; empty where there is none.  False: the file cannot
 * be used.
 */
bool
gh_remembered_read(GhRememberedList *list, int elevel)
{
	struct stat status;
	const char *wrong = "it is no file";
	FILE	   *file;

	memset(list, 0, sizeof(*list));
	if (stat(GH_REMEMBERED_FILE, &status) != 0 && errno == ENOENT)
		return true;
	file = AllocateFile(GH_REMEMBERED_FILE, PG_BINARY_R);
	if (file == NULL)
	{
		ereport(elevel,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", GH_REMEMBERED_FILE)));
		return false;
	}
	if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode))
		wrong = read_list(file, status.st_size, list);
	FreeFile(file);
	if (wrong != NULL)
		ereport(elevel,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("gpuhash does not use file \"%s\": %s", GH_REMEMBERED_FILE, wrong),
				 errdetail("What was on a GPU before the restart is not loaded again.")));
	return wrong == NULL;
}

/* ------------------------------------------------------------------- write */

static bool
write_list(FILE *file, const GhRememberedList *list)
{
	Header		header = {.magic = GH_REMEMBERED_MAGIC, .version = GH_REMEMBERED_VERSION};

	header.count = (uint32) list->count;
	header.loading = list->loading;
	header.crc = checksum(&header, list->entries);
	return fwrite(&header, sizeof(header), 1, file) == 1 &&
		fwrite(list->entries, sizeof(GhRemembered), header.count, file) == header.count;
}

/* Replaces the file; where that fails the log says so, and the old one stays. */
void
gh_remembered_write(const GhRememberedList *list)
{
	static const char new_name[] = GH_REMEMBERED_FILE ".tmp";
	FILE	   *file = AllocateFile(new_name, PG_BINARY_W);
	bool		written = file != NULL && write_list(file, list);

	/* what is buffered is written then */
	if (file != NULL && FreeFile(file) != 0)
		written = false;
	if (!written)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", new_name)));
	if (!written || durable_rename(new_name, GH_REMEMBERED_FILE, LOG) != 0)
		(void) unlink(new_name);
}

void
gh_remembered_forget(void)
{
	if (unlink(GH_REMEMBERED_FILE) != 0 && errno != ENOENT)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", GH_REMEMBERED_FILE)));
}

/* -------------------------------------------------- columns are being made */

/* In a folder that a base backup leaves out. */
#define GH_MAKING_FILE PG_STAT_TMP_DIR "/gpuhash.making"

/* It has to outlive the server's processes, not the machine: nothing waits for the disk. */
void
gh_making_begin(void)
{
	FILE	   *file = AllocateFile(GH_MAKING_FILE, PG_BINARY_W);

	if (file == NULL || FreeFile(file) != 0)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", GH_MAKING_FILE)));
}

void
gh_making_end(void)
{
	if (unlink(GH_MAKING_FILE) != 0 && errno != ENOENT)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", GH_MAKING_FILE)));
}

bool
gh_making_was_cut_off(void)
{
	struct stat status;
	bool		was = stat(GH_MAKING_FILE, &status) == 0;

	gh_making_end();
	return was;
}
