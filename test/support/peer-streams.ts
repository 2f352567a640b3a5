/**
 * Streams between agents in one process, in place of TLS between nodes. They report each message, so that a test can
 * crash an agent after any of them. The streams of a node break when its agent crashes.
 */
import { duplexPair, PassThrough, type Duplex } from 'node:stream';
import type { Peers } from '#node/migration/peers.ts';
import type { MigrationAcceptor } from '#node/endpoint/endpoint-agent.ts';

export interface PeerMessage {
  readonly from: string;
  readonly to: string;
  readonly type: string;
}

interface Connection {
  readonly nodes: readonly [string, string];
  readonly ends: readonly Duplex[];
}

export class PeerStreams {
  /** Called with each message before it is passed on. If the call breaks a node's streams, the message is lost. */
  onMessage: ((message: PeerMessage) => void) | undefined;
  readonly #connections = new Set<Connection>();
  readonly #gateOf: (node: string) => MigrationAcceptor | undefined;

  /** `gateOf` returns undefined while no agent runs on the node. */
  constructor(gateOf: (node: string) => MigrationAcceptor | undefined) {
    this.#gateOf = gateOf;
  }

  peersOf(from: string): Peers {
    return {
      open: async (to) => {
        const gate = this.#gateOf(to);
        if (gate === undefined) throw new Error(`Cannot reach the agent of node "${to}": no connection`);
        const [near, nearWire] = duplexPair();
        const [far, farWire] = duplexPair();
        const line: Connection = { nodes: [from, to], ends: [near, nearWire, far, farWire] };
        this.#connections.add(line);
        for (const end of line.ends) {
          end.on('error', () => {});
          end.once('close', () => this.#break(line));
        }
        this.#carry(nearWire, farWire, { from, to });
        this.#carry(farWire, nearWire, { from: to, to: from });
        void gate.accept(from, far).catch(() => this.#break(line));
        return near;
      },
    };
  }

  /** Breaks all streams from and to this node. */
  breakStreams(node: string): void {
    for (const line of this.#connections) if (line.nodes.includes(node)) this.#break(line);
  }

  #carry(source: Duplex, target: Duplex, route: { readonly from: string; readonly to: string }): void {
    let rest = '';
    const lines = new PassThrough();
    source.pipe(lines);
    lines.on('data', (chunk: Buffer) => {
      const parts = (rest + chunk.toString('utf8')).split('\n');
      rest = parts.pop() ?? '';
      for (const text of parts) {
        const { type } = JSON.parse(text) as { type: string };
        if (type !== 'still-there') this.onMessage?.({ ...route, type });
        if (!target.destroyed) target.write(`${text}\n`);
      }
    });
    lines.on('end', () => target.end());
  }

  #break(line: Connection): void {
    if (!this.#connections.delete(line)) return;
    for (const end of line.ends) end.destroy();
  }
}
