/*
 * records.c
 *		Groups and rows as engines tell them, one behind the other.
 *
 * They come from memory that others write: what would lead outside of a record is an error.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "fragment/records.h"

/* The least that is taken at once. */
#define GH_RECORD_BYTES ((Size) 64 * 1024)

/* Memory for at least so many bytes; what is in it stays. */
char *
gh_record_buffer(GhRecordBuffer *buffer, Size size)
{
	if (buffer->data == NULL)
	{
		buffer->size = Max(size, GH_RECORD_BYTES);
		buffer->data = MemoryContextAllocHuge(buffer->context, buffer->size);
	}
	else if (buffer->size < size)
	{
		buffer->size = Max(size, buffer->size * 2);
		buffer->data = repalloc_huge(buffer->data, buffer->size);
	}
	return buffer->data;
}

/* Bytes of a record as engine/pipeline/record.h has them, of which no more than so many are there. */
Size
gh_record_bytes(const char *record, Size left)
{
	const GhRecordHead *head = (const GhRecordHead *) record;

	if (left < sizeof(GhRecordHead) || head->bytes < sizeof(GhRecordHead) || head->bytes > left || head->bytes % 8 != 0)
		elog(ERROR, "record of an engine has a wrong size");
	return head->bytes;
}

/* Likewise the record, which has so many keys or values. */
const GhRecordHead *
gh_record_of(const char *records, Size left, int nvalues)
{
	if (gh_record_bytes(records, left) < sizeof(GhRecordHead) + sizeof(GhRecordValue) * nvalues)
		elog(ERROR, "record of an engine has a wrong size");
	return (const GhRecordHead *) records;
}

/* A key, or a value of a row, with its address in there. */
GhSqlValue
gh_record_value(const GhRecordHead *record, int number, const GhValueType *type)
{
	const GhRecordValue *held = (const GhRecordValue *) (record + 1) + number;
	GhSqlValue	value = {held->low, held->high, GH_SQL_HELD};

	if ((record->nulls >> number & 1) != 0)
		value.kind = GH_SQL_NULL;
	if (!gh_value_is_bytes(type, &value))
		return value;
	if (held->low > record->bytes || held->high > record->bytes - held->low)
		elog(ERROR, "record of an engine has a value that is not in it");
	value.low += (uintptr_t) record;
	return value;
}
