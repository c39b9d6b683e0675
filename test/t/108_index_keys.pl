# Rows with k = ANY (array) or k IN (SELECT ...), looked up in the copy of an index (src/scan/keys.c): PostgreSQL's own answer, whatever the
# keys are and whatever of the table the copy is right for; when the copy is taken and when PostgreSQL's plan; under
# writers and VACUUMs; and with each of the interlocks left out, a wrong answer within seconds.
#
#	GPUHASH_SECONDS		of comparisons under writers (5)
#	GPUHASH_SEED		to begin with
use GpuHash::Test 'module';
use GpuHash::Index;
use Time::HiRes qw(time sleep);

my $seconds = $ENV{GPUHASH_SECONDS} || 5;
my $seed = seed();
my $server = GpuHash::Server->new(module => 1, conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'autovacuum = off',
	'max_worker_processes = 12', 'max_parallel_workers_per_gather = 0', 'gpuhash.force_offload = on', 'enable_bitmapscan = off']);
my $session = $server->session;
my $EXPLAIN = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)';

# The rows with and without copies, of one snapshot, and the plan with.
sub answers
{
	my ($one, $columns, $condition, $level) = @_;
	my $rows = "SELECT $columns FROM s WHERE $condition";
	my $sum = "SELECT count(*), md5(string_agg(r::text, '|' ORDER BY r::text)) FROM ($rows OFFSET 0) r";
	well($one, 'BEGIN ISOLATION LEVEL ' . ($level // 'REPEATABLE READ'));
	my $with = well($one, $sum);
	my $plan = well($one, "$EXPLAIN $rows");
	my $want = well($one, "SET LOCAL gpuhash.enabled = off; $sum");
	well($one, 'COMMIT');
	return ($with, $want, $plan);
}

# -------------------------------------------------------------- which arrays, which columns

my $ALL = 'k, a, t, n, d, f, u, b, x, p, y, i, m, e, o';
my @taken = (
	[$ALL, "k = ANY ('{1, 2, 6, 6, 7, 100000, NULL, -299}')"], [$ALL, "k = ANY ('{{1, 2}, {NULL, 4}}'::int[])"], ['k', "k = ANY ('{1, 2, 300}'::int2[])"],
	['a', 'k IN (1, 2, 3, 5, 11, 16)'], ['1', 'k IN (1, 2, 3, 5, 11, 16) AND a < 0'], ['t, k', 'k IN (1, 2, 3, 5, 11, 16) AND t IS NULL'], [$ALL, "k = ANY ('{}')"],
	[$ALL, 'k = ANY (NULL::bigint[])'], ['k', "k = ANY ('{NULL, NULL}')"], ['k', "k = ANY ('{9223372036854775807, -9223372036854775808, 5}')"],
	[$ALL, 'k = ANY (ARRAY(SELECT generate_series(-400, 30000, 3)))'], ['n, k', 'k = ANY (ARRAY(SELECT i * 7919 % 20011 FROM generate_series(1, 3000) i))'],
	['a', "k = ANY ('{1, 2, 3, 4}') AND k = ANY ('{3, 4, 5}')"], ['a', "k = ANY ('{1, 2, 3}') AND k > 1"],
	[$ALL, 'k IN (SELECT k FROM w)'], ['t', 'k IN (SELECT k + 1 FROM w) AND a % 3 = 0'], ['k, n', 'k IN (SELECT w.l FROM w JOIN w v ON v.k = w.l)'], [$ALL, 'k IN (SELECT k FROM w WHERE k < -1000)'],
	['1', 'k IN (SELECT k::int2 FROM w UNION ALL SELECT l FROM w)'], ['a', 'k IN (SELECT NULLIF(k, k) FROM w)'], ['a', 'k IN (SELECT max(k) FROM w GROUP BY l % 50)'],
	['a', 'EXISTS (SELECT FROM w WHERE w.k = s.k)'], ['b, k', 'k IN (WITH x AS MATERIALIZED (SELECT k FROM w WHERE l % 2 = 0) SELECT k FROM x)']);
my @others = (
	['k', "k <> ALL ('{1, 2, 3}')"], ['k', "NOT k = ANY ('{1, 2, 3}')"], ['k', "k > ANY ('{19690}')"], ['s', "k = ANY ('{1, 2, 3}')"], ['ctid', "k = ANY ('{1, 2, 3}')"],
	['k', "k = ANY ('{1, 2, 3}') OR a = 2"], ['k', "k = ANY ('{1, 2, 3}') AND c = 0"], ['c', "k = ANY ('{1, 2, 3}')"], ['k', 'k = ANY (ARRAY[a, 3])'],
	['k', 'k NOT IN (SELECT k FROM w WHERE k IS NOT NULL)'], ['s', 'k IN (SELECT k FROM w)'], ['ctid', 'k IN (SELECT k FROM w)'], ['c', 'k IN (SELECT k FROM w)'],
	['k', 'k IN (SELECT k FROM w) AND c = 0'], ['k', '(k, a) IN (SELECT k, l FROM w)'], ['k', 'k IN (SELECT k FROM w WHERE w.l = s.a)'], ['k', 'a IN (SELECT k FROM w)'],
	['k', 'k IN (SELECT k / 2.0 FROM w)'], ['k', 'k IN (SELECT k FROM w WHERE l NOT IN (SELECT l FROM w WHERE l < 9))'], ['k', 'k IN (SELECT k + (random() * 0)::int FROM w)'], ['k', 'k IN (SELECT k FROM w) AND random() < 2'],
	['k', "k = ANY ('{1, 2.5}'::numeric[])"], ['k', "k = ANY (ARRAY[1, (random() * 0)::int + 2])"]);

sub compare_all
{
	my ($what, $heap) = @_;
	for my $one (@taken)
	{
		my ($with, $want, $plan) = answers($session, @$one);
		is($with, $want, "$what: $one->[0] WHERE $one->[1]");
		like($plan, qr/Custom Scan \(GpuHashKeys\) on s.*Index: s_k/s, '  by the node');
		next if $one->[1] =~ /\{\}|NULL::|NULL, NULL|-1000|NULLIF/;
		like($plan, qr/Keys: \d+\n\s+Blocks From Index: \d+.*never executed/s, '  by the copy') or diag($plan);
		like($plan, $heap ? qr/Blocks From Heap: [1-9]/ : qr/^(?!.*Blocks From Heap)/s, '  ' . ($heap ? 'and some blocks of the table' : 'alone'));
	}
	for my $one (@others)
	{
		my ($with, $want, $plan) = answers($session, @$one);
		is($with, $want, "$what: $one->[0] WHERE $one->[1]");
		unlike($plan, qr/GpuHashKeys/, '  by none of it');
	}
	return;
}

my $FILL = "SELECT i - 300, i, CASE WHEN i % 7 > 0 THEN repeat('x', i % 40) || i END, i / 100.0, date '2000-01-01' + i, i / 3.0, md5(i::text)::uuid, i % 3 = 0, repeat('y', i % 9), 0, CASE WHEN i % 5 > 0 THEN repeat('p', i % 6) END, decode(md5(i::text), 'hex'), (i % 30000)::int2, timestamp '2000-01-01' + i * interval '1 hour', i / 7.0, ('name' || i)::name FROM generate_series(1, 20000) i ORDER BY i * 7919::bigint % 100003";
well($session, "CREATE TABLE s (k bigint, a bigint, t text, n numeric(12, 2), d date, f real, u uuid, b bool, x varchar(10), c int, p char(5), y bytea, i int2, m timestamp, e float8, o name) WITH (fillfactor = 80); INSERT INTO s $FILL;
	INSERT INTO s SELECT i, -i, 'again' FROM generate_series(1, 20000, 5) i; UPDATE s SET c = 0; INSERT INTO s (k, a) VALUES (NULL, 1);
	CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a, t, n, d, f, u, b, x, p, y, i, m, e, o); VACUUM FULL s; VACUUM ANALYZE s");
well($session, 'CREATE TABLE w AS SELECT (i * 31) % 1500 - 200 AS k, i AS l FROM generate_series(1, 2000) i; INSERT INTO w SELECT NULL, 5; ANALYZE w');
unlike((answers($session, @{ $taken[0] }))[2], qr/GpuHashKeys/, 'without a copy it is not planned');
is(well($session, "SELECT gpuhash_prewarm('s_k') = pg_relation_size('s') / 8192"), 't', 'there is a copy');
compare_all('a table that does not change', 0);
well($session, "UPDATE s SET a = a + 100000 WHERE k BETWEEN 2 AND 4; DELETE FROM s WHERE k BETWEEN 5 AND 6; INSERT INTO s (k, a, t, c) SELECT i, 7, 'new', 0 FROM generate_series(-5, 9) i");
compare_all('with rows that are new, changed and gone', 1);
well($session, 'BEGIN; UPDATE s SET a = a + 1 WHERE k = 1; INSERT INTO s (k, a, c) VALUES (2, 5, 0); DELETE FROM s WHERE k = 7');
for my $one (@taken)
{
	my $sum = "SELECT count(*), md5(string_agg(r::text, '|' ORDER BY r::text)) FROM (SELECT $one->[0] FROM s WHERE $one->[1] OFFSET 0) r";
	my $with = well($session, $sum);
	is($with, well($session, "SET LOCAL gpuhash.enabled = off; $sum"), "changes of the transaction itself: $one->[1]");
	well($session, 'SET LOCAL gpuhash.enabled = on');
}
well($session, 'ROLLBACK; VACUUM (INDEX_CLEANUP on) s');
compare_all('vacuumed', 1);
well($session, "SELECT gpuhash_prewarm('s_k')");
compare_all('with another copy', 0);

# other types of keys, an order that a copy does not take, a policy
for my $type (['int', 'i::int'], ['int2', '(i - 500)::int2'], ['date', "date '2000-01-01' + i::int"], ['timestamp', "timestamp '1999-12-31' + i * interval '7 hours'"])
{
	my ($name, $value) = @$type;
	well($session, "DROP TABLE IF EXISTS o; CREATE TABLE o AS SELECT $value AS k, i AS a FROM generate_series(1, 5000) i; CREATE INDEX o_k ON o USING gpuhash (k) INCLUDE (a)");
	well($session, 'VACUUM ANALYZE o');
	well($session, "SELECT gpuhash_prewarm('o_k')");
	my $query = "SELECT count(*), sum(a), min(k), max(k) FROM (SELECT k, a FROM o WHERE k = ANY (ARRAY(SELECT k FROM o WHERE a % 7 = 0)) OFFSET 0) r";
	like(well($session, "EXPLAIN $query"), qr/GpuHashKeys/, "$name: planned");
	is(well($session, $query), well($session, "SET gpuhash.enabled = off; $query; SET gpuhash.enabled = on"), '  PostgreSQL\'s answer');
}
well($session, 'DROP INDEX o_k; CREATE INDEX o_k ON o USING gpuhash (k DESC) INCLUDE (a)');
well($session, "SELECT gpuhash_prewarm('o_k')");
unlike(well($session, "EXPLAIN SELECT a FROM o WHERE k = ANY (ARRAY(SELECT k FROM o))"), qr/GpuHashKeys/, 'not of an index with DESC');
well($session, "CREATE ROLE reader; GRANT SELECT ON s TO reader; ALTER TABLE s ENABLE ROW LEVEL SECURITY; CREATE POLICY odd ON s USING (a % 2 = 1); SET ROLE reader");
my $seen = well($session, "SELECT string_agg(a::text, ' ' ORDER BY a) FROM (SELECT a FROM s WHERE k = ANY ('{1, 10, 11, 12, 16}') OFFSET 0) r");
is($seen, well($session, "SET gpuhash.enabled = off; SELECT string_agg(a::text, ' ' ORDER BY a) FROM s WHERE k = ANY ('{1, 10, 11, 12, 16}'); SET gpuhash.enabled = on"), 'a policy hides rows');
well($session, 'RESET ROLE; ALTER TABLE s DISABLE ROW LEVEL SECURITY; DROP POLICY odd ON s');

# A user's operators that call more values equal than are the same number: of an operator class that btree
# has, too, and of none.  Their functions are not inlined.
my $OF = '(bigint, bigint) RETURNS';
my $IS = 'LANGUAGE plpgsql IMMUTABLE STRICT AS';
for my $function (['eq', '='], ['lt', '<'], ['le', '<='], ['gt', '>'], ['ge', '>='])
{
	my ($name, $compares) = @$function;
	my $more = $name eq 'eq' ? ', COMMUTATOR = =/, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES' : '';
	well($session, "CREATE FUNCTION tens_$name$OF bool $IS 'BEGIN RETURN \$1 / 10 $compares \$2 / 10; END';
		CREATE OPERATOR $compares/ (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = tens_$name$more)");
}
well($session, "CREATE FUNCTION tens_cmp$OF int $IS 'BEGIN RETURN sign(\$1 / 10 - \$2 / 10); END';
	CREATE FUNCTION tens_hash(bigint) RETURNS int $IS 'BEGIN RETURN hashint8(\$1 / 10); END';
	CREATE OPERATOR CLASS tens FOR TYPE bigint USING hash AS OPERATOR 1 =/, FUNCTION 1 tens_hash(bigint)");
my $TENS = 'AS OPERATOR 1 </, OPERATOR 2 <=/, OPERATOR 3 =/, OPERATOR 4 >=/, OPERATOR 5 >/,
	FUNCTION 1 tens_cmp(bigint, bigint)';
my $TENS_FOR = 'CREATE OPERATOR CLASS tens FOR TYPE bigint USING';
my $NO_TENS = 'DROP OPERATOR FAMILY tens USING btree; DROP OPERATOR FAMILY tens USING gpuhash';
my $ADD = 'SELECT gpuhash_add_operator_classes()';
for my $class ("$TENS_FOR btree $TENS; $ADD", "$NO_TENS; $TENS_FOR gpuhash $TENS")
{
	my $what = $class =~ /btree AS/ ? 'an operator class of btree' : 'one of ours alone';
	well($session, "DROP TABLE IF EXISTS tens; $class");
	well($session, 'CREATE TABLE tens AS SELECT i::bigint AS k, i AS a FROM generate_series(1, 8000) i;
		CREATE INDEX tens_k ON tens USING gpuhash (k tens) INCLUDE (a)');
	well($session, 'VACUUM ANALYZE tens; SET enable_seqscan = off; SET client_min_messages = warning');
	well($session, "SELECT gpuhash_prewarm('tens_k')");
	for my $condition ("k =/ ANY ('{1, 15, 16, 700, 7999}')", "k = ANY ('{1, 15, 16, 700, 7999}')",
		'k =/ ANY (ARRAY(SELECT generate_series(5, 4000, 50)::bigint))', 'k IN (SELECT k FROM w)',
		'EXISTS (SELECT FROM w WHERE w.k::bigint =/ tens.k)')
	{
		my $query = "SELECT count(*), sum(a) FROM (SELECT k, a FROM tens WHERE $condition OFFSET 0) r";
		my $want = well($session, "SET gpuhash.enabled = off; $query; SET gpuhash.enabled = on");
		is(well($session, $query), $want, "$what: $condition");
	}
	well($session, 'RESET enable_seqscan');
}

# ----------------------------------------------------------------------- rescans, cursors

my $RESCANS = "SELECT g, (SELECT string_agg(a::text, ' ' ORDER BY a) FROM (SELECT a FROM s WHERE k = ANY (ARRAY[g, g + 5, NULL]) OFFSET 0) r) FROM generate_series(1, 40) g";
like(well($session, "$EXPLAIN $RESCANS"), qr/GpuHashKeys.*loops=40.*Keys: 80/s, 'run again and again');
is(well($session, $RESCANS), well($session, "SET gpuhash.enabled = off; $RESCANS; SET gpuhash.enabled = on"), '  with other keys');
my $SCROLLED = "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT k, a FROM s WHERE k = ANY ('{1, 2, 3, 11, 12}'); FETCH 3 c; FETCH BACKWARD 2 c; FETCH ALL c; FETCH ABSOLUTE 2 c; COMMIT";
is(scalar(split /\n/, well($session, $SCROLLED)), scalar(split /\n/, well($session, "SET gpuhash.enabled = off; $SCROLLED; SET gpuhash.enabled = on")), 'a cursor that goes back');
well($session, "BEGIN; DECLARE c CURSOR FOR SELECT k, a FROM s WHERE k = ANY ('{1, 11, 12}'); FETCH 1 c");
# while others make another copy, and VACUUM what it has
my $other = $server->session;
my $rows = well($session, "SELECT count(*) FROM s WHERE k IN (1, 11, 12)");
well($other, 'DELETE FROM s WHERE k IN (11, 12); VACUUM (INDEX_CLEANUP on) s');
well($other, "SELECT gpuhash_prewarm('s_k')");
is(scalar(split /\n/, well($session, 'FETCH ALL c')), $rows - 1, 'a cursor has the rows of its snapshot');
well($session, 'COMMIT');
my (undef, $error) = $session->do("SELECT a / (k - 11) FROM s WHERE k = ANY ('{1, 11, 12}')");
is($error, '', 'rows that are gone are not computed with');
(undef, $error) = $session->do("SELECT a / (k - 1) FROM s WHERE k = ANY ('{1, 2}')");
like($error, qr/division by zero/, 'an error ends the query');
is((answers($session, @{ $taken[0] }))[0], (answers($session, @{ $taken[0] }))[1], '  and the next one is well');

# ------------------------------------------------------------------- where it is not forced

well($session, 'RESET ALL; SET gpuhash.force_offload = off; SET plan_cache_mode = force_generic_plan');
well($session, "PREPARE keys (int[]) AS SELECT count(*), sum(a) FROM (SELECT a FROM s WHERE k = ANY (\$1) OFFSET 0) r");
my %arrays = map { $_->[0] => "'" . well($session, "SELECT array_agg($_->[1]) FROM generate_series(1, $_->[2]) i") . "'::int[]" } ['few', 'i', 1000], ['many', 'i % 3000', 9000];
my @cases = (
	['few', '', qr/Without Copy: there are few keys$/m], ['many', '', qr/Keys: 3000$/m], ['many', 'BEGIN ISOLATION LEVEL SERIALIZABLE', qr/Without Copy: the transaction is serializable/],
	['many', 'SET gpuhash.enable_index = off', qr/Without Copy: it is switched off/], ['many', 'UPDATE s SET c = 1 WHERE k % 3 = 0', qr/Without Copy: there are few keys for so large a copy, or so many blocks that have changed/],
	['many', 'REINDEX INDEX s_k', qr/Without Copy: there is none/]);
for my $case (@cases)
{
	my ($array, $before, $line) = @$case;
	well($session, $before) if $before ne '';
	my $plan = well($session, "$EXPLAIN EXECUTE keys ($arrays{$array})");
	if ($before =~ /REINDEX/) { unlike($plan, qr/GpuHashKeys/, 'planned anew without a copy') }
	else { like($plan, $line, "$array keys, $before") }
	my $with = well($session, "EXECUTE keys ($arrays{$array})");
	# of another session: switched off, this one would lose the plan that is kept
	is($with, well($other, "SET gpuhash.enabled = off; SELECT count(*), sum(a) FROM s WHERE k = ANY ($arrays{$array}); SET gpuhash.enabled = on"), '  PostgreSQL\'s answer');
	well($session, 'COMMIT') if $before =~ /BEGIN/;
	well($session, 'RESET gpuhash.enable_index');
}
well($session, 'VACUUM (INDEX_CLEANUP on) s');
well($session, "SELECT gpuhash_prewarm('s_k')");
well($session, 'SET plan_cache_mode = force_custom_plan');
my $many = well($session, 'SELECT array_agg(i) FROM generate_series(1, 9000) i');
my $some = well($session, 'SELECT array_agg(i) FROM generate_series(1, 1000) i');
like(well($session, "$EXPLAIN SELECT a FROM s WHERE k = ANY ('$many')"), qr/GpuHashKeys.*Keys: 9000/s, 'many constants are looked up in the copy');
unlike(well($session, "$EXPLAIN SELECT a FROM s WHERE k = ANY ('$some')"), qr/GpuHashKeys/, 'few are not');

# the same of a subquery's keys, of which the join that the node replaces has the rows where it does without
well($session, 'RESET ALL; SET plan_cache_mode = force_generic_plan; SET max_parallel_workers_per_gather = 0; CREATE TABLE keys AS SELECT i % 9000 AS k FROM generate_series(1, 12000) i; ANALYZE keys');
my $SUBQUERY = 'SELECT count(*), sum(a) FROM (SELECT a FROM s WHERE k IN (SELECT k FROM keys) OFFSET 0) r';
well($session, "SET gpuhash.force_offload = on; PREPARE subquery AS $SUBQUERY; EXECUTE subquery; SET gpuhash.force_offload = off");
my $want = well($other, "SET gpuhash.enabled = off; $SUBQUERY; SET gpuhash.enabled = on");
for my $case (
	['', '', qr/Keys: 9000\n/, 'by the copy'], ['BEGIN ISOLATION LEVEL SERIALIZABLE', 'COMMIT', qr/Without Copy: the transaction is serializable/, 'serializable'],
	['SET gpuhash.enable_index = off', 'RESET gpuhash.enable_index', qr/Without Copy: it is switched off/, 'switched off'],
	["SET work_mem = '64kB'; SET hash_mem_multiplier = 1", 'RESET work_mem; RESET hash_mem_multiplier', qr/Without Copy: the keys do not fit in memory/, 'in little memory'],
	["SET work_mem = '128kB'; SET hash_mem_multiplier = 1.25", 'RESET work_mem; RESET hash_mem_multiplier', qr/Keys: 9000\n/, 'in enough, for each once'],
	['BEGIN; UPDATE s SET c = 1 WHERE k % 3 = 0', 'ROLLBACK', qr/Without Copy: too many blocks have changed/, 'much changed'])
{
	my ($before, $after, $line, $what) = @$case;
	well($session, $before) if $before ne '';
	like(well($session, "$EXPLAIN EXECUTE subquery"), $line, "keys of a subquery, $what");
	is(well($session, 'EXECUTE subquery'), $want, '  PostgreSQL\'s answer');
	well($session, $after) if $after ne '';
}
well($session, 'VACUUM (INDEX_CLEANUP on) s');
well($session, "SELECT gpuhash_prewarm('s_k')");
well($session, "DEALLOCATE subquery; SET gpuhash.force_offload = on; PREPARE subquery AS $SUBQUERY; EXECUTE subquery; SET gpuhash.force_offload = off; BEGIN; TRUNCATE keys");
like(well($session, "$EXPLAIN EXECUTE subquery"), qr/GpuHashAggregate|Aggregate/, 'no keys');
is(well($session, 'EXECUTE subquery'), '0|', '  no rows');
well($session, 'ROLLBACK');
# each run has other keys; rows of a cursor; a policy, whose condition comes first; row marks
my $EACH = 'SELECT g, (SELECT count(*) || \' \' || sum(a) FROM (SELECT a FROM s WHERE k IN (SELECT w.k FROM w WHERE w.k % 7 = g) OFFSET 0) r) FROM generate_series(0, 7) g';
well($session, 'SET gpuhash.force_offload = on');
like(well($session, "$EXPLAIN $EACH"), qr/GpuHashKeys.*loops=8/s, 'run again and again');
is(well($session, $EACH), well($session, "SET gpuhash.enabled = off; $EACH; SET gpuhash.enabled = on"), '  with keys of another subquery');
like(well($session, 'BEGIN; EXPLAIN SELECT a FROM s WHERE k IN (SELECT k FROM w); DECLARE c CURSOR FOR SELECT a FROM s WHERE k IN (SELECT k FROM w); FETCH 1 c'), qr/GpuHashKeys.*\d$/s, 'a cursor');
$rows = well($session, 'SELECT count(*) FROM s WHERE k IN (SELECT k FROM w)');
well($other, 'DELETE FROM s WHERE k BETWEEN 100 AND 900; VACUUM (INDEX_CLEANUP on) s');
well($other, "SELECT gpuhash_prewarm('s_k')");
is(scalar(split /\n/, well($session, 'FETCH ALL c')), $rows - 1, '  has the rows of its snapshot');
well($session, 'COMMIT');
# subqueries in the keys' plan, which is there twice; around it; and one that changes the table
for my $query (
	'SELECT count(*), sum(a) FROM (SELECT a FROM s WHERE k IN (SELECT k FROM w WHERE (SELECT count(*) FROM keys WHERE keys.k = w.l % 50) > 1) OFFSET 0) r', 'SELECT count(*), sum(a) FROM (SELECT a FROM s WHERE k IN (SELECT k FROM w WHERE (l IN (SELECT k FROM keys WHERE k > 1000)) IS NOT TRUE) OFFSET 0) r',
	'SELECT count(*), sum(a) FROM (SELECT a FROM s WHERE k IN (SELECT k FROM w WHERE l > (SELECT avg(l) FROM w)) OFFSET 0) r', 'SELECT count(*), sum(a) FROM (SELECT a FROM s WHERE k IN (SELECT coalesce(v.l, w.k) FROM w FULL JOIN w v ON v.l = w.k) OFFSET 0) r',
	'SELECT count(*), sum(r.a) FROM keys LEFT JOIN (SELECT a FROM s WHERE k IN (SELECT k FROM w)) r ON r.a = keys.k', 'SELECT count(*), sum(a) FROM ((SELECT a FROM s WHERE k IN (SELECT k FROM w) OFFSET 0) UNION ALL (SELECT a FROM s WHERE k IN (SELECT l FROM w) OFFSET 0)) r',
	'SELECT count(*), sum(a) FROM (SELECT a FROM s WHERE k IN (SELECT k FROM w) AND i IN (SELECT l FROM w) OFFSET 0) r', 'WITH d AS (DELETE FROM s WHERE a % 50 = 7 RETURNING k) SELECT count(*), sum(a) FROM (SELECT a FROM s WHERE k IN (SELECT k FROM d) OFFSET 0) r')
{
	well($session, 'BEGIN');
	like(well($session, "EXPLAIN $query"), qr/GpuHashKeys/, "of keys: $query");
	my $with = well($session, "SAVEPOINT x; $query; ROLLBACK TO x");
	is($with, well($session, "SET LOCAL gpuhash.enabled = off; SAVEPOINT x; $query; ROLLBACK TO x"), '  PostgreSQL\'s answer');
	well($session, 'ROLLBACK');
}
unlike(well($session, 'EXPLAIN UPDATE keys SET k = k WHERE k IN (SELECT a FROM s WHERE k IN (SELECT k FROM w))'), qr/GpuHashKeys/, 'not where rows are marked');
well($session, 'GRANT SELECT ON w TO reader; ALTER TABLE s ENABLE ROW LEVEL SECURITY; CREATE POLICY odd ON s USING (a % 2 = 1); SET ROLE reader');
unlike(well($session, 'EXPLAIN SELECT a FROM s WHERE k IN (SELECT k FROM w)'), qr/GpuHashKeys/, 'not where a policy is');
well($session, 'RESET ROLE; ALTER TABLE s DISABLE ROW LEVEL SECURITY; DROP POLICY odd ON s; RESET ALL');
$other->close;

# ---------------------------------------------------------------------- under writers

my $anew = 0;
my @VACUUMS = ('VACUUM (INDEX_CLEANUP on) s', 'VACUUM (INDEX_CLEANUP on) s', 'VACUUM s', 'VACUUM (INDEX_CLEANUP off) s', 'VACUUM (FREEZE) s');

sub change
{
	my ($inserts) = @_;
	my $k = int(rand(20000)) - 300;
	my $few = "k IN (SELECT k FROM s WHERE k >= $k ORDER BY k LIMIT 2)";
	my $new = int(rand(20000)) . ', ' . int(rand(1000000)) . ", 'n', 0";
	return "INSERT INTO s (k, a, t, c) VALUES ($new)" if $inserts && rand() < 0.6;
	my @changes = ("BEGIN; DELETE FROM s WHERE $few; INSERT INTO s (k, a, t, c) VALUES ($new); COMMIT", "UPDATE s SET a = a + 1 WHERE $few", "UPDATE s SET c = c + 1 WHERE $few",
		"SELECT count(c) FROM s WHERE k BETWEEN $k AND $k + 300", "BEGIN; INSERT INTO s (k, a, t, c) VALUES ($new); ROLLBACK");
	return $changes[int(rand(@changes))];
}

# Compares until the time is over, or, where a point is named, an answer is wrong: comparisons, those that took the copy, and those that were wrong.
sub compare
{
	my ($limit, $point) = @_;
	my $end = time + $limit;
	# VACUUM notes the blocks that it removes entries of, and so hides an insert that was not noted
	my $inserts = $point eq 'index_inserted';
	my @vacuums = (@VACUUMS, ('VACUUM (INDEX_CLEANUP off) s') x ($inserts ? 6 : 0));
	my %work = (10 => sub { sleep rand() * 0.15; $vacuums[int(rand(@vacuums))] });
	for my $number (1 .. 3)
	{
		$work{$number} = sub { sleep rand() * 0.1; change($inserts) };
	}
	my $one = $server->session;
	# made anew and grown by a row: from PostgreSQL 16 on there are blocks that no row has reached, to which rows come
	well($one, 'ALTER TABLE s ALTER c TYPE ' . ('int', 'bigint')[$anew++ % 2] . "; INSERT INTO s (k, a, c) VALUES (0, 0, 0)");
	well($one, 'VACUUM s');
	my @pids = write_until($server, $end, $seed += 100, \%work);
	my ($rounds, $taken, $wrong) = (0, 0, 0);
	while (time < $end && !($point ne '' && $wrong > 0))
	{
		my $step = 1 + int(rand(4));
		my $keys = "SELECT generate_series(-300, 20100, $step)";
		my ($with, $want, $plan) = answers($one, ($ALL, 'k, a', 'k')[rand(3)], rand() < 0.5 ? "k = ANY (ARRAY($keys))" : "k IN ($keys)");
		$rounds++;
		$taken++ if $plan =~ /Keys: \d+\n/;
		well($one, "SELECT gpuhash_prewarm('s_k')") if $rounds % 15 == 0 || $plan !~ /Keys: /;
		next if $with eq $want;
		$wrong++;
		diag("$with, not $want\n$plan") if $point eq '';
	}
	end_writers($server, @pids);
	$one->close;
	return ($rounds, $taken, $wrong);
}

my ($rounds, $taken, $wrong) = compare($seconds, '');
is($wrong, 0, "none of $rounds answers was wrong");
cmp_ok($taken, '>', $rounds / 4, "$taken by copies");
needs($server, \&compare, qw(index_inserted index_removed index_order));
$server->query('REINDEX INDEX s_k');
($rounds, $taken, $wrong) = compare($seconds, '');
is($wrong, 0, "with both again, none of $rounds was");
unlike($server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
