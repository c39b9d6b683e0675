/*
 * program_model_date.c
 *		What instructions on dates and timestamps should come to, by the calendar.
 */
#include "program_test.h"

#include <math.h>

typedef struct Date
{
	const GhInstruction *in;
	uint64_t   *low;			/* of the result */
} Date;

static Outcome
int_result(const Date *at, GhInt128 value, int bytes)
{
	GhInt128	limit = (GhInt128) 1 << (8 * bytes - 1);

	*at->low = (uint64_t) value;
	return value >= -limit && value < limit ? OUTCOME_VALUE : OUTCOME_BACK;
}

/* Days from 2000-01-01 to a day of the Gregorian calendar; the year 0 is 1 BC. */
static int64_t
days_of(int64_t year, int month, int day)
{
	static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
	int64_t		y = year + 8000;	/* a multiple of 400 years on: none is negative */
	int64_t		days = y * 365 + (y + 3) / 4 - (y + 99) / 100 + (y + 399) / 400;
	bool		leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;

	return days + before[month - 1] + (leap && month > 2) + day - 1 - 3652425;
}

static Outcome
model_date(const Date *at, int64_t a, int64_t b)
{
	bool		infinite = a == INT32_MIN || a == INT32_MAX;
	int64_t		first = days_of(-4713, 11, 24);
	GhInt128	day = at->in->op == GH_OP_DATE_ADD ? (GhInt128) a + b : (GhInt128) a - b;

	if (at->in->op == GH_OP_DATE_DIFF)
		return infinite || b == INT32_MIN || b == INT32_MAX ? OUTCOME_BACK : int_result(at, day, 4);
	if (at->in->op == GH_OP_DATE_TO_TIMESTAMP)
	{
		if (infinite)
			return int_result(at, a < 0 ? INT64_MIN : INT64_MAX, 8);
		*at->low = (uint64_t) a * 24 * 60 * 60 * 1000000;
		return a >= first && a < days_of(294277, 1, 1) ? OUTCOME_VALUE : OUTCOME_BACK;
	}
	if (infinite)
		return int_result(at, a, 8);
	*at->low = (uint64_t) day;
	return day >= first && day < days_of(5874898, 1, 1) ? OUTCOME_VALUE : OUTCOME_BACK;
}

/* The parts of a day, by trying years and months. */
static Outcome
model_day(const Date *at, int64_t a)
{
	int64_t		year = 2000 + a / 366;
	int			month = 1;
	int64_t		week = a - ((a + 5) % 7 + 7) % 7;	/* 2000-01-03 was a Monday */
	int64_t		shown;

	if (a < days_of(-4713, 11, 24) || a >= days_of(5874898, 1, 1))
		return OUTCOME_BACK;
	while (days_of(year, 1, 1) > a)
		year -= days_of(year, 1, 1) - a > 366 ? (days_of(year, 1, 1) - a) / 366 : 1;
	while (days_of(year + 1, 1, 1) <= a)
		year += a - days_of(year + 1, 1, 1) > 366 ? (a - days_of(year + 1, 1, 1)) / 366 : 1;
	while (month < 12 && days_of(year, month + 1, 1) <= a)
		month++;
	switch (at->in->op)
	{
		case GH_OP_DATE_YEAR:
			shown = year > 0 ? year : year - 1;
			break;
		case GH_OP_DATE_MONTH:
			shown = month;
			break;
		case GH_OP_DATE_DAY:
			shown = a - days_of(year, month, 1) + 1;
			break;
		case GH_OP_DATE_WEEKDAY:
			shown = (a - week + 1) % 7;
			break;
		case GH_OP_DATE_TO_YEAR:
			shown = days_of(year, 1, 1);
			break;
		case GH_OP_DATE_TO_QUARTER:
			shown = days_of(year, month < 4 ? 1 : month < 7 ? 4 : month < 10 ? 7 : 10, 1);
			break;
		case GH_OP_DATE_TO_MONTH:
			shown = days_of(year, month, 1);
			break;
		default:
			shown = week;
	}
	return int_result(at, shown, 8);
}

static Outcome
model_timestamp_to_date(const Date *at, int64_t a)
{
	long double day = floorl((long double) a / (24.0L * 60 * 60 * 1000000));

	*at->low = (uint64_t) (int64_t) day;
	return day >= days_of(-4713, 11, 24) && day < days_of(294277, 1, 1) ? OUTCOME_VALUE : OUTCOME_BACK;
}

