/*
 * records.h
 *		records.c: groups and rows as engines tell them (engine/pipeline/record.h).
 */
#ifndef GPUHASH_RECORDS_H
#define GPUHASH_RECORDS_H

#include "postgres.h"

#include "engine/pipeline/record.h"
#include "expr/values.h"

/* Room for records, which grows. */
typedef struct GhRecordBuffer
{
	MemoryContext context;
	char	   *data;
	Size		size;
} GhRecordBuffer;

extern char *gh_record_buffer(GhRecordBuffer *buffer, Size size);
extern Size gh_record_bytes(const char *record, Size left);
extern const GhRecordHead *gh_record_of(const char *records, Size left, int nvalues);
extern GhSqlValue gh_record_value(const GhRecordHead *record, int number, const GhValueType *type);

#endif							/* GPUHASH_RECORDS_H */
