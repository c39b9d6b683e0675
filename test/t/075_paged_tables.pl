# Named tables that are on the GPU alone and larger than its memory: what they need beyond
# gpuhash.device_memory_limit is in page-locked memory of the server, up to gpuhash.paging_memory.
# With the service and without it.
use GpuHash::Test 'module';
use GpuHash::Service;

my $CLEAN = $GpuHash::Service::CLEAN;
my $DATA = <<'SQL';
CREATE TABLE keys AS
	SELECT array_agg(x ORDER BY o) AS k, array_agg(x * 10 ORDER BY o) AS v,
		array_agg(decode(lpad(to_hex(x), 16, '0') || md5(x::text), 'hex') ORDER BY o) AS b,
		array_agg(substr('uifd', 1 + (o % 4)::int, 1) ORDER BY o) AS ops
	FROM (SELECT i * 7919 % 120000 AS x, i * 31 % 80021 AS o FROM generate_series(1::bigint, 100000) i) s;
CREATE TABLE wanted (k bigint[]);
INSERT INTO wanted SELECT array_agg(i::bigint) FROM generate_series(0, 120000) i;
CREATE FUNCTION content(kind text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	CASE kind
		WHEN 'one' THEN SELECT count(v) || '/' || sum(hashint8(u.k) # hashint8(v)) INTO result FROM wanted w, unnest(w.k, gpuhash_find('one', w.k)) u (k, v);
		WHEN 'wide' THEN SELECT count(v) || '/' || sum(hashint8(u.k) # hashtext(v::text)) INTO result FROM wanted w, unnest(w.k, gpuhash_find_bytea('wide', w.k)) u (k, v);
		WHEN 'set' THEN SELECT count(*) || '/' || sum(hashint8(u.k)) INTO result FROM wanted w, unnest(w.k, gpuhash_contains('set', w.k)) u (k, v) WHERE v;
		ELSE SELECT count(*) || '/' || sum(hashint8(key) # hashint8(value)) || '/' || (SELECT sum(c) FROM wanted w, unnest(gpuhash_count('many', w.k)) c)
			INTO result FROM wanted w, gpuhash_find_all('many', w.k);
	END CASE;
	RETURN result;
END $$;
SQL
my %CREATE = (one => "'one'", many => "'many', multi => true", wide => "'wide', 24", set => "'set', 0");
my %INSERT = (
	one => q{gpuhash_insert('one', k, v)}, many => q{gpuhash_insert('many', k, v)},
	set => q{gpuhash_insert('set', k)}, wide => q{gpuhash_insert('wide', k, b)});

# What is done to a table, in order; each tells counts.
sub changes
{
	my ($table) = @_;
	return ("SELECT $INSERT{$table} FROM keys", "SELECT content('$table')",
		"SELECT gpuhash_delete('$table', k[500:41000]) FROM keys", "SELECT $INSERT{$table} FROM keys",
		"SELECT keys, entries FROM gpuhash_table_stats('$table')",
		$table eq 'many' ? q{SELECT gpuhash_delete_one('many', k) FROM keys} :
		$table eq 'one' ? q{SELECT count(*) FILTER (WHERE d), sum(f) FROM keys, LATERAL (SELECT unnest(done) AS d, unnest(found) AS f FROM gpuhash_apply('one', ops::"char"[], k, v)) a} :
		"SELECT gpuhash_delete('$table', k[1:3]) FROM keys",
		"SELECT content('$table')", "SELECT gpuhash_compact('$table')", "SELECT content('$table')");
}

sub do_changes
{
	my ($session, $table) = @_;
	return [ map { my ($out, $err) = $session->do($_); $out . $err } changes($table) ];
}

# What comes out on the CPU.
sub expected
{
	my ($session) = @_;
	my %want;
	$session->do('SET gpuhash.engine = cpu');
	for my $table (sort keys %CREATE)
	{
		$session->do("SELECT gpuhash_create($CREATE{$table})");
		$want{$table} = do_changes($session, $table);
		unlike(join("\n", @{ $want{$table} }), qr/[0-9A-Z]{5}: /, "$table: no error on the CPU");
		$session->do("SELECT gpuhash_drop('$table')");
	}
	$session->do('SET gpuhash.engine = cuda');
	return \%want;
}

sub where_is
{
	my ($session, $table) = @_;
	return ($session->do(qq{SELECT sum(s.bytes) > 0, t.bytes >= sum(s.bytes), t.device_bytes <= 1024 * 1024, engine
		FROM gpuhash_subtables s JOIN gpuhash_tables t ON name = table_name WHERE name = '$table' GROUP BY t.bytes, t.device_bytes, engine}))[0];
}

sub check_tables
{
	my ($session, $mode) = @_;
	my $want = expected($session);
	for my $table (sort keys %CREATE)
	{
		$session->do("SELECT gpuhash_create($CREATE{$table}, host_copy => false)");
		is_deeply(do_changes($session, $table), $want->{$table}, "$mode, $table: the same as on the CPU");
		is(where_is($session, $table), 't|t|t|cuda', "$mode, $table: part of it is in the server's memory");
		$session->do("SELECT gpuhash_clear('$table')");
		is(($session->do("SELECT content('$table')"))[0], '', "$mode, $table: cleared");
		$session->do("SELECT gpuhash_drop('$table')");
	}
	# with a host copy it is a copy that pages nothing
	my ($out, $err) = $session->do(q{SELECT gpuhash_create('one'), gpuhash_insert('one', k, v) FROM keys});
	is(($session->do(q{SELECT engine, (SELECT sum(device_bytes) FROM gpuhash_subtables) FROM gpuhash_tables}))[0], 'cpu|0', "$mode: a copy that has no room is given up");
	$session->do(q{SELECT gpuhash_drop('one')});
	return;
}

# What there is of memory ends: an error, and what was stored before stays.
sub check_end
{
	my ($session, $mode, $set) = @_;
	$set->('0');
	my ($out, $err) = $session->do(q{SELECT gpuhash_create('one', host_copy => false); SELECT gpuhash_insert('one', k, v) FROM keys});
	like($err, qr/53400: could not insert into hash table "one"/, "$mode: the limits of both");
	like($err, qr/gpuhash.paging_memory/, "$mode: the hint names the setting");
	my ($stored) = $session->do(q{SELECT keys FROM gpuhash_table_stats('one')});
	ok($stored > 0 && $stored < 90000, "$mode: $stored keys are stored");
	is(($session->do(q{SELECT count(*) FROM keys, unnest(k, gpuhash_find('one', k)) u (k, v) WHERE u.v = u.k * 10}))[0] >= $stored, 1, "$mode: and found");
	$set->('64MB');
	($out, $err) = $session->do(q{SELECT gpuhash_insert('one', k, v) IS NOT NULL FROM keys});
	is("$out$err", 't', "$mode: with more of it the rest is stored");
	is(($session->do(q{SELECT count(*) FROM keys, unnest(k, gpuhash_find('one', k)) u (k, v) WHERE u.v IS DISTINCT FROM u.k * 10}))[0], '0', "$mode: all are found");
	$session->do(q{SELECT gpuhash_drop('one')});
	return;
}

# ----------------------------------------------------------- with the service
my $service = GpuHash::Service->new(conf => ["gpuhash.device_memory_limit = '1MB'", "gpuhash.paging_memory = '64MB'", "gpuhash.shared_memory = '8MB'"]);
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
$server->query($DATA);
my $session = $server->session;
check_tables($session, 'service');
like($service->settle, $CLEAN, 'nothing is left over');
check_end($session, 'service', sub {
	my ($value) = @_;
	my $admin = $server->session;
	$admin->do("ALTER SYSTEM SET gpuhash.paging_memory = '$value'");
	$admin->do('SELECT pg_reload_conf()');
	# the worker takes it with its next look at the settings
	my ($mb) = $value =~ /(\d+)/;
	for (1 .. 100)
	{
		last if ($admin->do('SELECT gpuhash_fault_paging_limit()'))[0] == $mb * 1024 * 1024;
		Time::HiRes::sleep(0.05);
	}
	$admin->close;
});
like($service->settle, $CLEAN, 'nothing is left over');

# allocations that fail, one after the other, on the device and for paging: the table is whole
my $bad = 0;
for my $after (0 .. 30)
{
	$session->do(q{SELECT gpuhash_create('one', host_copy => false)});
	$service->arm('allocation', 'limit', after => $after);
	my ($out, $err) = $session->do(q{SELECT gpuhash_insert('one', k, v) FROM keys});
	$service->disarm;
	$bad++ if $err ne '' && $err !~ /53400|53200/;
	$bad++ if ($session->do(q{SELECT count(u.v) - (SELECT keys FROM gpuhash_table_stats('one')) FROM wanted w, unnest(w.k, gpuhash_find('one', w.k)) u (k, v) WHERE v = u.k * 10}))[0] ne '0';
	$session->do(q{SELECT gpuhash_insert('one', k, v) FROM keys});
	$bad++ if ($session->do(q{SELECT count(*) FROM keys, unnest(k, gpuhash_find('one', k)) u (k, v) WHERE u.v IS DISTINCT FROM u.k * 10}))[0] ne '0';
	$session->do(q{SELECT gpuhash_drop('one')});
}
is($bad, 0, 'allocations that fail leave a table whole');
like($service->settle, $CLEAN, 'nothing is left over');

# a new table that pages has copies that are idle given up: an interrupt meanwhile leaves nothing behind
for my $timeout (8, 12, 16)
{
	$session->do("SELECT gpuhash_create('copy$_')") for 1 .. 40;
	Time::HiRes::sleep(1.2);
	$session->do("SET statement_timeout = $timeout; SELECT gpuhash_create('one', capacity => 400000, host_copy => false)");
	$session->do('SET statement_timeout = 0');
	$session->do("SELECT gpuhash_drop('$_')") for 'one', map { "copy$_" } 1 .. 40;
}
like($service->settle, $CLEAN, 'nothing is left over');
$session->close;
$service->stop;
unlike($server->log, qr/PANIC|TRAP|leak|terminated by signal/, 'a clean log');

# -------------------------------------------------------------------- without
my $fault = GpuHash::Fault->needed;
my $alone = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cuda'", 'jit = off',
	"gpuhash.device_memory_limit = '1MB'", "gpuhash.paging_memory = '64MB'"]);
$alone->query('CREATE EXTENSION gpuhash');
$alone->query($DATA);
$session = $alone->session;
check_tables($session, 'session');
check_end($session, 'session', sub { my ($value) = @_; $session->do("SET gpuhash.paging_memory = '$value'") });
$session->close;
$alone->stop;
done_testing();
