# Prepared statements, cursors, LIMIT and VACUUM beside an open cursor.
use GpuHash::Test;

my $server = GpuHash::Server->new(conf => [
	"session_preload_libraries = 'gpuhash'", 'gpuhash.force_offload = on', "gpuhash.engine = 'cpu'",
	'max_parallel_workers_per_gather = 0', 'autovacuum = off']);
$server->query(<<'SQL');
CREATE TABLE outer_rows AS SELECT i, i % 1000 AS k FROM generate_series(1, 50000) i;
CREATE TABLE inner_rows AS SELECT i AS k, i * 10 AS v FROM generate_series(1, 500) i;
ANALYZE;
SQL
my $session = $server->session;
my ($out, $err);

# a prepared statement, custom plans first and the generic plan in the end
$session->do('PREPARE q (int) AS SELECT count(*), sum(i.v) FROM outer_rows o JOIN inner_rows i ON i.k = o.k WHERE i.v <= $1');
for my $n (1 .. 8)
{
	($out, $err) = $session->do("EXECUTE q (${\ ($n * 10)})");
	is("$out$err", 50 * $n . '|' . 50 * 10 * $n * ($n + 1) / 2, "prepared statement, run $n");
}
($out) = $session->do('SET plan_cache_mode = force_generic_plan; EXPLAIN (COSTS OFF) EXECUTE q (10)');
like($out, qr/GpuHashJoin/, 'the generic plan is offloaded');
($out, $err) = $session->do('EXECUTE q (30)');
is("$out$err", '150|3000', 'the generic plan answers');
$session->do('RESET plan_cache_mode');

# plans are made anew when a table changes
$session->do('ALTER TABLE inner_rows ADD COLUMN w int DEFAULT 3');
($out, $err) = $session->do('EXECUTE q (30)');
is("$out$err", '150|3000', 'after ALTER TABLE');

# a cursor, read in pieces, backwards, and beside a query of its own
my $join = 'SELECT o.i, i.v FROM outer_rows o JOIN inner_rows i ON i.k = o.k ORDER BY o.i, i.v';
$session->do("BEGIN; DECLARE c SCROLL CURSOR FOR $join");
($out, $err) = $session->do('FETCH 3 FROM c');
is("$out$err", "1|10\n2|20\n3|30", 'cursor: the first rows');
is(($session->do('SELECT count(*) FROM outer_rows o JOIN inner_rows i ON i.k = o.k'))[0], 25000, 'cursor: another join beside it');
is(($session->do('FETCH 2 FROM c'))[0], "4|40\n5|50", 'cursor: goes on');
is(($session->do('FETCH BACKWARD 2 FROM c'))[0], "4|40\n3|30", 'cursor: backwards');
is(($session->do('MOVE LAST FROM c; FETCH BACKWARD 1 FROM c'))[0], '49499|4990', 'cursor: from the end');
$session->do('COMMIT');

# forward only and without a sort above it
$session->do('BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT o.i FROM outer_rows o JOIN inner_rows i ON i.k = o.k');
($out, $err) = $session->do('FETCH 7 FROM c');
is(scalar(split /\n/, $out), 7, 'cursor without scroll');
($out) = $session->do('EXPLAIN (COSTS OFF) SELECT o.i FROM outer_rows o JOIN inner_rows i ON i.k = o.k');
like($out, qr/GpuHashJoin/, 'it is offloaded');

# VACUUM beside it neither waits for a pin nor for a lock
$server->query('DELETE FROM outer_rows WHERE i % 2 = 0');
my $start = time;
($out, $err) = ($server->run("SET statement_timeout = '20s'; VACUUM outer_rows; VACUUM inner_rows"))[1, 2];
is($err, '', 'VACUUM beside an open cursor');
($out, $err) = $session->do('MOVE ALL FROM c; CLOSE c; COMMIT');
is($err, '', 'the cursor goes on after it');
is($server->query('SELECT count(*) FROM outer_rows o JOIN inner_rows i ON i.k = o.k'), 12500, 'and the next query sees the deletion');

# a cursor that outlives its transaction
$session->do('BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT o.i, i.v FROM outer_rows o JOIN inner_rows i ON i.k = o.k ORDER BY 1; COMMIT');
is(($session->do('FETCH 2 FROM h'))[0], "1|10\n3|30", 'cursor with hold');
$session->do('CLOSE h');

# errors and subtransactions in the middle of a join
$session->do('BEGIN; SAVEPOINT s');
($out, $err) = $session->do('SELECT sum(1 / (i.k - 401)) FROM outer_rows o JOIN inner_rows i ON i.k = o.k');
like($err, qr/22012/, 'an error in the middle of a join');
$session->do('ROLLBACK TO s');
is(($session->do('SELECT count(*) FROM outer_rows o JOIN inner_rows i ON i.k = o.k'))[0], 12500, 'after the rollback to a savepoint');
$session->do('COMMIT');

# LIMIT ends it early, and so does a function that stops reading
is(($session->do('SELECT count(*) FROM (SELECT 1 FROM outer_rows o JOIN inner_rows i ON i.k = o.k LIMIT 5) x'))[0], 5, 'LIMIT');
is(($session->do('SELECT EXISTS (SELECT 1 FROM outer_rows o JOIN inner_rows i ON i.k = o.k)'))[0], 't', 'EXISTS');
($out, $err) = $session->do(<<'SQL');
DO $$
DECLARE r record; n int := 0;
BEGIN
    FOR r IN SELECT o.i FROM outer_rows o JOIN inner_rows i ON i.k = o.k LOOP
        n := n + 1;
        EXIT WHEN n = 10;
    END LOOP;
    ASSERT n = 10;
END $$
SQL
is($err, '', 'a loop that is left early');

# what a join makes is visible to the next statement of its own transaction only
$session->do('BEGIN; CREATE TABLE made AS SELECT o.i FROM outer_rows o JOIN inner_rows i ON i.k = o.k');
is(($session->do('SELECT count(*) FROM made'))[0], 12500, 'CREATE TABLE AS');
$session->do('INSERT INTO made SELECT m.i FROM made m JOIN inner_rows i ON i.k = m.i');
is(($session->do('SELECT count(*) FROM made'))[0], 12750, 'INSERT from a join with itself');
($out, $err) = $session->do('UPDATE made SET i = made.i + x.v FROM inner_rows x WHERE x.k = made.i');
is($err, '', 'UPDATE with a join');
($out, $err) = $session->do('DELETE FROM made USING inner_rows x WHERE x.k = made.i');
is($err, '', 'DELETE with a join');
($out, $err) = $session->do('MERGE INTO made USING inner_rows x ON x.k = made.i WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (x.k)');
is($err, '', 'MERGE');
$session->do('ROLLBACK');

$session->close;
$server->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');

done_testing();
