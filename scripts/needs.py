#!/usr/bin/env python3
"""Estimate the needs of collections by size: cores and hours, memory, disk and network.

Every figure follows from the measurements below, with their page or command, and from assumptions on photos and
machines, set by options. Prints the table of docs/how-to/many-machines.md.
"""

import argparse
from dataclasses import dataclass

# docs/measurements/speed.md: `landmarks` indexed whole, photos of up to 1,024 pixels and 4,563 features in the mean,
# into 500,000 words.
CPU_A_PHOTO = 0.24  # seconds, of a worker
KMEANS_CPU_HOURS = 0.7  # 500,000 words of 25 million descriptors, 10 passes
COMPACT_CPU_A_FEATURE = (59 + 52) / 200e6  # seconds: merged from 101 segments to 11, then to 6
STATISTICS_CPU_A_PHOTO = 5.6 / 100_000  # seconds, at the end of a command that changes photos

# docs/how-to/curators.md and `CollectionOptions`.
STAGED_BYTES_A_FEATURE = 280
SAMPLE = 5_000  # photos for training the vocabulary
BATCH = 1_000  # photos of a written segment
LARGEST_SEGMENT = 40e6  # features

# `cairn info` and `du` of the collection of tests/benchmarks/bench_scale.py: 100,000 photos, 200,057,300 features with
# signatures of 64 bits.
SEGMENT_BYTES_A_FEATURE = 15.66
VOCABULARY_BYTES = 266e6  # 500,000 words

# python -m tests.benchmarks.bench_cluster --photos landmarks/images --count 300, on a machine busy with other work.
DECODE_CPU = 0.047  # seconds, of a JPEG of twelve million pixels
HASH_CPU_A_BYTE = 0.64e-9
LIST_CPU = 0.06e-3 + 1.6e-3 / 8  # seconds of the front a new photo, with an eighth of an empty task
FRONT_CPU = 8.9e-3  # seconds a photo for taking its result and writing its part of a segment; empty tasks take 1.6e-3
SCHEDULER_CPU = 1.9e-3  # seconds a task
WORKER_MEMORY = 1.01e9  # bytes, at most, of one thread with 500,000 words
FRONT_MEMORY = 0.55e9  # bytes, at most, of 300 photos
LISTED_BYTES = 1_184  # of memory, a new photo
TASK_BYTES = 1_228  # a photo
RESULT_BYTES_A_FEATURE = 17.2
PASS_BYTES_A_WORD = 690  # fetched by a worker's machine in each pass of k-means
KMEANS_BYTES_A_DESCRIPTOR = 136 + 1_396  # of all tasks and all results

# A catalogue of synthetic photos with metadata in PostgreSQL 15, filled by scripts/catalogue_at_size.py: its size, with
# all indexes, by pg_database_size, less that of an empty database.
CATALOGUE_BYTES = 1_700  # a photo

PASSES = 10
WORDS = 500_000
DESCRIPTORS = 25e6  # of k-means at most: 50 a word


@dataclass(frozen=True)
class Workload:
    """Photos, and the machines that index them."""

    photos: int
    cores: int  # workers of one thread, each with a core
    features: int = 2_000  # of a photo
    photo_bytes: float = 3e6  # of a photo's file
    machine_cores: int = 16  # of a machine of workers


def worker_hours(load: Workload) -> float:
    """Core hours of workers: decoding and describing photos, and the vocabulary."""
    return load.photos * (CPU_A_PHOTO + DECODE_CPU) / 3600 + KMEANS_CPU_HOURS


def listing_hours(load: Workload) -> float:
    """Hours until all new photos are listed with checksums, which workers compute."""
    return load.photos * max(LIST_CPU, HASH_CPU_A_BYTE * load.photo_bytes / load.cores) / 3600


def writing_hours(load: Workload) -> float:
    """Hours of the front while workers run: results, segments, merging."""
    merging = COMPACT_CPU_A_FEATURE * load.features
    return load.photos * (FRONT_CPU + merging + STATISTICS_CPU_A_PHOTO) / 3600


def hours(load: Workload) -> float:
    """Elapsed hours: listing, then the slowest of workers, front and scheduler."""
    scheduling = load.photos * SCHEDULER_CPU / 3600
    return listing_hours(load) + max(worker_hours(load) / load.cores, writing_hours(load), scheduling)


def most_cores(load: Workload) -> int:
    """Cores of workers beyond which the front, or its scheduler, is slower."""
    writing = FRONT_CPU + COMPACT_CPU_A_FEATURE * load.features + STATISTICS_CPU_A_PHOTO
    return int((CPU_A_PHOTO + DECODE_CPU) / max(writing, SCHEDULER_CPU))


def segment_bytes(load: Workload) -> float:
    """Bytes of the segments, with signatures."""
    return load.photos * load.features * SEGMENT_BYTES_A_FEATURE


def staging_bytes(load: Workload) -> float:
    """Most staged bytes on disk: the photos of the vocabulary, or those of a segment."""
    return min(load.photos, SAMPLE + BATCH) * load.features * STAGED_BYTES_A_FEATURE


def catalogue_bytes(load: Workload) -> float:
    """Bytes of the catalogue in PostgreSQL."""
    return load.photos * CATALOGUE_BYTES


