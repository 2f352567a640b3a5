/** Who our parts are to the agents of nodes, and who those are to us: certificates of our own authorities, by their names. */
import type { Client } from '#client/client.ts';
import { NODES_GROUP } from '#kube/node-user.ts';
import type { Clock } from '#lib/clock.ts';
import type { AuthorityKeeper } from '#plane/cluster/authority-keeper.ts';
import type { AgentSigner } from '#subresources/agent-certificate.ts';
import { createNodeConnections, type NodeConnections } from '#subresources/node-connections.ts';

/** Connections to the agents of nodes under that name. */
export function nodesThrough(authority: AuthorityKeeper, commonName: string, { clock }: { readonly clock: Clock }) {
  const held = authority.hold({ subject: { commonName }, purpose: { kind: 'client' } });
  const identity = () => {
    const { certPem: cert, keyPem: key, ca } = held.now();
    return { cert, key, ca };
  };
  return (client: Client): NodeConnections =>
    createNodeConnections({ client, ...identity(), renewed: identity, checksName: true, clock });
}

/** A node is called what the API server calls it, to those who come to it and to those to whom it comes. */
export function signerOfAgents(authority: AuthorityKeeper): AgentSigner {
  return {
    sign(user, { publicKey, hosts }) {
      const subject = { commonName: user, organizations: [NODES_GROUP] };
      const certificate = authority.sign(publicKey, { subject, purpose: { kind: 'peer', hosts } });
      return { certificate, authorities: authority.bundle() };
    },
  };
}
