/** Connections to the agents of other nodes over HTTPS, with the certificate of this node and a check of theirs. */
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { Reader } from '#client/client.ts';
import { userOfNode } from '#kube/node-user.ts';
import type { Clock } from '#lib/clock.ts';
import type { ClientIdentity } from '#lib/https/client-identity.ts';
import { MIGRATIONS_PATH } from '#node/endpoint/route.ts';
import { MIGRATION_PROTOCOL } from '#node/endpoint/serve-migration.ts';
import type { Peers } from '#node/migration/peers.ts';
import { createNodeConnections } from '#subresources/node-connections.ts';

interface PeersOptions {
  /** A client that may read Nodes. */
  readonly client: Reader;
  /** PEM of the client certificate of this node, its key, and the CA of all nodes. */
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  /** Returns the current ones, if they are renewed. */
  currentIdentity?(): ClientIdentity;
  readonly clock: Clock;
}

export interface OpenPeers extends Peers {
  close(): void;
}

export function createPeers(options: PeersOptions): OpenPeers {
  const connections = createNodeConnections(options);
  return {
    async open(node, { signal = new AbortController().signal }): Promise<Duplex> {
      const headers = { Connection: 'Upgrade', Upgrade: MIGRATION_PROTOCOL };
      const { connection, head } = await connections.upgrade({ node, path: MIGRATIONS_PATH, signal }, headers);
      // Nodes of one machine share an address, and ports are reused: another node may listen there now.
      const name = (connection as Partial<TLSSocket>).getPeerCertificate?.().subject?.CN;
      if (name !== node && name !== userOfNode(node)) {
        connection.destroy();
        throw new Error(`Cannot reach the agent of node "${node}": "${String(name)}" responds at its address`);
      }
      if (head.length > 0) connection.unshift(head);
      return connection;
    },
    close: () => connections.close(),
  };
}