def front_memory(load: Workload) -> float:
    """Bytes of memory of the front, if all photos are new."""
    return FRONT_MEMORY + load.photos * LISTED_BYTES


def photo_traffic(load: Workload) -> float:
    """Bytes of photos read: once by the front, once by a worker."""
    return 2 * load.photos * load.photo_bytes


def other_traffic(load: Workload) -> float:
    """Bytes between front, workers and their shared folder: tasks, results, and staged data, written and read."""
    staged = 2 * STAGED_BYTES_A_FEATURE * load.features
    return load.photos * (TASK_BYTES + RESULT_BYTES_A_FEATURE * load.features + staged) + kmeans_traffic(load)


def kmeans_traffic(load: Workload) -> float:
    """Bytes of k-means: data fetched by each machine in each pass, and all tasks and results."""
    machines = -(-load.cores // load.machine_cores)
    descriptors = min(DESCRIPTORS, SAMPLE * load.features)
    return machines * PASSES * WORDS * PASS_BYTES_A_WORD + descriptors * KMEANS_BYTES_A_DESCRIPTOR


def bits_a_second(load: Workload) -> float:
    """Bits a second that all workers read and write together, while they describe photos."""
    rate = min(load.cores, most_cores(load)) / (CPU_A_PHOTO + DECODE_CPU)
    each = load.photo_bytes + TASK_BYTES + load.features * (RESULT_BYTES_A_FEATURE + 2 * STAGED_BYTES_A_FEATURE)
    return 8 * rate * each


def segments(load: Workload) -> int:
    """Segments of the largest size."""
    return max(1, round(load.photos * load.features / LARGEST_SEGMENT))


def shards(load: Workload) -> int:
    """Default number of shards of a search on these workers: two a worker, at most one a segment."""
    return min(2 * load.cores, segments(load))


def readable(value: float) -> str:
    """Format a figure with two digits, or as a whole number from 100 on, with commas."""
    if value >= 100:
        digits = len(str(int(value))) - 2
        return f"{round(value, -max(0, digits)):,.0f}"
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def table(loads: list[Workload]) -> str:
    """A table in Markdown, a column for each workload."""
    giga = 1e-9
    rows = [
        ("cores of workers", [f"{load.cores:,}" for load in loads]),
        ("hours of a core to index", [readable(worker_hours(load)) for load in loads]),
        ("hours on the clock, and those for the list of photos", [_hours(load) for load in loads]),
        ("memory of all workers to index, GB", [readable(giga * load.cores * WORKER_MEMORY) for load in loads]),
        ("memory of the front, GB", [readable(giga * front_memory(load)) for load in loads]),
        ("disk: segments, GB", [readable(giga * segment_bytes(load)) for load in loads]),
        ("disk: vocabulary, GB", [readable(giga * VOCABULARY_BYTES) for _ in loads]),
        ("disk: staging, GB", [readable(giga * staging_bytes(load)) for load in loads]),
        ("disk: PostgreSQL, GB", [readable(giga * catalogue_bytes(load)) for load in loads]),
        ("disk: the photos, GB", [readable(giga * load.photos * load.photo_bytes) for load in loads]),
        ("network: photos, read twice, GB", [readable(giga * photo_traffic(load)) for load in loads]),
        ("network: all else, GB", [readable(giga * other_traffic(load)) for load in loads]),
        ("network: k-means alone, GB", [readable(giga * kmeans_traffic(load)) for load in loads]),
        ("network while photos are described, Gbit/s", [readable(giga * bits_a_second(load)) for load in loads]),
        ("segments", [f"{segments(load):,}" for load in loads]),
        ("shards, two a worker", [f"{shards(load):,}" for load in loads]),
        ("memory in which all segments fit, GB", [readable(giga * segment_bytes(load)) for load in loads]),
    ]
    head = [f"| | {' | '.join(f'{load.photos:,}' for load in loads)} |", "|---" * (len(loads) + 1) + "|"]
    return "\n".join([*head, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows)])


def _hours(load: Workload) -> str:
    return f"{readable(hours(load))}, {readable(listing_hours(load))}"


SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
CORES = (4, 16, 48, 48)


def main() -> None:
    """Print the table."""
    usual = Workload(0, 0)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, nargs="+", default=list(SIZES), metavar="N")
    parser.add_argument("--cores", type=int, nargs="+", default=list(CORES), metavar="N", help="one for each size")
    parser.add_argument("--features", type=int, default=usual.features, metavar="N", help="of a photo")
    parser.add_argument("--photo-megabytes", type=float, default=usual.photo_bytes / 1e6, metavar="MB")
    arguments = parser.parse_args()
    if len(arguments.cores) != len(arguments.photos):
        parser.error("give as many numbers to --cores as to --photos")
    sizes = zip(arguments.photos, arguments.cores, strict=True)
    loads = [Workload(photos, cores, arguments.features, 1e6 * arguments.photo_megabytes) for photos, cores in sizes]
    print(table(loads))
    print(f"\nOne front keeps {most_cores(loads[0])} cores of workers busy.")


if __name__ == "__main__":
    main()
