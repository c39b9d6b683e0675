/*
 * program_ops.h
 *		What an instruction of a program does to the words of one row: integers, dates,
 *		truth values; and the value of a row, which the other families share.
 *
 * Here and in program_float.h, program_int128.h and program_text.h the meaning of every
 * operation stands once, for the CPU's loops over batches (cpu_program.c) and for kernels
 * (program_row.h).  A function gets arguments that are not NULL.  Where PostgreSQL raises
 * an error, it sets a bit of *bad, and the row is handed back.  It must bear any bits at all:
 * the loops run it over the rows that are NULL or not live too, and ignore what it says there.
 *
 * No function calls libm: see program_float.h.
 */
#ifndef GH_PROGRAM_OPS_H
#define GH_PROGRAM_OPS_H

#include "engine/program/program.h"

/* The upper half of an integer of 64 bits as one of 128. */
GH_EVERYWHERE uint64_t
gh_sign_extension(uint64_t low)
{
	return 0 - (low >> 63);
}

/* A vector's value in one row. */
typedef struct GhValue
{
	uint64_t	low;
	uint64_t	high;
	uint8_t		null;
} GhValue;

/* Operation and class in one number, for switches; those of any class have none in it. */
#define GH_OP_KEY(op, op_class) ((op) << 4 | (op_class))

GH_EVERYWHERE uint32_t
gh_op_key(const GhInstruction *instruction)
{
	return GH_OP_KEY(instruction->op, instruction->op >= GH_OP_IS_NULL ? 0 : instruction->op_class);
}

/* ----------------------------------------------------------------- integers */

/* Not 0 where the value needs more than `width` bytes; shifted twice, as 64 bits are too many. */
GH_EVERYWHERE uint64_t
gh_int_beyond(uint64_t value, int width)
{
	int			bits = 8 * width - 1;

	return (value + (UINT64_C(1) << bits)) >> bits >> 1;
}

GH_EVERYWHERE uint64_t
gh_int_add(uint64_t a, uint64_t b, int width, uint64_t *bad)
{
	uint64_t	sum = a + b;

	*bad |= ((a ^ sum) & (b ^ sum)) >> 63 | gh_int_beyond(sum, width);
	return sum;
}

GH_EVERYWHERE uint64_t
gh_int_sub(uint64_t a, uint64_t b, int width, uint64_t *bad)
{
	uint64_t	difference = a - b;

	*bad |= ((a ^ b) & (a ^ difference)) >> 63 | gh_int_beyond(difference, width);
	return difference;
}

GH_EVERYWHERE uint64_t
gh_int_mul(uint64_t a, uint64_t b, int width, uint64_t *bad)
{
	__int128	product = (__int128) (int64_t) a * (int64_t) b;

	*bad |= (product != (int64_t) product) | gh_int_beyond((uint64_t) product, width);
	return (uint64_t) product;
}

GH_EVERYWHERE uint64_t
gh_int_neg(uint64_t a, int width, uint64_t *bad)
{
	return gh_int_sub(0, a, width, bad);
}

GH_EVERYWHERE uint64_t
gh_int_abs(uint64_t a, int width, uint64_t *bad)
{
	return (int64_t) a < 0 ? gh_int_neg(a, width, bad) : gh_int_add(a, 0, width, bad);
}

/* Towards zero.  The processor traps on the smallest number by -1, so that is a negation. */
GH_EVERYWHERE uint64_t
gh_int_div(uint64_t a, uint64_t b, int width, uint64_t *bad)
{
	uint64_t	quotient;

	*bad |= b == 0;
	if (b + 1 <= 1)				/* 0, -1 */
		return gh_int_neg(a, width, bad);
	quotient = (uint64_t) ((int64_t) a / (int64_t) b);
	*bad |= gh_int_beyond(quotient, width);
	return quotient;
}

/* The sign is the dividend's; by -1 there is no remainder, of the smallest number either. */
GH_EVERYWHERE uint64_t
gh_int_mod(uint64_t a, uint64_t b, int width, uint64_t *bad)
{
	uint64_t	remainder;

	*bad |= b == 0;
	if (b + 1 <= 1)
		return 0;
	remainder = (uint64_t) ((int64_t) a % (int64_t) b);
	*bad |= gh_int_beyond(remainder, width);
	return remainder;
}

GH_EVERYWHERE uint64_t
gh_int_narrow(uint64_t a, int width, uint64_t *bad)
{
	*bad |= gh_int_beyond(a, width);
	return a;
}

GH_EVERYWHERE uint64_t
gh_int_bit_and(uint64_t a, uint64_t b, int width, uint64_t *bad)
{
	(void) width;
	(void) bad;
	return a & b;
}