/* Microseconds of a timestamp, if it is one. */
static Outcome
timestamp_result(const Date *at, GhInt128 value)
{
	const int64_t day = INT64_C(86400000000);

	*at->low = (uint64_t) value;
	return value >= (GhInt128) days_of(-4713, 11, 24) * day && value < (GhInt128) days_of(294277, 1, 1) * day ?
		OUTCOME_VALUE : OUTCOME_BACK;
}

/* By the model's own parts of a day: the month counts on, and the day is tried from the 31st downwards. */
static Outcome
model_months(const Date *at, int64_t a, int64_t months)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	GhInstruction part = *at->in;
	uint64_t	day;
	uint64_t	values[3];
	Date		inner = {&part, &day};
	int64_t		year;
	int64_t		month;
	int			i;

	if (model_timestamp_to_date(&inner, a) != OUTCOME_VALUE || months > 12 * 300000 || months < -12 * 300000)
		return OUTCOME_BACK;
	for (i = 0; i < 3; i++)
	{
		Date		one = {&part, &values[i]};

		part.op = (uint16_t) (GH_OP_DATE_YEAR + i);
		(void) model_day(&one, (int64_t) day);
	}
	year = (int64_t) values[0] + ((int64_t) values[0] < 0) + months / 12;
	for (month = (int64_t) values[1] + months % 12; month > 12; month -= 12)
		year++;
	for (; month < 1; month += 12)
		year--;
	if (year < -4713 || year > 294276)
		return OUTCOME_BACK;
	while ((int64_t) values[2] > lengths[month - 1] +
		   (month == 2 && ((year % 4 == 0 && year % 100 != 0) || year % 400 == 0)))
		values[2]--;
	return timestamp_result(at, (GhInt128) a + ((GhInt128) days_of(year, (int) month, (int) values[2]) - (int64_t) day) *
							INT64_C(86400000000));
}

static Outcome
model_moved(const Date *at, int64_t a, int64_t b)
{
	bool		infinite = a == INT64_MIN || a == INT64_MAX;

	if (at->in->op == GH_OP_TIMESTAMP_DIFF)
		return infinite || b == INT64_MIN || b == INT64_MAX ? OUTCOME_BACK : int_result(at, (GhInt128) a - b, 8);
	if (infinite)
		return int_result(at, a, 8);
	return at->in->op == GH_OP_TIMESTAMP_ADD ? timestamp_result(at, (GhInt128) a + b) : model_months(at, a, b);
}

/* By every entry of the list, whose upper part is a second and whose rest is what to add, less 2 to the power of 17. */
Outcome
model_zone(const GhProgram *program, const GhInstruction *in, int64_t a, uint64_t *low)
{
	const GhList *list = &gh_program_lists(program)[in->immediate];
	const int64_t *entries = (const int64_t *) ((const char *) program + list->values);
	bool		infinite = a == INT64_MIN || a == INT64_MAX;
	int64_t		shift = -131072;
	uint32_t	i;

	for (i = 0; i < list->count; i++)
	{
		int64_t		rest = (entries[i] % 262144 + 262144) % 262144;

		if ((GhInt128) ((entries[i] - rest) / 262144) * 1000000 <= a)
			shift = rest - 131072;
	}
	*low = shift == -131072 ? 0 : (uint64_t) (shift * 1000000);
	return shift == -131072 && !infinite ? OUTCOME_BACK : OUTCOME_VALUE;
}

Outcome
model_dates(const GhInstruction *in, int64_t a, int64_t b, uint64_t *low)
{
	const Date	at = {in, low};

	switch (in->op)
	{
		case GH_OP_DATE_ADD:
		case GH_OP_DATE_SUB:
		case GH_OP_DATE_DIFF:
		case GH_OP_DATE_TO_TIMESTAMP:
			return model_date(&at, a, b);
		case GH_OP_TIMESTAMP_TO_DATE:
			return model_timestamp_to_date(&at, a);
		case GH_OP_TIMESTAMP_ADD:
		case GH_OP_TIMESTAMP_ADD_MONTHS:
		case GH_OP_TIMESTAMP_DIFF:
			return model_moved(&at, a, b);
		default:
			return model_day(&at, a);
	}
}
