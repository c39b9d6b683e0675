# gpuhash in a folder of its own, beside a server that has nothing of it, as an image that is mounted into a
# container: extension_control_path and dynamic_library_path are all that the server needs, from 18 on.
use GpuHash::Test;
use File::Copy ();
use File::Temp ();
use Time::HiRes qw(sleep);
use GpuHash::Fault;
use GpuHash::Installation;

my $bindir = GpuHash::Server::bindir();
my ($major) = GpuHash::Installation::config($bindir, 'version') =~ /(\d+)/;
plan(skip_all => "PostgreSQL $major has no extension_control_path, which came with 18") if $major < 18;
my $stand_in = GpuHash::Fault->library;

# A server without gpuhash, and that, as `make install` has put it into the other one, with a stand-in for the CUDA engine.
my $sharedir = GpuHash::Installation::config($bindir, 'sharedir');
my $library = GpuHash::Server::libdir() . '/gpuhash.so';
my $server_alone = GpuHash::Installation->new(gpuhash => 0);
my $dir = File::Temp->newdir('gpuhashXXXXXX', DIR => $ENV{TMPDIR} || '/tmp');
my $image = "$dir/gpuhash";
GpuHash::Installation::copy_files("$image/lib", $library);
File::Copy::copy($stand_in, "$image/lib/gpuhash_cuda.so") or die "$stand_in: $!";
GpuHash::Installation::copy_files("$image/share/extension", glob "$sharedir/extension/gpuhash.control $sharedir/extension/gpuhash--*.sql");
$ENV{GPUHASH_BINDIR} = $server_alone->bindir;
my @found = (
	"extension_control_path = '\$system:$image/share'",
	"dynamic_library_path = '\$libdir:$image/lib'");

my $tables = <<'SQL';
CREATE TABLE outer_rows AS SELECT i, i % 1000 AS k FROM generate_series(1, 20000) i;
CREATE TABLE inner_rows AS SELECT i AS k FROM generate_series(1, 500) i;
ANALYZE;
SQL
my $join = 'SELECT count(*), sum(i) FROM outer_rows JOIN inner_rows USING (k)';
my $cuda = "SET gpuhash.force_offload = on; SET gpuhash.engine = 'cuda'";

# The folders that a session has loaded gpuhash's libraries from.
sub loaded_from
{
	my ($server, $sql) = @_;
	my $session = $server->session;
	$session->do($sql);
	my ($pid) = ($session->do('SELECT pg_backend_pid()'))[0] =~ /(\d+)/;
	open my $maps, '<', "/proc/$pid/maps" or return "/proc/$pid/maps: $!";
	my %folders = map { m{ (/\S*)/gpuhash[^/]*\.so$} ? ($1 => 1) : () } <$maps>;
	$session->close;
	return join ' ', sort keys %folders;
}

{
	my $server = GpuHash::Server->new;
	my (undef, undef, $err) = $server->run("CREATE EXTENSION gpuhash");
	like($err, qr/extension "gpuhash" is not available/, 'a server without gpuhash has no extension');
	(undef, undef, $err) = $server->run("LOAD 'gpuhash'");
	like($err, qr/could not access file "gpuhash"/, 'and no library');
	$server->stop;
}

{
	my $server = GpuHash::Server->new(conf => \@found);
	$server->query("SET client_min_messages = warning; CREATE EXTENSION gpuhash; $tables");
	is($server->query('SELECT gpuhash_mode()'), 'session', 'with the two settings: the extension and its functions');
	is(loaded_from($server, "LOAD 'gpuhash'"), "$image/lib", 'LOAD: the library of that folder');
	like($server->query("LOAD 'gpuhash'; $cuda; EXPLAIN (ANALYZE, COSTS OFF) $join"), qr/Engine: cuda/,
		'gpuhash_cuda.so is found beside it');
	is(loaded_from($server, "LOAD 'gpuhash'; $cuda; $join"), "$image/lib", 'and both are from there');
	$server->query('CREATE INDEX ON inner_rows USING gpuhash (k)');
	is($server->query('SET enable_seqscan = off; SELECT k FROM inner_rows WHERE k = 77'), '77',
		'an index, in a session that had not loaded it');
	$server->query("ALTER DATABASE postgres SET session_preload_libraries = 'gpuhash'");
	is($server->query('SELECT gpuhash_mode()'), 'session_preload_libraries', 'session_preload_libraries');

	rename "$image/lib/gpuhash_cuda.so", "$image/lib/aside" or die $!;
	like(($server->run("$cuda; $join"))[2],
		qr/55000: the CUDA engine is not available: [^\n]*\Q$image\E\/lib\/gpuhash_cuda\.so/,
		'an image without the CUDA engine: the error says where it was looked for');
	rename "$image/lib/aside", "$image/lib/gpuhash_cuda.so" or die $!;
	$server->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
}

# the service, and parallel workers
{
	my $server = GpuHash::Server->new(conf => [@found, "shared_preload_libraries = 'gpuhash'"]);
	$server->query("$tables; SET client_min_messages = warning; CREATE EXTENSION gpuhash");
	my $status = '';
	for (1 .. 100)
	{
		$status = $server->query('SELECT status FROM gpuhash_devices');
		last if $status =~ /^ready/;
		sleep 0.1;
	}
	like($status, qr/^ready/, 'shared_preload_libraries: the worker has loaded the engine of that folder');
	like($server->query("$cuda; EXPLAIN (ANALYZE, COSTS OFF) $join"), qr/Engine: cuda/, 'and sessions use it');
	my $parallel = join '; ', 'SET gpuhash.force_offload = on',
		map { "SET $_ = 0" } qw(parallel_setup_cost parallel_tuple_cost min_parallel_table_scan_size);
	like($server->query("$parallel; EXPLAIN (ANALYZE, COSTS OFF) $join"), qr/Workers Launched: [1-9]/,
		'parallel workers');
	is($server->query("$parallel; $join"), '10000|97505000', 'with the right answer');
	$server->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
}

done_testing();
