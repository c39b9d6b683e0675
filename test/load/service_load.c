/*
 * service_load.c
 *		Many sessions that join, change and search a shared hash table, cancel and
 *		disconnect, for a time; every answer is compared.  test/t/024_service_load.pl
 *		builds and runs it.
 *
 *	service_load CONNINFO SESSIONS SECONDS SEED SETTINGS TABLE
 *
 * SETTINGS is SQL that each session begins with.  TABLE names a hash table for batches,
 * or is empty: joins only; sessions of odd numbers use the one whose name has "2" behind it.  The database has the relations lo and li of the test.
 *
 * One thread looks after all connections with poll().  What the joins must return is
 * asked first, with gpuhash.enabled off.  Each session has a range of keys to itself in
 * the hash table, so that it knows what is in there.
 *
 * Prints a line for each kind of work, "KIND count ... per_second ... p50 ...", with times
 * in ms, and "wrong N ..." as the last one; exit status 0 if nothing was wrong.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libpq-fe.h>

#define SESSIONS_MAX 1024
#define PARAMETERS 16
#define BATCH_KEYS 200
#define SESSION_KEYS 1000000L

/* Of a hundred statements, so many are cancelled, or their session disconnects. */
#define CANCEL_PERCENT 10
#define DISCONNECT_PERCENT 2

/* A cancel or disconnect comes after at most so long. */
#define LEAVE_MS_MAX 40

/* No statement may take so long. */
#define STUCK_MS 60000

#define WRONG_SHOWN 10

static const char *const joins[] = {
	"SELECT count(*), sum(hashtextextended(r::text, 0)::numeric) FROM (SELECT lo.id, li.id FROM lo JOIN li ON li.k = lo.k WHERE lo.id %% 16 = %d) r",
	"SELECT count(*), sum(hashtextextended(r::text, 0)::numeric) FROM (SELECT lo.id, li.id, li.t FROM lo LEFT JOIN li ON li.k = lo.k AND li.id %% 16 > %d) r",
	"SELECT count(*), sum(hashtextextended(r::text, 0)::numeric) FROM (SELECT lo.id, li.id FROM lo JOIN li ON li.t = lo.t WHERE li.id %% 16 <> %d) r",
	"SELECT count(*), sum(lo.id + li.id) FROM lo JOIN li ON li.k = lo.k AND li.id %% 16 = %d",
};

#define JOINS ((int) (sizeof(joins) / sizeof(joins[0])))

typedef enum Kind
{
	KIND_JOIN,
	KIND_LIMIT,
	KIND_ERROR,
	KIND_INSERT,
	KIND_FIND,
	KIND_DELETE,
	KINDS
} Kind;

static const char *const kind_names[KINDS] = {"join", "limit", "error", "insert", "find", "delete"};

typedef struct Session
{
	PGconn	   *conn;
	Kind		kind;
	char		want[128];		/* the answer; empty: any */
	double		start;			/* ms */
	double		leave_at;		/* 0: it waits for the end */
	bool		disconnects;	/* it leaves by that, else by a cancel */
	bool		cancelled;
	long		base;			/* its first key in the hash table */
	bool		known;			/* what the hash table has of its keys */
	int			round;			/* 0: none, else values are of that round */
	int			rounds;			/* so far */
} Session;

typedef struct Times
{
	double	   *ms;
	size_t		count;
	size_t		room;
} Times;

static Session sessions[SESSIONS_MAX];
static Times times[KINDS];
static char answers[sizeof(joins) / sizeof(joins[0])][PARAMETERS][128];
static const char *conninfo;
static const char *settings;
static const char *table;
static long wrong;
static long cancelled;
static long disconnected;
static uint64_t random_state;

static double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* splitmix64 */
static uint64_t
random_below(uint64_t bound)
{
	uint64_t	z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31)) % bound;
}

static void
die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(2);
}

static void
note_time(Kind kind, double ms)
{
	Times	   *all = &times[kind];

	if (all->count == all->room)
	{
		all->room = all->room == 0 ? 1024 : 2 * all->room;
		all->ms = realloc(all->ms, all->room * sizeof(double));
		if (all->ms == NULL)
			die("service_load", "out of memory");
	}
	all->ms[all->count++] = ms;
}

static void
note_wrong(const Session *session, const char *got)
{
	if (wrong++ < WRONG_SHOWN)
		printf("WRONG: session %d, %s: expected \"%s\", got \"%s\"\n", (int) (session - sessions),
			   kind_names[session->kind], session->want, got);
}

/* ------------------------------------------------------------- connections */

static PGconn *
connect_now(const char *begin)
{
	PGconn	   *conn = PQconnectdb(conninfo);
	PGresult   *result;

	if (PQstatus(conn) != CONNECTION_OK)
		die("could not connect", PQerrorMessage(conn));
	result = PQexec(conn, begin);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		die(begin, PQerrorMessage(conn));
	PQclear(result);
	return conn;
}

