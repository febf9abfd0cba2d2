"""Every proxy by its name, in the order of the tables: the floor first, the product last.

In: nothing. Out: PEERS. Must never leave a proxy out because it is not installed: rows say so.
"""

from bench.peers.edgefast import Edgefast
from bench.peers.envoy import Envoy
from bench.peers.floor import Floor
from bench.peers.haproxy import Haproxy
from bench.peers.nghttpx import Nghttpx
from bench.peers.nginx import Nginx
from bench.peers.peer import Peer
from bench.peers.pingora import Pingora
from bench.peers.sozu import Sozu

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (Floor(), Nginx(), Haproxy(), Nghttpx(), Envoy(), Pingora(), Sozu(), Edgefast())
}
