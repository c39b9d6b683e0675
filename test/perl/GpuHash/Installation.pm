# GpuHash::Installation: an installation that is this test's own, made of the tested one: what a test puts into its
# folders, or takes from them, is nothing to the tests beside it.
#
#	my $own = GpuHash::Installation->new(gpuhash => 0)		gpuhash => 0: without what is gpuhash's
#	$own->bindir, $own->libdir, $own->sharedir				its folders
#	$ENV{GPUHASH_BINDIR} = $own->bindir						servers that are made from now on are of it
#	GpuHash::Installation::config($bindir, 'sharedir')		what pg_config says there
#	GpuHash::Installation::copy_files($folder, @files)
package GpuHash::Installation;

use strict;
use warnings;
use File::Copy ();
use File::Path qw(make_path);
use File::Temp ();
use GpuHash::Server;

# PostgreSQL finds its folders from where its program lies, so that programs cannot be symbolic links.
sub new
{
	my ($class, %options) = @_;
	my $bindir = GpuHash::Server::bindir();
	my ($libdir, $sharedir) = map { config($bindir, $_) } qw(pkglibdir sharedir);
	my $dir = File::Temp->newdir('gpuhashXXXXXX', DIR => $ENV{TMPDIR} || '/tmp');
	my $self = bless { dir => $dir, bindir => "$dir$bindir", libdir => "$dir$libdir", sharedir => "$dir$sharedir" }, $class;
	my $with = $options{gpuhash} // 1;

	copy_files($self->{bindir}, glob "$bindir/*");
	link_entries($libdir, $self->{libdir});
	link_entries($sharedir, $self->{sharedir});
	link_entries("$sharedir/extension", "$self->{sharedir}/extension", $with);
	copy_files($self->{libdir}, grep { !/gpuhash_cuda/ } glob "$libdir/gpuhash*.so") if $with;
	return $self;
}

sub bindir { return $_[0]{bindir} }
sub libdir { return $_[0]{libdir} }
sub sharedir { return $_[0]{sharedir} }

sub config
{
	my ($bindir, $what) = @_;
	chomp(my $value = `'$bindir/pg_config' --$what`);
	die "pg_config --$what failed" if $? || $value eq '';
	return $value;
}

# What is in a folder, but for folders of its own and, unless asked for, what is gpuhash's.
sub link_entries
{
	my ($from, $to, $with) = @_;
	make_path($to);
	for my $path (glob "$from/*")
	{
		my ($name) = $path =~ m{([^/]+)$};
		next if $name =~ /^(?:extension|bitcode|pgxs)$/ || $name =~ /^gpuhash/ && !$with;
		symlink $path, "$to/$name" or die "$to/$name: $!";
	}
	return;
}

sub copy_files
{
	my ($to, @files) = @_;
	make_path($to);
	for my $path (grep { -f } @files)
	{
		my ($name) = $path =~ m{([^/]+)$};
		next if link $path, "$to/$name";
		File::Copy::copy($path, "$to/$name") or die "$path: $!";
		chmod((stat $path)[2] & 07777, "$to/$name");
	}
	return;
}

1;
