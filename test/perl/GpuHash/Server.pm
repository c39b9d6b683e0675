# GpuHash::Server: private PostgreSQL servers for the TAP tests.
#
# Needs core Perl only.  The programs are those of GPUHASH_BINDIR, else of
# PG_CONFIG or the pg_config of PATH, with gpuhash installed.  GPUHASH_ENGINE is
# the engine of servers whose configuration names none.  A server lies in
# a temporary folder, listens on a Unix socket there, and goes with the object.
#
#	my $server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'"], module => 1);
#									module: with test/modules/gpuhash_test, for which
#									why_not('module') must have been asked
#	my $standby = $server->standby;	a hot standby of it, started; it needs 'max_wal_senders' and 'hot_standby'
#	$server->query('SELECT 1')		output, unaligned; dies on an error
#	$server->run($sql, %options)	(status, stdout, stderr)
#	$server->session			a psql that stays open, see below
#	$server->log				the server's log so far
package GpuHash::Server;

use strict;
use warnings;
use File::Path qw(make_path);
use File::Temp ();
use IPC::Open3;
use IO::Handle;
use IO::Select;
use POSIX ();
use Scalar::Util 'weaken';
use Symbol 'gensym';
use Time::HiRes qw(time sleep);

my @running;

# The folder of the programs, or undef.
sub bindir
{
	return $ENV{GPUHASH_BINDIR} if $ENV{GPUHASH_BINDIR};
	my $config = $ENV{PG_CONFIG} || 'pg_config';
	my $dir = `$config --bindir 2>/dev/null`;
	chomp $dir;
	return -x "$dir/initdb" ? $dir : undef;
}

# The folder of the libraries.
sub libdir
{
	my $bindir = bindir();
	chomp(my $dir = `'$bindir/pg_config' --pkglibdir`);
	return $dir;
}

# Why these tests cannot run here, or undef; why_not('module'): those that need test/modules/gpuhash_test.
sub why_not
{
	my ($module) = @_;
	return 'a PostgreSQL server does not run as root' if $> == 0;
	return 'no PostgreSQL server found: set PG_CONFIG' unless defined bindir();
	return undef unless $module;
	my $libdir = libdir();
	open my $library, '<:raw', "$libdir/gpuhash.so" or return "no gpuhash.so in $libdir";
	local $/;
	# a user's build may have come after one with the module
	return 'gpuhash.so was built without FAULT_POINTS=yes' unless -e "$libdir/gpuhash_test.so" && <$library> =~ /gh_fault_pass/;
	return undef;
}

sub new
{
	my ($class, %options) = @_;
	my $dir = File::Temp::tempdir('gpuhashXXXXXX', DIR => $ENV{TMPDIR} || '/tmp', CLEANUP => 1);
	my $self = bless { dir => $dir, bin => bindir() }, $class;

	my $made = $ENV{GPUHASH_INITDB_TEMPLATE};
	must($made ? ('cp', '-RPp', $made, "$dir/data") :
		("$self->{bin}/initdb", '-D', "$dir/data", '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'));
	open my $conf, '>>', "$dir/data/postgresql.conf" or die $!;
	print $conf "$_\n" for
		"listen_addresses = ''", "unix_socket_directories = '$dir'", 'fsync = off',
		'shared_buffers = 128MB', 'dynamic_shared_memory_type = ' . dsm_type(),
		$ENV{GPUHASH_ENGINE} ? "gpuhash.engine = '$ENV{GPUHASH_ENGINE}'" : (), @{ $options{conf} || [] };
	close $conf;
	$self->start;
	$self->query('SET client_min_messages = warning; CREATE EXTENSION gpuhash_test CASCADE') if $options{module};
	return $self;
}