GH_EVERYWHERE uint64_t
gh_int_bit_or(uint64_t a, uint64_t b, int width, uint64_t *bad)
{
	(void) width;
	(void) bad;
	return a | b;
}

GH_EVERYWHERE uint64_t
gh_int_bit_xor(uint64_t a, uint64_t b, int width, uint64_t *bad)
{
	(void) width;
	(void) bad;
	return a ^ b;
}

GH_EVERYWHERE uint64_t
gh_int_bit_not(uint64_t a, int width, uint64_t *bad)
{
	(void) width;
	(void) bad;
	return ~a;
}

/* smallint is shifted as integer, and cut off afterwards; so is what integers lose. */
GH_EVERYWHERE uint64_t
gh_int_shift_left(uint64_t a, uint64_t b, int width, uint64_t *bad)
{
	uint64_t	bits = width == 8 ? 64 : 32;
	int			cut = 64 - 8 * width;

	*bad |= b >= bits;
	return (uint64_t) ((int64_t) (a << (b & (bits - 1)) << cut) >> cut);
}

GH_EVERYWHERE uint64_t
gh_int_shift_right(uint64_t a, uint64_t b, int width, uint64_t *bad)
{
	uint64_t	bits = width == 8 ? 64 : 32;

	*bad |= (b >= bits) | gh_int_beyond(a, width);
	return (uint64_t) ((int64_t) a >> (b & (bits - 1)));
}

/* Comparisons, of BOOL as well. */
#define GH_DEFINE_INT_COMPARISON(name, operator) \
GH_EVERYWHERE uint64_t \
gh_int_##name(uint64_t a, uint64_t b, int width, uint64_t *bad) \
{ \
	(void) width; \
	(void) bad; \
	return (int64_t) a operator (int64_t) b; \
}
GH_DEFINE_INT_COMPARISON(eq, ==)
GH_DEFINE_INT_COMPARISON(ne, !=)
GH_DEFINE_INT_COMPARISON(lt, <)
GH_DEFINE_INT_COMPARISON(le, <=)
GH_DEFINE_INT_COMPARISON(gt, >)
GH_DEFINE_INT_COMPARISON(ge, >=)

/* ----------------------------------------------------------- dates and times */

/* The ends of the two types are infinities. */
#define GH_DATE_FIRST INT64_C(-2451545)		/* 4714-11-24 BC */
#define GH_DATE_END INT64_C(2145031949)		/* the day after 5874897-12-31 */
#define GH_TIMESTAMP_DATE_END INT64_C(106751983)	/* the day after 294276-12-31 */
#define GH_DAY_MICROSECONDS INT64_C(86400000000)

GH_EVERYWHERE bool
gh_date_finite(uint64_t date)
{
	return (int64_t) date != INT32_MIN && (int64_t) date != INT32_MAX;
}

GH_EVERYWHERE uint64_t
gh_date_add(uint64_t date, uint64_t days, int width, uint64_t *bad)
{
	uint64_t	beyond = 0;
	uint64_t	sum = gh_int_add(date, days, 8, &beyond);

	(void) width;
	if (!gh_date_finite(date))
		return date;
	*bad |= beyond | ((int64_t) sum < GH_DATE_FIRST) | ((int64_t) sum >= GH_DATE_END);
	return sum;
}

GH_EVERYWHERE uint64_t
gh_date_sub(uint64_t date, uint64_t days, int width, uint64_t *bad)
{
	uint64_t	beyond = 0;
	uint64_t	difference = gh_int_sub(date, days, 8, &beyond);

	(void) width;
	if (!gh_date_finite(date))
		return date;
	*bad |= beyond | ((int64_t) difference < GH_DATE_FIRST) | ((int64_t) difference >= GH_DATE_END);
	return difference;
}

GH_EVERYWHERE uint64_t
gh_date_diff(uint64_t a, uint64_t b, int width, uint64_t *bad)
{
	(void) width;
	*bad |= !gh_date_finite(a) || !gh_date_finite(b);
	return gh_int_sub(a, b, 4, bad);
}

GH_EVERYWHERE uint64_t
gh_date_to_timestamp(uint64_t date, int width, uint64_t *bad)
{
	(void) width;
	if (!gh_date_finite(date))
		return (int64_t) date < 0 ? (uint64_t) INT64_MIN : INT64_MAX;
	*bad |= ((int64_t) date < GH_DATE_FIRST) | ((int64_t) date >= GH_TIMESTAMP_DATE_END);
	return date * (uint64_t) GH_DAY_MICROSECONDS;
}

