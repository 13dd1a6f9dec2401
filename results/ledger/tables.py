"""The tables of the ledger, and which of them each version has."""

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, String, Table, Text

from results.ledger.record import ALONE, ARRAYS, DIFFERENCES, RERUN

metadata = MetaData()


# With a prefix, for databases that are shared with other programs, which also have "studies" and "runs".
versions = Table(
    "epsearch_schema",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
)

runs = Table(
    "epsearch_runs",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("phase", String(16), nullable=False),
    Column("method", String(64), nullable=False),
    Column("epsilon", Double, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("status", String(16), nullable=False),
    Column("diverged_task", Integer),
    Column("diverged_step", BigInteger),
    Column("steps", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
    *(Column(name, Text, nullable=False) for name in ARRAYS),
    Column("content", Text, nullable=False),
    Column("created", String(64), nullable=False),
    *(Column(name, String(64), nullable=False) for name in ("fingerprint", "cohort", "checksum")),
)

studies = Table(
    "epsearch_studies",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("config", Text, nullable=False),
    Column("created", String(64), nullable=False),
    Column("checksum", String(64), nullable=False),
)


def _of_certificates(name: str) -> Table:
    return Table(
        name,
        metadata,
        Column("key", String(64), primary_key=True),
        *(Column(name, Double, nullable=False) for name in DIFFERENCES),
        *(Column(name, String(64), nullable=False) for name in ("created", "checksum")),
    )


certificates = _of_certificates("epsearch_certificates")
"""Certificates of members of a search that were trained once more, alone."""

reruns = _of_certificates("epsearch_reruns")
"""Certificates of stored runs from their last `epsearch verify`."""

CERTIFICATES = {ALONE: certificates, RERUN: reruns}
"""Kind of certificates -> their table."""

summaries = Table(
    "epsearch_summaries",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("study", String(64), nullable=False),
    Column("summary", Text, nullable=False),
    Column("checksum", String(64), nullable=False),
)
"""Lines of `epsearch list`; `study` is the checksum of the study's row to which the summary belongs."""

leases = Table(
    "epsearch_leases",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("token", BigInteger, nullable=False),
    Column("holder", Text, nullable=False),
    Column("expires", Double, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("changed", Double, nullable=False),
)
"""Holder of the lease of a study, its expiry in seconds since 1970 by the database's clock, 0 once released, and the
state of the study, see `writers/states.py`."""

claims = Table(
    "epsearch_claims",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("study", String(255), nullable=False),
    Column("token", BigInteger, nullable=False),
)
"""The study that trains the member of a key, and the token of the lease under which it does."""

events = Table(
    "epsearch_events",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("study", String(255), nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("data", Text, nullable=False),
    Column("time", Double, nullable=False),
    Index("epsearch_events_of", "study", "id"),
    sqlite_autoincrement=True,  # no number is used twice
)
"""Events of studies, in the order of their numbers, see `writers/events.py`."""

queue = Table(
    "epsearch_queue",
    metadata,
    Column("study", String(255), primary_key=True),
    *(Column(name, Integer, nullable=False) for name in ("open", "priority")),
    Column("submitted", Double, nullable=False),
    Column("submitter", String(255), nullable=False),
    Column("given", Text, nullable=False),
    Column("tries", Integer, nullable=False),
)
"""Studies that were submitted, the last submission of each, see `writers/queue.py`."""

audit = Table(
    "epsearch_audit",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("time", Double, nullable=False),
    *(Column(name, String(255), nullable=False) for name in ("who", "action", "study")),
    Column("detail", Text, nullable=False),
    sqlite_autoincrement=True,
)
"""Changes that were requested of a service."""

turns = Table(
    "epsearch_turns",
    metadata,
    Column("owner", String(255), primary_key=True),
    Column("begun", Double, nullable=False),
)
"""When the last study of each owner was begun, in seconds since 1970, by which owners take turns in the queue."""

FIRST_TABLES = (runs, studies, certificates, summaries, reruns, leases, claims, events, queue, audit)
VERSION = 2
"""The version of the tables above; `migrations` leads to it."""
DEVELOPMENT = 7
"""The number of the first tables before the first release. Other numbers from 3 on had other tables."""
TABLES_OF = {1: FIRST_TABLES, DEVELOPMENT: FIRST_TABLES, VERSION: (*FIRST_TABLES, turns)}
"""Version -> its tables, of the versions that can be read as they are."""
