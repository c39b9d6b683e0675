# A query's pages divided among several devices (gpuhash.devices_per_query): answers are PostgreSQL's, whatever the
# query, and whichever of the devices fails in it, and when; and each page stays on one of them.  The devices are the
# stand-in (test/fault).
#
#	GPUHASH_WITH	parts: answers faults pages few (all)
use GpuHash::Test 'module';
use Time::HiRes qw(sleep time);
use GpuHash::FaultRun;
use GpuHash::Resident 'well';
use GpuHash::Service;

my @CONF = (@GpuHash::FaultRun::CONF, 'gpuhash.shared_memory = 256MB', "gpuhash.device_timeout = '3s'");
my $PARALLEL = 'SET max_parallel_workers_per_gather = 2';
my $LATERAL = 'SELECT v.x, s.* FROM (VALUES (1), (4)) v(x), LATERAL';

# Divided among devices: name => SQL, settings
my %DIVIDED = (
	plain => ['SELECT g, count(*), sum(i8), min(k), max(id), avg(k), stddev(k) FROM t WHERE k > -200 GROUP BY g'],
	back => ['SELECT g, x, count(*), sum(n), max(n) FROM t GROUP BY g, x'],
	no_keys => ['SELECT count(*), sum(n), sum(i8), count(x), bool_and(k > 0) FROM t'],
	nothing => ['SELECT count(*), max(i8) FROM t WHERE id < 0'],
	distinct => ['SELECT DISTINCT g, x, n FROM t'],
	many => ['SELECT id, k, count(*), sum(i8) FROM t GROUP BY id, k'],
	files => ['SELECT id, x, count(*), sum(i8) FROM t GROUP BY id, x', "SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],
	having => ['SELECT k, g, count(*), sum(i8), max(id) FROM t WHERE k IS NOT NULL GROUP BY k, g HAVING sum(i8) > 100 AND max(id) % 3 = 0', 'SET gpuhash.batch_rows = 256'],
	count_distinct => ['SELECT g, count(DISTINCT k), sum(i8), count(*) FROM t GROUP BY g HAVING count(DISTINCT k) > 70', 'SET gpuhash.batch_rows = 256'],
	count_several => ['SELECT g, count(DISTINCT k), count(DISTINCT x), count(DISTINCT id) FILTER (WHERE k > 0), sum(i8), count(*) FROM t GROUP BY g', 'SET gpuhash.batch_rows = 256'],
	count_distinct_files => ['SELECT g, count(DISTINCT id), sum(i8) FROM t GROUP BY g', "SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],
	sets => ['SELECT g, x, count(*), sum(n), max(n), GROUPING(x) FROM t GROUP BY CUBE (g, x)'],
	limit => ['SELECT id, k, sum(i8) FROM t GROUP BY id, k ORDER BY sum(i8) DESC, id LIMIT 10', 'SET gpuhash.batch_rows = 256'],
	nested => ['SELECT c, count(*), max(m) FROM (SELECT k, g, max(i8) % 7 + count(*) AS c, min(id) AS m FROM t GROUP BY k, g) q GROUP BY c', 'SET gpuhash.batch_rows = 256'],
	awaited => ['SELECT g, count(*), sum(id) FROM t WHERE id % 2 = 0 OR k > (SELECT avg(p) FROM two) GROUP BY g'],
	join => ['SELECT one.t, count(*), sum(t.i8), sum(one.p) FROM t JOIN one ON one.k = t.k GROUP BY one.t'],
	left => ['SELECT one.t, count(*), sum(t.n), sum(one.p) FROM t LEFT JOIN one ON one.k = t.k AND one.p > t.g GROUP BY one.t'],
	semi => ['SELECT g, count(*), sum(n) FROM t WHERE EXISTS (SELECT FROM one WHERE one.k = t.k AND one.p > t.g) GROUP BY g'],
	anti => ['SELECT t.id, t.x FROM t WHERE NOT EXISTS (SELECT FROM two WHERE two.k = t.k)'],
	star => ['SELECT g, count(*), sum(one.p), sum(two.p) FROM t JOIN one ON one.k = t.k LEFT JOIN two ON two.k = t.k GROUP BY g'],
	empty_inner => ['SELECT g, count(*) FROM t JOIN two ON two.k = t.k AND two.p > 100000 GROUP BY g'],
	inner_joins => ['SELECT t.g, count(s.p), sum(s.q) FROM t LEFT JOIN (SELECT one.k, one.p, two.p AS q FROM one JOIN two ON two.k = one.k) s ON s.k = t.k GROUP BY t.g'],
	inner_rows => ['SELECT t.g, count(*), sum(t.n), sum(s.c) FROM t LEFT JOIN (SELECT k, count(*) AS c FROM several GROUP BY k OFFSET 0) s ON s.k = t.k GROUP BY t.g'],
	several => ['SELECT t.id, t.g, several.p, two.p FROM t JOIN several ON several.k = t.k JOIN two ON two.k = t.k'],
	rows_back => ['SELECT t.id, t.n, t.x, one.p FROM t JOIN one ON one.k = t.k'],
	fetched => ['SELECT t.id, t.j, two.p FROM wide t JOIN two ON two.k = t.k'],
	first => ['SELECT t.id, t.i8, one.t FROM t JOIN one ON one.k = t.k ORDER BY t.i8 DESC, t.id LIMIT 10'],
	first_back => ['SELECT t.id, t.n, one.p FROM t JOIN one ON one.k = t.k ORDER BY t.n DESC NULLS LAST, t.id LIMIT 10 OFFSET 3'],
	parts => ['SELECT g, count(*), sum(n), max(id) FROM parts GROUP BY g'],
	parts_join => ['SELECT g, count(*), sum(p.n), sum(two.p) FROM parts p JOIN two ON two.k = p.k WHERE p.id > 50 GROUP BY g'],
	rescan => ["$LATERAL (SELECT g, count(*), sum(n) FROM t WHERE g < v.x GROUP BY g OFFSET 0) s"],
	rescan_join => ["$LATERAL (SELECT t.id, t.n, two.p FROM t JOIN two ON two.k = t.k WHERE t.g < v.x OFFSET 0) s"],
	rescan_parts => ["$LATERAL (SELECT g, count(*), sum(two.p) FROM parts p JOIN two ON two.k = p.k WHERE g < v.x GROUP BY g OFFSET 0) s"],
	parallel => ['SELECT g, count(*), sum(n), sum(i8) FROM t GROUP BY g', $PARALLEL],
	parallel_files => ['SELECT id, x, count(*), sum(i8) FROM t WHERE id % 7 + 0 = id % 7 GROUP BY id, x', "$PARALLEL; SET work_mem = '64kB'; SET hash_mem_multiplier = 1"],
	parallel_distinct => ['SELECT g, count(DISTINCT k), sum(n), count(*) FROM t GROUP BY g', $PARALLEL],
	parallel_sets => ['SELECT g, x, count(*), sum(i8) FROM t GROUP BY ROLLUP (g, x)', $PARALLEL],
	parallel_join => ['SELECT g, count(*), sum(t.i8), sum(one.p) FROM t JOIN one ON one.k = t.k GROUP BY g', $PARALLEL],
	parallel_join_back => ['SELECT g, x, count(*), sum(t.n), sum(one.p) FROM t JOIN one ON one.k = t.k GROUP BY g, x', $PARALLEL],
	parallel_star => ['SELECT g, count(*), sum(one.p), sum(two.p) FROM t JOIN one ON one.k = t.k LEFT JOIN two ON two.k = t.k GROUP BY g', $PARALLEL],
	parallel_semi => ['SELECT g, count(*), sum(n) FROM t WHERE EXISTS (SELECT FROM one WHERE one.k = t.k AND one.p > t.g) GROUP BY g', $PARALLEL],
	parallel_inner_joins => ['SELECT t.g, count(s.p), sum(s.q) FROM t LEFT JOIN (SELECT one.k, one.p, two.p AS q FROM one JOIN two ON two.k = one.k) s ON s.k = t.k GROUP BY t.g', $PARALLEL],
	parallel_empty => ['SELECT g, count(*) FROM t JOIN two ON two.k = t.k AND two.p > 100000 GROUP BY g', $PARALLEL],
	parallel_rows => ['SELECT t.id, t.n, t.x, one.p FROM t JOIN one ON one.k = t.k', $PARALLEL],
	parallel_parts_join => ['SELECT g, count(*), sum(p.n), sum(two.p) FROM parts p JOIN two ON two.k = p.k WHERE p.id > 50 GROUP BY g', $PARALLEL],
	parallel_parts => ['SELECT g, count(*), sum(n), sum(i8) FROM parts GROUP BY g', $PARALLEL],
);
# Done by one device
my %ALONE = (
	floats => ['SELECT g, count(*), sum(k::float8) FROM t GROUP BY g'],
	right => ['SELECT one.t, count(*), sum(t.i8), sum(one.p) FROM t RIGHT JOIN one ON one.k = t.k GROUP BY one.t'],
	full => ['SELECT one.t, count(*), sum(t.i8), sum(one.p) FROM t FULL JOIN one ON one.k = t.k GROUP BY one.t'],
	shared => ['WITH w AS (SELECT id, k, sum(i8) AS s FROM t GROUP BY id, k) SELECT id, s FROM w WHERE s = (SELECT max(s) FROM w)'],
	large_inner => ['SELECT count(*), sum(p) FROM one WHERE NOT EXISTS (SELECT FROM t WHERE t.k = one.k AND t.g < 3)'],
	many_groups => ['SELECT id, count(*) FROM thin GROUP BY id'],
	few => ['SELECT p % 3, count(*), sum(k) FROM two GROUP BY 1'],
	scan => ['SELECT ctid, t.* FROM t WHERE g = 3'],
);
my %QUERY = (%DIVIDED, %ALONE);

my $TABLES = "$GpuHash::FaultRun::TABLES CREATE TABLE several AS SELECT i % 400 AS k, i AS p FROM generate_series(1, 1000) i;
CREATE TABLE wide WITH (fillfactor = 10) AS SELECT i AS id, i % 700 AS k, jsonb_build_object('k', i) AS j FROM generate_series(1, 2000) i;
CREATE TABLE parts (LIKE t) PARTITION BY HASH (id);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER 0) WITH (fillfactor = 10);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER 1) WITH (fillfactor = 10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER 2) WITH (fillfactor = 10);
INSERT INTO parts SELECT * FROM t;
CREATE TABLE thin AS SELECT i AS id FROM generate_series(1, 30000) i;
ANALYZE several, wide, parts, thin;";