/* A date that is one, and finite; any other becomes 0, and goes back. */
GH_EVERYWHERE int64_t
gh_date_checked(uint64_t date, uint64_t *bad)
{
	bool		is_date = (int64_t) date >= GH_DATE_FIRST && (int64_t) date < GH_DATE_END;

	*bad |= !is_date;
	return is_date ? (int64_t) date : 0;
}

GH_EVERYWHERE uint64_t
gh_timestamp_to_date(uint64_t timestamp, int width, uint64_t *bad)
{
	int64_t		days = (int64_t) timestamp / GH_DAY_MICROSECONDS;

	(void) width;
	days -= (int64_t) timestamp % GH_DAY_MICROSECONDS < 0;
	*bad |= (days < GH_DATE_FIRST) | (days >= GH_TIMESTAMP_DATE_END);
	return (uint64_t) days;
}

/*
 * The calendar.  Years are counted from March on, so that the leap day is a year's last, and from a multiple of
 * 400 years before the first date.
 */
#define GH_CALENDAR_YEARS 8000
#define GH_CALENDAR_DAYS INT64_C(3652365)	/* from its first day, a March 1, to 2000-01-01: 10000 years less 60 days */
#define GH_DAYS_OF_400_YEARS 146097

typedef struct GhCivil
{
	int64_t		year;			/* 1 BC is 0 */
	int64_t		month;			/* from 1 */
	int64_t		day;
} GhCivil;

/* Days from the calendar's first one to the first of March of its year */
GH_EVERYWHERE int64_t
gh_days_before_year(int64_t year)
{
	return year * 365 + year / 4 - year / 100 + year / 400;
}

/* and from there to the first of a month, of which March is 0: they have 31, 30, 31, 30, 31 days, again and again. */
GH_EVERYWHERE int64_t
gh_days_before_month(int64_t month)
{
	return (153 * month + 2) / 5;
}

GH_EVERYWHERE GhCivil
gh_civil_of_date(int64_t date)
{
	int64_t		days = date + GH_CALENDAR_DAYS;
	int64_t		year = days * 400 / GH_DAYS_OF_400_YEARS;
	int64_t		month;
	GhCivil		civil;

	/* by the mean length of a year that may be one too many, or too few */
	year -= gh_days_before_year(year) > days;
	year += gh_days_before_year(year + 1) <= days;
	days -= gh_days_before_year(year);
	month = (5 * days + 2) / 153;
	civil.day = days - gh_days_before_month(month) + 1;
	civil.month = month < 10 ? month + 3 : month - 9;
	civil.year = year - GH_CALENDAR_YEARS + (month >= 10);
	return civil;
}

/* The first day of a month. */
GH_EVERYWHERE int64_t
gh_date_of_month(int64_t year, int64_t month)
{
	int64_t		from_march = month >= 3 ? month - 3 : month + 9;

	return gh_days_before_year(year + GH_CALENDAR_YEARS - (month < 3)) + gh_days_before_month(from_march) -
		GH_CALENDAR_DAYS;
}

GH_EVERYWHERE uint64_t
gh_date_year(uint64_t date, int width, uint64_t *bad)
{
	int64_t		year = gh_civil_of_date(gh_date_checked(date, bad)).year;

	(void) width;
	return (uint64_t) (year > 0 ? year : year - 1);
}

GH_EVERYWHERE uint64_t
gh_date_month(uint64_t date, int width, uint64_t *bad)
{
	(void) width;
	return (uint64_t) gh_civil_of_date(gh_date_checked(date, bad)).month;
}

GH_EVERYWHERE uint64_t
gh_date_day(uint64_t date, int width, uint64_t *bad)
{
	(void) width;
	return (uint64_t) gh_civil_of_date(gh_date_checked(date, bad)).day;
}

/* 2000-01-01 was a Saturday; days are counted from a Sunday before all dates. */
GH_EVERYWHERE uint64_t
gh_date_weekday(uint64_t date, int width, uint64_t *bad)
{
	(void) width;
	return (uint64_t) ((gh_date_checked(date, bad) + 7 * INT64_C(1000000) + 6) % 7);
}

GH_EVERYWHERE uint64_t
gh_date_to_year(uint64_t date, int width, uint64_t *bad)
{
	(void) width;
	return (uint64_t) gh_date_of_month(gh_civil_of_date(gh_date_checked(date, bad)).year, 1);
}

GH_EVERYWHERE uint64_t
gh_date_to_quarter(uint64_t date, int width, uint64_t *bad)
{
	GhCivil		civil = gh_civil_of_date(gh_date_checked(date, bad));

	(void) width;
	return (uint64_t) gh_date_of_month(civil.year, (civil.month - 1) / 3 * 3 + 1);
}

