# Indexes of the access method gpuhash, and copies of them, where something ends: savepoints in which an index was dropped, made again or
# emptied; an index whose OID and file another one gets; VACUUM that leaves indexes alone, as it is late; a server without the library, or
# with its file gone; pg_upgrade.
use GpuHash::Test;
use GpuHash::Index;
use GpuHash::Installation;
use Time::HiRes qw(time sleep);

my @CONF = ("shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'autovacuum = off', 'gpuhash.force_offload = on', 'max_parallel_workers_per_gather = 0');
my $QUERY = 'SELECT count(*), sum(o.v), sum(s.a), count(s.k) FROM o LEFT JOIN s ON s.k = o.k';
my $OUTER = 'CREATE TABLE o AS SELECT i * 7919::bigint % 9000 - 100 AS k, i::bigint AS v FROM generate_series(1, 20000) i';
my $INNER = 'CREATE TABLE s (k bigint, a bigint) WITH (fillfactor = 80); INSERT INTO s SELECT i, i * 3 FROM generate_series(1, 8000) i; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)';
my $PREWARM = "SELECT gpuhash_prewarm('s_k') = pg_relation_size('s') / 8192";

# The answer is PostgreSQL's; by: by the copy, or not, or in whatever way.
sub right
{
	my ($what, $by, $session) = @_;
	my $plan = well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY");
	is(well($session, $QUERY), well($session, "SET gpuhash.enabled = off; $QUERY; SET gpuhash.enabled = on"), $what);
	($by ? \&like : \&unlike)->($plan, qr/Inner Index: s_k/, '  ' . ($by ? '' : 'not ') . 'by the copy') if defined $by;
	return;
}

# ------------------------------------------------------------------------ savepoints

{
	my $server = GpuHash::Server->new(conf => \@CONF);
	my $session = $server->session;
	well($session, "CREATE EXTENSION gpuhash; $OUTER; $INNER");
	well($session, "VACUUM ANALYZE $_") for 's', 'o';
	for my $sql ('DROP INDEX s_k', 'REINDEX INDEX s_k', 'TRUNCATE s', 'DROP TABLE s', 'DROP INDEX s_k; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)', 'TRUNCATE s; INSERT INTO s VALUES (1, 1), (2, 2)')
	{
		is(well($session, $PREWARM), 't', "$sql: there is a copy");
		my $there = $sql !~ /DROP TABLE/;
		well($session, "BEGIN; SAVEPOINT x; $sql");
		right("$sql: in a savepoint", undef, $session) if $there;
		well($session, 'ROLLBACK TO x');
		right("$sql: rolled back to it", 1, $session);
		well($session, "SAVEPOINT y; SAVEPOINT z; $sql; RELEASE z");
		right("$sql: in a savepoint of another one", undef, $session) if $there;
		well($session, 'INSERT INTO s VALUES (100, -1)') if $there;
		well($session, 'ROLLBACK TO y; INSERT INTO s VALUES (200, -2), (300, -3)');
		right("$sql: rolled back to the other one, and a row inserted", 1, $session);
		well($session, 'COMMIT');
		right("$sql: committed", 1, $session);
		well($session, "DO \$\$ BEGIN BEGIN EXECUTE '$sql'; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; DELETE FROM s WHERE a < 0; END \$\$");
		right("$sql: in a block that failed", 1, $session);
		well($session, 'VACUUM (INDEX_CLEANUP on) s');
		right("$sql: vacuumed", 1, $session);
	}
	# behind a cursor, which has not begun to read
	for my $query ($QUERY, 'SELECT a FROM s WHERE k IN (SELECT k FROM o WHERE v < 300)')
	{
		is(well($session, $PREWARM), 't', 'there is a copy');
		my $want = well($session, "SET gpuhash.enabled = off; $query; SET gpuhash.enabled = on");
		like(well($session, "EXPLAIN (ANALYZE, COSTS OFF) $query"), qr/Blocks From Index/, 'a query takes it');
		my $drop = "BEGIN; DECLARE c CURSOR FOR $query; DROP INDEX s_k; FETCH ALL FROM c; ROLLBACK";
		my ($rows, $right) = map { join "\n", sort split /\n/, $_ } well($session, $drop), $want;
		is($rows, $right, '  whose index is dropped behind a cursor');
	}
	# who makes a copy locks the table first
	well($session, 'CREATE TABLE parts (k int, a int) PARTITION BY RANGE (k);
		CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (90000);
		INSERT INTO parts SELECT i, i FROM generate_series(1, 8000) i;
		CREATE INDEX parts_k ON parts USING gpuhash (k) INCLUDE (a)');
	well($session, 'VACUUM parts');
	for my $case (['s', 's_k', 's_k'], ['parts_1', 'parts_k', 'parts_1_k_a_idx'])
	{
		my ($table, $index, $anew) = @$case;
		my $other = $server->session;
		well($session, "BEGIN; LOCK TABLE $table IN ACCESS EXCLUSIVE MODE");
		$other->send("SELECT gpuhash_prewarm('$index') > 0");
		for (1 .. 500)
		{
			last if $server->query('SELECT count(*) FROM pg_locks WHERE NOT granted') > 0;
			sleep 0.02;
		}
		well($session, "REINDEX INDEX $anew; COMMIT");
		is(join('', $other->receive), 't', "$index: it waits without a lock that others need");
		$other->close;
	}
	$session->close;
	unlike($server->log, qr/PANIC|TRAP:/, 'nothing failed');
}

# ------------------------------------------------------- an index that gets another one's name

# As after four billion OIDs: in this mode a server takes them as they are given.
{
	my $server = GpuHash::Server->new(conf => \@CONF);
	well($server->session, "CREATE EXTENSION gpuhash; $OUTER; CREATE TABLE s (k bigint, a bigint) WITH (fillfactor = 80); INSERT INTO s SELECT i, i * 3 FROM generate_series(1, 8000) i");
	$server->stop;
	GpuHash::Server::must("$server->{bin}/pg_ctl", '-D', "$server->{dir}/data", '-l', "$server->{dir}/log", '-w', '-t', 120, '-o', '-b', 'start');
	my $session = $server->session;
	my $index = "SELECT binary_upgrade_set_next_index_pg_class_oid(90010), binary_upgrade_set_next_index_relfilenode(90010); CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)";
	well($session, $index);
	well($session, "VACUUM ANALYZE $_") for 's', 'o';
	is(well($session, $PREWARM), 't', 'there is a copy of the one');
	right('by it', 1, $session);
	# nothing notes what changes while there is no index, and all is all-visible again; nor does anybody look whether there is one
	well($session, 'SET gpuhash.enabled = off; DROP INDEX s_k; UPDATE s SET a = a + 1 WHERE k % 7 = 0; DELETE FROM s WHERE k % 11 = 0');
	well($session, $_) for 'VACUUM s', 'CHECKPOINT', 'CHECKPOINT', $index;
	is(well($session, "SELECT oid || ' ' || relfilenode FROM pg_class WHERE relname = 's_k'"), '90010 90010', 'another one has its OID, and its file');
	well($session, 'SET gpuhash.enabled = on');
	right('of which that is no copy', undef, $session);
	is(well($session, $PREWARM), 't', 'but another one is');
	right('by that', 1, $session);
	$session->close;
	unlike($server->log, qr/PANIC|TRAP:/, 'nothing failed');
}

# ------------------------------------------------------------------ VACUUM that is late

{
	my $server = GpuHash::Server->new(conf => [@CONF, 'autovacuum_freeze_max_age = 100000', 'vacuum_failsafe_age = 0']);
	my $session = $server->session;
	well($session, "CREATE EXTENSION gpuhash; $OUTER; $INNER");
	well($session, 'VACUUM ANALYZE s');
	is(well($session, $PREWARM), 't', 'there is a copy');
	# not so many that autovacuum is begun for them
	well($session, "SET synchronous_commit = off; DO \$\$ BEGIN FOR i IN 1 .. 107000 LOOP PERFORM txid_current(); COMMIT; END LOOP; END \$\$; RESET synchronous_commit");
	cmp_ok(well($session, "SELECT age(relfrozenxid) FROM pg_class WHERE relname = 's'"), '>', 105000, 'the table is old');
	well($session, 'DELETE FROM s WHERE k BETWEEN 1000 AND 1100');
	right('rows are deleted', 1, $session);
	my (undef, $late) = $session->do('SET client_min_messages = warning; VACUUM (INDEX_CLEANUP on) s');
	like($late, qr/bypassing nonessential maintenance of table "postgres.public.s" as a failsafe/, 'VACUUM leaves the index alone');
	right('by the copy, and blocks with rows whose entries are still there', 1, $session);
	well($session, 'INSERT INTO s SELECT i, -i FROM generate_series(1000, 1100, 10) i; UPDATE s SET a = a + 1 WHERE k BETWEEN 2000 AND 2010');
	right('other rows come', 1, $session);
	is(($session->do('VACUUM (INDEX_CLEANUP on) s'))[1], '', 'the next VACUUM removes the entries');
	right('whose places are free now', 1, $session);
	well($session, 'INSERT INTO s SELECT i, 5 FROM generate_series(1001, 1100, 3) i');
	well($session, 'VACUUM s');
	right('and taken by others', 1, $session);
	$session->close;
	unlike($server->log, qr/PANIC|TRAP:/, 'nothing failed');
}

# ------------------------------------------------------- without the library, and without its file

{
	my $own = GpuHash::Installation->new;
	local $ENV{GPUHASH_BINDIR} = $own->bindir;
	my $server = GpuHash::Server->new(conf => [@CONF]);
	my $library = $own->libdir . '/gpuhash.so';
	my $rows = 'SELECT count(*), sum(a) FROM s';
	well($server->session, "CREATE EXTENSION gpuhash; $OUTER; $INNER; CREATE TABLE other AS SELECT 1 AS n");
	$server->query('VACUUM ANALYZE s');
	my $want = $server->query($rows);
	$server->stop;

	# not preloaded, a session loads it when it looks at the table
	GpuHash::Server::must('sed', '-i', '/^shared_preload_libraries\|^gpuhash/d', "$server->{dir}/data/postgresql.conf");
	$server->start;
	is($server->query($rows), $want, 'not preloaded: the table is read');
	is($server->query('SET enable_seqscan = off; SELECT a FROM s WHERE k = 77'), '231', '  and by its index');
	unlike($server->query("LOAD 'gpuhash'; SET gpuhash.force_offload = on; EXPLAIN (ANALYZE, COSTS OFF) $QUERY"), qr/Inner Index/, '  there is no copy');
	$server->query('INSERT INTO s VALUES (9001, 1); DELETE FROM s WHERE k = 9001');
	$server->query('VACUUM s');
	$server->stop;

	# its file is gone
	rename $library, "$library.away" or die "$library: $!";
	$server->start;
	is($server->query('SELECT n FROM other'), 1, 'without the file: other tables are read');
	for my $sql ($rows, 'SELECT a FROM s WHERE k = 77', 'INSERT INTO s VALUES (1, 1)', 'VACUUM s', 'DROP INDEX s_k', 'DROP TABLE s', 'REINDEX INDEX s_k', 'ALTER TABLE s ADD x int')
	{
		my (undef, undef, $error) = $server->run($sql);
		$sql =~ /ALTER/ ? like($error, qr/^$|58P01/, "  $sql: an error, or not") : like($error, qr/58P01: could not access file "(?:\$libdir\/)?gpuhash": No such file or directory/, "  $sql: an error that says so");
	}
	# recovery has no need of it
	$server->stop('immediate');
	$server->start;
	is($server->query('SELECT n FROM other'), 1, '  the server recovers');
	$server->stop;

	# preloaded, the server does not start, and says why
	open my $conf, '>>', "$server->{dir}/data/postgresql.conf" or die $!;
	print $conf "shared_preload_libraries = 'gpuhash'\n";
	close $conf;
	is(eval { $server->start; 1 }, undef, 'preloaded without the file: the server does not start');
	like($server->log, qr/FATAL:  could not access file "gpuhash": No such file or directory/, '  and says why');
	rename "$library.away", $library or die "$library: $!";
	$server->start;
	is($server->query($rows), $want, 'with the file again all is there');
	is($server->query('DROP INDEX s_k; SELECT count(*) FROM s'), 8000, '  and the index can be dropped');
	unlike($server->log, qr/PANIC|TRAP:/, 'nothing failed');
}

# ------------------------------------------------------------------------ pg_upgrade

SKIP:
{
	my $bindir = GpuHash::Server::bindir();
	skip('there is no pg_upgrade') if !-x "$bindir/pg_upgrade";
	my ($old, $new) = map { GpuHash::Server->new(conf => \@CONF) } 1, 2;
	my $session = $old->session;
	my $version = well($session, 'SHOW server_version_num');
	well($session, "CREATE EXTENSION gpuhash; $OUTER; $INNER; CREATE INDEX s_a ON s USING gpuhash (a DESC, (k % 10)) WHERE a > 100; CREATE TABLE parted (k int, t text) PARTITION BY RANGE (k); CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (100);
		CREATE INDEX parted_k ON parted USING gpuhash (k); CREATE INDEX low_t ON low USING gpuhash (t); INSERT INTO parted SELECT i, 'text ' || i FROM generate_series(1, 99) i; CREATE TABLE x (c int, EXCLUDE USING gpuhash (c WITH =)); INSERT INTO x VALUES (1)");
	well($session, 'CREATE UNIQUE INDEX s_u ON s USING gpuhash (k, a)') if $version >= 180000;
	# an operator class that an extension, or a user, has made for btree, is added for gpuhash, and belongs to nobody
	well($session, "CREATE OPERATOR FAMILY mine USING btree; CREATE OPERATOR CLASS mine FOR TYPE int USING btree FAMILY mine AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int);
		SELECT gpuhash_add_operator_classes(); CREATE INDEX x_mine ON x USING gpuhash (c mine)");
	well($session, "VACUUM ANALYZE $_") for 's', 'o';
	my $INDEXES = "SELECT string_agg(pg_get_indexdef(c.oid), '; ' ORDER BY c.oid::regclass::text) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'gpuhash'";
	my $CLASSES = "SELECT count(*), md5(string_agg(format('%s %s %s', opcname, opcintype::regtype, opcdefault), ' ' ORDER BY opcname, opcintype)) FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'gpuhash'";
	my $ANSWERS = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(a) FROM s WHERE k BETWEEN 5 AND 700; SELECT a FROM s WHERE a > 200 ORDER BY a DESC, (k % 10) LIMIT 3; SELECT t FROM parted WHERE k = 7; RESET enable_seqscan; RESET enable_bitmapscan';
	my @want = map { well($session, $_) } $INDEXES, $CLASSES, $ANSWERS, $QUERY;
	$session->close;
	$_->stop for $old, $new;
	# in a folder of its own, for what it writes
	my $output = eval { GpuHash::Server::must('sh', '-c', 'cd "$1" && shift && "$@"', 'sh', $new->{dir}, "$bindir/pg_upgrade", '-b', $bindir, '-B', $bindir, '-d', "$old->{dir}/data", '-D', "$new->{dir}/data", '-U', 'postgres', '-s', $new->{dir}, '-p', 50432, '-P', 50433) } // $@;
	like($output, qr/Upgrade Complete/, 'pg_upgrade') or diag($output);
	$new->start;
	$session = $new->session;
	is(well($session, $INDEXES), $want[0], '  all indexes are there');
	is(well($session, $CLASSES), $want[1], '  and operator classes');
	is(well($session, $ANSWERS), $want[2], '  which are scanned');
	like(well($session, 'SET enable_seqscan = off; EXPLAIN (COSTS OFF) SELECT a FROM s WHERE k = 5; RESET enable_seqscan'), qr/(?:using|on) s_(?:k|u)\b/, '  by PostgreSQL');
	is(well($session, $QUERY), $want[3], '  and joined');
	well($session, "VACUUM ANALYZE $_") for 's', 'o';
	is(well($session, $PREWARM), 't', '  copies are made of them');
	right('by the copy', 1, $session);
	like(($session->do('INSERT INTO x VALUES (1)'))[1], qr/23P01/, '  the exclusion constraint excludes');
	is(($new->run('INSERT INTO s SELECT i, i FROM generate_series(1, 500) i; DELETE FROM s WHERE k < 300; DROP EXTENSION gpuhash CASCADE'))[2] =~ /ERROR/ ? 'error' : '', '', '  rows come and go, and the extension is dropped with its indexes');
	is($new->query('SELECT count(*) FROM s'), 8000 + 500 - 299 - 299, '  of which the tables stay');
	$session->close;
	unlike($new->log, qr/PANIC|TRAP:/, 'nothing failed');
}
done_testing();
