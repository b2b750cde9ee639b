"""What pages of queues are about."""

from queues import queries


def test_the_overview_is_about_the_gpus_that_the_fleet_has() -> None:
    assert queries.main_gpu({"cpu": 9000, "amd.com/gpu": 16_000, "nvidia.com/gpu": 8000}) == "amd.com/gpu"
    assert queries.main_gpu({"cpu": 9000}) == "nvidia.com/gpu"