my $run = GpuHash::FaultRun->new(node => 'GpuHash(?:Aggregate|Rows)', tables => $TABLES, vacuumed => [qw(t one wide)], queries => \%QUERY);
my ($service, $session);

sub begin
{
	my (@conf) = @_;
	# the one before takes the stand-in with it
	undef $service;
	$service = GpuHash::Service->new(devices => 3, conf => [@CONF, @conf]);
	ok($service->wait_ready, 'the devices are ready');
	$run->begin($service->server, service => $service);
	return;
}

sub divide
{
	my ($name, $devices) = @_;
	$run->set($name);
	$run->{session}->do("SET gpuhash.devices_per_query = $devices");
	return;
}

# How many devices a plan says that it used.
sub devices { my ($plan) = @_; my @n = sort $plan =~ /\bDevices: (\d+)/g; return @n ? $n[-1] : 1 }

# ------------------------------------------------------------------- answers

sub answers
{
	begin();
	for ([0, 0], [1, 1], [16, 1], [17, 0])
	{
		my ($out, $err) = $run->{session}->do("SET gpuhash.devices_per_query = $_->[0]; SHOW gpuhash.devices_per_query");
		$_->[1] ? is($out, $_->[0], "$_->[0] devices") : like($err, qr/ERROR:  22023/, "not $_->[0] devices");
	}
	is(($run->{session}->do('RESET gpuhash.devices_per_query; SHOW gpuhash.devices_per_query'))[0], 1, 'one, unless it is set');
	for my $name (sort keys %QUERY)
	{
		divide($name, 1);
		my $one = $run->plan_of($name);
		is(devices($one), 1, "$name: one device");
		# groups of one device that a LIMIT does not want never leave it
		for my $n (2, 3, 16)
		{
			divide($name, $n);
			$run->is_right($name, "$name, $n devices");
			my $plan = $run->plan_of($name);
			my $used = !$DIVIDED{$name} || $name =~ /empty/ ? 1 : $n > 3 ? 3 : $n;
			is(devices($plan), $used, "$name: $used of $n") or diag($plan);
			like($plan, qr/Engine: cuda/, "$name is done by devices") if $name !~ /empty/;
			unlike($plan, qr/Fallback Reason/, 'to their end');
			is(GpuHash::FaultRun::rows_below($plan), GpuHash::FaultRun::rows_below($one), "$name: rows of the nodes below") if $name !~ /parallel|limit/;
			like($plan, qr/Rows Left on Device: [1-9]/, 'rows that are not wanted stay there') if $name =~ /^first/;
		}
	}
	cursors();
	$run->end;
	return;
}