/* A row as psql would print it. */
static void
first_row(const PGresult *result, char *text, size_t size)
{
	text[0] = '\0';
	for (int i = 0; i < PQnfields(result) && PQntuples(result) > 0; i++)
		snprintf(text + strlen(text), size - strlen(text), "%s%s", i > 0 ? "|" : "",
				 PQgetvalue(result, 0, i));
}

/* What PostgreSQL itself answers. */
static void
ask_answers(void)
{
	PGconn	   *conn = connect_now("SET gpuhash.enabled = off");

	for (int join = 0; join < JOINS; join++)
		for (int p = 0; p < PARAMETERS; p++)
		{
			char		sql[512];
			PGresult   *result;

			snprintf(sql, sizeof(sql), joins[join], p);
			result = PQexec(conn, sql);
			if (PQresultStatus(result) != PGRES_TUPLES_OK)
				die(sql, PQerrorMessage(conn));
			first_row(result, answers[join][p], sizeof(answers[join][p]));
			PQclear(result);
		}
	PQfinish(conn);
}

/* -------------------------------------------------------------- statements */

static void
make_join(Session *session, char *sql, size_t size)
{
	int			join = (int) random_below(JOINS);
	int			p = (int) random_below(PARAMETERS);

	session->kind = KIND_JOIN;
	snprintf(sql, size, joins[join], p);
	strcpy(session->want, answers[join][p]);
}

/* A batch on the session's keys; what it must return follows from the ones before. */
static void
make_batch(Session *session, char *sql, size_t size)
{
	long		first = session->base;
	long		last = first + BATCH_KEYS - 1;
	const char *suffix = (session - sessions) % 2 == 0 ? "" : "2";
	int			what = !session->known ? 2 : (int) random_below(3);

	if (what == 0)
	{
		session->kind = KIND_INSERT;
		snprintf(session->want, sizeof(session->want), "%d", session->round == 0 ? BATCH_KEYS : 0);
		session->round = ++session->rounds;
		snprintf(sql, size, "SELECT gpuhash_insert('%s%s', ARRAY(SELECT generate_series(%ld, %ld)), ARRAY(SELECT g * 7 + %d FROM generate_series(%ld::bigint, %ld) g))",
				 table, suffix, first, last, session->round, first, last);
	}
	else if (what == 1)
	{
		session->kind = KIND_FIND;
		snprintf(session->want, sizeof(session->want), "%d", BATCH_KEYS);
		snprintf(sql, size, "SELECT count(*) FROM generate_series(%ld::bigint, %ld) WITH ORDINALITY k(k, n) JOIN unnest(gpuhash_find('%s%s', ARRAY(SELECT generate_series(%ld, %ld)))) WITH ORDINALITY v(v, n) USING (n) WHERE v.v IS NOT DISTINCT FROM CASE WHEN %d > 0 THEN k.k * 7 + %d END",
				 first, last, table, suffix, first, last, session->round, session->round);
	}
	else
	{
		session->kind = KIND_DELETE;
		session->want[0] = '\0';
		if (session->known)
			snprintf(session->want, sizeof(session->want), "%d", session->round == 0 ? 0 : BATCH_KEYS);
		session->round = 0;
		session->known = true;
		snprintf(sql, size, "SELECT gpuhash_delete('%s%s', ARRAY(SELECT generate_series(%ld, %ld)))",
				 table, suffix, first, last);
	}
}

static bool
changes_table(const Session *session)
{
	return session->kind == KIND_INSERT || session->kind == KIND_DELETE;
}

static void
send_statement(Session *session)
{
	char		sql[1024];
	uint64_t	dice = random_below(100);
	uint64_t	leave = random_below(100);

	if (dice < 3)
	{
		session->kind = KIND_LIMIT;
		strcpy(session->want, "rows 5");
		strcpy(sql, "SELECT lo.id, li.id FROM lo JOIN li ON li.k = lo.k LIMIT 5");
	}
	else if (dice < 6)
	{
		session->kind = KIND_ERROR;
		strcpy(session->want, "22012");
		strcpy(sql, "SELECT sum(1 / (lo.id - 1000)) FROM lo JOIN li ON li.k = lo.k");
	}
	else if (dice < 60 || table[0] == '\0')
		make_join(session, sql, sizeof(sql));
	else
		make_batch(session, sql, sizeof(sql));
	session->start = now_ms();
	session->cancelled = false;
	session->leave_at = 0;
	session->disconnects = leave < DISCONNECT_PERCENT;
	if (leave < DISCONNECT_PERCENT + CANCEL_PERCENT)
		session->leave_at = session->start + 0.1 * (double) random_below(10 * LEAVE_MS_MAX);
	if (!PQsendQuery(session->conn, sql))
		die(sql, PQerrorMessage(session->conn));
}

