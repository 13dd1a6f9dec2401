"""A Ray that tests join by address; run as a program: prints that, and ends when its standard input does."""

import logging
import os
import sys

from epsearch.runners.on_ray import ray_start


def main():
    os.environ |= ray_start.SETTINGS
    import ray

    with ray_start.allow_slow_start():
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    print(ray.get_runtime_context().gcs_address, flush=True)
    sys.stdin.read()
    processes = ray_start.processes()
    ray.shutdown()
    for process in processes:
        process.wait()


if __name__ == "__main__":
    main()