# A cursor that is left where it is, one that is closed early, an error in the middle, and with others at a time.
sub cursors
{
	my $session = $run->{session};
	divide('several', 3);
	$session->do('SET gpuhash.enabled = off');
	my ($want) = $session->do("SELECT count(*), sum(id), sum(p) FROM ($QUERY{several}[0]) q(id, g, p, q)");
	$session->do('SET gpuhash.enabled = on; BEGIN; SAVEPOINT s');
	$session->do("DECLARE c CURSOR FOR $QUERY{several}[0]; DECLARE d CURSOR FOR $QUERY{rows_back}[0]");
	my $rows = 0;
	my $all = join '', map { my ($out) = $session->do("FETCH 40 FROM c; FETCH 1 FROM d"); "$out\n" } 1 .. 5;
	$rows = () = $all =~ /^/mg;
	is($rows, 5 * 41, 'two cursors');
	is(($session->do("SELECT count(*), sum(id), sum(p) FROM ($QUERY{several}[0]) q(id, g, p, q)"))[0], $want, 'and a query');
	like(($session->do('SELECT sum(1 / (g - 3)) FROM t'))[1], qr/ERROR:  22012/, 'an error in the middle');
	$session->do('ROLLBACK TO s');
	like($service->settle, $GpuHash::Service::CLEAN, 'all is given back');
	$run->is_unpinned('after the error');
	$session->do('ROLLBACK');
	$run->left_early('several', 'closed', 'CLOSE c');
	return;
}

