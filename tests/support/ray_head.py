"""A Ray that the tests share; run as a program: prints its address, and ends when its standard input does."""

import sys

from epsearch.runners.on_ray.ray_start import shut_down
from epsearch.runners.on_ray.tune import start_private_ray


def main():
    start_private_ray(2)
    import ray

    print(ray.get_runtime_context().gcs_address, flush=True)
    sys.stdin.read()
    shut_down()


if __name__ == "__main__":
    main()
