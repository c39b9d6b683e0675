/*
 * records.h
 *		records.c: groups and rows as engines tell them (engine/pipeline/scan.h).
 */
#ifndef GPUHASH_RECORDS_H
#define GPUHASH_RECORDS_H

#include "postgres.h"

#include "engine/pipeline/scan.h"
#include "expr/values.h"

/* Room for records, which grows. */
typedef struct GhRecordBuffer
{
	MemoryContext context;
	char	   *data;
	Size		size;
} GhRecordBuffer;

extern char *gh_record_buffer(GhRecordBuffer *buffer, Size size);
extern Size gh_scan_record_bytes(const char *record, Size left);
extern const GhScanGroup *gh_scan_record_of(const char *records, Size left, int nvalues);
extern GhSqlValue gh_scan_record_value(const GhScanGroup *record, int number, const GhValueType *type);

#endif							/* GPUHASH_RECORDS_H */