# -------------------------------------------------------------------- faults

# Whenever one device is lost while pages are read, the others do its part.
sub lose_one
{
	my ($name) = @_;
	my ($service, $session) = @$run{qw(service session)};
	my ($tried, @bad) = (0);
	$run->set($name);
	my $rows = GpuHash::FaultRun::rows_below($run->plan_of($name));
	for my $after (0 .. 200)
	{
		$service->arm('scan', 'launch', after => $after);
		my $got = $run->answer($name);
		last unless $service->disarm;
		push @bad, "after $after: $got" if $got ne $run->{want}{$name};
		$service->arm('scan', 'launch', after => $after);
		my $plan = $run->plan_of($name);
		next unless $service->disarm;
		$tried++;
		push @bad, "after $after, below:\n$plan\ninstead of\n$rows" if GpuHash::FaultRun::rows_below($plan) ne $rows;
		push @bad, "after $after:\n$plan" if devices($plan) != 2 || $plan !~ /Engine: cuda/ || $plan =~ /Engine: cpu/ || $plan !~ /Fallback Reason: fault point: the device failed/;
	}
	is(join("\n", @bad), '', "$name when one device of three is lost at each request in turn");
	like($service->settle, $GpuHash::Service::CLEAN, 'and nothing is taken');
	cmp_ok($tried, '>', 3, "there were $tried");
	return;
}

# Of a parallel query: devices that take two seconds each for their tables take less than that one after the other.
sub made_at_a_time
{
	my $service = $run->{service};
	$run->set('parallel_join');
	my ($least, $made) = (1000, 0);
	# the other participants may be late
	for my $try (1 .. 8)
	{
		$service->arm('scan_table', 'delay', times => 1_000_000, ms => 2000);
		my $begun = time;
		my $got = $run->answer('parallel_join');
		my $taken = time - $begun;
		$made = $service->disarm;
		is($got, $run->{want}{parallel_join}, "tables that take long, $try");
		$least = $taken if $taken < $least;
		last if $least < 5.5;
	}
	is($made, 3, 'three tables were made');
	cmp_ok($least, '<', 5.5, "devices make their tables at a time, in $least s");
	cmp_ok($least, '>', 2, 'and they took long');
	return;
}

