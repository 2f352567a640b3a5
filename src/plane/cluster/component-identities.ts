/** The identities of our components and of the node agents to each other: certificates of our own authorities. */
import type { Client } from '#client/client.ts';
import { NODES_GROUP } from '#kube/node-user.ts';
import type { Clock } from '#lib/clock.ts';
import type { AuthorityKeeper } from '#plane/cluster/authority-keeper.ts';
import type { AgentSigner } from '#subresources/agent-certificate.ts';
import { createNodeConnections, type NodeConnections } from '#subresources/node-connections.ts';

/** Returns a factory of connections to node agents, with a certificate of that name. */
export function createConnectionsAs(
  authority: AuthorityKeeper,
  commonName: string,
  { clock }: { readonly clock: Clock },
) {
  const held = authority.hold({ subject: { commonName }, purpose: { kind: 'client' } });
  const identity = () => {
    const { certPem: cert, keyPem: key, ca } = held.now();
    return { cert, key, ca };
  };
  return (client: Client): NodeConnections =>
    createNodeConnections({ client, ...identity(), currentIdentity: identity, verifyNodeName: true, clock });
}

/**
 * Returns a signer whose certificates have the user name of the node at the API server, for both servers and clients.
 */
export function createAgentSigner(authority: AuthorityKeeper): AgentSigner {
  return {
    sign(user, { publicKey, hosts }) {
      const subject = { commonName: user, organizations: [NODES_GROUP] };
      const certificate = authority.sign(publicKey, { subject, purpose: { kind: 'peer', hosts } });
      return { certificate, authorities: authority.bundle() };
    },
  };
}
