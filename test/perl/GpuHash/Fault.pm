# GpuHash::Fault: a stand-in for the CUDA engine whose device fails on demand.
#
# Put in the place of gpuhash_cuda.so in an installation that is this test's own (GpuHash::Installation).  Create
# it before the server starts.  GPUHASH_STAND_IN_LIBRARY names its file; else each test builds it.
#
#	my $fault = GpuHash::Fault->new;	dies never: see why_not
#	GpuHash::Fault->new(absent => 1)	no library at all
#	GpuHash::Fault->needed				the same as new, but where it is not there the test is skipped
#	GpuHash::Fault->library				its file alone, for a test that puts it elsewhere; else the test is skipped
#	$fault->why_not						why it is not there, or undef
#	$fault->fail_after($n)				n more requests succeed, then all fails
#	$fault->repair						nothing fails any more
package GpuHash::Fault;

use strict;
use warnings;
use File::Temp ();
use FindBin;
use Test::More ();
use GpuHash::Installation;

# The library's file, the folder in which it was built, and where it is installed, once in a test.
my $library = $ENV{GPUHASH_STAND_IN_LIBRARY};
my ($built, $installation);

sub new
{
	my ($class, %options) = @_;
	my $dir = File::Temp::tempdir('gpuhashXXXXXX', DIR => $ENV{TMPDIR} || '/tmp', CLEANUP => 1);
	my $self = bless { dir => $dir, file => "$dir/fault", absent => $options{absent} }, $class;
	$self->{why_not} = ($self->{absent} ? undef : $self->build) || $self->install;
	$ENV{GPUHASH_FAULT_FILE} = $self->{file};
	return $self;
}

sub needed
{
	my ($class) = @_;
	my $self = $class->new;
	Test::More::plan(skip_all => $self->why_not) if $self->why_not;
	return $self;
}

sub library
{
	my ($class) = @_;
	my $why_not = $class->build;
	Test::More::plan(skip_all => $why_not) if $why_not;
	return $library;
}

sub build
{
	my ($self) = @_;
	return undef if $library;
	my $top = "$FindBin::Bin/../..";
	my $dir = File::Temp->newdir('gpuhashXXXXXX', DIR => $ENV{TMPDIR} || '/tmp');
	my $output = `\${CC:-cc} -std=gnu11 -O1 -shared -fPIC -fvisibility=hidden -I'$top/src' -o '$dir/engine.so' '$top'/test/fault/*.c '$top'/src/engine/*.c '$top'/src/engine/*/*.c -Wl,-z,defs -ldl -lpthread -lm 2>&1`;
	return "no C compiler: $output" if $?;
	($built, $library) = ($dir, "$dir/engine.so");
	return undef;
}

sub install
{
	my ($self) = @_;
	$installation //= GpuHash::Installation->new;
	$ENV{GPUHASH_BINDIR} = $installation->bindir;
	return undef if $self->{absent};
	$self->{library} = $installation->libdir . '/gpuhash_cuda.so';
	return system('cp', $library, $self->{library}) == 0 ? undef : 'cp failed';
}

sub why_not { return $_[0]{why_not} }

sub fail_after
{
	my ($self, $requests) = @_;
	open my $file, '>', $self->{file} or die $!;
	print $file "$requests\n";
	close $file;
	return;
}

# Whether the device has failed since fail_after.
sub has_failed
{
	my ($self) = @_;
	open my $file, '<', $self->{file} or return 0;
	return <$file> == 0;
}

sub repair { my ($self) = @_; unlink $self->{file}; return }

sub DESTROY
{
	local $?;
	my ($self) = @_;
	return unless $self->{library};
	unlink $self->{library};
	return;
}

1;