sub faults
{
	begin('gpuhash.devices_per_query = 3');
	my ($service, $tried) = ($run->{service}, 0);
	# all that is lost is one device's part of the outer pages
	lose_one($_) for qw(plain back no_keys many distinct parts);
	for my $name (qw(plain back files count_distinct count_several awaited join left star inner_joins inner_rows rows_back first parts parts_join rescan_join parallel parallel_files parallel_distinct parallel_parts parallel_join
		parallel_join_back parallel_star parallel_inner_joins parallel_rows parallel_parts_join))
	{
		$tried += $run->fail_all_points($name);
		# several are lost, one after the other
		my @bad;
		for my $after (0 .. 9)
		{
			$run->try_fault($name, 'scan', 'launch', $after, \@bad);
			$service->arm('scan', 'launch', after => $after, times => 2);
			push @bad, "two after $after" if $run->answer($name) ne $run->{want}{$name};
			$service->arm('any', 'launch', after => 3 * $after, times => 3);
			push @bad, "three after $after" if $run->answer($name) ne $run->{want}{$name};
			$service->disarm;
		}
		is(join("\n", @bad), '', "$name when several are lost");
		like($service->settle, $GpuHash::Service::CLEAN, 'and nothing is taken');
	}
	cmp_ok($tried, '>', 200, "enough faults were tried: $tried");

	made_at_a_time();

	# tables that one device has no memory for are on the others
	for my $name (qw(join parallel_join))
	{
		$run->set($name);
		for my $kind (qw(no_memory limit))
		{
			for my $after (0 .. 2)
			{
				$service->arm('scan_table', $kind, after => $after);
				my $plan = $run->plan_of($name);
				cmp_ok($service->disarm, '>', 0, "$kind for a table of $name, $after");
				is(devices($plan), 2, 'two devices have it') or diag($plan);
			}
		}
		$run->is_right($name, 'and then all have it');
	}

	# with an error rather than the CPU engine, one device that is lost is none
	$run->{session}->do('SET gpuhash.fallback = error');
	$service->arm('scan', 'launch', after => 8);
	$run->is_right('join', 'fallback = error, and one device of three is lost');
	cmp_ok($service->disarm, '>', 0, 'it was');
	$run->set('plain');
	$run->{session}->do('SET gpuhash.fallback = error');
	$service->arm('scan', 'launch', times => 100);
	like($run->answer('plain'), qr/ERROR:  55000: could not aggregate on the GPU/, 'all are');
	cmp_ok($service->disarm, '>', 2, 'three times');
	like($service->settle, $GpuHash::Service::CLEAN, 'and nothing is taken');

	$run->interrupt(@$_) for ['plain', 'scan', 'pg_cancel_backend'], ['join', 'scan_table', 'timeout'], ['rows_back', 'scan', 'pg_terminate_backend'], ['back', 'scan_results', 'pg_cancel_backend'],
		['parallel_join', 'scan_table', 'pg_cancel_backend'], ['parallel_star', 'scan', 'timeout'];

	# a worker ends; the others go on, and it is used again when it is back
	$run->end_worker(@$_) for ['parallel_join', 'scan', 'sticky', 5], ['parallel_star', 'scan_table', 'term', 1], ['plain', 'scan', 'sticky', 3], ['join', 'scan_table', 'term', 0], ['rows_back', 'scan', 'hang', 4];
	$run->set('plain');
	$service->arm('scan', 'sticky');
	$run->is_right('plain', 'a worker ends');
	$service->disarm;
	my $plan = $run->plan_of('plain');
	is(devices($plan), 2, 'the others have the next query');
	ok($service->wait_ready, 'it is back');
	is(devices($run->plan_of('plain')), 3, 'and is used again');
	$run->end;
	return;
}

# ------------------------------------------------------ where the pages stay

# Pages of t by device, as the view shows them.
sub resident { return join ' ', well($session, "SELECT resident FROM gpuhash_resident WHERE relation = 't'::regclass AND device IS NOT NULL ORDER BY device") =~ /(\d+)/g }

