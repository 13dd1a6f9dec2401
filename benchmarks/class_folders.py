"""A zip of the first classes of CIFAR-100 with few images each, from class folders: what runs of minutes train on.

python benchmarks/class_folders.py CIFAR100.zip SMALL.zip [--classes 25] [--images 100] [--test-images 40]
"""

import argparse
import zipfile
from collections import Counter
from pathlib import PurePosixPath


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="zip of train/CLASS/IMAGE and test/CLASS/IMAGE, in a folder or not")
    parser.add_argument("target")
    parser.add_argument("--classes", type=int, default=25)
    parser.add_argument("--images", type=int, default=100, help="of a class, to train on")
    parser.add_argument("--test-images", type=int, default=40)
    arguments = parser.parse_args()
    most = {"train": arguments.images, "test": arguments.test_images}
    taken: Counter[PurePosixPath] = Counter()
    with zipfile.ZipFile(arguments.source) as source, zipfile.ZipFile(arguments.target, "w") as target:
        files = [PurePosixPath(name) for name in sorted(source.namelist()) if not name.endswith("/")]
        classes = sorted({file.parent.name for file in files if file.parent.parent.name == "train"})[
            : arguments.classes
        ]
        for file in files:
            kind, name = file.parent.parent.name, file.parent.name
            if name in classes and taken[file.parent] < most.get(kind, 0):
                taken[file.parent] += 1
                target.writestr(str(file), source.read(str(file)))
    print(f"{len(classes)} classes, {sum(taken.values())} images")


if __name__ == "__main__":
    main()
