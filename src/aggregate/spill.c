/*
 * spill.c
 *		Groups that do not fit in memory: partitions in temporary files.
 *
 *	1. Each time that the groups fill the memory, all of them are written, as records, to one of
 *	   some files each, by bits of the hash of their keys, and the memory is free again.  So
 *	   a group may be in its file many times.
 *	2. When all rows are through, file after file is read, and the records of equal keys are
 *	   merged: a partition's groups are final.
 *	3. Where a partition's groups fill the memory before its file ends, they are written to files
 *	   of a level below, by the next bits, and what is still in the file follows them.  These
 *	   files are read next.
 *
 * Groups of one hash value cannot be parted, and are merged in memory whatever they take.
 *
 * What the participants of a parallel query have left to each other (parallel.c) is parts; such a
 * part is read as a file is, one level above the first.
 *
 * The files are PostgreSQL's temporary files: temp_tablespaces and temp_file_limit hold, and an
 * error or a cancel removes them.
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "aggregate/node.h"

/* Partitions of a level, and levels: together they use most bits of a hash. */
#define GH_PARTITION_BITS 6
#define GH_PARTITIONS (1 << GH_PARTITION_BITS)
#define GH_LEVELS (64 / GH_PARTITION_BITS)

/* Levels at most where some of the keys tell the partition. */
#define GH_PART_LEVELS 2

/* Of parts that are shared. */
#define GH_LEVEL_SHARED (-1)

/* Records are read from a file about so many bytes at a time. */
#define GH_READ_BYTES ((Size) 64 * 1024)

/* The files of one level; NULL: nothing was written, or it was read. */
typedef struct Level
{
	BufFile    *files[GH_PARTITIONS];
	int			next;			/* the partition to be read next */
} Level;

struct GhGroupFiles
{
	MemoryContext context;
	Size		memory_limit;	/* bytes of groups */
	uint64		bytes;			/* written so far */
	const GhSharedParts *shared;	/* NULL: none */
	const GhGroups *groups;		/* of which some keys tell the partition in the first levels; NULL: all keys do, in all */
	const bool *is_part_key;	/* which of them */
	int			part_levels;	/* in how many levels */
	int			level;			/* the lowest that has files; those above wait; GH_LEVEL_SHARED: none has */
	Level		levels[GH_LEVELS];
	GhRecordBuffer buffer;
};

GhGroupFiles *
gh_group_files_create(MemoryContext context, Size memory_limit)
{
	GhGroupFiles *files = MemoryContextAllocZero(context, sizeof(GhGroupFiles));

	files->context = context;
	files->memory_limit = memory_limit;
	files->buffer.context = context;
	return files;
}

/* Parts that are read when all files have been; what belongs to them lives as long as the files. */
void
gh_group_files_share(GhGroupFiles *files, const GhSharedParts *parts)
{
	files->shared = parts;
}

/*
 * In files of the first levels groups are together of which some keys are the same: what is made of these
 * (regroup.c) is complete when a file was read.  There are so many levels as the keys have values for; parts
 * that are shared have to be by the same keys.
 */
void
gh_group_files_part_by(GhGroupFiles *files, const GhGroups *groups, const bool *is_part_key, double values)
{
	files->groups = groups;
	files->is_part_key = is_part_key;
	for (double each = values / GH_PARTITIONS; each >= 1 && files->part_levels < GH_PART_LEVELS; each /= GH_PARTITIONS)
		files->part_levels++;
}

/*
 * Whether all groups that have these keys in common with one in memory are in memory, too: those of the
 * partition that was read.
 */
bool
gh_group_files_are_whole(const GhGroupFiles *files)
{
	return files->groups != NULL && files->level < files->part_levels;
}

/* -------------------------------------------------------------- records at a time */

/* Reads some records, and returns their bytes in the buffer; 0: the file has ended. */
Size
gh_records_read(GhRecordBuffer *buffer, BufFile *file)
{
	Size		used = 0;
	uint64		size;

	while (used < GH_READ_BYTES && gh_read_temp_file(file, &size, sizeof(size), true))
	{
		char	   *data;

		if (size < sizeof(size) || size > MaxAllocHugeSize - used)
			elog(ERROR, "temporary file of a hash aggregation has a group of the wrong size");
		data = gh_record_buffer(buffer, used + size);
		memcpy(data + used, &size, sizeof(size));
		gh_read_temp_file(file, data + used + sizeof(size), size - sizeof(size), false);
		used += size;
	}
	return used;
}

/* ------------------------------------------------------------------- writing */

static int
partition_of(uint64 hash, int level)
{
	return hash >> (level * GH_PARTITION_BITS) & (GH_PARTITIONS - 1);
}