GH_EVERYWHERE uint64_t
gh_date_to_month(uint64_t date, int width, uint64_t *bad)
{
	int64_t		checked = gh_date_checked(date, bad);

	(void) width;
	return (uint64_t) (checked - gh_civil_of_date(checked).day + 1);
}

GH_EVERYWHERE uint64_t
gh_date_to_week(uint64_t date, int width, uint64_t *bad)
{
	(void) width;
	return (uint64_t) (gh_date_checked(date, bad) - (int64_t) (gh_date_weekday(date, 0, bad) + 6) % 7);
}

/* --------------------------------------------------------- moved timestamps */

#define GH_TIMESTAMP_FIRST (GH_DATE_FIRST * GH_DAY_MICROSECONDS)
#define GH_TIMESTAMP_END (GH_TIMESTAMP_DATE_END * GH_DAY_MICROSECONDS)
#define GH_MOVED_MONTHS_MAX INT64_C(10000000)	/* there are fewer in all */

GH_EVERYWHERE bool
gh_timestamp_finite(uint64_t timestamp)
{
	return (int64_t) timestamp != INT64_MIN && (int64_t) timestamp != INT64_MAX;
}

GH_EVERYWHERE uint64_t
gh_timestamp_add(uint64_t timestamp, uint64_t microseconds, int width, uint64_t *bad)
{
	uint64_t	beyond = 0;
	uint64_t	sum = gh_int_add(timestamp, microseconds, 8, &beyond);

	(void) width;
	if (!gh_timestamp_finite(timestamp))
		return timestamp;
	*bad |= beyond | ((int64_t) sum < GH_TIMESTAMP_FIRST) | ((int64_t) sum >= GH_TIMESTAMP_END);
	return sum;
}

GH_EVERYWHERE uint64_t
gh_timestamp_diff(uint64_t a, uint64_t b, int width, uint64_t *bad)
{
	(void) width;
	*bad |= !gh_timestamp_finite(a) || !gh_timestamp_finite(b);
	return gh_int_sub(a, b, 8, bad);
}

/* Months from the year 0's first one; years that no timestamp is in become 2000, and go back. */
GH_EVERYWHERE int64_t
gh_date_of_months(int64_t months, int64_t day, uint64_t *bad)
{
	int64_t		year = (months + 12 * GH_CALENDAR_YEARS) / 12 - GH_CALENDAR_YEARS;
	int64_t		month = months - 12 * year + 1;
	int64_t		first;
	int64_t		days;

	if (year < -5000 || year > 300000)
	{
		*bad |= 1;
		year = 2000;
		month = 1;
	}
	first = gh_date_of_month(year, month);
	days = (month < 12 ? gh_date_of_month(year, month + 1) : gh_date_of_month(year + 1, 1)) - first;
	return first + (day < days ? day : days) - 1;
}

/* The time of the day stays as it is. */
GH_EVERYWHERE uint64_t
gh_timestamp_add_months(uint64_t timestamp, uint64_t months, int width, uint64_t *bad)
{
	uint64_t	wrong = (int64_t) months < -GH_MOVED_MONTHS_MAX || (int64_t) months > GH_MOVED_MONTHS_MAX;
	uint64_t	day = gh_timestamp_to_date(timestamp, width, &wrong);
	GhCivil		civil = gh_civil_of_date(gh_date_checked(day, &wrong));
	int64_t		moved = gh_date_of_months(12 * civil.year + civil.month - 1 + (wrong == 0 ? (int64_t) months : 0),
										  civil.day, &wrong);

	if (!gh_timestamp_finite(timestamp))
		return timestamp;
	*bad |= wrong | (moved < GH_DATE_FIRST) | (moved >= GH_TIMESTAMP_DATE_END);
	return timestamp + ((uint64_t) moved - day) * (uint64_t) GH_DAY_MICROSECONDS;
}

/* ------------------------------------------------------- truth values, NULLs */

GH_EVERYWHERE uint64_t
gh_bool_not(uint64_t a, int width, uint64_t *bad)
{
	(void) width;
	(void) bad;
	return a == 0;
}

/* What is not NULL and true, and what is not NULL and false. */
GH_EVERYWHERE bool
gh_bool_true(uint64_t low, uint8_t null)
{
	return (low != 0) & (null == 0);
}

GH_EVERYWHERE bool
gh_bool_false(uint64_t low, uint8_t null)
{
	return (low == 0) & (null == 0);
}