sub standby
{
	my ($self) = @_;
	my $dir = File::Temp::tempdir('gpuhashXXXXXX', DIR => $ENV{TMPDIR} || '/tmp', CLEANUP => 1);

	must("$self->{bin}/pg_basebackup", '-h', $self->{dir}, '-U', 'postgres', '-D', "$dir/data", '-R', '-X', 'stream', '-c', 'fast', '--no-sync');
	open my $conf, '>>', "$dir/data/postgresql.conf" or die $!;
	print $conf "unix_socket_directories = '$dir'\nprimary_conninfo = 'host=$self->{dir} user=postgres'\n";
	close $conf;
	my $standby = bless { dir => $dir, bin => $self->{bin} }, ref $self;
	$standby->start;
	return $standby;
}

# Containers often have next to no /dev/shm.
sub dsm_type
{
	my $free = `df -Pm /dev/shm 2>/dev/null` =~ /^\S+\s+\d+\s+\d+\s+(\d+)/m ? $1 : 0;
	return $free >= 512 ? 'posix' : 'sysv';
}

sub must
{
	my @command = @_;
	my $output = `@{[ join ' ', map { quote($_) } @command ]} 2>&1`;
	die "@command failed:\n$output" if $?;
	return $output;
}

sub quote { my ($s) = @_; $s =~ s/'/'\\''/g; return "'$s'" }

# Whether a process runs.  An orphan that has ended stays as a zombie where init
# reaps nothing, as in some containers.
sub runs
{
	my ($pid) = @_;
	open my $file, '<', "/proc/$pid/stat" or return 0;
	local $/;
	my $stat = <$file>;
	return defined $stat && $stat !~ /.*\) [ZX]/s ? 1 : 0;
}