/* What tells a group's partition. */
static uint64
hash_of(const GhGroupFiles *files, const char *record, Size size)
{
	return files->level < files->part_levels ?
		gh_group_record_part_hash(files->groups, record, size, files->is_part_key) : gh_group_record_hash(record);
}

/* GhPutRecord: writes a group to the files.  Not any more once gh_group_files_next was called. */
void
gh_group_files_put(void *arg, const char *record, Size size)
{
	GhGroupFiles *files = arg;
	BufFile   **file = &files->levels[files->level].files[partition_of(hash_of(files, record, size), files->level)];
	MemoryContext saved = MemoryContextSwitchTo(files->context);

	if (*file == NULL)
	{
		PrepareTempTablespaces();
		*file = BufFileCreateTemp(false);
	}
	BufFileWrite(*file, unconstify(char *, record), size);
	MemoryContextSwitchTo(saved);
	files->bytes += size;
}

/* All groups of a partition, to the files of another level. */
static void
put_groups(GhGroupFiles *files, GhGroups *groups)
{
	gh_groups_put_records(groups, gh_group_files_put, files);
	gh_groups_reset(groups);
}

/* ------------------------------------------------------------------- reading */

/* Do the groups take too much memory, and can they be parted? */
static bool
must_split(const GhGroupFiles *files, const GhGroups *groups, int level)
{
	uint32		count = gh_groups_count(groups);

	if (gh_groups_bytes(groups) <= files->memory_limit || level + 1 >= GH_LEVELS)
		return false;
	for (uint32 group = 1; group < count; group++)
		if (gh_group_hash(groups, group) != gh_group_hash(groups, 0))
			return true;
	return false;
}

/* Records of a partition; what does not fit in memory is in files of the level below. */
static void
merge_records(GhGroupFiles *files, GhGroups *groups, Size size, int level)
{
	gh_groups_merge_records(groups, files->buffer.data, size);
	if (!must_split(files, groups, level))
		return;
	files->level = level + 1;
	put_groups(files, groups);
}

/*
 * A partition of this level was read.  False: it did not fit in memory, and is in the files of the level
 * below.
 */
static bool
is_in_memory(GhGroupFiles *files, GhGroups *groups, int level)
{
	if (files->level == level)
		return true;
	put_groups(files, groups);
	return false;
}

/* Of a file, which then goes. */
static bool
read_partition(GhGroupFiles *files, GhGroups *groups, BufFile *file)
{
	int			level = files->level;
	Size		size;

	if (BufFileSeek(file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of a hash aggregation: %m")));
	while ((size = gh_records_read(&files->buffer, file)) > 0)
		merge_records(files, groups, size, level);
	BufFileClose(file);
	return is_in_memory(files, groups, level);
}

/* The same of a part that is shared. */
static bool
read_part(GhGroupFiles *files, GhGroups *groups)
{
	Size		size;

	while ((size = files->shared->next_records(files->shared->arg, &files->buffer)) > 0)
		merge_records(files, groups, size, GH_LEVEL_SHARED);
	return is_in_memory(files, groups, GH_LEVEL_SHARED);
}

/* Puts the groups of the next partition in place of those that are there; false: there is none. */
bool
gh_group_files_next(GhGroupFiles *files, GhGroups *groups)
{
	gh_groups_reset(groups);
	for (;;)
	{
		Level	   *level;
		BufFile    *file;

		if (files->level == GH_LEVEL_SHARED)
		{
			if (files->shared == NULL || !files->shared->next_part(files->shared->arg))
				return false;
			if (read_part(files, groups))
				return true;
			continue;
		}
		level = &files->levels[files->level];
		if (level->next == GH_PARTITIONS)
		{
			level->next = 0;
			files->level--;
			continue;
		}
		file = level->files[level->next];
		level->files[level->next++] = NULL;
		if (file != NULL && read_partition(files, groups, file))
			return true;
	}
}

/* Bytes that were written, each time that they were. */
uint64
gh_group_files_bytes(const GhGroupFiles *files)
{
	return files->bytes;
}

/* Removes all files, and frees what belongs to them. */
void
gh_group_files_close(GhGroupFiles *files)
{
	for (int l = 0; l < GH_LEVELS; l++)
		for (int p = 0; p < GH_PARTITIONS; p++)
			if (files->levels[l].files[p] != NULL)
				BufFileClose(files->levels[l].files[p]);
	if (files->shared != NULL)
		files->shared->close(files->shared->arg);
	if (files->buffer.data != NULL)
		pfree(files->buffer.data);
	pfree(files);
}
