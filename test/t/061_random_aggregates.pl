# Random aggregations, offloaded and not, give the same groups (GpuHash::RandomAggregateRun).
#
#	GPUHASH_RANDOM_QUERIES		how many queries (500); others of GpuHash::RandomRun
use GpuHash::Test;
use GpuHash::RandomAggregateRun;

GpuHash::RandomAggregateRun::test(queries => 500);
done_testing();