static void
leave_statement(Session *session)
{
	char		message[256];
	PGcancel   *cancel;

	session->leave_at = 0;
	if (session->disconnects)
	{
		disconnected++;
		PQfinish(session->conn);
		session->conn = connect_now(settings);
		/* what was begun may still be done, after anything that comes now */
		if (changes_table(session))
			session->base += BATCH_KEYS;
		if (changes_table(session))
			session->round = 0;
		send_statement(session);
		return;
	}
	cancel = PQgetCancel(session->conn);
	if (!PQcancel(cancel, message, sizeof(message)))
		die("could not cancel", message);
	PQfreeCancel(cancel);
	session->cancelled = true;
}

static void
check_result(Session *session, const PGresult *result)
{
	char		got[256];

	if (PQresultStatus(result) == PGRES_TUPLES_OK && session->kind == KIND_LIMIT)
		snprintf(got, sizeof(got), "rows %d", PQntuples(result));
	else if (PQresultStatus(result) == PGRES_TUPLES_OK)
		first_row(result, got, sizeof(got));
	else
		snprintf(got, sizeof(got), "%s", PQresultErrorField(result, PG_DIAG_SQLSTATE) != NULL ?
				 PQresultErrorField(result, PG_DIAG_SQLSTATE) : PQresultErrorMessage(result));
	if (session->cancelled && strcmp(got, "57014") == 0)
	{
		cancelled++;
		if (changes_table(session))
			session->known = false;
		return;
	}
	note_time(session->kind, now_ms() - session->start);
	if (session->want[0] != '\0' && strcmp(got, session->want) != 0)
		note_wrong(session, got);
	else if (session->want[0] == '\0' && PQresultStatus(result) != PGRES_TUPLES_OK)
		note_wrong(session, got);
}

/* What has arrived; true when the statement is over. */
static bool
receive(Session *session)
{
	PGresult   *result;

	if (!PQconsumeInput(session->conn))
		die("a connection was lost", PQerrorMessage(session->conn));
	while (!PQisBusy(session->conn))
	{
		result = PQgetResult(session->conn);
		if (result == NULL)
			return true;
		check_result(session, result);
		PQclear(result);
	}
	return false;
}

/* --------------------------------------------------------------------- all */

static void
run(int nsessions, double end)
{
	struct pollfd polled[SESSIONS_MAX];
	int			busy = nsessions;

	for (int i = 0; i < nsessions; i++)
		send_statement(&sessions[i]);
	while (busy > 0)
	{
		double		now;

		for (int i = 0; i < nsessions; i++)
		{
			polled[i].fd = sessions[i].conn == NULL ? -1 : PQsocket(sessions[i].conn);
			polled[i].events = POLLIN;
		}
		if (poll(polled, (nfds_t) nsessions, 1) < 0 && errno != EINTR)
			die("poll", strerror(errno));
		now = now_ms();
		for (int i = 0; i < nsessions; i++)
		{
			Session    *session = &sessions[i];

			if (session->conn == NULL)
				continue;
			if (now - session->start > STUCK_MS)
				die("a statement does not end", kind_names[session->kind]);
			if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && receive(session))
			{
				if (now < end)
					send_statement(session);
				else
				{
					PQfinish(session->conn);
					session->conn = NULL;
					busy--;
				}
			}
			else if (session->leave_at != 0 && now >= session->leave_at && now < end)
				leave_statement(session);
		}
	}
}

static int
compare_times(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

static double
percentile(const Times *all, double share)
{
	return all->ms[(size_t) (share * (double) (all->count - 1))];
}

static void
report(double seconds)
{
	for (int kind = 0; kind < KINDS; kind++)
	{
		Times	   *all = &times[kind];

		if (all->count == 0)
			continue;
		qsort(all->ms, all->count, sizeof(double), compare_times);
		printf("%-6s count %zu per_second %.1f p50 %.1f p95 %.1f p99 %.1f max %.1f\n",
			   kind_names[kind], all->count, (double) all->count / seconds, percentile(all, 0.5),
			   percentile(all, 0.95), percentile(all, 0.99), percentile(all, 1));
	}
	printf("wrong %ld cancelled %ld disconnected %ld\n", wrong, cancelled, disconnected);
}

int
main(int argc, char **argv)
{
	int			nsessions;
	double		seconds;
	double		start;

	if (argc != 7)
		die("usage", "service_load CONNINFO SESSIONS SECONDS SEED SETTINGS TABLE");
	conninfo = argv[1];
	nsessions = atoi(argv[2]);
	seconds = atof(argv[3]);
	random_state = strtoull(argv[4], NULL, 10);
	settings = argv[5];
	table = argv[6];
	if (nsessions < 1 || nsessions > SESSIONS_MAX)
		die("service_load", "so many sessions are not possible");
	ask_answers();
	for (int i = 0; i < nsessions; i++)
	{
		sessions[i].conn = connect_now(settings);
		sessions[i].base = (i + 1) * SESSION_KEYS;
		sessions[i].known = true;
	}
	start = now_ms();
	run(nsessions, start + seconds * 1e3);
	report((now_ms() - start) / 1e3);
	return wrong == 0 ? 0 : 1;
}
