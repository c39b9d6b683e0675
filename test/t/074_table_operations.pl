# Counts, delete-one, mixed batches, room made and given back on shared named tables: with a
# copy on the device and on the device alone, with keys of 8 and of 4 bytes, with every fault
# of the device.  What comes out must be what a table on the host says.
use GpuHash::Test 'module';
use Time::HiRes qw(sleep);
use GpuHash::Service;

my $CLEAN = $GpuHash::Service::CLEAN;
my $service = GpuHash::Service->new(conf => ["gpuhash.device_timeout = '500ms'", "gpuhash.shared_memory = '8MB'"]);
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');

$server->query(<<'SQL');
CREATE TABLE batch AS
	SELECT array_agg(x ORDER BY o) AS k, array_agg(x * 10 ORDER BY o) AS v,
		array_agg((ARRAY['i', 'u', 'f', 'd', 'u', 'f'])[1 + (o * 31 + o / 7) % 6]::"char" ORDER BY o) AS ops,
		array_agg(decode(lpad(to_hex(x), 16, '0') || md5(o::text), 'hex') ORDER BY o) AS b
	FROM (SELECT i * 7919 % 50000 AS x, i AS o FROM generate_series(1, 100000::bigint) i) s;
CREATE TABLE wanted AS SELECT array_agg(i::bigint) AS k FROM generate_series(-10, 60000) i;
CREATE FUNCTION digest(anyarray) RETURNS text LANGUAGE sql AS 'SELECT md5($1::text)';
SQL

# Tables, what is done to them step by step, and what is then in them, through the device
# where there is one.
my %CREATE = (one => "'one'", many => "'many', multi => true", wide => "'wide', 24", wide_many => "'wide_many', 24, true", set => "'set', 0");
my %STEPS = (
	one => [ q{SELECT gpuhash_insert('one', k[1:30000], v[1:30000]) FROM batch}, q{SELECT digest(done), digest(found) FROM batch, gpuhash_apply('one', ops, k, v)} ],
	wide => [ q{SELECT gpuhash_insert('wide', k[1:30000], b[1:30000]) FROM batch}, q{SELECT digest(done), digest(found) FROM batch, gpuhash_apply('wide', ops, k, b)} ],
	set => [ q{SELECT gpuhash_insert('set', k[1:30000]) FROM batch}, q{SELECT digest(gpuhash_apply('set', ops, k)) FROM batch} ],
	many => [ q{SELECT gpuhash_insert('many', k, v) FROM batch}, q{SELECT gpuhash_delete_one('many', k[20000:90000]) FROM batch}, q{SELECT gpuhash_delete_one('many', k[1:20000] || k[1:20000]) FROM batch} ],
	wide_many => [ q{SELECT gpuhash_insert('wide_many', k, b) FROM batch}, q{SELECT gpuhash_delete_one('wide_many', k[20000:90000]) FROM batch} ]);
my %CONTENT = (
	one => q{SELECT digest(gpuhash_find('one', k)), digest(gpuhash_count('one', k)) FROM wanted},
	wide => q{SELECT digest(gpuhash_find_bytea('wide', k)), digest(gpuhash_count('wide', k)) FROM wanted},
	set => q{SELECT digest(gpuhash_contains('set', k)), digest(gpuhash_count('set', k)) FROM wanted},
	many => q{SELECT digest(gpuhash_count('many', k)), digest(gpuhash_contains('many', k)) FROM wanted},
	wide_many => q{SELECT digest(gpuhash_count('wide_many', k)), digest(gpuhash_contains('wide_many', k)) FROM wanted});

# Values of a multi table are those that were stored, as many of each key as it counts.
my $MADE_UP = q{SELECT count(*) FROM ((SELECT f.key, f.value FROM wanted w, gpuhash_find_all('many', w.k) f EXCEPT ALL SELECT u.* FROM batch, unnest(k, v) u)
	UNION ALL SELECT u.k, u.n FROM wanted w, unnest(w.k, gpuhash_count('many', w.k)) u (k, n) LEFT JOIN (SELECT f.key, count(*) AS n FROM wanted w, gpuhash_find_all('many', w.k) f GROUP BY f.key) c ON c.key = u.k WHERE u.n <> coalesce(c.n, 0)) d};