/* x = ANY (list) of INT; the caller deals with NULLs. */
GH_EVERYWHERE bool
gh_int_in(const GhProgram *program, const GhList *list, uint64_t value)
{
	const int64_t *values = (const int64_t *) ((const char *) program + list->values);
	uint32_t	first = 0;
	uint32_t	count = list->count;

	while (count > 1)			/* values[first] <= value, if any is */
	{
		uint32_t	half = count / 2;

		if (values[first + half] <= (int64_t) value)
			first += half;
		count -= half;
	}
	return count > 0 && values[first] == (int64_t) value;
}

/* Functions of one word, by operation and class: f(a, width, bad). */
#define GH_WORD_FUNCTIONS_1(X) \
	X(GH_OP_NEG, GH_CLASS_INT, gh_int_neg) \
	X(GH_OP_ABS, GH_CLASS_INT, gh_int_abs) \
	X(GH_OP_BIT_NOT, GH_CLASS_INT, gh_int_bit_not) \
	X(GH_OP_TO_INT, GH_CLASS_INT, gh_int_narrow) \
	X(GH_OP_TO_INT, GH_CLASS_BOOL, gh_int_narrow) \
	X(GH_OP_DATE_TO_TIMESTAMP, GH_CLASS_INT, gh_date_to_timestamp) \
	X(GH_OP_TIMESTAMP_TO_DATE, GH_CLASS_INT, gh_timestamp_to_date) \
	X(GH_OP_DATE_YEAR, GH_CLASS_INT, gh_date_year) \
	X(GH_OP_DATE_MONTH, GH_CLASS_INT, gh_date_month) \
	X(GH_OP_DATE_DAY, GH_CLASS_INT, gh_date_day) \
	X(GH_OP_DATE_WEEKDAY, GH_CLASS_INT, gh_date_weekday) \
	X(GH_OP_DATE_TO_YEAR, GH_CLASS_INT, gh_date_to_year) \
	X(GH_OP_DATE_TO_QUARTER, GH_CLASS_INT, gh_date_to_quarter) \
	X(GH_OP_DATE_TO_MONTH, GH_CLASS_INT, gh_date_to_month) \
	X(GH_OP_DATE_TO_WEEK, GH_CLASS_INT, gh_date_to_week) \
	X(GH_OP_NOT, GH_CLASS_BOOL, gh_bool_not)

/* Functions of two words: f(a, b, width, bad). */
#define GH_INT_COMPARISONS(X, op_class) \
	X(GH_OP_EQ, op_class, gh_int_eq) \
	X(GH_OP_NE, op_class, gh_int_ne) \
	X(GH_OP_LT, op_class, gh_int_lt) \
	X(GH_OP_LE, op_class, gh_int_le) \
	X(GH_OP_GT, op_class, gh_int_gt) \
	X(GH_OP_GE, op_class, gh_int_ge)

#define GH_WORD_FUNCTIONS_2(X) \
	GH_INT_COMPARISONS(X, GH_CLASS_INT) \
	GH_INT_COMPARISONS(X, GH_CLASS_BOOL) \
	X(GH_OP_ADD, GH_CLASS_INT, gh_int_add) \
	X(GH_OP_SUB, GH_CLASS_INT, gh_int_sub) \
	X(GH_OP_MUL, GH_CLASS_INT, gh_int_mul) \
	X(GH_OP_DIV, GH_CLASS_INT, gh_int_div) \
	X(GH_OP_MOD, GH_CLASS_INT, gh_int_mod) \
	X(GH_OP_BIT_AND, GH_CLASS_INT, gh_int_bit_and) \
	X(GH_OP_BIT_OR, GH_CLASS_INT, gh_int_bit_or) \
	X(GH_OP_BIT_XOR, GH_CLASS_INT, gh_int_bit_xor) \
	X(GH_OP_SHIFT_LEFT, GH_CLASS_INT, gh_int_shift_left) \
	X(GH_OP_SHIFT_RIGHT, GH_CLASS_INT, gh_int_shift_right) \
	X(GH_OP_DATE_ADD, GH_CLASS_INT, gh_date_add) \
	X(GH_OP_DATE_SUB, GH_CLASS_INT, gh_date_sub) \
	X(GH_OP_DATE_DIFF, GH_CLASS_INT, gh_date_diff) \
	X(GH_OP_TIMESTAMP_ADD, GH_CLASS_INT, gh_timestamp_add) \
	X(GH_OP_TIMESTAMP_ADD_MONTHS, GH_CLASS_INT, gh_timestamp_add_months) \
	X(GH_OP_TIMESTAMP_DIFF, GH_CLASS_INT, gh_timestamp_diff)

#endif							/* GH_PROGRAM_OPS_H */
