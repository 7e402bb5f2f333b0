"""The systems that are measured, in the order in which they are shown."""

from benchmarks.bare_peer import BareHandler
from benchmarks.fastapi_peer import FastApi
from benchmarks.peers import Peer
from benchmarks.pgbench import PgBench
from benchmarks.plankeeper import Plankeeper
from benchmarks.pocketbase import PocketBase
from benchmarks.postgrest import PostgRest

SYSTEMS: dict[str, type[Peer]] = {
    kind.name: kind for kind in (Plankeeper, PostgRest, PocketBase, FastApi, BareHandler, PgBench)
}