sub read_of
{
	my ($sql) = @_;
	my $plan = well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $sql");
	my ($pages) = $plan =~ /\bPages: (\d+)/;
	my ($there) = $plan =~ /Resident Pages: (\d+)/;
	return devices($plan) . ' of ' . ($pages // 'none') . ', ' . ($there // 0) . ' there';
}

sub pages
{
	my $SUM = 'SELECT g, count(*), sum(n) FROM t GROUP BY g';
	undef $service;
	$service = GpuHash::Service->new(devices => 3, conf => [@GpuHash::Resident::CONF, 'gpuhash.devices_per_query = 3', 'gpuhash.resident_memory = 600MB']);
	($session, my $other) = GpuHash::Resident::sessions($service);
	my $pages = GpuHash::Resident::fresh($session, 9000);
	my @each = split / /, resident();
	is(scalar @each, 3, 'prewarmed pages are on three devices');
	is($each[0] + $each[1] + $each[2], $pages, 'each on one of them');
	cmp_ok($_, '>', $pages / 4, 'in equal parts') for @each;
	is(read_of($SUM), "3 of $pages, $pages there", 'a query finds them all');
	is(GpuHash::Resident::compare($session)->{wrong}, '', 'answers');

	# without prewarming, they stay where the query has them
	well($other, "VACUUM FULL t; VACUUM ANALYZE t");
	$pages = well($other, "SELECT pg_relation_size('t') / 8192");
	is(read_of($SUM), "3 of $pages, 0 there", 'a table that no device has');
	is(read_of($SUM), "3 of $pages, $pages there", 'and then they have it');
	@each = split / /, resident();
	is($each[0] + $each[1] + $each[2], $pages, 'each page once');
	cmp_ok($_, '>', $pages / 4, 'in equal parts') for @each;

	# one device for a query: it brings what the others have; then a page is read where it is, by whose turn it is
	well($session, 'SET gpuhash.devices_per_query = 1');
	like(read_of($SUM), qr/^1 of $pages, \d+ there/, 'one device');
	is(GpuHash::Resident::compare($session)->{wrong}, '', 'answers of one');
	well($session, 'RESET gpuhash.devices_per_query');
	is(read_of($SUM), "3 of $pages, $pages there", 'three again');

	# rows that change, and are vacuumed
	well($other, 'UPDATE t SET n = n + 1 WHERE id % 500 = 3');
	is(GpuHash::Resident::compare($session)->{wrong}, '', 'answers after changes');
	well($other, 'VACUUM t');
	is(GpuHash::Resident::compare($session)->{wrong}, '', 'after VACUUM');
	$pages = well($other, "SELECT pg_relation_size('t') / 8192");
	like(read_of($SUM), qr/^3 of $pages, /, 'by three devices');
	is(read_of($SUM), "3 of $pages, $pages there", 'changed pages are there again');

	# a device that is lost: its pages are read by the others, where they stay; and it comes back
	$service->arm('scan', 'sticky', after => 1);
	is(GpuHash::Resident::compare($session, queries => { sum => $SUM })->{wrong}, '', 'a device is lost');
	cmp_ok($service->disarm, '>', 0, 'it was');
	is(GpuHash::Resident::compare($session)->{wrong}, '', 'answers of the others');
	is(read_of($SUM), "2 of $pages, $pages there", 'which have all pages');
	ok($service->wait_ready, 'it is back');
	is(GpuHash::Resident::compare($session)->{wrong}, '', 'answers of all');
	is(read_of($SUM), "3 of $pages, $pages there", 'and all pages are there');

	# of joins' tables, each device has its own, which stay there
	well($other, "CREATE TABLE d AS SELECT i AS k, i * 3 AS p FROM generate_series(1, 200) i; VACUUM ANALYZE d");
	my $JOIN = 'SELECT d.p, count(*), sum(t.n) FROM t JOIN d ON d.k = t.id GROUP BY d.p';
	for my $tables (0, 3)
	{
		my $plan = well($session, "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) $JOIN");
		like($plan, qr/Devices: 3/, 'a join by three devices');
		like($plan, qr/Resident Tables: $tables\b/, "$tables tables were there") or diag($plan);
	}
	is(GpuHash::Resident::compare($session, queries => { join => $JOIN })->{wrong}, '', 'answers of joins');
	is(well($session, "SELECT count(*), sum(tables) FROM gpuhash_resident WHERE relation = 'd'::regclass AND tables > 0"), '3|3', 'the view shows them');
	$_->close for $session, $other;
	unlike($service->server->log, qr/PANIC|TRAP|leak/, 'a clean log');
	undef $service;
	return;
}

# ------------------------------------------------------------- few buffers

# A device for which there are no buffers leaves its part to the others.
sub few
{
	begin('gpuhash.devices_per_query = 3', 'shared_buffers = 64MB', 'gpuhash.shared_memory = 6MB', 'gpuhash.register_buffers = off');
	for my $name (sort keys %DIVIDED)
	{
		$run->set($name);
		$run->is_right($name, "$name with few buffers");
	}
	like($run->{service}->settle, $GpuHash::Service::CLEAN, 'all are given back');
	$run->end;
	return;
}

my $parts = $ENV{GPUHASH_WITH} // 'answers faults pages few';
answers() if $parts =~ /answers/;
faults() if $parts =~ /faults/;
pages() if $parts =~ /pages/;
few() if $parts =~ /few/;
done_testing();