my $session = $server->session;
sub engine { my ($table) = @_; return ($session->do("SELECT engine FROM gpuhash_tables WHERE name = '$table'"))[0] }

sub steps
{
	my ($table, $bad) = @_;
	my @told;
	for my $step (@{ $STEPS{$table} }, "SELECT gpuhash_reserve('$table', 60000), gpuhash_compact('$table')")
	{
		my ($out, $err) = $session->do($step);
		push @$bad, $err if $err =~ /ERROR/;
		push @told, $out;
	}
	return \@told;
}

my (%want, %want_content);
$session->do('SET gpuhash.engine = cpu');
for my $table (sort keys %CREATE)
{
	$session->do("SELECT gpuhash_create($CREATE{$table})");
	$want{$table} = steps($table, []);
	($want_content{$table}) = $session->do($CONTENT{$table});
	$session->do("SELECT gpuhash_drop('$table')");
}
isnt($want{one}[1], '', 'there is something to compare');
$session->do('SET gpuhash.engine = cuda');

# ------------------------------------------------------------ without a fault
for my $options ('host_copy => true', 'host_copy => false', 'host_copy => true, key_size => 4', 'host_copy => false, key_size => 4')
{
	for my $table (sort keys %CREATE)
	{
		my @bad;
		$session->do("SELECT gpuhash_create($CREATE{$table}, $options)");
		is_deeply(steps($table, \@bad), $want{$table}, "$table, $options: the same is told");
		is("@bad", '', "$table, $options: without an error");
		is(($session->do($CONTENT{$table}))[0], $want_content{$table}, "$table, $options: the same content");
		is(engine($table), 'cuda', "$table, $options: is still on the device");
		my $other = $server->session;
		is(($other->do($CONTENT{$table}))[0], $want_content{$table}, "$table, $options: the same in another session");
		is(($other->do($MADE_UP))[0], '0', "$table, $options: no value is made up") if $table eq 'many';
		$other->close;
		$session->do("SELECT gpuhash_drop('$table')");
	}
}
# more room than there is
$session->do(q{SELECT gpuhash_create('alone', host_copy => false), gpuhash_create('both')});
$session->do(q{SELECT gpuhash_insert(name, 1, 1) FROM gpuhash_tables});
like(($session->do(q{SELECT gpuhash_reserve('alone', 1000000000)}))[1], qr/53[24]00: could not make room in hash table "alone"/, 'more room than the device has');
like(($session->do(q{SELECT gpuhash_reserve('both', 68719476736)}))[1], qr/53200: could not make room in hash table "both"/, 'more than the host has');
$session->do(q{SELECT gpuhash_reserve('both', 60000000)});
is(($session->do(q{SELECT string_agg(engine || gpuhash_find(name, 1), ' ') FROM gpuhash_tables}))[0], 'cuda1 cuda1', 'the tables stay where they are, and whole');
$session->do(q{SELECT gpuhash_drop(name) FROM gpuhash_tables});
like($service->settle, $CLEAN, 'nothing is left over');

