# Random queries of which groups stay on the device of the service give PostgreSQL's rows (GpuHash::RandomLevels): the
# device is the stand-in for it (test/fault), unless GPUHASH_STAND_IN is "no".
#
#	GPUHASH_RANDOM_QUERIES		how many queries (300); others of GpuHash::RandomRun
use GpuHash::Test 'module';
use GpuHash::RandomLevels;

GpuHash::RandomLevels::test(queries => 300);
done_testing();
