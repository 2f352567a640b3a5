/** Connections to the agents of other nodes. Both sides are authenticated as their nodes. */
import type { Duplex } from 'node:stream';

export interface Peers {
  /** Opens a stream to the agent of a node, which receives it with `accept` (endpoint-agent.ts). Rejects if there is none. */
  open(node: string, options: { readonly signal?: AbortSignal }): Promise<Duplex>;
}