# -------------------------------------------------------------------- faults
# A table with a copy goes on without an error, and has what it should.
# A build is replicated by adding.
my @points = qw(count delete_one mixed reserve flush add);
my %hit;
for my $table (sort keys %CREATE)
{
	my @bad;
	for my $point (@points)
	{
		for my $kind (qw(no_memory limit launch delay sticky hang))
		{
			next if $kind =~ /sticky|hang/ && "$point$table" !~ /^(?:countmany|delete_onemany|mixedone|reserveset|flushwide_many|addmany)$/;
			my $what = "$kind at $point";
			unless ($service->wait_ready) { push @bad, "$what: no worker"; next }
			$session->do("SELECT gpuhash_create($CREATE{$table})");
			$service->arm($point, $kind, after => $point =~ /mixed|delete_one|add/ ? 1 : 0, ms => 3);
			my $told = steps($table, \@bad);
			my ($content, $message) = $session->do($CONTENT{$table});
			push @bad, "$what: told @$told" if "@$told" ne "@{$want{$table}}";
			push @bad, "$what: content $content $message" if $content ne $want_content{$table};
			$session->do("SELECT gpuhash_drop('$table')");
			my $fired = $service->disarm;
			$hit{"$kind $point"}++ if $fired;
			if ($fired && $kind =~ /hang|sticky|launch/) { sleep 0.7 if $kind eq 'hang'; $service->wait_ready }
			my $left = $service->settle;
			push @bad, "$what: $left" if $left !~ $CLEAN;
		}
	}
	is(join("\n", @bad), '', "$table: goes on after every fault");
}
for my $point (@points) { cmp_ok(scalar(grep { / $point$/ } keys %hit), '>=', 5, "faults at $point happened") }

# a table on the device alone is lost with it, and says so
for my $call (q{gpuhash_count('alone', ARRAY[1])}, q{gpuhash_delete_one('alone', ARRAY[1])}, q{gpuhash_reserve('alone', 100000)}, q{gpuhash_compact('alone')})
{
	$service->wait_ready;
	$session->do(q{SELECT gpuhash_create('alone', multi => true, host_copy => false), gpuhash_insert('alone', 1, 1)});
	$service->arm({ gpuhash_count => 'count', gpuhash_delete_one => 'delete_one', gpuhash_reserve => 'reserve', gpuhash_compact => 'flush' }->{ ($call =~ /^(\w+)/)[0] }, 'launch');
	like(($session->do("SELECT $call"))[1], qr/55000: hash table "alone" was lost with its GPU/, "$call on a device that fails");
	$service->disarm;
	like(($session->do("SELECT $call"))[1], qr/55000: hash table "alone" was lost with its GPU/, 'and again');
	$session->do(q{SELECT gpuhash_drop('alone')});
}

# cancelled batches: the device never differs from the host
$service->wait_ready;
$session->do(q{SELECT gpuhash_create('one'), gpuhash_create('many', multi => true)});
my ($cancelled, $wrong) = (0, 0);
for (1 .. 30)
{
	my (undef, $err) = $session->do(sprintf q{SET statement_timeout = %d; SELECT gpuhash_insert('many', k, v), gpuhash_delete_one('many', k), gpuhash_apply('one', ops, k, v), gpuhash_reserve('one', 400000), gpuhash_compact('one') FROM batch, generate_series(1, 20)}, 1 + rand 60);
	$cancelled++ if $err =~ /57014/;
	my ($same, $message) = $session->do(q{SET statement_timeout = 0;
		SELECT count(*) FROM wanted w, unnest(w.k, gpuhash_count('many', w.k), gpuhash_find('one', w.k)) d (k, n, v),
			LATERAL (SELECT (gpuhash_count('many', ARRAY[d.k]))[1] AS n, gpuhash_find('one', d.k) AS v) h WHERE (d.n, d.v) IS DISTINCT FROM (h.n, h.v)});
	$wrong++ if $same !~ /^\s*0$/;
}
cmp_ok($cancelled, '>', 10, "of 30 changes $cancelled were cancelled");
is($wrong, 0, 'the device never differs from the host');
is(engine($_), 'cuda', "the copy of $_ came back") for qw(one many);
$session->do(q{SELECT gpuhash_drop(name) FROM gpuhash_tables});
like($service->settle, $CLEAN, 'nothing is left over');

$session->close;
$service->stop;
unlike($server->log, qr/PANIC|TRAP|leak|terminated by signal/, 'a clean log');
done_testing();
