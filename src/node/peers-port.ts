/** How this agent reaches those of other nodes, as itself: both sides know who the other is. */
import type { Duplex } from 'node:stream';

export interface Peers {
  /** A stream to the agent of that node, which gets it with `accept` (endpoint-agent.ts). Rejects where there is none. */
  open(node: string, options: { readonly signal?: AbortSignal }): Promise<Duplex>;
}
