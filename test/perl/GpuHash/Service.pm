# GpuHash::Service: a private server with the service, and with what tests look into it by.
#
# The library is in shared_preload_libraries.  In the place of the CUDA engine there
# is the stand-in of GpuHash::Fault, unless GPUHASH_STAND_IN is "no": then it is the one
# that is installed.  Needs a build with FAULT_POINTS=yes, which has the module gpuhash_test (GpuHash::Test).
#
#	use GpuHash::Test 'module'		before anything else
#	my $service = GpuHash::Service->new(conf => [...], devices => 2, absent => 0, tables => 1)
#	$service->server					its GpuHash::Server
#	$service->arm($point, $kind, after => 0, times => 1, ms => 0)
#	$service->disarm					how often it happened
#	$service->leftovers					what is taken; CLEAN matches when nothing is
#	$service->settle					leftovers, after a moment if need be
#	$service->wait_ready($seconds)		whether all devices are served
#	$service->workers					pids by device number
package GpuHash::Service;

use strict;
use warnings;
use GpuHash::Fault;
use GpuHash::Server;
use Time::HiRes qw(time sleep);

# the CUDA engine keeps what pipelines worked in for those after them (cuda/pipeline/pipeline_kits.cu); the stand-in nothing
my $BYTES = ($ENV{GPUHASH_STAND_IN} || '') eq 'no' ? qr/\d+/ : qr/0/;
our $CLEAN = qr/^buffers 0, slots 0, tables 0, holds 0, waiters 0, bytes $BYTES(?: $BYTES)*$/;

# What loads pages again, or makes columns, would do so while tests count requests, or have them fail: 043 and 103 are about that.
my @CONF = ("shared_preload_libraries = 'gpuhash'", 'gpuhash.worker_spin = 20', 'gpuhash.reload_resident = off', 'gpuhash.prewarm_columns = off', "gpuhash.engine = 'cuda'", 'gpuhash.force_offload = on',
	'gpuhash.batch_rows = 256', 'max_parallel_workers_per_gather = 0', 'enable_material = off', 'jit = off',
	'autovacuum = off', 'max_connections = 80');

sub why_not { return GpuHash::Server::why_not('module') }

sub new
{
	my ($class, %options) = @_;
	my $self = bless { devices => $options{devices} || 1 }, $class;
	if ($options{absent} || ($ENV{GPUHASH_STAND_IN} || '') ne 'no')
	{
		$self->{fault} = GpuHash::Fault->new(absent => $options{absent});
		die $self->{fault}->why_not if $self->{fault}->why_not;
	}
	local $ENV{GPUHASH_FAULT_DEVICES} = $self->{devices};
	my $devices = join ',', 0 .. $self->{devices} - 1;
	$self->{server} = GpuHash::Server->new(conf => [@CONF, "gpuhash.devices = '$devices'", @{ $options{conf} || [] }], module => 1);
	$self->make_tables if $options{tables};
	return $self;
}

# ------------------------------------------------------------------ queries

sub make_tables
{
	my ($self) = @_;
	$self->{server}->query(<<'SQL');
CREATE TABLE o AS SELECT i AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 700 END AS k, 'key ' || i % 900 AS t FROM generate_series(1, 2500) i;
CREATE TABLE i AS SELECT i AS id, i % 900 AS k, 'key ' || i % 1000 AS t FROM generate_series(1, 2000) i;
CREATE TABLE u AS SELECT i AS k, CASE WHEN i % 5 > 0 THEN i * 3 END AS v, CASE i WHEN 1999 THEN 3 ELSE i END AS late FROM generate_series(1, 2000) i;
ANALYZE o, i, u;
SQL
	return;
}

our %QUERY = (
	inner => 'SELECT o.id, i.id FROM o JOIN i ON i.k = o.k',
	left => 'SELECT o.id, i.id, i.t FROM o LEFT JOIN i ON i.k = o.k AND i.id > 500',
	text => 'SELECT o.id, i.id FROM o JOIN i ON i.t = o.t AND i.k <> o.k',
	# keys that come once, and one of them again
	columns => 'SELECT o.id, u.v FROM o LEFT JOIN u ON u.k = o.id AND u.v > o.k',
	columns_late => 'SELECT o.id, u.v FROM o JOIN u ON u.late = o.id',
	two => 'SELECT o.id, i.id, j.id FROM o JOIN i ON i.k = o.k LEFT JOIN i j ON j.t = o.t',
	rescan => 'SELECT v.x, s.* FROM (VALUES (1), (2)) v(x), LATERAL (SELECT o.id, i.id FROM o LEFT JOIN i ON i.k = o.k WHERE o.id % 2 < v.x OFFSET 0) s',
	partitions => 'SELECT o.id, i.id, i.t FROM o LEFT JOIN i ON i.k = o.k');

