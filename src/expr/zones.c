/*
 * zones.c
 *		Time zones in programs: moments (timestamptz), and what clocks show then (timestamp).
 *
 * A zone has two lists of entries (engine/program/program_zone.h), which are made of what PostgreSQL's own
 * functions say of it.  In the first one, clocks are ahead of UTC by a number of seconds from one transition
 * to the next.  In the second one, they are behind by as many as PostgreSQL takes for what they show, where
 * that was never, or twice, too (DetermineTimeZoneOffset): it looks for the first transition that is more
 * than a day behind the clock read as UTC, and takes what was before it where the clock is less than what the
 * transition turns clocks to, and what was after it otherwise.  So each transition is an entry again, from
 * that time of the clock on.
 *
 * Of zones whose rules go on for ever, the years to 2100 are listed, and 9999, whose last day means never to
 * many; rows of other years are handed back.  So are those before 1900 where rules have no beginning.
 *
 * The session's zone is that of the moment when a program is made, which is when its node first needs it in
 * an execution.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "parser/scansup.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "engine/program/program_zone.h"
#include "expr/translate.h"

#define GH_ZONE_ENTRIES_MAX 2048
#define GH_ZONES_KEPT 8

typedef struct Entries
{
	int			count;
	int64	   *values;
} Entries;

struct GhZone
{
	pg_tz	   *tz;				/* PostgreSQL keeps it as long as the process lives */
	Entries		to_local;
	Entries		to_utc;
};

/* ------------------------------------------------------------- what a zone is */

/* Seconds since 1970 of a day. */
static pg_time_t
seconds_of_day(int year, int month, int day)
{
	return (pg_time_t) (date2j(year, month, day) - UNIX_EPOCH_JDATE) * SECS_PER_DAY;
}

