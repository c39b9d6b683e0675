# Settings of the GPU service: with it they are set, without it they say that they do nothing.
use GpuHash::Test;

my %SETTING = (shared_memory => "'32MB'", devices => "'0,1'", device_timeout => "'10s'", worker_spin => '100', register_buffers => 'off', reload_resident => 'off', prewarm_columns => 'off');
my @conf = map { "gpuhash.$_ = $SETTING{$_}" } sort keys %SETTING;

sub warning { my ($name) = @_; return qr/WARNING: [^\n]*"gpuhash\.$name" has no effect without the GPU service\n(?:[^\n]*\n)*?HINT: [^\n]*shared_preload_libraries/ }

# nothing in the configuration
{
	my $server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'"]);
	for my $name (sort keys %SETTING)
	{
		my ($status, $out, $err) = $server->run("SET gpuhash.$name = $SETTING{$name}");
		like($err, warning($name), "SET $name: a warning with the cure");
		is($status, 0, "SET $name: and no error");
		(undef, undef, $err) = $server->run("SELECT set_config('gpuhash.$name', '" . ($SETTING{$name} =~ tr/'//dr) . "', false)");
		like($err, warning($name), "set_config of $name");
		(undef, undef, $err) = $server->run("ALTER SYSTEM SET gpuhash.$name = $SETTING{$name}");
		like($err, warning($name), "ALTER SYSTEM SET $name");
		(undef, undef, $err) = $server->run("ALTER ROLE postgres SET gpuhash.$name = $SETTING{$name}; ALTER ROLE postgres RESET gpuhash.$name");
		like($err, warning($name), "ALTER ROLE SET $name");
		(undef, undef, $err) = $server->run("RESET gpuhash.$name; SHOW gpuhash.$name");
		is($err, '', "RESET and SHOW $name");
	}
	my (undef, undef, $err) = $server->run("SET gpuhash.devices = 'none'");
	like($err, qr/22023.*gpuhash\.devices/s, 'a value that is none is an error');
	unlike($err, qr/no effect/, 'and nothing else');
	$server->query('CREATE ROLE plain LOGIN');
	(undef, undef, $err) = $server->run("SET ROLE plain; SET gpuhash.device_timeout = '1s'");
	like($err, qr/42501/, 'they are for superusers');
	unlike($err, qr/no effect/, 'and nothing else');

	# now they are all in postgresql.auto.conf
	my $session = $server->session;
	my $before = length $server->log;
	$server->query('SELECT pg_reload_conf(); SELECT pg_sleep(0.2)');
	is(($session->do('SELECT 1'))[1], '', 'a reload says nothing to a session');
	is(($session->do('SHOW gpuhash.worker_spin'))[0], '100', 'but sets the value');
	is(($server->run('SELECT 1'))[2], '', 'nor does the start of a session');
	unlike(substr($server->log, $before), qr/WARNING|no effect/, 'nor does the log');
	my $parallel = $server->query('SHOW server_version_num') < 160000 ? 'force_parallel_mode' : 'debug_parallel_query';
	$session->do("SET gpuhash.worker_spin = 7; SET $parallel = on");
	like(($session->do('EXPLAIN (ANALYZE) SELECT count(*) FROM pg_class'))[0], qr/Workers Launched: 1/, 'with a worker');
	is(($session->do('SELECT count(*) > 1 FROM pg_class'))[1], '', 'which gets the setting, nothing is said');
	$session->close;
	$server->stop;
}

# in the configuration of a server whose sessions load gpuhash by a statement
{
	my $server = GpuHash::Server->new(conf => \@conf);
	my $all = join ', ', map { qr/"gpuhash\.$_"/ } qw(shared_memory devices device_timeout worker_spin register_buffers reload_resident prewarm_columns);
	my (undef, undef, $err) = $server->run("LOAD 'gpuhash'");
	like($err, qr/WARNING: [^\n]*settings that have no effect without the GPU service: $all\n(?:[^\n]*\n)*?HINT: [^\n]*shared_preload_libraries/, 'LOAD tells of them, once');
	is(scalar(() = $err =~ /WARNING/g), 1, 'and of nothing else');
	(undef, undef, $err) = $server->run("SET gpuhash.worker_spin = 5; LOAD 'gpuhash'; LOAD 'gpuhash'; SET gpuhash.enabled = off");
	is(scalar(() = $err =~ /WARNING/g), 1, 'a second LOAD says nothing');
	is(($server->run('SELECT 1'))[2], '', 'a session without it neither');
	(undef, undef, $err) = $server->run('CREATE EXTENSION gpuhash');
	is(scalar(() = $err =~ /WARNING: [^\n]*settings that have no effect/g), 1, 'CREATE EXTENSION does, once');
	$server->query("DROP EXTENSION gpuhash; ALTER DATABASE postgres SET session_preload_libraries = 'gpuhash'");
	is(($server->run('SELECT 1'))[2], '', 'a session that starts with it does not');
	(undef, undef, $err) = $server->run('CREATE EXTENSION gpuhash');
	is(scalar(() = $err =~ /WARNING: [^\n]*settings that have no effect/g), 1, 'but CREATE EXTENSION there, once');
	$server->stop;
}

# with the service
{
	my $server = GpuHash::Server->new(conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", @conf]);
	my ($status, $out, $err) = $server->run("SET gpuhash.device_timeout = '5s'; SHOW gpuhash.device_timeout; SHOW gpuhash.shared_memory");
	is("$out$err", "5s\n32MB", 'with the service: they are set, and nothing is said');
	(undef, undef, $err) = $server->run("SET gpuhash.shared_memory = '64MB'");
	like($err, qr/55P02/, 'shared_memory: at the start only');
	$server->stop;
	unlike($server->log, qr/no effect|PANIC|TRAP|terminated by signal/, 'a clean log');
}

done_testing();