# Settings under which a query of these is what its name says: a GpuHashJoin.
sub settings
{
	my ($name) = @_;
	return 'SET gpuhash.enable_rows = off; ' .
		($name eq 'partitions' ? "SET work_mem = '64kB'; SET hash_mem_multiplier = 1" : 'RESET work_mem; RESET hash_mem_multiplier');
}

# An order-independent digest of what a query returns.
sub digest_sql { my ($query) = @_; return "SELECT count(*), sum(hashtextextended(r::text, 0)::numeric) FROM ($query) r" }

# The digest in a session: output, or the message of an error.
sub digest
{
	my ($session, $query) = @_;
	my ($out, $err) = $session->do(digest_sql($query));
	return $out . $err;
}

# PostgreSQL's own answers, by name.
sub answers
{
	my ($self) = @_;
	my $session = $self->{server}->session;
	my %answer;
	$session->do('SET gpuhash.enabled = off');
	for my $name (keys %QUERY)
	{
		$session->do(settings($name));
		$answer{$name} = digest($session, $QUERY{$name});
	}
	$session->close;
	return %answer;
}

# ------------------------------------------------------------- fault points

# One value, through a session that is kept, and made again after a crash.
sub ask
{
	my ($self, $sql) = @_;
	for my $try (1, 2)
	{
		my ($out, $err) = eval {
			$self->{control} ||= $self->{server}->session;
			$self->{control}->do($sql);
		};
		return $out if defined $out && $err eq '';
		die $err || $@ if $try == 2;
		delete $self->{control};
	}
	return;
}

sub arm
{
	my ($self, $point, $kind, %options) = @_;
	my ($after, $times, $ms) = ($options{after} // 0, $options{times} // 1, $options{ms} // 0);
	$self->ask("SELECT gpuhash_fault_arm('$point', '$kind', $after, $times, $ms)");
	return;
}

sub fired { my ($self) = @_; return $self->ask('SELECT gpuhash_fault_fired()') }

sub disarm
{
	my ($self) = @_;
	return $self->ask("SELECT gpuhash_fault_fired() + length(gpuhash_fault_arm('any', 'delay', 0, 0, 0)::text)");
}

sub leftovers { my ($self) = @_; return $self->ask('SELECT gpuhash_fault_leftovers()') }

# Tables and abandoned buffers are freed by the worker, soon.
sub settle
{
	my ($self, $seconds) = @_;
	my $deadline = time + ($seconds || 10);
	my $left;
	while (($left = $self->leftovers) !~ $CLEAN && time < $deadline) { sleep 0.01 }
	return $left;
}

# ------------------------------------------------------------------ workers

sub wait_ready
{
	my ($self, $seconds) = @_;
	my $deadline = time + ($seconds || 30);
	while (time < $deadline)
	{
		my $ready = eval { $self->ask('SELECT gpuhash_fault_ready()') };
		return 1 if defined $ready && $ready == $self->{devices};
		sleep 0.02;
	}
	return 0;
}

# Whether all devices read shared buffers where they are, at last.
sub wait_direct
{
	my ($self, $seconds) = @_;
	my $deadline = time + ($seconds || 30);
	while (time < $deadline)
	{
		my $others = eval { $self->ask(q{SELECT count(*) FROM gpuhash_devices WHERE engine = 'cuda' AND buffers IS DISTINCT FROM 'direct'}) };
		return 1 if defined $others && $others eq '0';
		sleep 0.02;
	}
	return 0;
}

sub postmaster
{
	my ($self) = @_;
	open my $file, '<', "$self->{server}{dir}/data/postmaster.pid" or return;
	chomp(my $pid = <$file>);
	return $pid;
}

# Processes of the server: pid => title.
sub processes
{
	my ($self) = @_;
	my $postmaster = $self->postmaster or return;
	my %title;
	for my $pid (map { m{/(\d+)$} } glob '/proc/[0-9]*')
	{
		next unless GpuHash::Server::read_file("/proc/$pid/stat") =~ /\) \S (\d+)/ && $1 == $postmaster;
		($title{$pid} = GpuHash::Server::read_file("/proc/$pid/cmdline")) =~ s/\0.*//s;
	}
	return %title;
}

# Those that were there stay so while they run: many processes of a machine take long to look through.
sub workers
{
	my ($self) = @_;
	my %known = %{ $self->{workers} // {} };
	return %known if keys %known == $self->{devices} && !grep { !GpuHash::Server::runs($_) } values %known;
	my %title = $self->processes;
	%known = map { $title{$_} =~ /gpuhash worker for GPU (\d+)/ ? ($1 => $_) : () } keys %title;
	$self->{workers} = \%known;
	return %known;
}

sub server { return $_[0]{server} }

sub stop
{
	my ($self, $mode) = @_;
	delete $self->{control};
	$self->{server}->stop($mode);
	return;
}

# The server goes before the library that it runs with.
sub DESTROY { local $?; my ($self) = @_; delete $self->{control}; delete $self->{server}; delete $self->{fault}; return }

1;
