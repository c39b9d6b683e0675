# Why the copy of an index that would fit is not used: gpuhash.explain_why says so of joins and scans, whoever does them, in the words
# of EXPLAIN (ANALYZE); and nothing where it would be used, or where no index fits.
use GpuHash::Test 'module';
use GpuHash::Index;

my $server = GpuHash::Server->new(module => 1, conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'autovacuum = off', 'max_parallel_workers_per_gather = 0']);
my $session = $server->session;
well($session, "CREATE TABLE big (k bigint, a bigint, c int); INSERT INTO big SELECT i, i % 1000, 0 FROM generate_series(1, 100000) i; CREATE INDEX big_k ON big USING gpuhash (k) INCLUDE (a);
	CREATE TABLE few AS SELECT (i * 7919::bigint % 110000) - 1000 AS k, i::bigint AS v FROM generate_series(1, 3000) i; CREATE TABLE many AS SELECT i * 7919::bigint % 110000 AS k, i::bigint AS v FROM generate_series(1, 120000) i;
	CREATE TABLE tiny (k int, a int); INSERT INTO tiny SELECT i, i FROM generate_series(1, 500) i; CREATE INDEX tiny_k ON tiny USING gpuhash (k) INCLUDE (a);
	CREATE TABLE pairs (x int, y int, z int); INSERT INTO pairs SELECT i % 100, i, i FROM generate_series(1, 100000) i; CREATE INDEX pairs_xy ON pairs USING gpuhash (x, y) INCLUDE (z)");
well($session, "VACUUM ANALYZE $_") for 'big', 'few', 'many', 'tiny', 'pairs';
well($session, 'SET gpuhash.explain_why = on');

sub said
{
	my ($query) = @_;
	my $plan = well($session, "EXPLAIN (COSTS OFF) $query");
	return join '; ', $plan =~ /^\s*Without Copy: (.*)/mg;
}

my $BIG = 'SELECT count(*), sum(b.a) FROM few f JOIN big b ON b.k = f.k';
my $LOOP = "$BIG WHERE f.v < 100";
my $KEYS = 'SELECT a FROM big WHERE k = ANY (ARRAY(SELECT k FROM few))';
is(said($BIG), 'big_k: there is none', 'a join that has the index at its outer side, and no copy');
is(said($LOOP), 'big_k: there is none', 'a nested loop');
is(said('SELECT count(*), sum(v), sum(b.a) FROM many JOIN big b USING (k)'), '', 'a join that would make the copy');
is(said('SELECT b.a FROM few f JOIN big b ON b.k = f.k'), 'big_k: the rows of the join are not grouped by gpuhash', 'rows of a join');
is(said('SELECT b.a FROM few f JOIN big b ON b.k = f.k WHERE f.v < 100'), 'big_k: the rows of the join are not grouped by gpuhash', 'of a nested loop');
is(said('SELECT count(*), sum(b.a) FROM few f JOIN tiny b ON b.k = f.k'), 'tiny_k: the table is small', 'a small table');
is(said('SELECT count(*), sum(z) FROM few f JOIN pairs p ON p.x = f.v AND p.y = f.k WHERE f.v < 100'), 'pairs_xy: there is none', 'keys of two columns');
is(said('SELECT count(*), sum(b.c) FROM few f JOIN big b ON b.k = f.k WHERE f.v < 100'), '', 'the index lacks a column');
is(said('SELECT count(*), sum(z) FROM few f JOIN pairs p ON p.x = f.k WHERE f.v < 100'), '', 'one of two keys');
is(said("$BIG WHERE b.a > 5 AND f.v < 100"), '', 'a condition on the table');
is(said('SELECT count(*), sum(f.v) FROM big b LEFT JOIN few f ON b.k = f.k'), '', 'the outer side of a left join');
is(said($KEYS), 'big_k: there is none', 'keys of an array');
is(said('SELECT a FROM big WHERE k IN (1, 2, 3)'), 'big_k: there are few keys', 'few keys');
is(said('SELECT c FROM big WHERE k IN (1, 2, 3)'), '', 'the index lacks a column');
is(said('SELECT a FROM big WHERE k = 3'), '', 'one key');

well($session, "SELECT gpuhash_prewarm('big_k')");
is(said($BIG), '', 'the copy is used');
is(said($LOOP), '', 'a plan of PostgreSQL that costs less');
is(said($KEYS), '', 'keys that are looked up in the copy');
like(well($session, "EXPLAIN (COSTS OFF) $KEYS"), qr/GpuHashKeys/, '  by a GpuHashKeys');
# before 17 the table is read for so many
my $SOME = well($session, 'SHOW server_version_num') < 170000 ? '' : 'big_k: there are few keys for so large a copy, or so many blocks that have changed';
is(said('SELECT a FROM big WHERE k IN (' . join(', ', map { $_ * 3 } 1 .. 2100) . ')'), $SOME, 'some keys');
well($session, 'BEGIN; UPDATE big SET c = 1 WHERE k % 300 = 0');
is(said($BIG), 'big_k: too many blocks have changed, or are not all-visible', 'much has changed');
is(said($LOOP), 'big_k: too many blocks have changed, or are not all-visible', '  and a nested loop');
like(well($session, "EXPLAIN (COSTS OFF, FORMAT json) $BIG"), qr/"Without Copy": \["big_k: too many blocks have changed, or are not all-visible"\]/, 'as JSON');
well($session, 'ROLLBACK');

well($session, 'SET gpuhash.enable_index = off');
is(said($_), '', 'not with gpuhash.enable_index = off') for $BIG, $LOOP, $KEYS;
well($session, 'RESET gpuhash.enable_index; SET gpuhash.explain_why = off');
is(said($_), '', 'nor without gpuhash.explain_why') for $LOOP, $KEYS;
$session->close;
unlike($server->log, qr/PANIC|TRAP:|WARNING/, 'nothing failed');
done_testing();