/* From that second since 1970 on, so many are to be added; entries that it comes before are gone. */
static bool
add_entry(Entries *entries, pg_time_t second, int64 shift)
{
	int64		from = second - (int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY;

	while (entries->count > 0 && entries->values[entries->count - 1] >= gh_zone_entry(from, GH_ZONE_UNKNOWN))
		entries->count--;
	if (entries->count > 0 && gh_zone_seconds(entries->values[entries->count - 1]) == shift)
		return true;
	if (entries->count == GH_ZONE_ENTRIES_MAX)
		return false;
	entries->values[entries->count++] = gh_zone_entry(from, shift);
	return true;
}

/* What clocks are ahead of UTC from a moment on, as what they show then has it. */
static bool
add_ahead(GhZone *zone, pg_time_t moment)
{
	const struct pg_tm *tm = pg_localtime(&moment, zone->tz);

	return tm != NULL && tm->tm_gmtoff > -SECS_PER_DAY && tm->tm_gmtoff < SECS_PER_DAY &&
		add_entry(&zone->to_local, moment, tm->tm_gmtoff);
}

/* What is taken away from clocks from the time on that they show, as UTC. */
static bool
add_behind(GhZone *zone, pg_time_t clock, long offset)
{
	return offset > -SECS_PER_DAY && offset < SECS_PER_DAY && add_entry(&zone->to_utc, clock, -offset);
}

/*
 * The zone between two moments; *ends: there is no transition behind.  False: it is none that a list could
 * hold.
 *
 * What is before a transition is not always what is after the one before: two may be at the same moment.
 */
static bool
add_years(GhZone *zone, pg_time_t from, pg_time_t to, bool *ends)
{
	pg_time_t	at = from;
	pg_time_t	next;
	long int	before;
	long int	after;
	int			ignored;
	int			found;

	*ends = false;
	for (;;)
	{
		found = pg_next_dst_boundary(&at, &before, &ignored, &next, &after, &ignored, zone->tz);
		if (found < 0 || !add_ahead(zone, at) || !add_behind(zone, at + SECS_PER_DAY, before))
			return false;
		if (found == 0 || next >= to)
			break;
		if (next <= at || !add_behind(zone, Max(next + after, at + SECS_PER_DAY), after))
			return false;
		at = next;
	}
	if (found == 0)
	{
		/* where rules begin to repeat, one transition is said to be the last one */
		at += SECS_PER_DAY;
		*ends = true;
		return pg_next_dst_boundary(&at, &before, &ignored, &next, &after, &ignored, zone->tz) == 0;
	}
	return add_entry(&zone->to_local, to, GH_ZONE_UNKNOWN) && add_entry(&zone->to_utc, to - SECS_PER_DAY, GH_ZONE_UNKNOWN);
}

static bool
add_all_years(GhZone *zone)
{
	/* two days before the first timestamp */
	pg_time_t	first = seconds_of_day(-4713, 11, 22);
	pg_time_t	next;
	long int	before;
	long int	after;
	int			ignored;
	bool		ends;

	/* leap seconds are no offset */
	if (!pg_tz_acceptable(zone->tz))
		return false;
	if (pg_next_dst_boundary(&first, &before, &ignored, &next, &after, &ignored, zone->tz) != 0 &&
		next < seconds_of_day(1700, 1, 1))
		first = seconds_of_day(1900, 1, 1);
	if (!add_years(zone, first, seconds_of_day(2100, 1, 1), &ends))
		return false;
	return ends || add_years(zone, seconds_of_day(9998, 12, 1), seconds_of_day(10000, 2, 1), &ends);
}

static void
keep_entries(Entries *kept, const Entries *entries)
{
	kept->count = entries->count;
	kept->values = MemoryContextAlloc(TopMemoryContext, sizeof(int64) * entries->count);
	memcpy(kept->values, entries->values, sizeof(int64) * entries->count);
}

/*
 * The zone's lists; NULL, with a word on why: it has none.  They stay until some other zones were looked for.
 */
static const GhZone *
find_zone(GhTranslation *translation, pg_tz *tz)
{
	static GhZone zones[GH_ZONES_KEPT];
	static int	oldest = 0;
	GhZone	   *zone = &zones[oldest];
	GhZone		made = {.tz = tz};

	for (int i = 0; i < GH_ZONES_KEPT; i++)
		if (tz != NULL && zones[i].tz == tz)
			return &zones[i];
	made.to_local.values = palloc(sizeof(int64) * GH_ZONE_ENTRIES_MAX);
	made.to_utc.values = palloc(sizeof(int64) * GH_ZONE_ENTRIES_MAX);
	if (tz == NULL || !add_all_years(&made))
	{
		(void) gh_translation_fails(translation, "a time zone is not supported");
		return NULL;
	}
	zone->tz = NULL;
	if (zone->to_local.values != NULL)
		pfree(zone->to_local.values);
	zone->to_local.values = NULL;
	if (zone->to_utc.values != NULL)
		pfree(zone->to_utc.values);
	zone->to_utc.values = NULL;
	keep_entries(&zone->to_local, &made.to_local);
	keep_entries(&zone->to_utc, &made.to_utc);
	zone->tz = tz;
	oldest = (oldest + 1) % GH_ZONES_KEPT;
	pfree(made.to_local.values);
	pfree(made.to_utc.values);
	return zone;
}

/* --------------------------------------------------------------- which zone */

const GhZone *
gh_session_zone(GhTranslation *translation)
{
	return find_zone(translation, session_timezone);
}

/*
 * An abbreviation that always means the same, which goes before a zone of that name, as to PostgreSQL; or a
 * zone.  NULL: it is neither.
 */
static pg_tz *
zone_of_name(const char *name)
{
	char	   *lower = downcase_truncate_identifier(name, strlen(name), false);
	pg_tz	   *tz = NULL;
	int			offset = 0;
	int			type;

#if GH_ABBREVIATIONS_HAVE_ERRORS
	DateTimeErrorExtra extra;

	if (DecodeTimezoneAbbrev(0, lower, &type, &offset, &tz, &extra) != 0)
		return NULL;
#else
	type = DecodeTimezoneAbbrev(0, lower, &offset, &tz);
#endif
	if (type == TZ || type == DTZ)
		return pg_tzset_offset(-offset);
	return type == DYNTZ ? NULL : pg_tzset(name);
}

/* The zone that a constant names; NULL, with a word on why: there is none. */
const GhZone *
gh_named_zone(GhTranslation *translation, const Expr *expr)
{
	const Const *name = (const Const *) expr;
	const char *string;

	if (!IsA(name, Const) || name->consttype != TEXTOID || name->constisnull)
	{
		(void) gh_translation_fails(translation, "a time zone is not named by a constant");
		return NULL;
	}
	string = TextDatumGetCString(name->constvalue);
	/* of a longer one PostgreSQL reads a part */
	return find_zone(translation, *string == '\0' || strlen(string) > TZ_STRLEN_MAX ? NULL : zone_of_name(string));
}

/* -------------------------------------------------------------- instructions */

/* The list of that number, which is there once. */
static bool
add_zone_list(GhTranslation *translation, const Entries *entries, int *number)
{
	const GhList *lists = translation->lists;
	Size		bytes = sizeof(int64) * entries->count;
	GhList	   *list;

	for (*number = 0; *number < translation->nlists; (*number)++)
		if (lists[*number].value_class == GH_CLASS_INT && lists[*number].count == (uint32) entries->count &&
			memcmp(translation->values.data + lists[*number].values, entries->values, bytes) == 0)
			return true;
	if (translation->nlists >= GH_PROGRAM_LISTS_MAX)
		return gh_translation_fails(translation, "there are too many lists");
	list = &translation->lists[translation->nlists];
	memset(list, 0, sizeof(*list));
	list->value_class = GH_CLASS_INT;
	list->count = entries->count;
	list->values = gh_keep_bytes(translation, entries->values, bytes, sizeof(int64));
	translation->nlists++;
	return true;
}

/* Microseconds to be added to a moment, for what clocks show then; or, if not to_local, to what they show. */
bool
gh_add_zone_shift(GhTranslation *translation, const GhZone *zone, bool to_local, const GhOperand *time, GhOperand *shift)
{
	const Entries *entries = to_local ? &zone->to_local : &zone->to_utc;
	int			list;

	memset(shift, 0, sizeof(*shift));
	if (entries->count == 1 && gh_zone_seconds(entries->values[0]) != GH_ZONE_UNKNOWN)
		return gh_add_constant(translation, GH_CLASS_INT, false,
							   (uint64) (gh_zone_seconds(entries->values[0]) * USECS_PER_SEC), 0, shift);
	shift->value_class = GH_CLASS_INT;
	return add_zone_list(translation, entries, &list) &&
		gh_add_instruction(translation, GH_OP_ZONE_SHIFT, GH_CLASS_INT, 0, list, 1, time, shift);
}

/* The time with that added, or taken away. */
bool
gh_add_shifted(GhTranslation *translation, const GhOperand *time, const GhOperand *shift, bool back, GhOperand *result)
{
	const GhConstant *constant = gh_constant_of(translation, shift);
	GhOperand	args[2] = {*time, *shift};

	if (constant != NULL && constant->low == 0)
	{
		*result = *time;
		return true;
	}
	return (!back || gh_add_int(translation, GH_OP_NEG, sizeof(int64), 1, shift, &args[1])) &&
		gh_add_int(translation, GH_OP_TIMESTAMP_ADD, 0, 2, args, result);
}

static bool
add_in_zone(GhTranslation *translation, const GhZone *zone, bool to_local, const GhOperand *time, GhOperand *result)
{
	GhOperand	shift;

	return zone != NULL && gh_add_zone_shift(translation, zone, to_local, time, &shift) &&
		gh_add_shifted(translation, time, &shift, false, result);
}

/* What clocks of the zone show at a moment; zone: may be NULL, then there is no program. */
bool
gh_add_local_time(GhTranslation *translation, const GhZone *zone, const GhOperand *moment, GhOperand *local)
{
	return add_in_zone(translation, zone, true, moment, local);
}

/* The moment when they show that. */
bool
gh_add_moment(GhTranslation *translation, const GhZone *zone, const GhOperand *local, GhOperand *moment)
{
	return add_in_zone(translation, zone, false, local, moment);
}

/* ----------------------------------------------------------------- all calls */

/* A value, as what clocks show; a date is their midnight. */
static bool
translate_time(GhTranslation *translation, Expr *expr, bool is_date, GhOperand *result)
{
	return gh_translate_value(translation, expr, result) &&
		(!is_date || gh_add_int(translation, GH_OP_DATE_TO_TIMESTAMP, 0, 1, result, result));
}

/* A call of one of these functions; *is_one: it is. */
bool
gh_translate_zone_call(GhTranslation *translation, Oid function, List *exprs, bool *is_one, GhOperand *result)
{
	GhOperand	time;
	GhOperand	local;

	*is_one = true;
	switch (function)
	{
		case F_TIMESTAMP_TIMESTAMPTZ:
			return gh_translate_value(translation, linitial(exprs), &time) &&
				gh_add_local_time(translation, gh_session_zone(translation), &time, result);
		case F_DATE_TIMESTAMPTZ:
			return gh_translate_value(translation, linitial(exprs), &time) &&
				gh_add_local_time(translation, gh_session_zone(translation), &time, &local) &&
				gh_add_int(translation, GH_OP_TIMESTAMP_TO_DATE, 0, 1, &local, result);
		case F_TIMESTAMPTZ_TIMESTAMP:
		case F_TIMESTAMPTZ_DATE:
			return translate_time(translation, linitial(exprs), function == F_TIMESTAMPTZ_DATE, &time) &&
				gh_add_moment(translation, gh_session_zone(translation), &time, result);
		case F_TIMEZONE_TEXT_TIMESTAMPTZ:
			return gh_translate_value(translation, lsecond(exprs), &time) &&
				gh_add_local_time(translation, gh_named_zone(translation, linitial(exprs)), &time, result);
		case F_TIMEZONE_TEXT_TIMESTAMP:
			return gh_translate_value(translation, lsecond(exprs), &time) &&
				gh_add_moment(translation, gh_named_zone(translation, linitial(exprs)), &time, result);
		default:
			*is_one = false;
			return false;
	}
}
