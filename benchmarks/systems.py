"""The measured systems, in the order of the results."""

from benchmarks.bare_peer import BareHandler
from benchmarks.fastapi_peer import FastApi
from benchmarks.peers import Peer
from benchmarks.pgbench import PgBench
from benchmarks.plankeeper import Plankeeper
from benchmarks.pocketbase import DefaultPocketBase, PocketBase
from benchmarks.postgrest import PostgRest, SelectingPostgRest
from benchmarks.tenants import ManyTenants

SYSTEMS: dict[str, type[Peer]] = {
    peer.name: peer
    for peer in (
        *(Plankeeper, ManyTenants, PostgRest, SelectingPostgRest, PocketBase, DefaultPocketBase),
        *(FastApi, BareHandler, PgBench),
    )
}
