# Where gpuhash_cuda.so is looked for: beside the gpuhash.so that was loaded, then in pkglibdir.
use GpuHash::Test;
use File::Copy ();
use File::Temp ();
use Time::HiRes qw(sleep);
use GpuHash::Fault;

my $stand_in = GpuHash::Fault->needed;

my $pkglibdir = GpuHash::Server::libdir();
my $installed = "$pkglibdir/gpuhash_cuda.so";
my $aside = File::Temp->newdir('gpuhashXXXXXX', DIR => $ENV{TMPDIR} || '/tmp');
copy_file($installed, "$aside/gpuhash_cuda.so");

sub copy_file { my ($from, $to) = @_; File::Copy::copy($from, $to) or die "$to: $!"; return }

# A folder with gpuhash.so, and the stand-in for the CUDA engine if asked.
sub folder
{
	my ($with_engine) = @_;
	my $dir = File::Temp->newdir('gpuhashXXXXXX', DIR => $ENV{TMPDIR} || '/tmp');
	copy_file("$pkglibdir/gpuhash.so", "$dir/gpuhash.so");
	copy_file("$aside/gpuhash_cuda.so", "$dir/gpuhash_cuda.so") if $with_engine;
	return $dir;
}

# What pkglibdir has: the stand-in, no library, or something that is none.
sub install
{
	my ($what) = @_;
	unlink $installed;
	if ($what eq 'garbage')
	{
		open my $file, '>', $installed or die $!;
		print $file "no library\n";
		close $file;
	}
	copy_file("$aside/gpuhash_cuda.so", $installed) if $what eq 'stand-in';
	return;
}

my $tables = <<'SQL';
CREATE TABLE outer_rows AS SELECT i, i % 1000 AS k FROM generate_series(1, 20000) i;
CREATE TABLE inner_rows AS SELECT i AS k FROM generate_series(1, 500) i;
ANALYZE;
SQL
my $join = 'EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*), sum(i) FROM outer_rows JOIN inner_rows USING (k)';
my $settings = "SET gpuhash.force_offload = on; SET gpuhash.engine = 'cuda'";
my $with = folder(1);
my $without = folder(0);

{
	my $server = GpuHash::Server->new;
	$server->query($tables);
	my $run = sub { my ($load) = @_; my (undef, $out, $err) = $server->run("LOAD '$load'; $settings; $join"); return "$out\n$err" };

	install('nothing');
	like($run->("$with/gpuhash.so"), qr/Engine: cuda/, 'beside gpuhash.so, and not in pkglibdir');
	like($run->("$without/gpuhash.so"), qr/55000: the CUDA engine is not available: [^\n]*\Q$without\E\/gpuhash_cuda\.so/,
		'in neither: the error names the folder of gpuhash.so');
	like($run->('gpuhash'), qr/55000: the CUDA engine is not available: [^\n]*\Q$installed\E/,
		'gpuhash.so in pkglibdir: the error names that');

	install('garbage');
	like($run->("$with/gpuhash.so"), qr/Engine: cuda/, 'beside gpuhash.so comes first');

	install('stand-in');
	like($run->("$without/gpuhash.so"), qr/Engine: cuda/, 'not beside gpuhash.so, but in pkglibdir');
	like($run->('gpuhash'), qr/Engine: cuda/, 'both in pkglibdir');

	# LOAD takes a path from the data directory, too
	install('nothing');
	symlink "$with", "$server->{dir}/data/beside" or die $!;
	like($run->('./beside/gpuhash.so'), qr/Engine: cuda/, 'gpuhash.so by a relative path');
	$server->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
}

# the service: its workers load the same gpuhash.so, and the engine beside it
{
	install('nothing');
	my $server = GpuHash::Server->new(conf => ["shared_preload_libraries = '$with/gpuhash'"]);
	my $out = '';
	$server->query($tables);
	for (1 .. 100)
	{
		(undef, $out) = $server->run("$settings; $join");
		last if $out =~ /Engine: cuda/;
		sleep 0.1;
	}
	like($out, qr/Engine: cuda/, 'the service, with gpuhash.so in a folder of its own');
	unlike($server->log, qr/could not/, 'its worker was started');
	$server->stop;
}

done_testing();