# From now on orphans of this test stay as zombies, as below such an init: they become
# ours, and we do not wait for them.  False where that is not known how to do.
sub adopt_orphans
{
	my $prctl = { x86_64 => 157, aarch64 => 167 }->{ (POSIX::uname())[4] } or return 0;
	my $PR_SET_CHILD_SUBREAPER = 36;
	return syscall($prctl, $PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

# The postmaster's process, where it runs.
sub postmaster
{
	my ($self) = @_;
	open my $file, '<', "$self->{dir}/data/postmaster.pid" or return;
	my ($pid) = (<$file> // '') =~ /^(\d+)/;
	return defined $pid && runs($pid) ? $pid : undef;
}

sub start
{
	my ($self) = @_;
	# to a new postmaster, a zombie that these files name runs
	unlink "$self->{dir}/data/postmaster.pid", "$self->{dir}/.s.PGSQL.5432.lock" unless defined $self->postmaster;
	my $ok = eval { must("$self->{bin}/pg_ctl", '-D', "$self->{dir}/data", '-l', "$self->{dir}/log", '-w', '-t', 120, 'start'); 1 };
	die $@ . $self->log unless $ok;
	push @running, $self;
	weaken $running[-1];
	return;
}

sub stop
{
	my ($self, $mode) = @_;
	must("$self->{bin}/pg_ctl", '-D', "$self->{dir}/data", '-w', '-m', $mode || 'fast', 'stop') if defined $self->postmaster;
	return;
}

# All of a file; '' where there is none.
sub read_file { my ($name) = @_; open my $file, '<', $name or return ''; local $/; return scalar(<$file>) // '' }

sub log { my ($self) = @_; return read_file("$self->{dir}/log") }

sub psql_command
{
	my ($self, @more) = @_;
	return ("$self->{bin}/psql", '-XqAt', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose',
		'-h', $self->{dir}, '-p', 5432, '-U', 'postgres', '-d', 'postgres', @more);
}

# Run SQL in a new session, given on standard input.  Returns psql's exit
# status, output and messages.
sub run
{
	my ($self, $sql) = @_;
	my $in = "$self->{dir}/in.$$.sql"; # jobs are processes
	open my $file, '>', $in or die $!;
	print $file $sql;
	close $file;
	my $err = gensym;
	open my $input, '<', $in or die $!;
	my $pid = open3('<&' . fileno($input), my $out, $err, $self->psql_command('-f', '-'));
	my %text = ($out => '', $err => '');
	my $select = IO::Select->new($out, $err);
	while (my @ready = $select->can_read)
	{
		for my $handle (@ready)
		{
			my $piece;
			sysread($handle, $piece, 65536) ? ($text{$handle} .= $piece) : $select->remove($handle);
		}
	}
	waitpid $pid, 0;
	my $status = $? >> 8;
	chomp $text{$out};
	return ($status, $text{$out}, $text{$err});
}

sub query
{
	my ($self, $sql) = @_;
	my ($status, $out, $err) = $self->run($sql);
	die "failed: $sql\n$err" if $status != 0;
	return $out;
}

# A psql that stays open: send() starts a statement and returns at once,
# receive() waits for its end and returns (output, messages).
sub session
{
	my ($self) = @_;
	my $err = gensym;
	my $pid = open3(my $in, my $out, $err, $self->psql_command('-v', 'ON_ERROR_STOP=0'));
	my $session = bless { pid => $pid, in => $in, out => $out, err => $err, n => 0 }, 'GpuHash::Session';
	$session->do('SET client_min_messages = warning');
	($session->{backend}) = $session->do('SELECT pg_backend_pid()');
	weaken($session->{server} = $self);
	return $session;
}

sub DESTROY { local $?; my ($self) = @_; eval { $self->stop('immediate') }; return }

END { local $?; eval { $_->stop('immediate') } for grep { defined } @running }

$SIG{TERM} = $SIG{INT} = sub { exit 1 };
$SIG{PIPE} = 'IGNORE';

package GpuHash::Session;

use strict;
use warnings;

sub send
{
	my ($self, $sql) = @_;
	$self->{n}++;
	my $handle = $self->{in};
	print $handle "$sql;\n\\echo end$self->{n}\n\\warn end$self->{n}\n";
	$handle->flush;
	return;
}

# Dies after that many seconds, 60 if not given.
sub receive
{
	my ($self, $seconds) = @_;
	my $deadline = Time::HiRes::time() + ($seconds || 60);
	my %text = (out => '', err => '');
	my $end = "end$self->{n}\n";
	# a search through all that has come would take the square of the time, of a hundred megabytes minutes
	while (grep { $text{$_} ne $end && substr($text{$_}, -length "\n$end") ne "\n$end" } qw(out err))
	{
		my $left = $deadline - Time::HiRes::time();
		die "no end of the statement in time; so far: $text{out}$text{err}" if $left <= 0;
		my @ready = IO::Select->new($self->{out}, $self->{err})->can_read($left);
		for my $handle (@ready)
		{
			my $which = $handle == $self->{out} ? 'out' : 'err';
			sysread($handle, my $piece, 65536) or die "psql ended: $text{out}$text{err}";
			$text{$which} .= $piece;
		}
	}
	s/^\Q$end\E\z//m for values %text;
	chomp @text{qw(out err)};
	return @text{qw(out err)};
}

sub do
{
	my ($self, $sql, $seconds) = @_;
	$self->send($sql);
	return $self->receive($seconds);
}

# The same, but what takes longer is cancelled.  For statements that statement_timeout does not end, as a
# COMMIT that reads the rows of a cursor WITH HOLD.
sub do_or_cancel
{
	my ($self, $sql, $seconds) = @_;
	$self->send($sql);
	my @answer = eval { $self->receive($seconds) };
	return @answer if $@ eq '';
	die $@ if $@ !~ /^no end of the statement in time/;
	$self->{server}->query("SELECT pg_cancel_backend($self->{backend})");
	return $self->receive(60);
}

# Ends a statement_timeout, which this may exceed, too: it is repeated until it does not.
sub no_timeout
{
	my ($self) = @_;
	for (1 .. 1000) { last if ($self->do('SET statement_timeout = 0'))[1] eq '' }
	return;
}

sub close
{
	my ($self) = @_;
	return unless $self->{pid};
	CORE::close $self->{in};
	waitpid delete $self->{pid}, 0;
	return;
}

sub DESTROY { local $?; $_[0]->close; return }

1;
